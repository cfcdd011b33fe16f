#include "lib/documents/epub_package.h"

#include <algorithm>
#include <climits>
#include <unordered_map>
#include <utility>

#include "lib/documents/encoding.h"
#include "lib/documents/labels.h"
#include "lib/documents/outline.h"
#include "lib/documents/text_writer.h"
#include "lib/documents/xml.h"

namespace tiercel::document {
namespace {

// The most nesting of lists; no table of contents has so much.
constexpr int kMaxListDepth = 32;

struct ManifestItem {
  std::string href;
  std::string type;
  std::string properties;
  std::string fallback;  // the id of another item, or empty
};
using Manifest = std::unordered_map<std::string, ManifestItem>;  // by id

bool ListHas(std::string_view words, std::string_view word) {
  return (" " + std::string(words) + " ").find(" " + std::string(word) + " ") !=
         std::string::npos;
}

// Returns what the package says of an element by a <meta> of its own: "role",
// "title-type". Empty if it says nothing.
std::string Refinement(const xmlNode* metadata, const xmlNode* element,
                       std::string_view property) {
  const std::string id = Attribute(element, "id");
  if (id.empty()) return {};
  for (const xmlNode* node = metadata->children; node != nullptr;
       node = node->next) {
    if (LocalName(*node) == "meta" && Attribute(node, "property") == property &&
        Attribute(node, "refines") == "#" + id) {
      return TextOf(node);
    }
  }
  return {};
}

// The people who made a book, by their MARC relators. Where a book names
// authors, the others are none; a book of an editor has no author.
class Creators {
 public:
  // `place` is that which the book gives a name among the others; 0: none.
  void Add(std::string name, std::string_view role, int place) {
    if (name.empty() || role == "bkp") return;  // a program or its user
    const size_t rank = role == "aut" ? 0 : role.empty() ? 1 : 2;
    names_[rank].emplace_back(place > 0 ? place : INT_MAX, std::move(name));
  }

  std::string Authors() {
    for (auto& names : names_) {
      std::stable_sort(
          names.begin(), names.end(),
          [](const auto& a, const auto& b) { return a.first < b.first; });
      std::string authors;
      for (const auto& [place, name] : names) {
        if (!authors.empty()) authors += ", ";
        authors += name;
      }
      if (!authors.empty()) return authors;
    }
    return {};
  }

 private:
  // Authors, people without a role, others; each by place.
  std::vector<std::pair<int, std::string>> names_[3];
};

void ReadMetadata(const xmlNode* metadata, EpubPackage* package) {
  if (metadata == nullptr) return;
  Creators creators;
  bool is_main = false;
  for (const xmlNode* node = metadata->children; node != nullptr;
       node = node->next) {
    // The first EPUBs had an element around these, and names in upper case.
    const bool is_old = LocalName(*node) == "dc-metadata";
    const xmlNode* child = is_old ? node->children : node;
    for (; child != nullptr; child = is_old ? child->next : nullptr) {
      const std::string name = Lowercase(LocalName(*child));
      if (name == "title" && !is_main) {
        is_main = Refinement(metadata, child, "title-type") == "main";
        if (is_main || package->title.empty()) package->title = TextOf(child);
      } else if (name == "language" && package->language.empty()) {
        package->language = TextOf(child);
      } else if (name == "creator") {
        std::string role = Attribute(child, "role");
        if (role.empty()) role = Refinement(metadata, child, "role");
        creators.Add(TextOf(child), role,
                     NumberOf(Refinement(metadata, child, "display-seq")));
      }
    }
  }
  package->author = creators.Authors();
}

// Returns the element around a node, within `root`, that stands on lines of its
// own.
const xmlNode* BlockOf(const xmlNode* node, const xmlNode* root) {
  while (node != root) {
    const std::string_view name = LocalName(*node);
    if (name == "p" || name == "div") break;
    node = node->parent;
  }
  return node;
}

// Returns the words of an entry of a list, on one line: with the words of its
// images, without readings beside Chinese characters. Lines and blocks are
// apart, and so are a number and a title in elements of their own.
std::string WordsOf(const xmlNode* entry) {
  std::string words;
  const xmlNode* block = entry;
  for (const xmlNode* node = entry; node != nullptr; node = Next(entry, node)) {
    const std::string_view name = LocalName(*node);
    if (name == "br") words += ' ';
    std::string text = name == "img" ? Attribute(node, "alt") : "";
    const bool is_text =
        node->type == XML_TEXT_NODE || node->type == XML_CDATA_SECTION_NODE;
    const std::string_view around = LocalName(*node->parent);
    if (is_text && around != "rt" && around != "rp") text = View(node->content);
    if (text.empty()) continue;
    const xmlNode* const here = BlockOf(node, entry);
    if (here != block || AreGlued(words, text)) words += ' ';
    block = here;
    words += text;
  }
  words = OneLine(words);
  return words.empty() ? OneLine(Attribute(entry, "title")) : words;
}

// Adds the entries of a list of EPUB 3: each item has a link or a span, and may
// have another list.
void AddList(const xmlNode* list, int level, int depth, const std::string& path,
             std::vector<NavEntry>* entries) {
  if (list == nullptr || depth > kMaxListDepth) return;
  for (const xmlNode* item = list->children; item != nullptr;
       item = item->next) {
    if (LocalName(*item) != "li") continue;
    const xmlNode* label = Child(item, "a");
    const xmlNode* const inner = Child(item, "ol");
    int inner_level = level;
    if (label == nullptr) label = Child(item, "span");
    if (label != nullptr) {
      std::string href = Attribute(label, "href");
      // A part without a page of its own begins with its first chapter.
      if (href.empty()) href = Attribute(Find(inner, "a"), "href");
      const std::optional<Place> place =
          href.empty() ? std::nullopt : Resolve(path, href);
      std::string text = WordsOf(label);
      if (place.has_value() && !text.empty()) {
        entries->push_back({level, std::move(text), *place});
        ++inner_level;
      }
    }
    AddList(inner, inner_level, depth + 1, path, entries);
  }
}

std::optional<NavEntry> NcxEntry(const xmlNode* point, int level,
                                 const std::string& path) {
  const std::optional<Place> place =
      Resolve(path, Attribute(Child(point, "content"), "src"));
  std::string text = TextOf(Child(Child(point, "navLabel"), "text"));
  if (!place.has_value() || text.empty()) return std::nullopt;
  return NavEntry{level, std::move(text), *place};
}

void AddPoints(const xmlNode* parent, int level, const std::string& path,
               std::vector<NavEntry>* entries) {
  if (parent == nullptr || level > kMaxListDepth) return;
  for (const xmlNode* point = parent->children; point != nullptr;
       point = point->next) {
    if (LocalName(*point) != "navPoint") continue;
    std::optional<NavEntry> entry = NcxEntry(point, level, path);
    // Sphinx lists a chapter once more as the first section of itself.
    const bool is_again =
        entry.has_value() && !entries->empty() && level > 1 &&
        entries->back().level == level - 1 &&
        entries->back().text == entry->text &&
        entries->back().place.path == entry->place.path &&
        entries->back().place.fragment == entry->place.fragment;
    if (entry.has_value() && !is_again) entries->push_back(*std::move(entry));
    AddPoints(point, level + 1, path, entries);
  }
}

// Returns the item with an id, or the first page of those that it names in its
// stead, if it is none (a picture with a description); null if there is no such
// item.
const ManifestItem* PageFor(const Manifest& manifest, const std::string& id) {
  constexpr int kMostFallbacks = 16;
  const auto first = manifest.find(id);
  if (first == manifest.end()) return nullptr;
  const ManifestItem* item = &first->second;
  for (int i = 0; i < kMostFallbacks; ++i) {
    if (item->type == "application/xhtml+xml" || item->type == "text/html") {
      return item;
    }
    const auto next = manifest.find(item->fallback);
    if (next == manifest.end()) break;
    item = &next->second;
  }
  return &first->second;
}

}  // namespace

std::optional<std::string> PackagePath(std::string_view container) {
  const XmlTree xml(container, XmlTree::Repair::kParts);
  const xmlNode* const first = Find(xml.root(), "rootfile");
  std::string path = Attribute(first, "full-path");
  // A book may come in other formats beside the EPUB.
  for (const xmlNode* file = first; file != nullptr; file = file->next) {
    const std::string type = Attribute(file, "media-type");
    if (LocalName(*file) == "rootfile" &&
        (type.empty() || type == "application/oebps-package+xml")) {
      path = Attribute(file, "full-path");
      break;
    }
  }
  if (path.empty()) return std::nullopt;
  const std::optional<Place> place = Resolve("", path);
  if (!place.has_value()) return std::nullopt;
  return place->path;
}

std::vector<std::string> EncryptedPaths(std::string_view encryption) {
  const XmlTree xml(encryption, XmlTree::Repair::kParts);
  const xmlNode* const root = xml.root();
  std::vector<std::string> paths;
  for (const xmlNode* node = Find(root, "EncryptedData"); node != nullptr;
       node = Next(root, node)) {
    if (LocalName(*node) != "EncryptedData") continue;
    const std::string algorithm =
        Attribute(Child(node, "EncryptionMethod"), "Algorithm");
    // These two algorithms only obfuscate the first bytes of fonts.
    if (algorithm == "http://www.idpf.org/2008/embedding" ||
        algorithm == "http://ns.adobe.com/pdf/enc#RC") {
      continue;
    }
    const std::optional<Place> place =
        Resolve("", Attribute(Find(node, "CipherReference"), "URI"));
    if (place.has_value()) paths.push_back(place->path);
  }
  return paths;
}

EpubPackage ParsePackage(std::string_view opf, const std::string& path) {
  const XmlTree xml(opf, XmlTree::Repair::kParts);
  const xmlNode* const root = Find(xml.root(), "package");
  EpubPackage package;
  ReadMetadata(Child(root, "metadata"), &package);
  const auto path_of = [&](const std::string& href) {
    const std::optional<Place> place = Resolve(path, href);
    if (!place.has_value()) package.outside = href;
    return place.has_value() ? std::optional(place->path) : std::nullopt;
  };
  Manifest manifest;
  for (const xmlNode* item = Child(Child(root, "manifest"), "item");
       item != nullptr; item = item->next) {
    const ManifestItem entry = {
        Attribute(item, "href"), Attribute(item, "media-type"),
        Attribute(item, "properties"), Attribute(item, "fallback")};
    if (entry.href.empty()) continue;
    manifest.emplace(Attribute(item, "id"), entry);
    if (ListHas(entry.properties, "nav")) package.nav = path_of(entry.href);
    if (entry.type == "application/x-dtbncx+xml") {
      package.ncx = path_of(entry.href);
    }
  }
  std::vector<std::string> aside;
  for (const xmlNode* ref = Child(Child(root, "spine"), "itemref");
       ref != nullptr; ref = ref->next) {
    const ManifestItem* const item = PageFor(manifest, Attribute(ref, "idref"));
    if (item == nullptr) continue;
    std::optional<std::string> page = path_of(item->href);
    if (!page.has_value()) continue;
    auto& pages = Attribute(ref, "linear") == "no" ? aside : package.spine;
    pages.push_back(*std::move(page));
  }
  package.spine.insert(package.spine.end(), aside.begin(), aside.end());
  return package;
}

Navigation ParseNav(std::string_view xhtml, const std::string& path) {
  const XmlTree xml(xhtml, XmlTree::Repair::kParts);
  const xmlNode* const root = xml.root();
  Navigation navigation;
  for (const xmlNode* node = Find(root, "nav"); node != nullptr;
       node = Next(root, node)) {
    if (LocalName(*node) != "nav") continue;
    const std::string type = Attribute(node, "type");
    if (ListHas(type, "toc") && navigation.contents.empty()) {
      AddList(Child(node, "ol"), 1, 1, path, &navigation.contents);
    } else if (ListHas(type, "page-list") && navigation.pages.empty()) {
      AddList(Child(node, "ol"), 1, 1, path, &navigation.pages);
    }
  }
  return navigation;
}

Navigation ParseNcx(std::string_view ncx, const std::string& path) {
  const XmlTree xml(ncx, XmlTree::Repair::kParts);
  Navigation navigation;
  AddPoints(Find(xml.root(), "navMap"), 1, path, &navigation.contents);
  for (const xmlNode* target =
           Child(Find(xml.root(), "pageList"), "pageTarget");
       target != nullptr; target = target->next) {
    std::optional<NavEntry> entry = NcxEntry(target, 1, path);
    if (entry.has_value()) navigation.pages.push_back(*std::move(entry));
  }
  return navigation;
}

}  // namespace tiercel::document

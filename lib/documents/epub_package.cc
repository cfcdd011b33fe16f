#include "lib/documents/epub_package.h"

#include <pugixml.hpp>
#include <unordered_map>
#include <utility>

#include "lib/documents/text_writer.h"

namespace tiercel::document {
namespace {

// The most nesting of lists; no table of contents has so much.
constexpr int kMaxDepth = 32;

// Returns "creator" for "dc:creator": a file may choose its namespace prefixes.
std::string_view LocalName(const pugi::xml_node& node) {
  const std::string_view name = node.name();
  const size_t colon = name.find(':');
  return colon == std::string_view::npos ? name : name.substr(colon + 1);
}

std::string_view LocalAttribute(const pugi::xml_node& node,
                                std::string_view name) {
  for (const pugi::xml_attribute& attribute : node.attributes()) {
    std::string_view full = attribute.name();
    const size_t colon = full.find(':');
    if (colon != std::string_view::npos) full.remove_prefix(colon + 1);
    if (full == name) return attribute.value();
  }
  return {};
}

// Returns the node that follows `node` in the order of the file, within `root`;
// null at its end. It does not recurse: a file may be nested as deeply as it is
// long.
pugi::xml_node Next(const pugi::xml_node& root, pugi::xml_node node) {
  if (node.first_child()) return node.first_child();
  while (node != root && !node.next_sibling()) node = node.parent();
  return node == root ? pugi::xml_node() : node.next_sibling();
}

// Returns the first element below `root` with a name; null if there is none.
pugi::xml_node Find(const pugi::xml_node& root, std::string_view name) {
  pugi::xml_node node = root;
  while (node && (node == root || LocalName(node) != name)) {
    node = Next(root, node);
  }
  return node;
}

pugi::xml_node Child(const pugi::xml_node& node, std::string_view name) {
  for (const pugi::xml_node& child : node.children()) {
    if (LocalName(child) == name) return child;
  }
  return {};
}

std::string TextOf(const pugi::xml_node& root) {
  std::string text;
  for (pugi::xml_node node = root; node; node = Next(root, node)) {
    text += node.value();
  }
  return OneLine(text);
}

void Load(std::string_view bytes, pugi::xml_document* document) {
  // The status is ignored: a broken file is read up to the error.
  document->load_buffer(bytes.data(), bytes.size(),
                        pugi::parse_default | pugi::parse_ws_pcdata_single);
}

struct ManifestItem {
  std::string href;
  std::string_view type;
  std::string_view properties;
};

bool ListHas(std::string_view words, std::string_view word) {
  return (" " + std::string(words) + " ").find(" " + std::string(word) + " ") !=
         std::string::npos;
}

void ReadMetadata(const pugi::xml_node& metadata, EpubPackage* package) {
  for (const pugi::xml_node& child : metadata.children()) {
    const std::string_view name = LocalName(child);
    if (name == "title" && package->title.empty()) {
      package->title = TextOf(child);
    } else if (name == "language" && package->language.empty()) {
      package->language = TextOf(child);
    } else if (name == "creator") {
      const std::string author = TextOf(child);
      if (author.empty()) continue;
      if (!package->author.empty()) package->author += ", ";
      package->author += author;
    } else if (name == "dc-metadata") {  // as the first EPUBs had it
      for (const pugi::xml_node& inner : child.children()) {
        const std::string_view local = LocalName(inner);
        if (local == "Title" || local == "title") {
          package->title = TextOf(inner);
        } else if (local == "Creator" || local == "creator") {
          package->author = TextOf(inner);
        } else if (local == "Language" || local == "language") {
          package->language = TextOf(inner);
        }
      }
    }
  }
}

// Adds the entries of a list of EPUB 3: each item has a link or a span, and may
// have another list.
void AddList(const pugi::xml_node& list, int level, int depth,
             const std::string& path, std::vector<NavEntry>* entries) {
  if (depth > kMaxDepth) return;
  for (const pugi::xml_node& item : list.children()) {
    if (LocalName(item) != "li") continue;
    pugi::xml_node label = Child(item, "a");
    const pugi::xml_node inner = Child(item, "ol");
    int inner_level = level;
    if (!label) label = Child(item, "span");
    if (label) {
      std::string_view href = LocalAttribute(label, "href");
      // A part without a page of its own begins with its first chapter.
      if (href.empty()) {
        href = LocalAttribute(Find(inner, "a"), "href");
      }
      const std::optional<Place> place =
          href.empty() ? std::nullopt : Resolve(path, href);
      std::string text = TextOf(label);
      if (place.has_value() && !text.empty()) {
        entries->push_back({level, std::move(text), *place});
        ++inner_level;
      }
    }
    if (inner) AddList(inner, inner_level, depth + 1, path, entries);
  }
}

std::optional<NavEntry> NcxEntry(const pugi::xml_node& point, int level,
                                 const std::string& path) {
  const std::optional<Place> place =
      Resolve(path, LocalAttribute(Child(point, "content"), "src"));
  std::string text = TextOf(Child(Child(point, "navLabel"), "text"));
  if (!place.has_value() || text.empty()) return std::nullopt;
  return NavEntry{level, std::move(text), *place};
}

void AddPoints(const pugi::xml_node& parent, int level, const std::string& path,
               std::vector<NavEntry>* entries) {
  if (level > kMaxDepth) return;
  for (const pugi::xml_node& point : parent.children()) {
    if (LocalName(point) != "navPoint") continue;
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

}  // namespace

std::optional<std::string> PackagePath(std::string_view container) {
  pugi::xml_document document;
  Load(container, &document);
  const pugi::xml_node root = Find(document, "rootfile");
  const std::string_view path = LocalAttribute(root, "full-path");
  if (path.empty()) return std::nullopt;
  const std::optional<Place> place = Resolve("", path);
  if (!place.has_value()) return std::nullopt;
  return place->path;
}

bool IsEncrypted(std::string_view encryption) {
  pugi::xml_document document;
  Load(encryption, &document);
  for (pugi::xml_node node = document; node; node = Next(document, node)) {
    if (LocalName(node) != "EncryptedData") continue;
    const std::string_view algorithm =
        LocalAttribute(Child(node, "EncryptionMethod"), "Algorithm");
    // These two algorithms only obfuscate the first bytes of fonts.
    if (algorithm != "http://www.idpf.org/2008/embedding" &&
        algorithm != "http://ns.adobe.com/pdf/enc#RC") {
      return true;
    }
  }
  return false;
}

EpubPackage ParsePackage(std::string_view opf, const std::string& path) {
  pugi::xml_document document;
  Load(opf, &document);
  const pugi::xml_node root = Find(document, "package");
  EpubPackage package;
  ReadMetadata(Child(root, "metadata"), &package);
  std::unordered_map<std::string_view, ManifestItem> manifest;
  const auto path_of = [&](const std::string& href) {
    const std::optional<Place> place = Resolve(path, href);
    if (!place.has_value()) package.outside = href;
    return place.has_value() ? std::optional(place->path) : std::nullopt;
  };
  for (const pugi::xml_node& item : Child(root, "manifest").children()) {
    const ManifestItem entry = {std::string(LocalAttribute(item, "href")),
                                LocalAttribute(item, "media-type"),
                                LocalAttribute(item, "properties")};
    if (entry.href.empty()) continue;
    manifest.emplace(LocalAttribute(item, "id"), entry);
    if (ListHas(entry.properties, "nav")) package.nav = path_of(entry.href);
    if (entry.type == "application/x-dtbncx+xml") {
      package.ncx = path_of(entry.href);
    }
  }
  std::vector<std::string> aside;
  for (const pugi::xml_node& ref : Child(root, "spine").children()) {
    const auto item = manifest.find(LocalAttribute(ref, "idref"));
    if (item == manifest.end()) continue;
    std::optional<std::string> page = path_of(item->second.href);
    if (!page.has_value()) continue;
    auto& pages = LocalAttribute(ref, "linear") == "no" ? aside : package.spine;
    pages.push_back(*std::move(page));
  }
  package.spine.insert(package.spine.end(), aside.begin(), aside.end());
  return package;
}

Navigation ParseNav(std::string_view xhtml, const std::string& path) {
  pugi::xml_document document;
  Load(xhtml, &document);
  Navigation navigation;
  for (pugi::xml_node node = document; node; node = Next(document, node)) {
    if (LocalName(node) != "nav") continue;
    const std::string_view type = LocalAttribute(node, "type");
    if (ListHas(type, "toc") && navigation.contents.empty()) {
      AddList(Child(node, "ol"), 1, 1, path, &navigation.contents);
    } else if (ListHas(type, "page-list") && navigation.pages.empty()) {
      AddList(Child(node, "ol"), 1, 1, path, &navigation.pages);
    }
  }
  return navigation;
}

Navigation ParseNcx(std::string_view ncx, const std::string& path) {
  pugi::xml_document document;
  Load(ncx, &document);
  Navigation navigation;
  AddPoints(Find(document, "navMap"), 1, path, &navigation.contents);
  for (const pugi::xml_node& target : Find(document, "pageList").children()) {
    std::optional<NavEntry> entry = NcxEntry(target, 1, path);
    if (entry.has_value()) navigation.pages.push_back(*std::move(entry));
  }
  return navigation;
}

}  // namespace tiercel::document

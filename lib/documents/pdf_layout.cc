#include "lib/documents/pdf_layout.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <pugixml.hpp>
#include <utility>

#include "lib/documents/encoding.h"
#include "lib/documents/text_writer.h"
#include "lib/documents/unicode.h"

namespace tiercel::document {
namespace {

constexpr std::string_view kPageEnd = "</page>";
// A page with more text than this makes no sense to a reader.
constexpr size_t kMaxPageBytes = size_t{32} << 20;
constexpr int kMaxOutlineDepth = 32;

PdfBox BoxOf(const pugi::xml_node& node) {
  return {node.attribute("xMin").as_float(), node.attribute("yMin").as_float(),
          node.attribute("xMax").as_float(), node.attribute("yMax").as_float()};
}

// Replaces ligatures by their letters.
std::string WithoutLigatures(std::string word) {
  constexpr std::pair<std::string_view, std::string_view> kLigatures[] = {
      {"\uFB00", "ff"},  {"\uFB01", "fi"},  {"\uFB02", "fl"},
      {"\uFB03", "ffi"}, {"\uFB04", "ffl"}, {"\uFB06", "st"}};
  for (const auto& [sign, letters] : kLigatures) {
    for (size_t at = word.find(sign); at != std::string::npos;
         at = word.find(sign, at)) {
      word.replace(at, sign.size(), letters);
    }
  }
  return word;
}

// Writes '-' for the other signs of a word that goes on: U+2010 and, at the end
// of a line, the soft hyphen.
std::string WithHyphens(std::string word) {
  constexpr std::string_view kHyphen = "\u2010";
  constexpr std::string_view kSoftHyphen = "\u00AD";
  for (size_t at = word.find(kHyphen); at != std::string::npos;
       at = word.find(kHyphen, at)) {
    word.replace(at, kHyphen.size(), "-");
  }
  const size_t end = word.size() - std::min(word.size(), kSoftHyphen.size());
  if (word.compare(end, kSoftHyphen.size(), kSoftHyphen) == 0) {
    word.replace(end, kSoftHyphen.size(), "-");
  }
  return word;
}

// The usual height of letters, by counts of letters.
class Sizes {
 public:
  void Add(const PdfLine& line) {
    for (const PdfWord& word : line.words) {
      letters_[static_cast<int>(std::lround(word.box.height() * 10))] +=
          word.text.size();
    }
  }
  float Usual() const {
    const auto most = std::max_element(
        letters_.begin(), letters_.end(),
        [](const auto& a, const auto& b) { return a.second < b.second; });
    return most == letters_.end() ? 0 : static_cast<float>(most->first) / 10;
  }

 private:
  std::map<int, size_t> letters_;  // by height in tenths of a point
};

PdfBlock BlockOf(const pugi::xml_node& node) {
  PdfBlock block = {BoxOf(node), 0, {}};
  for (const pugi::xml_node& line_node : node.children("line")) {
    PdfLine line = {BoxOf(line_node), {}};
    for (const pugi::xml_node& word : line_node.children("word")) {
      std::string text =
          WithoutLigatures(OneLine(WithHyphens(word.child_value())));
      if (!text.empty()) line.words.push_back({BoxOf(word), std::move(text)});
    }
    if (!line.words.empty()) block.lines.push_back(std::move(line));
  }
  return block;
}

// Returns true for a single word in the page's upper or lower margin.
bool IsWordAtEdge(const PdfBlock& block, const PdfPage& page) {
  constexpr float kEdge = 0.15F;  // share of the page's height
  return block.lines.size() == 1 && block.lines[0].words.size() == 1 &&
         (block.box.bottom < kEdge * page.height ||
          block.box.top > (1 - kEdge) * page.height);
}

// The usual distance from a row of the page to the next.
float PitchOf(const PdfPage& page) {
  std::vector<float> tops;
  for (const PdfBlock& block : page.blocks) {
    for (const PdfLine& line : block.lines) tops.push_back(line.box.top);
  }
  std::sort(tops.begin(), tops.end());
  std::vector<float> steps;
  for (size_t i = 1; i < tops.size(); ++i) {
    if (tops[i] - tops[i - 1] > 1) steps.push_back(tops[i] - tops[i - 1]);
  }
  return MedianOf(std::move(steps));
}

void AddItems(const pugi::xml_node& outline, int level,
              std::vector<PdfOutlineItem>* items) {
  if (level > kMaxOutlineDepth) return;
  for (const pugi::xml_node& child : outline.children()) {
    const std::string_view name = child.name();
    if (name == "item") {
      const int page = child.attribute("page").as_int();
      std::string text = OneLine(child.child_value());
      if (text.empty()) continue;
      items->push_back({level,
                        page > 0 ? std::optional(static_cast<size_t>(page) - 1)
                                 : std::nullopt,
                        std::move(text)});
    } else if (name == "outline") {
      AddItems(child, level + 1, items);
    }
  }
}

}  // namespace

void ForEachBox(PdfPage* page, const std::function<void(PdfBox*)>& change) {
  for (PdfBlock& block : page->blocks) {
    change(&block.box);
    for (PdfLine& line : block.lines) {
      change(&line.box);
      for (PdfWord& word : line.words) change(&word.box);
    }
  }
}

void WidenColumns(PdfPage* page) {
  for (PdfBlock& block : page->blocks) {
    block.column_right = block.box.right;
    for (const PdfBlock& other : page->blocks) {
      if (other.box.left < block.box.right &&
          other.box.right > block.box.left) {
        block.column_right = std::max(block.column_right, other.box.right);
      }
    }
  }
}

void JoinPartedBlocks(PdfPage* page) {
  constexpr float kAligned = 4;   // points
  constexpr float kIndents = 3;   // letters by which a first line is indented
  constexpr float kLeast = 0.5F;  // share of the usual distance of rows
  constexpr float kMost = 1.2F;
  const float pitch = PitchOf(*page);
  std::vector<PdfBlock> joined;
  for (PdfBlock& block : page->blocks) {
    const auto is_next = [&](const PdfBlock& last) {
      const float step =
          block.lines.front().box.top - last.lines.back().box.top;
      const float height = LetterHeight(block.lines.front());
      const float indent = last.box.left - block.box.left;
      const bool is_first =
          last.lines.size() == 1 && indent > 0 && indent < kIndents * height;
      return step > kLeast * pitch && step < kMost * pitch &&
             (is_first || std::abs(indent) < kAligned) &&
             std::abs(height - LetterHeight(last.lines.back())) < 0.5F;
    };
    if (joined.empty() || !is_next(joined.back())) {
      joined.push_back(std::move(block));
      continue;
    }
    PdfBlock& last = joined.back();
    last.box.left = std::min(last.box.left, block.box.left);
    last.box.right = std::max(last.box.right, block.box.right);
    last.box.bottom = block.box.bottom;
    for (PdfLine& line : block.lines) last.lines.push_back(std::move(line));
  }
  page->blocks = std::move(joined);
  WidenColumns(page);
}

void EraseEmpty(PdfPage* page) {
  for (PdfBlock& block : page->blocks) {
    std::erase_if(block.lines,
                  [](const PdfLine& line) { return line.words.empty(); });
  }
  std::erase_if(page->blocks,
                [](const PdfBlock& block) { return block.lines.empty(); });
}

float MedianOf(std::vector<float> sizes) {
  if (sizes.empty()) return 0;
  const auto middle =
      sizes.begin() + static_cast<std::ptrdiff_t>(sizes.size() / 2);
  std::nth_element(sizes.begin(), middle, sizes.end());
  return *middle;
}

float LetterHeight(const PdfLine& line) {
  Sizes sizes;
  sizes.Add(line);
  return sizes.Usual();
}

float BodyHeight(const std::vector<PdfPage>& pages) {
  Sizes sizes;
  for (const PdfPage& page : pages) {
    for (const PdfBlock& block : page.blocks) {
      for (const PdfLine& line : block.lines) sizes.Add(line);
    }
  }
  return sizes.Usual();
}

bool IsNoteNumber(std::string_view text) {
  constexpr size_t kMaxDigits = 3;
  return !text.empty() && text.size() <= kMaxDigits &&
         text.find_first_not_of("0123456789") == std::string_view::npos;
}

bool IsRaised(const PdfWord& word, const PdfLine& line) {
  constexpr float kRaised = 0.85F;  // share of the height of a line's letters
  constexpr float kAbove = 0.05F;   // share of the line's
  return word.box.height() < kRaised * LetterHeight(line) &&
         word.box.bottom < line.box.bottom - kAbove * line.box.height();
}

bool IsRaisedNumber(const PdfWord& word, const PdfLine& line) {
  return IsNoteNumber(word.text) && IsRaised(word, line);
}

bool EndsSentence(const PdfLine& line) {
  const std::string_view text = line.words.back().text;
  const size_t end = text.find_last_not_of("\"')]”’»");
  if (end == std::string_view::npos) return false;
  const char last = text[end];
  return last == '.' || last == '!' || last == '?' || last == ':' ||
         (end >= 2 &&
          (text.substr(end - 2, 3) == "。" || text.substr(end - 2, 3) == "！" ||
           text.substr(end - 2, 3) == "？"));
}

bool HasRoomFor(const PdfLine& next, const PdfLine& line, float right) {
  const PdfWord& word = next.words.front();
  if (line.words.back().text.back() == '-') return false;
  size_t unused = 0;
  const char32_t first = CharacterAt(word.text, 0, &unused);
  // A line may end between any two ideographs.
  const float width = IsIdeographic(first) ? LetterHeight(next)
                                           : word.box.right - word.box.left;
  return line.box.right + width + 0.3F * LetterHeight(line) < right;
}

void PdfLayoutReader::Add(std::string_view bytes) {
  // The piece before may have ended within the mark.
  size_t searched =
      pending_.size() - std::min(pending_.size(), kPageEnd.size());
  pending_ += bytes;
  size_t begin = 0;
  for (;;) {
    const size_t end = pending_.find(kPageEnd, searched);
    if (end == std::string::npos) break;
    const size_t page = pending_.find("<page", begin);
    const size_t next = end + kPageEnd.size();
    if (page != std::string::npos && page < end) {
      if (pages_.empty()) {
        ReadHead(std::string_view(pending_).substr(begin, page - begin));
      }
      ReadPage(std::string_view(pending_).substr(page, next - page));
    }
    begin = searched = next;
  }
  pending_.erase(0, begin);
  if (pending_.size() > kMaxPageBytes) pending_.clear();
}

void PdfLayoutReader::ReadHead(std::string_view xml) {
  pugi::xml_document document;
  document.load_buffer(xml.data(), xml.size(), pugi::parse_default);
  const pugi::xml_node head = document.child("html").child("head");
  title_ = OneLine(head.child_value("title"));
  for (const pugi::xml_node& meta : head.children("meta")) {
    if (Lowercase(meta.attribute("name").value()) == "author") {
      author_ = OneLine(meta.attribute("content").value());
    }
  }
}

void PdfLayoutReader::ReadPage(std::string_view xml) {
  pugi::xml_document document;
  document.load_buffer(xml.data(), xml.size(), pugi::parse_default);
  const pugi::xml_node node = document.child("page");
  PdfPage page = {node.attribute("width").as_float(),
                  node.attribute("height").as_float(),
                  {}};
  for (const pugi::xml_node& flow : node.children("flow")) {
    const size_t first = page.blocks.size();
    float right = 0;
    for (const pugi::xml_node& block_node : flow.children("block")) {
      PdfBlock block = BlockOf(block_node);
      if (block.lines.empty()) continue;
      // A page's number between two columns may be in the flow of one.
      if (!IsWordAtEdge(block, page)) right = std::max(right, block.box.right);
      page.blocks.push_back(std::move(block));
    }
    for (size_t i = first; i < page.blocks.size(); ++i) {
      page.blocks[i].column_right = std::max(right, page.blocks[i].box.right);
    }
  }
  pages_.push_back(std::move(page));
}

std::vector<PdfOutlineItem> ReadPdfOutline(std::string_view xml) {
  constexpr std::string_view kBegin = "<outline>";
  constexpr std::string_view kEnd = "</outline>";
  // The pages before the outline need not be well-formed.
  const size_t begin = xml.find(kBegin);
  const size_t end = xml.rfind(kEnd);
  if (begin == std::string_view::npos || end == std::string_view::npos ||
      end < begin) {
    return {};
  }
  const std::string_view outline = xml.substr(begin, end + kEnd.size() - begin);
  pugi::xml_document document;
  document.load_buffer(outline.data(), outline.size(), pugi::parse_default);
  std::vector<PdfOutlineItem> items;
  AddItems(document.child("outline"), 1, &items);
  return items;
}

}  // namespace tiercel::document

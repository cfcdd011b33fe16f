#include "lib/documents/pdf_margins.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>

#include "lib/documents/labels.h"
#include "lib/documents/pdf_notes.h"
#include "lib/documents/text_writer.h"

namespace tiercel::document {
namespace {

enum class Edge { kTop, kBottom };

constexpr float kEdgeShare = 0.15F;   // share of a page's height
constexpr float kSameHeight = 3.0F;   // points
constexpr float kNearHeight = 12.0F;  // points: scanned pages are not even
constexpr float kApart = 1.1F;        // share of a line's height
constexpr float kFar = 1.3F;          // share of the gap between lines of text
constexpr float kTitle = 1.2F;        // share of the height of usual letters
constexpr float kVeryLarge = 1.45F;   // the same, of a title on many pages
constexpr size_t kMaxRowLines = 16;   // lines at one height of a margin
constexpr size_t kMinPages = 3;
constexpr size_t kNearPages = 4;  // on either side: heads may alternate

struct LineRef {
  size_t block;
  size_t line;
};

// The lines at one height at an edge of a page.
struct Row {
  bool is_apart = false;  // from what is next, by a gap
  bool is_far = false;    // by a larger gap than lines of text have
  float top = 0;
  std::vector<LineRef> lines;
  // The next row, if the two are apart from the text and not from each other.
  std::vector<LineRef> next;
};

const PdfLine& LineAt(const PdfPage& page, const LineRef& ref) {
  return page.blocks[ref.block].lines[ref.line];
}

// Returns the usual gap between lines of blocks; 0 if there is none.
float LineGap(const std::vector<PdfPage>& pages) {
  std::vector<float> gaps;
  for (const PdfPage& page : pages) {
    for (const PdfBlock& block : page.blocks) {
      for (size_t l = 1; l < block.lines.size(); ++l) {
        gaps.push_back(block.lines[l].box.top - block.lines[l - 1].box.bottom);
      }
    }
  }
  return MedianOf(std::move(gaps));
}

// Returns the outermost row at an edge; it has no lines if none is near the
// edge.
Row OutermostRow(const PdfPage& page, Edge edge, float line_gap) {
  Row row;
  std::optional<PdfBox> outermost;
  const auto is_further = [&](const PdfBox& box) {
    return edge == Edge::kTop ? box.top < outermost->top
                              : box.bottom > outermost->bottom;
  };
  for (const PdfBlock& block : page.blocks) {
    for (const PdfLine& line : block.lines) {
      if (!outermost.has_value() || is_further(line.box)) outermost = line.box;
    }
  }
  if (!outermost.has_value()) return row;
  const bool is_near = edge == Edge::kTop
                           ? outermost->top < page.height * kEdgeShare
                           : outermost->bottom > page.height * (1 - kEdgeShare);
  if (!is_near) return row;
  float gap = std::numeric_limits<float>::max();  // to the next row
  std::vector<std::pair<float, LineRef>> others;  // by their gaps
  row.top = outermost->top;
  for (size_t b = 0; b < page.blocks.size(); ++b) {
    for (size_t l = 0; l < page.blocks[b].lines.size(); ++l) {
      const PdfBox& box = page.blocks[b].lines[l].box;
      const float overlap = std::min(box.bottom, outermost->bottom) -
                            std::max(box.top, outermost->top);
      if (overlap > outermost->height() / 2) {
        row.lines.push_back({b, l});
      } else {
        gap = std::min(gap, -overlap);
        others.push_back({-overlap, {b, l}});
      }
    }
  }
  if (row.lines.size() > kMaxRowLines) return {};
  row.is_apart = gap >= kApart * outermost->height();
  row.is_far = row.is_apart && gap >= kFar * line_gap;
  if (row.is_apart) return row;
  const float height = outermost->height();
  for (const auto& [distance, line] : others) {
    if (distance < gap + height / 2) {
      row.next.push_back(line);
    } else if (distance < gap + (1 + kApart) * height) {
      row.next.clear();
      break;
    }
  }
  if (row.next.size() > kMaxRowLines) row.next.clear();
  return row;
}

std::string Unpunctuated(std::string_view word) {
  const size_t begin = word.find_first_not_of("-–—|[]()./ ");
  if (begin == std::string_view::npos) return {};
  return std::string(
      word.substr(begin, word.find_last_not_of("-|[]()./ ") + 1 - begin));
}

// Returns true if a line is a label such as "Chapter 3", whose number is not
// the page's.
bool IsLabel(const PdfLine& line) {
  std::string text;
  for (const PdfWord& word : line.words) text += word.text + " ";
  const Label label = SplitLabel(text);
  return label.rank != Rank::kNone && label.rank != Rank::kNumber &&
         label.title.empty();
}

bool HasWords(const PdfLine& line) {
  return std::any_of(line.words.begin(), line.words.end(),
                     [](const PdfWord& word) {
                       const std::string text = Unpunctuated(word.text);
                       return !text.empty() && NumberOf(text) == 0;
                     });
}

// Returns the first and the last word of a line that are no punctuation: 1 in
// "- 1 -".
std::pair<size_t, size_t> OuterWords(const PdfLine& line) {
  const auto is_mark = [&](size_t w) {
    return Unpunctuated(line.words[w].text).empty();
  };
  size_t first = 0;
  size_t last = line.words.size() - 1;
  while (first < last && is_mark(first)) ++first;
  while (first < last && is_mark(last)) --last;
  return {first, last};
}

// A page's number at either end of a row. A line of other words that is not
// apart from the text is a heading ("Psalm 23"), which has none.
struct NumberInRow {
  std::string text;
  int value;
  float top;
};
std::vector<NumberInRow> NumbersIn(const PdfPage& page, const Row& row,
                                   float body_height) {
  std::vector<NumberInRow> numbers;
  for (const LineRef& ref : row.lines) {
    const PdfLine& line = LineAt(page, ref);
    const bool has_words = HasWords(line);
    if (IsLabel(line) || (!row.is_apart && has_words)) continue;
    if (has_words && LetterHeight(line) > kTitle * body_height) continue;
    const auto [first, last] = OuterWords(line);
    for (const size_t w : {first, last}) {
      std::string text = Unpunctuated(line.words[w].text);
      const int value = NumberOf(text);
      const bool is_figure =
          !text.empty() &&
          text.find_first_not_of("0123456789") == std::string::npos;
      const bool is_roman =
          !text.empty() && text.find_first_not_of("ivxlc") == std::string::npos;
      if (value > 0 && (is_figure || is_roman)) {
        numbers.push_back({std::move(text), value, line.box.top});
      }
    }
  }
  return numbers;
}

// The offset of page numbers from page indices that most pages share. Front
// matter has Roman numbers, with an offset of its own.
struct Numbering {
  bool is_roman;
  int offset;
};

bool IsRoman(const std::string& number) { return number[0] > '9'; }

// Returns true if the leftmost line of a row is a note: in small print, with a
// number that is raised elsewhere on the page, or a sign that ends a word
// there.
bool IsNote(const PdfPage& page, const Row& row, float body_height) {
  const PdfLine* first = nullptr;
  for (const LineRef& ref : row.lines) {
    const PdfLine& line = LineAt(page, ref);
    if (first == nullptr || line.box.left < first->box.left) first = &line;
  }
  const auto is_small = [&](float height) {
    return height <= kSmallPrint * body_height;
  };
  if (first == nullptr || !is_small(LetterHeight(*first))) return false;
  const std::string label = Unpunctuated(first->words.front().text);
  const bool is_number = IsNoteNumber(label);
  const bool is_sign = std::find(std::begin(kNoteSigns), std::end(kNoteSigns),
                                 label) != std::end(kNoteSigns);
  if (!is_number && !is_sign) return false;
  for (const PdfBlock& block : page.blocks) {
    for (const PdfLine& line : block.lines) {
      for (const PdfWord& word : line.words) {
        if (&word == &first->words.front()) continue;
        const bool is_above = word.box.bottom < first->box.top;
        if (is_number
                ? word.text == label && is_above && is_small(word.box.height())
                : word.text.ends_with(label)) {
          return true;
        }
      }
    }
  }
  return is_number && IsRaised(first->words.front(), *first);
}

class Margins {
 public:
  Margins(const std::vector<PdfOutlineItem>& outline,
          std::vector<PdfPage>* pages)
      : pages_(pages),
        numbers_(pages->size()),
        titles_(pages->size()),
        body_height_(BodyHeight(*pages)),
        line_gap_(LineGap(*pages)) {
    for (const PdfOutlineItem& item : outline) {
      if (item.page.has_value() && *item.page < titles_.size()) {
        titles_[*item.page].insert(HeadingKey(item.text));
      }
    }
  }

  std::vector<std::string> Drop() {
    for (const Edge edge : {Edge::kTop, Edge::kBottom}) FindRows(edge);
    FindNumberings();
    FindTopNumbers();
    for (size_t p = 0; p < pages_->size(); ++p) NumberPage(p);
    // A head may have two lines. The second is dropped only for its own words.
    DropRows(/*is_first=*/true);
    for (const Edge edge : {Edge::kTop, Edge::kBottom}) FindRows(edge);
    DropRows(/*is_first=*/false);
    for (size_t p = 0; p < numbers_.size(); ++p) {
      if (numbers_[p].empty()) numbers_[p] = NumberByPlace(p);
    }
    return std::move(numbers_);
  }

 private:
  std::vector<Row>& RowsAt(Edge edge) {
    return edge == Edge::kTop ? top_rows_ : bottom_rows_;
  }

  void FindRows(Edge edge) {
    std::vector<Row>& rows = RowsAt(edge);
    rows.clear();
    for (const PdfPage& page : *pages_)
      rows.push_back(OutermostRow(page, edge, line_gap_));
  }

  void FindNumberings() {
    std::map<std::pair<bool, int>, size_t> counts;
    for (size_t p = 0; p < pages_->size(); ++p) {
      std::map<std::pair<bool, int>, bool> here;
      for (const Edge edge : {Edge::kTop, Edge::kBottom}) {
        for (const NumberInRow& n :
             NumbersIn((*pages_)[p], RowsAt(edge)[p], body_height_)) {
          here[{IsRoman(n.text), n.value - static_cast<int>(p)}] = true;
        }
      }
      for (const auto& [numbering, unused] : here) ++counts[numbering];
    }
    // A document of two pages has their numbers at the foot.
    const bool has_two =
        pages_->size() == 2 && FootIsNumber(0) && FootIsNumber(1);
    for (const bool is_roman : {false, true}) {
      size_t most = has_two ? 1 : kMinPages - 1;
      std::optional<Numbering> best;
      for (const auto& [numbering, count] : counts) {
        if (numbering.first != is_roman || count <= most) continue;
        most = count;
        best = {is_roman, numbering.second};
      }
      if (best.has_value()) numberings_.push_back(*best);
    }
  }

  bool FootIsNumber(size_t p) const {
    const Row& row = bottom_rows_[p];
    return row.is_apart && row.lines.size() == 1 &&
           !HasWords(LineAt((*pages_)[p], row.lines[0]));
  }

  // Returns true for a number that is the page's by the numbering.
  bool FollowsNumbering(size_t p, const std::string& text) const {
    const int value = NumberOf(text);
    return value > 0 &&
           std::any_of(numberings_.begin(), numberings_.end(),
                       [&](const Numbering& numbering) {
                         return numbering.is_roman == IsRoman(text) &&
                                numbering.offset + static_cast<int>(p) == value;
                       });
  }

  void FindTopNumbers() {
    for (size_t p = 0; p < pages_->size(); ++p) {
      for (const NumberInRow& n :
           NumbersIn((*pages_)[p], top_rows_[p], body_height_)) {
        if (FollowsNumbering(p, n.text)) top_numbers_.push_back(n.top);
      }
    }
    std::sort(top_numbers_.begin(), top_numbers_.end());
  }

  // Returns true for the page's number. One above the text stands at a height
  // where others do: the heading "1" on page 1 is none.
  bool IsPageNumber(size_t p, Edge edge, const std::string& text,
                    float top) const {
    if (!FollowsNumbering(p, text)) return false;
    if (edge == Edge::kBottom) return true;
    const auto first = std::lower_bound(top_numbers_.begin(),
                                        top_numbers_.end(), top - kNearHeight);
    const auto last =
        std::upper_bound(first, top_numbers_.end(), top + kNearHeight);
    return last - first >= static_cast<std::ptrdiff_t>(kMinPages);
  }

  void NumberPage(size_t p) {
    for (const Edge edge : {Edge::kTop, Edge::kBottom}) {
      for (const NumberInRow& n :
           NumbersIn((*pages_)[p], RowsAt(edge)[p], body_height_)) {
        if (IsPageNumber(p, edge, n.text, n.top)) numbers_[p] = n.text;
      }
    }
  }

  std::string NumberByPlace(size_t p) const {
    for (const Numbering& numbering : numberings_) {
      const int value = numbering.offset + static_cast<int>(p);
      if (!numbering.is_roman && value > 0) return std::to_string(value);
    }
    return std::to_string(p + 1);
  }

  // Returns the words of a line as a key, without the page's number.
  std::string KeyOf(size_t p, Edge edge, const PdfLine& line) const {
    std::string key;
    const bool is_label = IsLabel(line);
    const auto [first, last] = OuterWords(line);
    for (size_t w = 0; w < line.words.size(); ++w) {
      const bool is_outer = !is_label && (w == first || w == last);
      const std::string text = Unpunctuated(line.words[w].text);
      if (is_outer && !text.empty() &&
          IsPageNumber(p, edge, text, line.box.top)) {
        continue;
      }
      key += HeadingKey(line.words[w].text);
    }
    return key;
  }

  // Returns true if a line with the words of `line` stands at its height in the
  // same row of at least two other pages close by.
  bool StandsNearby(size_t p, Edge edge, const PdfLine& line,
                    std::vector<LineRef> Row::*lines) {
    const std::string key = KeyOf(p, edge, line);
    const size_t first = p - std::min(p, kNearPages);
    const size_t last = std::min(p + kNearPages, pages_->size() - 1);
    size_t count = 1;
    for (size_t other = first; other <= last; ++other) {
      if (other == p) continue;
      const std::vector<LineRef>& refs = RowsAt(edge)[other].*lines;
      count += static_cast<size_t>(
          std::any_of(refs.begin(), refs.end(), [&](const LineRef& ref) {
            const PdfLine& its = LineAt((*pages_)[other], ref);
            return std::abs(its.box.top - line.box.top) < kSameHeight &&
                   KeyOf(other, edge, its) == key;
          }));
    }
    return count >= kMinPages;
  }

  // Returns true for a row that is apart from the text, or the first of two
  // that are, if the second is one of a head, too.
  bool IsApart(size_t p, Edge edge) {
    const Row& row = RowsAt(edge)[p];
    return row.is_apart ||
           std::any_of(row.next.begin(), row.next.end(),
                       [&](const LineRef& ref) {
                         return StandsNearby(p, edge, LineAt((*pages_)[p], ref),
                                             &Row::next);
                       });
  }

  // Returns true for a title that the outline names on this page, unless it
  // stands there again.
  bool IsNamed(size_t p, const PdfLine& line) const {
    const std::string key = WordsKey(line);
    if (titles_[p].count(key) == 0) return false;
    size_t count = 0;
    for (const PdfBlock& block : (*pages_)[p].blocks) {
      for (const PdfLine& other : block.lines) {
        count += static_cast<size_t>(WordsKey(other) == key);
        if (count > 1) return false;
      }
    }
    return true;
  }

  static std::string WordsKey(const PdfLine& line) {
    std::string key;
    for (const PdfWord& word : line.words) key += HeadingKey(word.text);
    return key;
  }

  // Returns true for a title in large letters. The same words above three pages
  // are a head, unless they are very large; above a third of all pages they are
  // one in any size.
  bool IsTitle(const PdfLine& line) {
    const float height = LetterHeight(line);
    if (height <= kTitle * body_height_) return false;
    if (heads_.empty()) {
      for (size_t p = 0; p < pages_->size(); ++p) {
        for (const LineRef& ref : top_rows_[p].lines) {
          ++heads_[WordsKey(LineAt((*pages_)[p], ref))];
        }
      }
    }
    const std::string key = WordsKey(line);
    const size_t count = heads_[key];
    const bool is_head =
        count >= kMinPages &&
        (count * 3 >= pages_->size() || height <= kVeryLarge * body_height_);
    return !is_head;
  }

  // Returns true for a line that is part of the text for its type, its name or
  // its number, though others like it stand at the edges of other pages.
  bool IsText(size_t p, Edge edge, const PdfLine& line) {
    if (IsNamed(p, line)) return true;
    return edge == Edge::kTop
               ? IsTitle(line)
               : IsNote((*pages_)[p], bottom_rows_[p], body_height_);
  }

  bool IsMargin(size_t p, Edge edge, const LineRef& ref) {
    const PdfLine& line = LineAt((*pages_)[p], ref);
    const std::string key = KeyOf(p, edge, line);
    return key.empty() || (StandsNearby(p, edge, line, &Row::lines) &&
                           IsApart(p, edge) && !IsText(p, edge, line));
  }

  // The height at which most pages have a line that was dropped. A head that
  // stands there on one page alone is no text either.
  std::optional<float> UsualHeight(Edge edge) {
    const std::vector<Row>& rows = RowsAt(edge);
    std::map<int, size_t> counts;  // by height in kSameHeight
    for (size_t p = 0; p < rows.size(); ++p) {
      if (rows[p].is_far &&
          std::any_of(
              rows[p].lines.begin(), rows[p].lines.end(),
              [&](const LineRef& ref) { return IsMargin(p, edge, ref); })) {
        ++counts[static_cast<int>(rows[p].top / kSameHeight)];
      }
    }
    for (const auto& [height, count] : counts) {
      if (count >= kMinPages && count * 2 >= rows.size()) {
        return (static_cast<float>(height) + 0.5F) * kSameHeight;
      }
    }
    return std::nullopt;
  }

  // Returns the lines at a height and beyond it, towards the edge, that are no
  // text.
  std::vector<LineRef> LinesBeyond(size_t p, Edge edge, float height) {
    std::vector<LineRef> lines;
    const PdfPage& page = (*pages_)[p];
    if (!RowsAt(edge)[p].is_far) return lines;
    for (size_t b = 0; b < page.blocks.size(); ++b) {
      for (size_t l = 0; l < page.blocks[b].lines.size(); ++l) {
        const PdfLine& line = page.blocks[b].lines[l];
        const bool is_beyond = edge == Edge::kTop
                                   ? line.box.top < height + kSameHeight
                                   : line.box.top > height - kSameHeight;
        if (is_beyond && !IsText(p, edge, line)) lines.push_back({b, l});
      }
    }
    return lines;
  }

  void DropRows(bool is_first) {
    std::vector<std::vector<LineRef>> dropped(pages_->size());
    for (const Edge edge : {Edge::kTop, Edge::kBottom}) {
      const std::optional<float> usual =
          is_first ? UsualHeight(edge) : std::nullopt;
      for (size_t p = 0; p < pages_->size(); ++p) {
        if (usual.has_value()) {
          const std::vector<LineRef> beyond = LinesBeyond(p, edge, *usual);
          dropped[p].insert(dropped[p].end(), beyond.begin(), beyond.end());
        }
        const Row& row = RowsAt(edge)[p];
        for (const LineRef& ref : row.lines) {
          if (IsMargin(p, edge, ref)) dropped[p].push_back(ref);
        }
      }
    }
    for (size_t p = 0; p < pages_->size(); ++p) {
      for (const LineRef& ref : dropped[p]) {
        (*pages_)[p].blocks[ref.block].lines[ref.line].words.clear();
      }
      EraseEmpty(&(*pages_)[p]);
    }
  }

  std::vector<PdfPage>* const pages_;
  std::vector<std::string> numbers_;
  std::vector<std::set<std::string>> titles_;  // by page, from the outline
  const float body_height_;
  const float line_gap_;
  std::unordered_map<std::string, size_t> heads_;  // pages above which each is
  std::vector<Numbering> numberings_;
  std::vector<float> top_numbers_;  // heights of page numbers above the text
  std::vector<Row> top_rows_;
  std::vector<Row> bottom_rows_;
};

}  // namespace

std::vector<std::string> DropMargins(const std::vector<PdfOutlineItem>& outline,
                                     std::vector<PdfPage>* pages) {
  return Margins(outline, pages).Drop();
}

}  // namespace tiercel::document

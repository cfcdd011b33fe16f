#include "lib/documents/pdf_notes.h"

#include <algorithm>
#include <utility>

#include "lib/documents/unicode.h"

namespace tiercel::document {
namespace {

constexpr float kLarge = 1.05F;  // share of the body's height: a heading's
constexpr float kNear = 1.5F;    // share of a letter's height: gap in a note

// Returns the number in a note's first word: "2" for "2", "2.", "[2]", "(2)".
std::string_view NumberIn(std::string_view word) {
  const size_t begin = word.find_first_not_of("[(");
  if (begin == std::string_view::npos) return {};
  const size_t end = word.find_last_not_of(".)]");
  const std::string_view number =
      end < begin ? std::string_view() : word.substr(begin, end + 1 - begin);
  return IsNoteNumber(number) ? number : std::string_view();
}

// Returns the sign of a note at the end of a word, or which the word is: "*" of
// "mill*" and "mill*,"; "" if there is none.
std::string_view SignAtEnd(std::string_view word) {
  const size_t end = word.find_last_not_of(".,;:)") + 1;
  for (const std::string_view sign : kNoteSigns) {
    if (end >= sign.size() &&
        word.substr(end - sign.size(), sign.size()) == sign) {
      return sign;
    }
  }
  return {};
}

int ValueOf(const std::string& number) {
  return IsNoteNumber(number) ? std::stoi(number) : 0;
}

// Returns true if the narrower of two blocks has most of its width above or
// below the other.
bool AreInOneColumn(const PdfBox& a, const PdfBox& b) {
  const float common = std::min(a.right, b.right) - std::max(a.left, b.left);
  return common > std::min(a.right - a.left, b.right - b.left) / 2;
}

// Returns true for two parts of one line, which the program that read the page
// took for two.
bool IsBeside(const PdfBox& left, const PdfBox& right) {
  const float common =
      std::min(left.bottom, right.bottom) - std::max(left.top, right.top);
  const float gap = right.left - left.right;
  return common > left.height() / 2 && gap > 0 && gap < left.height();
}

// Returns the number or the sign with which a note may begin; "" for none.
std::string LabelOf(const PdfLine& line) {
  const std::string& word = line.words.front().text;
  return std::string(SignAtEnd(word) == word ? word : NumberIn(word));
}

// Returns true if the second block stands right below the first.
bool IsRightBelow(const PdfBlock& above, const PdfBlock& below) {
  return below.box.top - above.box.bottom <
         kNear * LetterHeight(below.lines.front());
}

}  // namespace

bool PdfNotes::IsSmall(const PdfBlock& block) const {
  return LetterHeight(block.lines.front()) < kSmallPrint * body_;
}

bool PdfNotes::IsAtFoot(const PdfBlock& block, const PdfPage& page) const {
  if (!IsSmall(block)) return false;
  return std::none_of(
      page.blocks.begin(), page.blocks.end(), [&](const PdfBlock& other) {
        return !IsSmall(other) && other.box.top > block.box.top &&
               AreInOneColumn(other.box, block.box);
      });
}

const PdfBlock* PdfNotes::TextAbove(const PdfBlock& block,
                                    const PdfPage& page) const {
  const PdfBlock* lowest = nullptr;
  for (const PdfBlock& other : page.blocks) {
    if (IsSmall(other) || other.box.top > block.box.top ||
        !AreInOneColumn(other.box, block.box)) {
      continue;
    }
    if (lowest == nullptr || other.box.top > lowest->box.top) lowest = &other;
  }
  return lowest;
}

std::vector<PdfNotes::Column> PdfNotes::FeetOf(const PdfPage& page) const {
  std::vector<const PdfBlock*> blocks;
  for (const PdfBlock& block : page.blocks) {
    if (IsAtFoot(block, page)) blocks.push_back(&block);
  }
  // The widest come first, so that a line over both columns has these in its
  // own.
  std::stable_sort(
      blocks.begin(), blocks.end(), [](const PdfBlock* a, const PdfBlock* b) {
        return a->box.right - a->box.left > b->box.right - b->box.left;
      });
  std::vector<Column> columns;
  for (const PdfBlock* block : blocks) {
    const auto own =
        std::find_if(columns.begin(), columns.end(), [&](const Column& column) {
          return AreInOneColumn(column.front()->box, block->box);
        });
    if (own == columns.end()) {
      columns.push_back({block});
    } else {
      own->push_back(block);
    }
  }
  std::sort(columns.begin(), columns.end(),
            [](const Column& a, const Column& b) {
              return a.front()->box.left < b.front()->box.left;
            });
  for (Column& column : columns) {
    std::stable_sort(column.begin(), column.end(),
                     [](const PdfBlock* a, const PdfBlock* b) {
                       return a->box.top < b->box.top;
                     });
  }
  return columns;
}

bool PdfNotes::BeginsNote(const PdfLine& line) const {
  const PdfWord& first = line.words.front();
  if (line.words.size() < 2) return false;
  if (IsRaisedNumber(first, line)) return true;
  const std::string number = LabelOf(line);
  return raised_.count(number) > 0 || pending_.count(number) > 0;
}

const PdfLine* PdfNotes::FirstNote(const PdfBlock& block) const {
  const auto line =
      std::find_if(block.lines.begin(), block.lines.end(),
                   [&](const PdfLine& own) { return BeginsNote(own); });
  return line == block.lines.end() ? nullptr : &*line;
}

bool PdfNotes::IsReference(const PdfLine& line, size_t word) const {
  const PdfWord& number = line.words[word];
  return word > 0 && IsRaisedNumber(number, line) &&
         numbers_.count(number.text) > 0;
}

bool PdfNotes::IsInOrder(const std::string& number) const {
  if (references_.count(number) > 0 || pending_.count(number) > 0) return true;
  return went_on_ && !notes_.empty() && ValueOf(notes_.back().number) > 0 &&
         ValueOf(notes_.back().number) + 1 == ValueOf(number);
}

// A line above small print is its heading if it is in larger print than the
// text; one that is short may be the last of a list, unless the numbers begin
// again.
bool PdfNotes::IsHeadingOf(const PdfBlock& above,
                           const std::string& number) const {
  const PdfLine& line = above.lines.front();
  if (above.lines.size() > 1 || EndsSentence(line)) return false;
  if (LetterHeight(line) > kLarge * body_) return true;
  return line.box.right < above.column_right - 2 * LetterHeight(line) &&
         !notes_.empty() && ValueOf(number) > 0 &&
         ValueOf(number) <= ValueOf(notes_.back().number);
}

bool PdfNotes::GoesOn(const PdfBlock& block, bool is_above_note) const {
  if (!went_on_ || notes_.empty()) return false;
  const PdfLine& line = notes_.back().lines.back().line();
  const PdfLine& next = block.lines.front();
  if (IsBeside(line.box, next.box)) return true;
  if (EndsSentence(line) || HasRoomFor(next, line, right_)) return false;
  size_t unused = 0;
  const char32_t begin = CharacterAt(next.words.front().text, 0, &unused);
  return is_above_note || IsLowerCase(begin) || IsIdeographic(begin) ||
         line.words.back().text.back() == '-';
}

void PdfNotes::AddPage(const PdfPage& page) {
  went_on_ = !blocks_.empty();
  blocks_.clear();
  raised_.clear();
  pending_ = std::exchange(references_, {});
  for (const std::string& number : std::exchange(numbers_, {})) {
    pending_.erase(number);
  }
  for (const PdfBlock& block : page.blocks) {
    for (const PdfLine& line : block.lines) {
      for (size_t w = 1; w < line.words.size(); ++w) {
        const PdfWord& word = line.words[w];
        if (!IsSmall(block)) raised_.emplace(SignAtEnd(word.text));
        if (!IsRaisedNumber(word, line)) continue;
        raised_.insert(word.text);
        if (!IsSmall(block)) references_.insert(word.text);
      }
    }
  }
  raised_.erase("");
  for (const Column& column : FeetOf(page)) {
    AddColumn(column, page);
    went_on_ = went_on_ || !blocks_.empty();
  }
}

void PdfNotes::AddColumn(const Column& column, const PdfPage& page) {
  const auto numbered =
      std::find_if(column.begin(), column.end(),
                   [&](const PdfBlock* block) { return FirstNote(*block); });
  const PdfBlock* const above = TextAbove(*column.front(), page);
  auto first = numbered;
  bool goes_on = false;
  if (numbered == column.end()) {
    first = column.begin();
    goes_on = GoesOn(**first, /*is_above_note=*/false);
    if (!goes_on) return;
  } else {
    const std::string number = LabelOf(*FirstNote(**numbered));
    const bool are_notes =
        above == nullptr ? IsInOrder(number) : !IsHeadingOf(*above, number);
    if (!are_notes) return;
    while (first != column.begin() && IsRightBelow(**(first - 1), **first)) {
      --first;
    }
    goes_on = GoesOn(**first, /*is_above_note=*/true);
    if (!goes_on) first = numbered;
    // The lines before a note in its block are of the note before, if any.
    goes_on = goes_on || went_on_;
  }
  right_ = above == nullptr ? 0 : above->box.right;
  for (auto next = first; next != column.end(); ++next) {
    if (next != first) goes_on = IsRightBelow(**(next - 1), **next);
    Add(*next, goes_on);
    right_ = std::max(right_, (*next)->box.right);
  }
}

void PdfNotes::Add(const PdfBlock* block, bool goes_on) {
  blocks_.insert(block);
  for (size_t l = 0; l < block->lines.size(); ++l) {
    const PdfLine& line = block->lines[l];
    const bool begins = BeginsNote(line);
    if (begins || notes_.empty() || (l == 0 && !goes_on)) {
      notes_.emplace_back();
    }
    if (begins) {
      notes_.back().number = LabelOf(line);
      numbers_.insert(notes_.back().number);
    }
    notes_.back().lines.push_back({block, l, begins ? size_t{1} : 0});
  }
}

std::vector<PdfNote> PdfNotes::Take() { return std::exchange(notes_, {}); }

}  // namespace tiercel::document

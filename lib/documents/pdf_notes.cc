#include "lib/documents/pdf_notes.h"

#include <algorithm>
#include <string_view>
#include <utility>

namespace tiercel::document {
namespace {

constexpr float kSmall = 0.93F;  // share of the body's height: print of notes

// Returns the number in a note's first word: "2" for "2", "2.", "[2]", "(2)".
std::string_view NumberIn(std::string_view word) {
  const size_t begin = word.find_first_not_of("[(");
  if (begin == std::string_view::npos) return {};
  const size_t end = word.find_last_not_of(".)]");
  const std::string_view number =
      end < begin ? std::string_view() : word.substr(begin, end + 1 - begin);
  return IsNoteNumber(number) ? number : std::string_view();
}

// Returns true if the narrower of two blocks has most of its width beside the
// other.
bool AreInOneColumn(const PdfBox& a, const PdfBox& b) {
  const float common = std::min(a.right, b.right) - std::max(a.left, b.left);
  return common > std::min(a.right - a.left, b.right - b.left) / 2;
}

}  // namespace

bool PdfNotes::IsSmall(const PdfBlock& block) const {
  return LetterHeight(block.lines.front()) < kSmall * body_;
}

bool PdfNotes::IsAtFoot(const PdfBlock& block, const PdfPage& page) const {
  if (!IsSmall(block) || block.box.top < page.height / 3) return false;
  return std::none_of(
      page.blocks.begin(), page.blocks.end(), [&](const PdfBlock& other) {
        return !IsSmall(other) && other.box.top > block.box.top &&
               AreInOneColumn(other.box, block.box);
      });
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
  if (IsNoteNumber(first.text) && IsRaised(first, line)) return true;
  return raised_.count(std::string(NumberIn(first.text))) > 0;
}

bool PdfNotes::IsReference(const PdfLine& line, size_t word) const {
  const PdfWord& number = line.words[word];
  return word > 0 && IsNoteNumber(number.text) && IsRaised(number, line) &&
         numbers_.count(number.text) > 0;
}

void PdfNotes::AddPage(const PdfPage& page) {
  const bool last_page_had_notes = !blocks_.empty();
  blocks_.clear();
  numbers_.clear();
  raised_.clear();
  for (const PdfBlock& block : page.blocks) {
    for (const PdfLine& line : block.lines) {
      for (size_t w = 1; w < line.words.size(); ++w) {
        const PdfWord& word = line.words[w];
        if (IsNoteNumber(word.text) && IsRaised(word, line)) {
          raised_.insert(word.text);
        }
      }
    }
  }
  for (const Column& column : FeetOf(page)) {
    const auto numbered =
        std::find_if(column.begin(), column.end(), [&](const PdfBlock* block) {
          return BeginsNote(block->lines.front());
        });
    auto first = numbered;
    const bool may_go_on = !notes_.empty() &&
                           (last_page_had_notes || !blocks_.empty()) &&
                           !EndsSentence(notes_.back().lines.back().line());
    while (may_go_on && first != column.begin() &&
           (*(first - 1))->box.top > page.height / 2) {
      --first;
      if (EndsSentence((*first)->lines.back())) break;
    }
    for (; first != column.end(); ++first) Add(*first);
  }
}

void PdfNotes::Add(const PdfBlock* block) {
  blocks_.insert(block);
  for (size_t l = 0; l < block->lines.size(); ++l) {
    const PdfLine& line = block->lines[l];
    const bool begins = BeginsNote(line);
    if (begins || notes_.empty()) notes_.emplace_back();
    if (begins) {
      notes_.back().number = NumberIn(line.words.front().text);
      numbers_.insert(notes_.back().number);
    }
    notes_.back().lines.push_back({block, l, begins ? size_t{1} : 0});
  }
}

std::vector<PdfNote> PdfNotes::Take() { return std::exchange(notes_, {}); }

}  // namespace tiercel::document

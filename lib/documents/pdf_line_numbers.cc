#include "lib/documents/pdf_line_numbers.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <optional>
#include <string_view>

namespace tiercel::document {
namespace {

constexpr float kAligned = 4.0F;  // points
constexpr size_t kLeastRows = 8;  // on a page that is looked at
constexpr size_t kMostRows = 1000;
constexpr float kMostCounted = 0.6F;  // share of rows that numbers count
constexpr float kAway = 0.7F;         // share of a row's height
constexpr float kFullLine = 0.85F;    // share of the text's width

enum class Side { kLeft, kRight };

struct NumberPlace {
  size_t block;
  size_t line;
  size_t word;
  PdfBox box;
  int value;
};

// The words of a page at one height.
struct TextRow {
  float top;
  float bottom;
  float left;
  float right;
  bool ends_sentence = false;
};

std::optional<int> LineNumberOf(const std::string& text) {
  constexpr size_t kMaxDigits = 4;
  if (text.empty() || text.size() > kMaxDigits ||
      text.find_first_not_of("0123456789") != std::string::npos) {
    return std::nullopt;
  }
  return std::atoi(text.c_str());
}

// Returns the numbers at one end of the lines of a page, by height.
std::vector<NumberPlace> NumbersAt(const PdfPage& page, Side side) {
  std::vector<NumberPlace> places;
  for (size_t b = 0; b < page.blocks.size(); ++b) {
    for (size_t l = 0; l < page.blocks[b].lines.size(); ++l) {
      const PdfLine& line = page.blocks[b].lines[l];
      const size_t w = side == Side::kLeft ? 0 : line.words.size() - 1;
      const std::optional<int> value = LineNumberOf(line.words[w].text);
      if (value.has_value())
        places.push_back({b, l, w, line.words[w].box, *value});
    }
  }
  std::sort(places.begin(), places.end(),
            [](const NumberPlace& a, const NumberPlace& b) {
              return a.box.top < b.box.top;
            });
  return places;
}

bool EndsAsSentence(std::string_view word) {
  const size_t end = word.find_last_not_of("\"')]");
  return end != std::string_view::npos &&
         std::string_view(".?!").find(word[end]) != std::string_view::npos;
}

// Returns the rows of text of a page on one side of a column of numbers, from
// top to bottom; none if there is text on its other side.
std::vector<TextRow> RowsBeside(const PdfPage& page, Side side, float edge) {
  std::vector<TextRow> rows;
  for (const PdfBlock& block : page.blocks) {
    for (const PdfLine& line : block.lines) {
      for (const PdfWord& word : line.words) {
        const bool is_inside =
            side == Side::kLeft ? word.box.left > edge : word.box.right < edge;
        if (!is_inside) {
          if (LineNumberOf(word.text).has_value()) continue;
          return {};
        }
        const float middle = (word.box.top + word.box.bottom) / 2;
        const auto row =
            std::find_if(rows.begin(), rows.end(), [&](const TextRow& other) {
              return other.top < middle && middle < other.bottom;
            });
        if (row == rows.end()) {
          if (rows.size() == kMostRows) return {};
          rows.push_back({word.box.top, word.box.bottom, word.box.left,
                          word.box.right, EndsAsSentence(word.text)});
        } else {
          row->left = std::min(row->left, word.box.left);
          if (word.box.right > row->right) {
            row->right = word.box.right;
            row->ends_sentence = EndsAsSentence(word.text);
          }
        }
      }
    }
  }
  std::sort(rows.begin(), rows.end(),
            [](const TextRow& a, const TextRow& b) { return a.top < b.top; });
  return rows;
}

// Returns the longest run of numbers that count evenly, one below the other.
std::vector<NumberPlace> LongestCount(const std::vector<NumberPlace>& places) {
  std::vector<NumberPlace> best;
  std::vector<NumberPlace> run;
  for (const NumberPlace& place : places) {
    const bool goes_on = !run.empty() &&
                         (run.size() < 2 || place.value - run.back().value ==
                                                run[1].value - run[0].value) &&
                         place.value > run.back().value;
    if (!goes_on) {
      run = run.empty() ? run : std::vector<NumberPlace>{run.back()};
      if (!run.empty() && place.value <= run.back().value) run.clear();
    }
    run.push_back(place);
    if (run.size() > best.size()) best = run;
  }
  return best;
}

// Returns true if a column of numbers stands apart from all rows: the numbers
// of notes follow their words.
bool StandApart(const std::vector<TextRow>& rows, Side side, float edge) {
  return std::all_of(rows.begin(), rows.end(), [&](const TextRow& row) {
    const float gap = side == Side::kLeft ? row.left - edge : edge - row.right;
    return gap > kAway * (row.bottom - row.top);
  });
}

bool MostAreFull(const std::vector<TextRow>& rows) {
  float left = std::numeric_limits<float>::max();
  float right = 0;
  for (const TextRow& row : rows) {
    left = std::min(left, row.left);
    right = std::max(right, row.right);
  }
  const auto num_full =
      std::count_if(rows.begin(), rows.end(), [&](const TextRow& row) {
        return row.right - left > kFullLine * (right - left);
      });
  return static_cast<size_t>(num_full) * 2 > rows.size();
}

// Returns the number of rows above the foot of a box.
int RowsAbove(const std::vector<TextRow>& rows, const PdfBox& box) {
  return static_cast<int>(
      std::count_if(rows.begin(), rows.end(), [&](const TextRow& row) {
        return (row.top + row.bottom) / 2 < box.top;
      }));
}

// Returns true if the numbers count the rows: one that counts fives stands at
// each fifth. A row without text may have one.
bool CountRows(const std::vector<NumberPlace>& numbers, int step,
               const std::vector<TextRow>& rows) {
  size_t num_right = 0;
  for (size_t i = 1; i < numbers.size(); ++i) {
    const int between =
        RowsAbove(rows, numbers[i].box) - RowsAbove(rows, numbers[i - 1].box);
    num_right +=
        static_cast<size_t>(between == step || (step == 1 && between == 0));
  }
  return num_right * 5 >= (numbers.size() - 1) * 4;
}

// The numbers of the lines of a page on one side; none if it has none.
struct LineNumbers {
  std::vector<NumberPlace> places;
  int step = 0;
  int rows_above = 0;  // above the first
  // Most lines reach the right edge of the text, and end within a sentence.
  bool is_prose = false;
};

LineNumbers LineNumbersOf(const PdfPage& page, Side side) {
  const std::vector<NumberPlace> places = NumbersAt(page, side);
  std::vector<NumberPlace> best;
  // Numbers are aligned at either edge; the widest of them is beside the text.
  for (const bool by_left : {true, false}) {
    std::vector<NumberPlace> column;
    for (const NumberPlace& first : places) {
      const auto is_aligned = [&](const NumberPlace& other) {
        return by_left ? std::abs(other.box.left - first.box.left) < kAligned
                       : std::abs(other.box.right - first.box.right) < kAligned;
      };
      column.clear();
      std::copy_if(places.begin(), places.end(), std::back_inserter(column),
                   is_aligned);
      if (column.size() >= 2) break;
    }
    std::vector<NumberPlace> run = LongestCount(column);
    if (run.size() > best.size()) best = std::move(run);
  }
  if (best.size() < 2) return {};
  const int step = best[1].value - best[0].value;
  if (step != 1 && step != 2 && step != 5 && step != 10) return {};
  float edge = side == Side::kLeft ? best[0].box.right : best[0].box.left;
  for (const NumberPlace& place : best) {
    edge = side == Side::kLeft ? std::max(edge, place.box.right)
                               : std::min(edge, place.box.left);
  }
  const std::vector<TextRow> rows = RowsBeside(page, side, edge);
  if (rows.size() < kLeastRows || !StandApart(rows, side, edge)) return {};
  const float num_counted =
      static_cast<float>(best.size()) * static_cast<float>(step);
  if (num_counted < kMostCounted * static_cast<float>(rows.size())) return {};
  if (!CountRows(best, step, rows)) return {};
  const auto num_sentences =
      std::count_if(rows.begin(), rows.end(),
                    [](const TextRow& r) { return r.ends_sentence; });
  const bool is_prose =
      MostAreFull(rows) && static_cast<size_t>(num_sentences) * 2 < rows.size();
  const int rows_above = RowsAbove(rows, best[0].box);
  return {std::move(best), step, rows_above, is_prose};
}

void EraseNumbers(const std::vector<NumberPlace>& places, PdfPage* page) {
  for (const NumberPlace& place : places) {
    PdfLine& line = page->blocks[place.block].lines[place.line];
    line.words.erase(line.words.begin() +
                     static_cast<std::ptrdiff_t>(place.word));
    if (line.words.empty()) continue;
    line.box.left = line.words.front().box.left;
    line.box.right = line.words.back().box.right;
  }
  EraseEmpty(page);
  for (PdfBlock& block : page->blocks) {
    block.box.left = std::numeric_limits<float>::max();
    block.box.right = 0;
    for (const PdfLine& line : block.lines) {
      block.box.left = std::min(block.box.left, line.box.left);
      block.box.right = std::max(block.box.right, line.box.right);
    }
  }
}

// Returns true if the numbers of most of `num_pages` pages are those of lines.
// The first number counts the lines before it: years do not. Where each line
// has a number, others may be those of a list.
bool AreOfLines(const std::vector<LineNumbers>& pages, size_t num_pages) {
  size_t num_numbered = 0;
  size_t num_prose = 0;
  size_t num_anew = 0;
  bool counts_all = false;
  for (const LineNumbers& page : pages) {
    if (page.places.empty()) continue;
    const int first = page.places[0].value;
    if (num_numbered == 0 && first > page.rows_above + 1 + page.step) {
      return false;
    }
    ++num_numbered;
    num_prose += static_cast<size_t>(page.is_prose);
    num_anew += static_cast<size_t>(first == page.step);
    counts_all = counts_all || page.step <= 2;
  }
  const auto are_most = [&](size_t count) {
    return count * 3 >= num_numbered * 2;
  };
  return num_numbered > 0 && num_numbered * 3 >= num_pages * 2 &&
         (!counts_all || are_most(num_prose) ||
          (num_numbered > 1 && are_most(num_anew)));
}

}  // namespace

void DropLineNumbers(std::vector<PdfPage>* pages) {
  for (const Side side : {Side::kLeft, Side::kRight}) {
    std::vector<LineNumbers> numbers;
    size_t num_looked_at = 0;
    for (const PdfPage& page : *pages) {
      size_t num_lines = 0;
      for (const PdfBlock& block : page.blocks) {
        num_lines += block.lines.size();
      }
      num_looked_at += static_cast<size_t>(num_lines >= kLeastRows);
      numbers.push_back(LineNumbersOf(page, side));
    }
    if (!AreOfLines(numbers, num_looked_at)) continue;
    for (size_t p = 0; p < pages->size(); ++p) {
      if (numbers[p].places.empty()) continue;
      EraseNumbers(numbers[p].places, &(*pages)[p]);
      JoinPartedBlocks(&(*pages)[p]);
    }
  }
}

}  // namespace tiercel::document

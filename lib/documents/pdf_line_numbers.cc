#include "lib/documents/pdf_line_numbers.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <optional>

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

// Returns the rows of text of a page on one side of a column of numbers; none
// if there is text on its other side.
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
          rows.push_back(
              {word.box.top, word.box.bottom, word.box.left, word.box.right});
        } else {
          row->left = std::min(row->left, word.box.left);
          row->right = std::max(row->right, word.box.right);
        }
      }
    }
  }
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

// The numbers of the lines of a page on one side; none if it has none.
struct LineNumbers {
  std::vector<NumberPlace> places;
  // The lines are those of a text, or begin anew with the page: others may be
  // the items of a list.
  bool are_sure = false;
};

LineNumbers LineNumbersOf(const PdfPage& page, Side side) {
  const std::vector<NumberPlace> places = NumbersAt(page, side);
  std::vector<NumberPlace> best;
  const auto edge_of = [side](const PdfBox& box) {
    return side == Side::kLeft ? box.right : box.left;
  };
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
  float edge = edge_of(best[0].box);
  for (const NumberPlace& place : best) {
    edge = side == Side::kLeft ? std::max(edge, place.box.right)
                               : std::min(edge, place.box.left);
  }
  const std::vector<TextRow> rows = RowsBeside(page, side, edge);
  if (rows.size() < kLeastRows || !StandApart(rows, side, edge)) return {};
  const float num_counted =
      static_cast<float>(best.size()) * static_cast<float>(step);
  if (num_counted < kMostCounted * static_cast<float>(rows.size())) return {};
  const bool are_sure = step > 2 || best[0].value == step || MostAreFull(rows);
  return {std::move(best), are_sure};
}

void EraseNumbers(std::vector<NumberPlace> places, PdfPage* page) {
  std::sort(places.begin(), places.end(),
            [](const NumberPlace& a, const NumberPlace& b) {
              return std::pair(a.block, a.line) > std::pair(b.block, b.line);
            });
  for (const NumberPlace& place : places) {
    PdfBlock& block = page->blocks[place.block];
    PdfLine& line = block.lines[place.line];
    line.words.erase(line.words.begin() +
                     static_cast<std::ptrdiff_t>(place.word));
    if (line.words.empty()) {
      block.lines.erase(block.lines.begin() +
                        static_cast<std::ptrdiff_t>(place.line));
      continue;
    }
    line.box.left = line.words.front().box.left;
    line.box.right = line.words.back().box.right;
  }
  std::erase_if(page->blocks,
                [](const PdfBlock& block) { return block.lines.empty(); });
  for (PdfBlock& block : page->blocks) {
    block.box.left = std::numeric_limits<float>::max();
    block.box.right = 0;
    for (const PdfLine& line : block.lines) {
      block.box.left = std::min(block.box.left, line.box.left);
      block.box.right = std::max(block.box.right, line.box.right);
    }
  }
}

}  // namespace

void DropLineNumbers(std::vector<PdfPage>* pages) {
  for (const Side side : {Side::kLeft, Side::kRight}) {
    size_t num_looked_at = 0;
    size_t num_numbered = 0;
    size_t num_sure = 0;
    std::vector<LineNumbers> numbers;
    for (const PdfPage& page : *pages) {
      size_t num_lines = 0;
      for (const PdfBlock& block : page.blocks) {
        num_lines += block.lines.size();
      }
      numbers.push_back(LineNumbersOf(page, side));
      num_looked_at += static_cast<size_t>(num_lines >= kLeastRows);
      num_numbered += static_cast<size_t>(!numbers.back().places.empty());
      num_sure += static_cast<size_t>(numbers.back().are_sure);
    }
    if (num_numbered == 0 || num_numbered * 3 < num_looked_at * 2 ||
        num_sure * 3 < num_numbered * 2) {
      continue;
    }
    for (size_t p = 0; p < pages->size(); ++p) {
      if (numbers[p].places.empty()) continue;
      EraseNumbers(std::move(numbers[p].places), &(*pages)[p]);
      JoinPartedBlocks(&(*pages)[p]);
    }
  }
}

}  // namespace tiercel::document

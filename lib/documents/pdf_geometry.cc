#include "lib/documents/pdf_geometry.h"

#include <algorithm>
#include <map>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "lib/documents/pdf_line_numbers.h"
#include "lib/documents/pdf_right_to_left.h"
#include "lib/documents/unicode.h"

namespace tiercel::document {
namespace {

// ---- Turned text ----

enum class Direction { kRight, kDown, kLeft, kUp };

// The direction of most of a page's words, by the steps from each to the next.
Direction DirectionOf(const PdfPage& page) {
  size_t counts[4] = {0, 0, 0, 0};
  for (const PdfBlock& block : page.blocks) {
    for (const PdfLine& line : block.lines) {
      for (size_t w = 0; w + 1 < line.words.size(); ++w) {
        const PdfBox& from = line.words[w].box;
        const PdfBox& to = line.words[w + 1].box;
        const float across = to.left - from.left;
        const float down = to.top - from.top;
        const Direction direction =
            std::abs(across) >= std::abs(down)
                ? (across >= 0 ? Direction::kRight : Direction::kLeft)
                : (down >= 0 ? Direction::kDown : Direction::kUp);
        ++counts[static_cast<size_t>(direction)];
      }
    }
  }
  return static_cast<Direction>(std::max_element(counts, counts + 4) - counts);
}

void TurnBack(PdfPage* page) {
  const Direction direction = DirectionOf(*page);
  if (direction == Direction::kRight) return;
  float width = page->width;  // a turned page may say what it is unturned
  float height = page->height;
  ForEachBox(page, [&](PdfBox* box) {
    width = std::max(width, box->right);
    height = std::max(height, box->bottom);
  });
  ForEachBox(page, [&](PdfBox* box) {
    const PdfBox old = *box;
    switch (direction) {
      case Direction::kDown:
        *box = {old.top, width - old.right, old.bottom, width - old.left};
        break;
      case Direction::kUp:
        *box = {height - old.bottom, old.left, height - old.top, old.right};
        break;
      case Direction::kLeft:
        *box = {width - old.right, height - old.bottom, width - old.left,
                height - old.top};
        break;
      case Direction::kRight:
        break;
    }
  });
  page->width = direction == Direction::kLeft ? width : height;
  page->height = direction == Direction::kLeft ? height : width;
  WidenColumns(page);
}

// ---- Turned lines ----

// The margins of a page may have lines that are turned. A word of fewer letters
// may be higher than it is wide.
bool IsTurned(const PdfLine& line) {
  constexpr size_t kFewLetters = 4;
  constexpr float kTurned = 1.5F;  // height of a word, to its width
  size_t num_letters = 0;
  size_t num_turned = 0;
  for (const PdfWord& word : line.words) {
    const size_t letters = ToUtf32(word.text).size();
    if (letters < kFewLetters) continue;
    num_letters += letters;
    if (word.box.height() > kTurned * (word.box.right - word.box.left)) {
      num_turned += letters;
    }
  }
  return num_turned * 2 > num_letters;
}

// Lays the words of a turned line out from left to right.
void LayDown(PdfLine* line) {
  const PdfBox old = line->box;
  const bool goes_down =
      line->words.front().box.top < line->words.back().box.top;
  const auto turn = [&](PdfBox* box) {
    const float begin =
        old.left + (goes_down ? box->top - old.top : old.bottom - box->bottom);
    *box = {begin, old.top, begin + box->height(),
            old.top + box->right - box->left};
  };
  turn(&line->box);
  for (PdfWord& word : line->words) turn(&word.box);
}

std::string TurnedKey(const PdfLine& line) {
  std::string key;
  for (const PdfWord& word : line.words) {
    for (const char c : word.text) key += c >= '0' && c <= '9' ? '0' : c;
    key += ' ';
  }
  return key;
}

// Drops turned lines that stand, but for their numbers, on three pages or more,
// and lays the others down.
void LayTurnedLines(std::vector<PdfPage>* pages) {
  constexpr size_t kManyPages = 3;
  std::unordered_map<std::string, size_t> counts;
  const auto for_each_turned = [&](const auto& act) {
    for (PdfPage& page : *pages) {
      for (PdfBlock& block : page.blocks) {
        for (PdfLine& line : block.lines) {
          if (IsTurned(line)) act(&line);
        }
      }
    }
  };
  for_each_turned([&](PdfLine* line) { ++counts[TurnedKey(*line)]; });
  if (counts.empty()) return;
  for_each_turned([&](PdfLine* line) {
    if (counts[TurnedKey(*line)] >= kManyPages) {
      line->words.clear();
    } else {
      LayDown(line);
    }
  });
  for (PdfPage& page : *pages) EraseEmpty(&page);
}

// ---- Readings ----

// Returns true for a line of Japanese syllables alone.
bool IsOfSyllables(const PdfLine& line) {
  return std::all_of(
      line.words.begin(), line.words.end(), [](const PdfWord& word) {
        const std::u32string letters = ToUtf32(word.text);
        return std::all_of(letters.begin(), letters.end(),
                           [](char32_t c) { return c > 0x3040 && c < 0x3100; });
      });
}

// Drops the readings (furigana) in small print right above a line, and joins
// the lines that they parted.
void DropReadings(float body, PdfPage* page) {
  constexpr float kSmallest = 0.65F;          // share of the body's height
  std::multimap<float, const PdfBox*> lines;  // larger ones, by their tops
  std::vector<PdfLine*> small;
  for (PdfBlock& block : page->blocks) {
    for (PdfLine& line : block.lines) {
      if (LetterHeight(line) > kSmallest * body) {
        lines.emplace(line.box.top, &line.box);
      } else if (IsOfSyllables(line)) {
        small.push_back(&line);
      }
    }
  }
  bool has_readings = false;
  for (PdfLine* const line : small) {
    const PdfBox& box = line->box;
    const float near = LetterHeight(*line) / 2;
    const auto end = lines.upper_bound(box.bottom + near);
    constexpr int kMostTried = 100;
    int tried = 0;
    for (auto below = lines.lower_bound(box.bottom - near);
         below != end && tried < kMostTried; ++below, ++tried) {
      if (below->second->left < box.right && below->second->right > box.left) {
        line->words.clear();
        has_readings = true;
        break;
      }
    }
  }
  if (!has_readings) return;
  EraseEmpty(page);
  JoinPartedBlocks(page);
}

// ---- Drop caps ----

// Returns true for a block of one or two letters that are twice as high as a
// line of the text, or more.
bool IsDropCap(const PdfBlock& block, float line_height) {
  if (block.lines.size() != 1 || block.lines[0].words.size() != 1) return false;
  const PdfWord& word = block.lines[0].words[0];
  const std::u32string letters = ToUtf32(word.text);
  return letters.size() <= 2 && IsUpperCase(letters.back()) &&
         word.box.height() > 1.8F * line_height;
}

// The height of the lines that a drop cap may begin: the usual one.
float LineHeight(const PdfPage& page) {
  std::vector<float> heights;
  for (const PdfBlock& block : page.blocks) {
    for (const PdfLine& line : block.lines)
      heights.push_back(line.box.height());
  }
  return MedianOf(std::move(heights));
}

// Returns the first word to the right of a drop cap, in the topmost line that
// it stands beside.
PdfWord* WordAfter(const PdfBox& cap, PdfPage* page) {
  PdfLine* best = nullptr;
  for (PdfBlock& block : page->blocks) {
    for (PdfLine& line : block.lines) {
      const bool is_beside = line.box.left >= cap.left &&
                             line.box.top < cap.bottom &&
                             line.box.bottom > cap.top &&
                             line.box.height() < cap.height() / 1.8F &&
                             line.box.left - cap.right < 2 * cap.height();
      if (is_beside && (best == nullptr || line.box.top < best->box.top)) {
        best = &line;
      }
    }
  }
  return best == nullptr ? nullptr : &best->words.front();
}

// Words that are one letter: "A mill", "I went", "O river".
bool IsWordOfItsOwn(const std::string& cap,
                    const std::unordered_set<std::string>& words,
                    const std::string& next) {
  return (cap == "A" || cap == "I" || cap == "O") &&
         words.count(cap + next) == 0;
}

void JoinDropCaps(PdfPage* page) {
  const float height = LineHeight(*page);
  std::unordered_set<std::string> words;  // with a capital, as the cap gives it
  for (const PdfBlock& block : page->blocks) {
    for (const PdfLine& line : block.lines) {
      for (const PdfWord& word : line.words) words.insert(word.text);
    }
  }
  for (size_t b = 0; b < page->blocks.size();) {
    if (!IsDropCap(page->blocks[b], height)) {
      ++b;
      continue;
    }
    const PdfWord cap = page->blocks[b].lines[0].words[0];
    page->blocks.erase(page->blocks.begin() + static_cast<std::ptrdiff_t>(b));
    PdfWord* const word = WordAfter(cap.box, page);
    if (word == nullptr) {  // it is a letter that stands alone
      page->blocks.insert(
          page->blocks.begin() + static_cast<std::ptrdiff_t>(b),
          PdfBlock{cap.box, cap.box.right, {PdfLine{cap.box, {cap}}}});
      ++b;
      continue;
    }
    const bool is_apart = IsWordOfItsOwn(cap.text, words, word->text);
    word->text = cap.text + (is_apart ? " " : "") + word->text;
  }
}

// ---- Raised numbers ----

// The number of a note, if the program that read the page took it for a block
// or a line of its own; null: it is none.
const PdfWord* LoneNumber(const PdfLine& line) {
  if (line.words.size() != 1) return nullptr;
  return IsNoteNumber(line.words[0].text) ? &line.words[0] : nullptr;
}

// Puts the number before the line if the line begins right behind it, and it is
// raised there. Returns false if not.
bool PutBefore(const PdfWord& number, PdfLine* line) {
  const float height = LetterHeight(*line);
  const float gap = line->box.left - number.box.right;
  if (gap < -0.2F * height || gap > 0.5F * height ||
      number.box.bottom < line->box.top) {
    return false;
  }
  PdfLine joined = *line;
  joined.box.left = number.box.left;
  joined.words.insert(joined.words.begin(), number);
  if (!IsRaised(number, joined)) return false;
  *line = std::move(joined);
  return true;
}

// Puts raised numbers that stand alone before the line whose note they begin.
void JoinRaisedNumbers(PdfPage* page) {
  const auto join = [page](const PdfWord& number) {
    for (PdfBlock& block : page->blocks) {
      for (PdfLine& line : block.lines) {
        if (!PutBefore(number, &line)) continue;
        block.box.left = std::min(block.box.left, number.box.left);
        return true;
      }
    }
    return false;
  };
  for (size_t b = 0; b < page->blocks.size();) {
    std::vector<PdfLine>& lines = page->blocks[b].lines;
    for (size_t l = 0; l < lines.size();) {
      const PdfWord* const lone = LoneNumber(lines[l]);
      if (lone != nullptr && join(PdfWord(*lone))) {
        lines.erase(lines.begin() + static_cast<std::ptrdiff_t>(l));
      } else {
        ++l;
      }
    }
    if (lines.empty()) {
      page->blocks.erase(page->blocks.begin() + static_cast<std::ptrdiff_t>(b));
    } else {
      ++b;
    }
  }
}

}  // namespace

void StraightenPages(std::vector<PdfPage>* pages) {
  for (PdfPage& page : *pages) TurnBack(&page);
  LayTurnedLines(pages);
  DropLineNumbers(pages);
  const float body = BodyHeight(*pages);
  for (PdfPage& page : *pages) {
    DropReadings(body, &page);
    ReadFromRight(&page);
    JoinDropCaps(&page);
    JoinRaisedNumbers(&page);
  }
}

}  // namespace tiercel::document

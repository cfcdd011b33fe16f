#include "lib/documents/text_lines.h"

#include <algorithm>

#include "lib/documents/labels.h"
#include "lib/documents/text_writer.h"
#include "lib/documents/unicode.h"

namespace tiercel::document {
namespace {

constexpr std::string_view kIdeographicSpace = "\u3000";

// Removes white space at either end, that of Chinese and Japanese too.
std::string_view Trimmed(std::string_view line) {
  while (!line.empty()) {
    if (IsSpace(line.front())) {
      line.remove_prefix(1);
    } else if (line.substr(0, 3) == kIdeographicSpace) {
      line.remove_prefix(3);
    } else {
      break;
    }
  }
  while (!line.empty()) {
    if (IsSpace(line.back())) {
      line.remove_suffix(1);
    } else if (line.size() >= 3 &&
               line.substr(line.size() - 3) == kIdeographicSpace) {
      line.remove_suffix(3);
    } else {
      break;
    }
  }
  return line;
}

// Returns true if a blank line stands between almost all lines and more between
// paragraphs, whose lines have been broken: half of them end within a sentence.
bool IsDoubleSpaced(const std::vector<TextLine>& lines,
                    const std::vector<size_t>& blanks) {
  constexpr size_t kFewLines = 20;
  constexpr int kMostColumns = 90;
  size_t num_single = 0;
  size_t num_close = 0;
  size_t num_wide = 0;
  size_t num_broken = 0;
  for (size_t i = 1; i < lines.size(); ++i) {
    num_single += blanks[i] == 1 ? 1 : 0;
    num_close += blanks[i] == 0 ? 1 : 0;
    num_wide += blanks[i] > 1 ? 1 : 0;
    if (blanks[i] != 1 || ColumnsOf(lines[i - 1].text) > kMostColumns) continue;
    num_broken += EndsAsProse(lines[i - 1].text) ? 0 : 1;
  }
  return lines.size() >= kFewLines && num_close * 20 < lines.size() &&
         num_wide > 0 && num_single > num_wide && num_broken * 2 > num_single;
}

}  // namespace

bool EndsAsProse(std::string_view text) {
  for (const std::string_view end :
       {".", "?", "!", ",", ";", "。", "！", "？", "”", "\"", "」", "’"}) {
    if (text.size() >= end.size() &&
        text.substr(text.size() - end.size()) == end) {
      return true;
    }
  }
  return false;
}

std::vector<TextLine> LinesOf(std::string_view text) {
  std::vector<TextLine> lines;
  std::vector<size_t> blanks;  // blank lines before each line
  size_t num_blank = 0;
  for (size_t begin = 0; begin < text.size() && lines.size() < kMaxTextLines;) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view words = Trimmed(text.substr(begin, end - begin));
    if (words.empty()) {
      ++num_blank;
    } else {
      const auto first = static_cast<size_t>(words.data() - text.data());
      const std::string_view before = text.substr(begin, first - begin);
      const bool is_page = before.find('\f') != std::string_view::npos;
      lines.push_back({first, words, num_blank > 0 || is_page || lines.empty(),
                       first > begin && before != "\f", 1});
      blanks.push_back(is_page ? num_blank + 2 : num_blank);
      num_blank = 0;
    }
    begin = end + 1;
  }
  if (IsDoubleSpaced(lines, blanks)) {
    for (size_t i = 1; i < lines.size(); ++i) {
      lines[i].is_first = blanks[i] > 1;
    }
  }
  for (size_t i = lines.size(); i-- > 1;) {
    if (!lines[i].is_first) lines[i - 1].num_lines = lines[i].num_lines + 1;
  }
  return lines;
}

std::string Closed(std::string_view line) {
  constexpr size_t kFewLetters = 4;
  constexpr size_t kMostBytes = 512;  // a line may be a whole text
  if (line.size() > kMostBytes) return {};
  const size_t first = line.find(' ');
  if (first > 4 || line.find_first_not_of(' ', first) - first > 3 ||
      line.find(' ', first + 1) > first + 5) {
    return {};
  }
  std::u32string words;
  size_t num_letters = 0;
  const std::u32string all = ToUtf32(line);
  for (size_t i = 0; i < all.size(); ++i) {
    const bool is_blank = all[i] == U' ' || all[i] == U'\t';
    if (is_blank) {
      const bool is_gap = all[i - 1] == U' ' || all[i - 1] == U'\t';
      if (is_gap && words.back() != U' ') words.push_back(U' ');
      continue;
    }
    const bool is_apart = i == 0 || all[i - 1] == U' ' || all[i - 1] == U'\t';
    if (!is_apart && IsLetter(all[i])) {
      // The number may be written together: "C H A P T E R  XII".
      if (NumberOf(FromUtf32(all.substr(i - 1))) == 0) return {};
      words.append(all, i);
      break;
    }
    words.push_back(all[i]);
    num_letters += IsLetter(all[i]) ? 1 : 0;
  }
  if (num_letters < kFewLetters) return {};
  const std::string closed = FromUtf32(words);
  if (words.find(U' ') != std::u32string::npos) return closed;
  for (size_t i = 1; i < words.size(); ++i) {
    const std::string parted =
        FromUtf32(words.substr(0, i)) + " " + FromUtf32(words.substr(i));
    const Rank rank = SplitLabel(parted).rank;
    if (rank != Rank::kNone && rank != Rank::kNumber) return parted;
  }
  return closed;
}

std::string BlockAt(const std::vector<TextLine>& lines, size_t line) {
  const TextLine& first = lines[line];
  const TextLine& last = lines[line + first.num_lines - 1];
  const char* const end = last.text.data() + last.text.size();
  return OneLine(std::string_view(
      first.text.data(), static_cast<size_t>(end - first.text.data())));
}

}  // namespace tiercel::document

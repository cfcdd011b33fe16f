#include "lib/documents/text_lines.h"

#include <algorithm>

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

}  // namespace

std::vector<TextLine> LinesOf(std::string_view text) {
  std::vector<TextLine> lines;
  bool is_first = true;
  for (size_t begin = 0; begin < text.size() && lines.size() < kMaxTextLines;) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view words = Trimmed(text.substr(begin, end - begin));
    if (words.empty()) {
      is_first = true;
    } else {
      const auto first = static_cast<size_t>(words.data() - text.data());
      lines.push_back({first, words, is_first, first > begin, 1});
      is_first = false;
    }
    begin = end + 1;
  }
  for (size_t i = lines.size(); i-- > 1;) {
    if (!lines[i].is_first) lines[i - 1].num_lines = lines[i].num_lines + 1;
  }
  return lines;
}

std::string BlockAt(const std::vector<TextLine>& lines, size_t line) {
  const TextLine& first = lines[line];
  const TextLine& last = lines[line + first.num_lines - 1];
  const char* const end = last.text.data() + last.text.size();
  return OneLine(std::string_view(
      first.text.data(), static_cast<size_t>(end - first.text.data())));
}

}  // namespace tiercel::document

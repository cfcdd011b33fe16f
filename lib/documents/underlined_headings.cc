#include "lib/documents/underlined_headings.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "lib/documents/markdown_headings.h"
#include "lib/documents/text_writer.h"
#include "lib/documents/unicode.h"

namespace tiercel::document {
namespace {

// Without the grave accent, three of which enclose code.
constexpr std::string_view kMarks = "=-~^*#\"'+.:_<>";

// Returns the mark of which a line consists; 0 if it has other characters.
char MarkOf(std::string_view line) {
  const bool is_underline =
      line.size() >= 3 && kMarks.find(line[0]) != std::string_view::npos &&
      line.find_first_not_of(line[0]) == std::string_view::npos;
  return is_underline ? line[0] : '\0';
}

// Removes the quotes of `code` and the stars of `emphasis`, as writers of plain
// text use them ("debian/rules", ``code``, *this*).
std::string WithoutMarkup(std::string_view title) {
  std::string plain;
  for (size_t i = 0; i < title.size(); ++i) {
    const char c = title[i];
    if (c == '`') continue;
    if (c == '"' || c == '*') {
      const size_t end = title.find(c, i + 1);
      const bool is_word = end != std::string_view::npos && end > i + 1 &&
                           (c == '*' || title.substr(i, end - i).find(' ') ==
                                            std::string_view::npos);
      if (is_word) {
        plain += title.substr(i + 1, end - i - 1);
        i = end;
        continue;
      }
    }
    plain.push_back(c);
  }
  return OneLine(plain);
}

struct Underlined {
  size_t line;  // the title's line
  char mark;
  bool is_overlined;
};

std::vector<Underlined> UnderlinedLines(const std::vector<TextLine>& lines) {
  std::vector<Underlined> found;
  for (size_t i = 1; i < lines.size(); ++i) {
    const char mark = MarkOf(lines[i].text);
    const TextLine& title = lines[i - 1];
    if (mark == 0 || lines[i].is_first || MarkOf(title.text) != 0) continue;
    const int columns = ColumnsOf(title.text);
    // A rule under a sentence parts scenes; a title's has the title's length.
    if (EndsAsProse(title.text) && ColumnsOf(lines[i].text) != columns) {
      continue;
    }
    const bool is_overlined = i > 1 && !title.is_first && mark != '~' &&
                              MarkOf(lines[i - 2].text) == mark;
    if ((title.is_first || is_overlined) && columns <= kMaxHeadingColumns &&
        ColumnsOf(lines[i].text) * 5 >= columns * 3) {
      found.push_back({i - 1, mark, is_overlined});
    }
  }
  return found;
}

}  // namespace

std::vector<Heading> FindUnderlined(const std::vector<TextLine>& lines) {
  const std::vector<Underlined> underlined = UnderlinedLines(lines);
  // Lines of '~' may enclose code.
  const bool is_markdown = std::all_of(
      underlined.begin(), underlined.end(), [](const Underlined& u) {
        return u.mark == '=' || u.mark == '-' || u.mark == '~';
      });
  std::vector<Heading> headings;
  if (is_markdown) {
    std::vector<SetextHeading> setext;
    for (const Underlined& u : underlined) {
      if (u.mark != '~') setext.push_back({u.line, u.mark == '=' ? 1 : 2});
    }
    headings = FindMarkdown(lines, setext);
    if (!headings.empty()) return headings;
  }
  std::vector<std::pair<char, bool>> styles;  // in the order of their levels
  for (const Underlined& u : underlined) {
    const std::pair<char, bool> style(u.mark, u.is_overlined);
    auto level = std::find(styles.begin(), styles.end(), style);
    if (level == styles.end()) level = styles.insert(styles.end(), style);
    headings.push_back({static_cast<int>(level - styles.begin()) + 1,
                        WithoutMarkup(lines[u.line].text), lines[u.line].begin,
                        ""});
  }
  return headings;
}

}  // namespace tiercel::document

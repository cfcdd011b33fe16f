#include "lib/documents/underlined_headings.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

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

// Returns true for a line that a shell or a program would read: prose begins
// with a capital letter or ends a sentence.
bool IsCommand(std::string_view line) {
  size_t next = 0;
  const char32_t first = CharacterAt(line, 0, &next);
  return !IsUpperCase(first) && !IsIdeographic(first) && !EndsAsProse(line) &&
         (IsLowerCase(first) ||
          std::string_view("$%./~#").find(line[0]) != std::string_view::npos);
}

// Returns the number of '#' before a Markdown heading; 0 if the line is none,
// such as a comment among the lines of a program.
int HashesOf(const std::vector<TextLine>& lines, size_t i) {
  const TextLine& text_line = lines[i];
  const std::string_view line = text_line.text;
  if (text_line.is_indented) return 0;
  if (text_line.num_lines > 1 && IsCommand(lines[i + 1].text)) return 0;
  const size_t hashes = std::min(line.find_first_not_of('#'), line.size());
  const bool is_heading = hashes > 0 && hashes <= 6 &&
                          hashes + 1 < line.size() && IsSpace(line[hashes]);
  return is_heading ? static_cast<int>(hashes) : 0;
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

std::vector<Heading> FindHashes(const std::vector<TextLine>& lines,
                                const std::vector<Underlined>& underlined) {
  std::vector<Heading> headings;
  bool in_code = false;
  auto next = underlined.begin();
  for (size_t i = 0; i < lines.size(); ++i) {
    const std::string_view text = lines[i].text;
    if (text.substr(0, 3) == "```" || text.substr(0, 3) == "~~~") {
      in_code = !in_code;
    }
    const bool is_underlined = next != underlined.end() && next->line == i;
    const char mark = is_underlined ? (next++)->mark : '\0';
    if (in_code) continue;
    if (mark == '=' || mark == '-') {
      headings.push_back(
          {mark == '=' ? 1 : 2, WithoutMarkup(text), lines[i].begin, ""});
    }
    const int level = lines[i].is_first ? HashesOf(lines, i) : 0;
    if (level == 0) continue;
    std::string_view title = text.substr(static_cast<size_t>(level));
    const size_t end = title.find_last_not_of("# \t");
    title = title.substr(0, end == std::string_view::npos ? 0 : end + 1);
    headings.push_back({level, WithoutMarkup(title), lines[i].begin, ""});
  }
  return headings;
}

}  // namespace

std::vector<Heading> FindUnderlined(const std::vector<TextLine>& lines) {
  const std::vector<Underlined> underlined = UnderlinedLines(lines);
  size_t num_hashes = 0;
  for (size_t i = 0; i < lines.size(); ++i) {
    if (lines[i].is_first && HashesOf(lines, i) > 0) ++num_hashes;
  }
  const bool is_markdown = std::all_of(
      underlined.begin(), underlined.end(),
      [](const Underlined& u) { return u.mark == '=' || u.mark == '-'; });
  if (num_hashes > 1 && is_markdown) return FindHashes(lines, underlined);

  std::vector<Heading> headings;
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

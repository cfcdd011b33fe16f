#include "lib/documents/markdown_headings.h"

#include <algorithm>
#include <string>
#include <string_view>

#include "lib/documents/text_writer.h"
#include "lib/documents/unicode.h"

namespace tiercel::document {
namespace {

constexpr size_t kMinFence = 3;

bool IsWordAt(std::string_view text, size_t at) {
  size_t next = 0;
  const char32_t c = CharacterAt(text, at, &next);
  return IsLetter(c) || IsDigit(c);
}

// Returns the number of marks at a place.
size_t RunAt(std::string_view text, size_t at, char mark) {
  return std::min(text.find_first_not_of(mark, at), text.size()) - at;
}

// Returns the place of a run of exactly `length` marks behind `at`, or npos.
size_t FindRun(std::string_view text, size_t at, char mark, size_t length) {
  for (at = text.find(mark, at); at != std::string_view::npos;
       at = text.find(mark, at)) {
    const size_t run = RunAt(text, at, mark);
    if (run == length) return at;
    at += run;
  }
  return std::string_view::npos;
}

// The words of a heading without its marks: emphasis, code, links, pictures,
// tags, escapes.
class Words {
 public:
  explicit Words(std::string_view text) : text_(text) {}

  std::string Read() {
    while (at_ < text_.size()) {
      if (!SkipEscape() && !TakeCode() && !TakeEmphasis() && !TakeLink() &&
          !SkipTag()) {
        words_.push_back(text_[at_++]);
      }
    }
    return words_;
  }

 private:
  static std::string Inner(std::string_view text) { return Words(text).Read(); }

  bool SkipEscape() {
    const bool is_escape =
        text_[at_] == '\\' && at_ + 1 < text_.size() &&
        std::string_view("\\`*_{}[]()<>#+-.!|&~\"").find(text_[at_ + 1]) !=
            std::string_view::npos;
    if (!is_escape) return false;
    words_.push_back(text_[at_ + 1]);
    at_ += 2;
    return true;
  }

  bool TakeCode() {
    if (text_[at_] != '`') return false;
    const size_t run = RunAt(text_, at_, '`');
    const size_t end = FindRun(text_, at_ + run, '`', run);
    if (end == std::string_view::npos) {
      words_.append(run, '`');
      at_ += run;
      return true;
    }
    words_ += text_.substr(at_ + run, end - at_ - run);
    at_ = end + run;
    return true;
  }

  // "*x*", "__x__": the marks touch the words, and those of '_' end them.
  bool TakeEmphasis() {
    const char mark = text_[at_];
    if (mark != '*' && mark != '_') return false;
    const size_t run = RunAt(text_, at_, mark);
    const size_t begin = at_ + run;
    const size_t end = FindRun(text_, begin, mark, run);
    const bool is_open =
        begin < text_.size() && text_[begin] != ' ' &&
        (mark == '*' || words_.empty() || !IsWordAt(words_, words_.size() - 1));
    const bool is_closed = end != std::string_view::npos &&
                           text_[end - 1] != ' ' &&
                           (mark == '*' || !IsWordAt(text_, end + run));
    if (!is_open || !is_closed) {
      words_.append(run, mark);
      at_ = begin;
      return true;
    }
    words_ += Inner(text_.substr(begin, end - begin));
    at_ = end + run;
    return true;
  }

  // "[words](address)", "[words][name]", "![words](address)".
  bool TakeLink() {
    const bool is_picture = text_.substr(at_, 2) == "![";
    const size_t begin = at_ + (is_picture ? 2 : 1);
    if (!is_picture && text_[at_] != '[') return false;
    const size_t close = Closing(begin, '[', ']');
    if (close + 1 >= text_.size()) return false;
    const char open = text_[close + 1];
    if (open != '(' && open != '[') return false;
    const size_t end = Closing(close + 2, open, open == '(' ? ')' : ']');
    if (end >= text_.size()) return false;
    words_ += Inner(text_.substr(begin, close - begin));
    at_ = end + 1;
    return true;
  }

  // Returns the place of what closes a bracket; the size if nothing does.
  size_t Closing(size_t at, char open, char close) const {
    int depth = 1;
    for (; at < text_.size(); ++at) {
      if (text_[at] == '\\') {
        ++at;
      } else if (text_[at] == open) {
        ++depth;
      } else if (text_[at] == close && --depth == 0) {
        return at;
      }
    }
    return text_.size();
  }

  bool SkipTag() {
    if (text_[at_] != '<' || at_ + 1 >= text_.size()) return false;
    const bool is_tag = text_[at_ + 1] == '/' || IsWordAt(text_, at_ + 1);
    const size_t end = text_.find('>', at_);
    if (!is_tag || end == std::string_view::npos) return false;
    at_ = end + 1;
    return true;
  }

  const std::string_view text_;
  std::string words_;
  size_t at_ = 0;
};

// Returns the title of a heading: without '#' behind it, which a blank parts
// from it, and an identifier in braces.
std::string TitleOf(std::string_view title) {
  const auto trim = [&title] {
    title = title.substr(0, title.find_last_not_of(" \t") + 1);
  };
  trim();
  const size_t hashes = title.find_last_not_of('#') + 1;
  if (hashes == 0 || IsSpace(title[hashes - 1]))
    title = title.substr(0, hashes);
  trim();
  const size_t brace = title.rfind('{');
  const bool has_identifier =
      brace != std::string_view::npos && brace > 0 && title.back() == '}' &&
      (title.substr(brace, 2) == "{#" || title.substr(brace, 2) == "{.");
  if (has_identifier) title = title.substr(0, brace);
  return OneLine(Words(title).Read());
}

// Returns true for a line with more words than a command has: letters alone,
// with a comma or on a long line.
bool IsSentence(std::string_view line) {
  constexpr int kManyWords = 6;
  constexpr int kLongColumns = 55;
  int num_words = 0;
  for (size_t begin = 0; begin < line.size();) {
    const size_t end = std::min(line.find(' ', begin), line.size());
    std::string_view word = line.substr(begin, end - begin);
    begin = end + 1;
    if (word.empty()) continue;
    if (std::string_view(",.;:)").find(word.back()) != std::string_view::npos) {
      word.remove_suffix(1);
    }
    for (const char32_t c : ToUtf32(word)) {
      if (!IsLetter(c) && c != U'\'' && c != 0x2019) return false;
    }
    ++num_words;
  }
  return num_words >= kManyWords &&
         (line.find(", ") != std::string_view::npos ||
          ColumnsOf(line) >= kLongColumns);
}

// Returns true for a line that a shell or a program would read: prose begins
// with a capital letter or ends a sentence.
bool IsCommand(std::string_view line) {
  size_t next = 0;
  const char32_t first = CharacterAt(line, 0, &next);
  return !IsUpperCase(first) && !IsIdeographic(first) && !EndsAsProse(line) &&
         !IsSentence(line) &&
         (IsLowerCase(first) ||
          std::string_view("$%./~#").find(line[0]) != std::string_view::npos);
}

// Returns the number of '#' before a heading; 0 if there is none.
int HashesOf(const TextLine& line) {
  const std::string_view text = line.text;
  if (line.is_indented) return 0;
  const size_t hashes = RunAt(text, 0, '#');
  const bool is_heading = hashes > 0 && hashes <= 6 &&
                          hashes + 1 < text.size() && IsSpace(text[hashes]);
  return is_heading ? static_cast<int>(hashes) : 0;
}

// Returns true if a paragraph begins at line i: behind a comment it may.
bool BeginsAt(const std::vector<TextLine>& lines, size_t i) {
  constexpr std::string_view kEnd = "-->";
  if (lines[i].is_first) return true;
  const std::string_view before = lines[i - 1].text;
  return before.size() >= kEnd.size() &&
         before.substr(before.size() - kEnd.size()) == kEnd;
}

// Returns the level of the heading at line i; 0 if the line is none.
int LevelAt(const std::vector<TextLine>& lines, size_t i, int level_before) {
  const int level = HashesOf(lines[i]);
  if (level == 0) return 0;
  if (lines[i].num_lines > 1) {
    const int below = HashesOf(lines[i + 1]);
    // A comment may have some lines.
    if (below > 0 && below <= level) return 0;
    if (below == 0 && IsCommand(lines[i + 1].text)) return 0;
  }
  if (BeginsAt(lines, i)) return level;
  if (level_before > 0) return level > level_before ? level : 0;
  return EndsAsProse(lines[i - 1].text) && HashesOf(lines[i - 1]) == 0 ? level
                                                                       : 0;
}

// Knows what lies in code and in comments.
class Fences {
 public:
  // Reads the next line; returns true if it is code, a comment, or begins or
  // ends one.
  bool Encloses(std::string_view line) {
    if (in_comment_) {
      in_comment_ = line.find("-->") == std::string_view::npos;
      return true;
    }
    const char mark = line.front();
    const size_t run = mark == '`' || mark == '~' ? RunAt(line, 0, mark) : 0;
    if (length_ > 0) {
      const bool is_end = mark == mark_ && run >= length_ && run == line.size();
      if (is_end) length_ = 0;
      return true;
    }
    // Code within a line may have as many marks.
    const bool is_code = mark == '`' && line.find('`', run) < line.size();
    if (run >= kMinFence && !is_code) {
      mark_ = mark;
      length_ = run;
      return true;
    }
    if (line.substr(0, 4) != "<!--") return false;
    in_comment_ = line.find("-->") == std::string_view::npos;
    return true;
  }

 private:
  char mark_ = '\0';
  size_t length_ = 0;  // the marks of its fence; 0: none is open
  bool in_comment_ = false;
};

}  // namespace

std::vector<Heading> FindMarkdown(
    const std::vector<TextLine>& lines,
    const std::vector<SetextHeading>& underlined) {
  std::vector<Heading> headings;
  Fences fences;
  size_t num_certain = 0;
  int level_before = 0;  // the one of a heading on the line before
  auto next = underlined.begin();
  for (size_t i = 0; i < lines.size(); ++i) {
    const bool is_underlined = next != underlined.end() && next->line == i;
    const int underlined_level = is_underlined ? (next++)->level : 0;
    if (fences.Encloses(lines[i].text)) {
      level_before = 0;
      continue;
    }
    const std::string_view text = lines[i].text;
    if (is_underlined) {
      headings.push_back({underlined_level, TitleOf(text), lines[i].begin, ""});
    }
    const int level = LevelAt(lines, i, level_before);
    const bool is_certain = level_before > 0 || BeginsAt(lines, i);
    level_before = level;
    if (level == 0) continue;
    num_certain += is_certain ? 1 : 0;
    headings.push_back({level, TitleOf(text.substr(static_cast<size_t>(level))),
                        lines[i].begin, ""});
  }
  return num_certain > 1 ? headings : std::vector<Heading>();
}

}  // namespace tiercel::document

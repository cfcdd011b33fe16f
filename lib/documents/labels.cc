#include "lib/documents/labels.h"

#include <algorithm>
#include <unordered_map>
#include <utility>
#include <vector>

#include "lib/documents/heading_words.h"
#include "lib/documents/spelled_numbers.h"
#include "lib/documents/unicode.h"

namespace tiercel::document {
namespace {

// A longer line is no heading.
constexpr size_t kMaxHeadingBytes = 1000;

bool IsBlank(char32_t c) {
  return c == U' ' || c == U'\t' || c == 0x3000 || c == 0xA0;
}

bool IsSeparator(char32_t c) {
  return IsBlank(c) || std::u32string_view(U".:;,-–—―・。：、．|").find(c) !=
                           std::u32string_view::npos;
}

std::vector<std::u32string_view> Split(std::u32string_view text,
                                       char32_t separator) {
  std::vector<std::u32string_view> parts;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find(separator, begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

struct Keyword {
  std::u32string_view word;
  Rank rank;
};
// All keywords, by their first letter.
const std::unordered_multimap<char32_t, Keyword>& Keywords() {
  static const auto* const keywords = [] {
    auto* const all = new std::unordered_multimap<char32_t, Keyword>;
    for (const RankWords& group : kKeywords) {
      for (const std::u32string_view word : Split(group.words, U' ')) {
        all->emplace(word[0], Keyword{word, group.rank});
      }
    }
    return all;
  }();
  return *keywords;
}

std::u32string InLowerCase(std::u32string_view text) {
  std::u32string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(), LowerCase);
  return lower;
}

// Returns the value of a decimal digit of any script; -1 for other characters.
int DigitValue(char32_t c) {
  constexpr char32_t kZeros[] = {U'0',   0x0660, 0x06F0, 0x07C0, 0x0966,
                                 0x09E6, 0x0A66, 0x0AE6, 0x0B66, 0x0BE6,
                                 0x0C66, 0x0CE6, 0x0D66, 0x0E50, 0x0ED0,
                                 0x0F20, 0x1040, 0x17E0, 0x1810, U'０'};
  for (const char32_t zero : kZeros) {
    if (c >= zero && c < zero + 10) return static_cast<int>(c - zero);
  }
  return -1;
}

// Reads a heading from its beginning, in lower case.
class Scanner {
 public:
  explicit Scanner(std::u32string_view text) : text_(text) {}

  size_t at() const { return at_; }
  void MoveTo(size_t at) { at_ = at; }
  bool AtEnd() const { return at_ >= text_.size(); }
  char32_t Peek() const { return AtEnd() ? 0 : text_[at_]; }

  bool Skip(std::u32string_view what) {
    if (text_.substr(at_, what.size()) != what) return false;
    at_ += what.size();
    return true;
  }
  size_t SkipBlanks() {
    const size_t begin = at_;
    while (!AtEnd() && IsBlank(text_[at_])) ++at_;
    return at_ - begin;
  }

  // Returns true if a word ends here.
  bool AtBoundary() const {
    return AtEnd() || (!IsLetter(text_[at_]) && !IsDigit(text_[at_])) ||
           IsIdeographic(text_[at_]);
  }

  // Takes a keyword and returns its rank; kNone if there is none here.
  Rank TakeKeyword() {
    const auto [begin, end] = Keywords().equal_range(Peek());
    for (auto keyword = begin; keyword != end; ++keyword) {
      const size_t at = at_;
      if (Skip(keyword->second.word) && (AtBoundary() || IsDigit(Peek()))) {
        return keyword->second.rank;
      }
      at_ = at;
    }
    return Rank::kNone;
  }

  Rank TakeCounter() {
    for (const RankWords& counters : kCounters) {
      if (!AtEnd() && Peek() != U' ' &&
          counters.words.find(Peek()) != std::u32string_view::npos) {
        ++at_;
        return counters.rank;
      }
    }
    return Rank::kNone;
  }

  // Each of these takes a number and returns its value. If there is none it
  // takes nothing and returns 0.
  int TakeDigits() {
    const size_t begin = at_;
    int value = 0;
    for (; !AtEnd() && at_ - begin < 5; ++at_) {
      const int digit = DigitValue(text_[at_]);
      if (digit < 0) break;
      value = value * 10 + digit;
    }
    if (at_ == begin || (!AtEnd() && IsDigit(text_[at_]))) {
      at_ = begin;
      return 0;
    }
    return value;
  }

  int TakeRoman();
  int TakeIdeographic();
  int TakeSpelled() { return Take(ReadSpelled(Rest(), false)); }
  int TakeSpelledOrArticle() { return Take(ReadSpelled(Rest(), true)); }
  int TakeLetters() { return Take(ReadLetters(Rest())); }
  bool TakeLast() { return Take(ReadLast(Rest())) > 0; }

  // Returns true if a keyword stands behind one of the next words.
  bool HasKeywordBehind() const {
    constexpr int kMaxWords = 5;
    Scanner scanner(text_);
    scanner.MoveTo(at_);
    for (int i = 0; i < kMaxWords && !scanner.AtEnd(); ++i) {
      while (!scanner.AtEnd() && !IsBlank(scanner.Peek())) {
        scanner.MoveTo(scanner.at() + 1);
      }
      scanner.SkipBlanks();
      const size_t word = scanner.at();
      if (scanner.TakeKeyword() != Rank::kNone) return true;
      scanner.MoveTo(word);
    }
    return false;
  }

 private:
  std::u32string_view Rest() const {
    return text_.substr(std::min(at_, text_.size()));
  }
  int Take(const SpelledNumber& number) {
    if (number.value > 0) at_ += number.length;
    return number.value;
  }

  const std::u32string_view text_;
  size_t at_ = 0;
};

int RomanDigit(char32_t c) {
  switch (c) {
    case U'i':
    case U'\u0456':  // as Ukrainian has it
      return 1;
    case U'v':
      return 5;
    case U'x':
    case U'\u0445':
      return 10;
    case U'l':
      return 50;
    case U'c':
      return 100;
    case U'd':
      return 500;
    case U'm':
      return 1000;
    default:
      return 0;
  }
}

int Scanner::TakeRoman() {
  const size_t begin = at_;
  int value = 0;
  int before = 0;
  std::string latin;
  for (; !AtEnd() && at_ - begin < 16; ++at_) {
    const int digit = RomanDigit(text_[at_]);
    if (digit == 0) break;
    latin += RomanOf(digit);
    value += digit > before ? digit - 2 * before : digit;
    before = digit;
  }
  // "mix" is a Roman number, "civil" is none: a number has only one spelling.
  if (at_ == begin || !AtBoundary() || RomanOf(value) != latin) {
    at_ = begin;
    return 0;
  }
  return value;
}

int Scanner::TakeIdeographic() {
  // Numerals of every day, then those of cheques.
  constexpr std::u32string_view kDigits[] = {
      U"〇一二三四五六七八九", U"零壹贰叁肆伍陆柒捌玖", U"零壹貳參肆伍陸柒捌玖",
      U"零弌两叄"};
  const auto digit_of = [&](char32_t c) -> int {
    if (c == U'兩') return 2;
    for (const std::u32string_view digits : kDigits) {
      const size_t found = digits.find(c);
      if (found != std::u32string_view::npos) return static_cast<int>(found);
    }
    return -1;
  };
  const auto tens_of = [](char32_t c) {
    return c == U'廿' ? 20 : c == U'卅' ? 30 : c == U'卌' ? 40 : 0;
  };
  const auto unit_of = [](char32_t c) {
    return c == U'十' || c == U'拾'   ? 10
           : c == U'百' || c == U'佰' ? 100
           : c == U'千' || c == U'仟' ? 1000
                                      : 0;
  };
  const size_t begin = at_;
  int total = 0;
  int digits = -1;  // digits since the last multiplier, none yet
  for (; !AtEnd() && at_ - begin < 10; ++at_) {
    const char32_t c = text_[at_];
    const int unit = unit_of(c);
    if (unit > 0) {
      total += std::max(digits, 1) * unit;
      digits = -1;
    } else if (tens_of(c) > 0) {
      total += tens_of(c);
    } else if (digit_of(c) >= 0) {
      digits = std::min(std::max(digits, 0) * 10 + digit_of(c), 9999);
    } else {
      break;
    }
  }
  return total + std::max(digits, 0);
}

// A label in lower case: its end and its parts.
struct Found {
  size_t end = 0;
  Rank rank = Rank::kNone;
  int number = 0;
  int num_parts = 0;
};

// Returns true if `text` begins with a keyword that may be numbered by letters.
bool HasLetters(std::u32string_view text) {
  for (const std::u32string_view beginning :
       {U"app", U"ap\u00e9ndice", U"an", U"part ", U"прил", U"附录", U"附錄",
        U"付録"}) {
    if (text.substr(0, beginning.size()) == beginning) return true;
  }
  return false;
}

// "part the first", "capitolul al doilea", "partea a treia".
void SkipArticle(Scanner* scanner, std::u32string_view text) {
  if (scanner->Skip(U"the ") || scanner->Skip(U"al ") ||
      scanner->Skip(U"thứ ")) {
    scanner->SkipBlanks();
  } else if (scanner->Peek() == U'a' &&
             ReadSpelled(text.substr(std::min(scanner->at() + 2, text.size())),
                         false)
                     .value > 0) {
    scanner->Skip(U"a ");
  }
}

// "chapter 3", "part the first", "глава пятая", "appendix b".
Found KeywordThenNumber(std::u32string_view text) {
  Scanner scanner(text);
  const Rank rank = scanner.TakeKeyword();
  if (rank == Rank::kNone) return {};
  scanner.Skip(U".");
  if (scanner.SkipBlanks() == 0 && !IsDigit(scanner.Peek())) return {};
  SkipArticle(&scanner, text);
  for (const std::u32string_view sign :
       {U"#", U"№", U"no.", U"nr.", U"n°", U"nº", U"núm."}) {
    if (!scanner.Skip(sign)) continue;
    scanner.SkipBlanks();
    break;
  }
  const size_t begin = scanner.at();
  int number = scanner.TakeDigits();
  if (scanner.at() > begin) {  // it may be 0
    int num_parts = 1;
    size_t end = scanner.at();
    while (scanner.Skip(U".")) {
      const int part = scanner.TakeDigits();
      if (scanner.at() == end + 1) break;
      end = scanner.at();
      number = part;
      ++num_parts;
    }
    scanner.MoveTo(end);
    if (!scanner.AtBoundary()) return {};
    return {scanner.at(), rank, number, num_parts};
  }
  number = scanner.TakeSpelledOrArticle();  // "dix" is none of Roman digits
  if (number == 0) number = scanner.TakeRoman();
  if (number == 0) number = scanner.TakeLetters();
  if (number == 0) number = scanner.TakeIdeographic();
  if (number == 0 && scanner.TakeLast()) number = 1;
  if (number == 0) {
    const char32_t letter = scanner.Peek();
    if (!HasLetters(text) || letter < U'a' || letter > U'z') return {};
    scanner.MoveTo(begin + 1);
    number = static_cast<int>(letter - U'a') + 1;
  }
  if (!scanner.AtBoundary()) return {};
  return {scanner.at(), rank, number, 1};
}

// "3. kapitel", "erstes kapitel", "première partie", "the first book".
// "3 chapter i" is a page number and a running head.
Found NumberThenKeyword(std::u32string_view text) {
  Scanner scanner(text);
  if (!scanner.HasKeywordBehind()) return {};
  if (scanner.Skip(U"the ")) scanner.SkipBlanks();
  int number = scanner.TakeDigits();
  const bool is_arabic = number > 0;
  if (is_arabic) {
    for (const std::u32string_view ending :
         {U"st", U"nd", U"rd", U"th", U".", U"º", U"ª"}) {
      if (scanner.Skip(ending)) break;
    }
  } else {
    number = scanner.TakeSpelled();
    if (number == 0) number = scanner.TakeRoman();
    if (number == 0) number = scanner.TakeLetters();
    if (number == 0 && scanner.TakeLast()) number = 1;
    scanner.Skip(U".");
  }
  if (number == 0 || scanner.SkipBlanks() == 0) return {};
  const size_t keyword = scanner.at();
  const Rank rank = scanner.TakeKeyword();
  if (rank == Rank::kNone) return {};
  if (is_arabic && KeywordThenNumber(text.substr(keyword)).end > 0) return {};
  return {scanner.at(), rank, number, 1};
}

// "1장", "12話", "三章": a number and a counter without more.
Found NumberThenCounter(std::u32string_view text) {
  Scanner scanner(text);
  int number = scanner.TakeDigits();
  if (number == 0) number = scanner.TakeIdeographic();
  if (number == 0) return {};
  const Rank rank = scanner.TakeCounter();
  if (rank == Rank::kNone) return {};
  if (!scanner.AtEnd() && !IsSeparator(scanner.Peek())) return {};
  return {scanner.at(), rank, number, 1};
}

// "第三章", "卷一", "正文 第一章".
Found Ideographic(std::u32string_view text) {
  Scanner scanner(text);
  Rank rank = Rank::kNone;
  const bool is_main = scanner.Skip(U"正文");
  if (is_main) scanner.SkipBlanks();
  if (!scanner.Skip(U"第") && !scanner.Skip(U"제")) {
    if (is_main) return {};
    rank = scanner.TakeCounter();
  }
  const bool counter_first = rank != Rank::kNone;
  if (!counter_first && scanner.at() == 0) return {};
  scanner.SkipBlanks();
  const size_t begin = scanner.at();
  int number = scanner.TakeDigits();
  if (scanner.at() == begin) number = scanner.TakeIdeographic();
  if (scanner.at() == begin) return {};
  if (!counter_first) {
    scanner.SkipBlanks();
    const char32_t counter = scanner.Peek();
    rank = scanner.TakeCounter();
    if (rank == Rank::kNone) return {};
    // "The first round" is no chapter.
    if (counter == U'回' && scanner.Peek() == U'合') return {};
  } else if (!scanner.AtEnd() && !IsSeparator(scanner.Peek())) {
    return {};
  }
  return {scanner.at(), rank, number, 1};
}

// "2.1. ", "3) ", "a.1 ", "iv. ", "§ 5 ", "七、"; or a numeral and no more.
Found NumberAlone(std::u32string_view text) {
  Scanner scanner(text);
  const bool is_paragraph = scanner.Skip(U"§");
  if (is_paragraph) scanner.SkipBlanks();
  int num_parts = 1;
  int number = scanner.TakeDigits();
  if (number == 0 && text.size() > 2 && text[0] >= U'a' && text[0] <= U'z' &&
      text[1] == U'.') {
    scanner.MoveTo(2);
    number = scanner.TakeDigits();
    if (number > 0) {
      ++num_parts;
    } else {
      scanner.MoveTo(0);
    }
  }
  const bool is_arabic = number > 0;
  if (!is_arabic) number = scanner.TakeRoman();
  // Initials: "C. S. Lewis", "M. Homais".
  if (!is_arabic && scanner.at() == 1 && number > 10) return {};
  if (number == 0) number = scanner.TakeIdeographic();
  if (number == 0) return {};
  size_t end = scanner.at();
  while (is_arabic && scanner.Peek() == U'.') {
    scanner.MoveTo(end + 1);
    const int next = scanner.TakeDigits();
    if (next == 0) {
      scanner.MoveTo(end);
      break;
    }
    number = next;
    ++num_parts;
    end = scanner.at();
  }
  if (scanner.AtEnd()) return {end, Rank::kNumber, number, num_parts};
  const bool is_pointed =
      std::u32string_view(U".):、．）").find(scanner.Peek()) !=
      std::u32string_view::npos;
  if (is_pointed) scanner.MoveTo(end + 1);
  const bool is_apart = scanner.AtEnd() || IsBlank(scanner.Peek()) ||
                        IsIdeographic(text[scanner.at() - 1]);
  if (!is_apart || (!is_pointed && num_parts == 1 && !is_paragraph)) return {};
  return {end, Rank::kNumber, number, num_parts};
}

std::u32string_view Trimmed(std::u32string_view text) {
  while (!text.empty() && IsBlank(text.front())) text.remove_prefix(1);
  while (!text.empty() && IsBlank(text.back())) text.remove_suffix(1);
  return text;
}

// Removes the full stop that some headings have; "etc." and "..." keep theirs.
std::u32string_view WithoutStop(std::u32string_view title) {
  if (title.size() < 2 || title.back() != U'.') return title;
  const std::u32string_view rest = title.substr(0, title.size() - 1);
  if (rest.back() == U'.' || rest.find(U'.') != std::u32string_view::npos) {
    return title;
  }
  const size_t word = rest.find_last_of(U' ') + 1;  // 0 if there is none
  const std::u32string last = InLowerCase(rest.substr(word));
  for (const std::u32string_view abbreviation :
       {U"etc", U"mr", U"mrs", U"dr", U"st", U"jr", U"sr", U"co"}) {
    if (last == abbreviation) return title;
  }
  return rest;
}

bool IsOneOf(std::u32string_view names, std::string_view title) {
  if (title.size() > 80) return false;
  std::u32string key = InLowerCase(ToUtf32(title));
  while (!key.empty() && IsSeparator(key.back())) key.pop_back();
  while (!key.empty() && IsBlank(key.front())) key.erase(0, 1);
  if (key.empty() || key.find(U'|') != std::u32string::npos) return false;
  size_t at = names.find(key);
  for (; at != std::u32string_view::npos; at = names.find(key, at + 1)) {
    const size_t end = at + key.size();
    if ((at == 0 || names[at - 1] == U'|') &&
        (end == names.size() || names[end] == U'|')) {
      return true;
    }
  }
  return false;
}

// A heading in brackets: a label in them, and perhaps a title behind.
std::string WithoutBrackets(std::string_view heading) {
  constexpr std::pair<std::string_view, std::string_view> kBrackets[] = {
      {"【", "】"}, {"［", "］"}, {"〔", "〕"}, {"〈", "〉"},
      {"《", "》"}, {"「", "」"}, {"[", "]"},   {"(", ")"}};
  for (const auto& [open, close] : kBrackets) {
    if (heading.substr(0, open.size()) != open) continue;
    const size_t end = heading.find(close);
    if (end == std::string_view::npos) return {};
    const std::string_view label =
        heading.substr(open.size(), end - open.size());
    return std::string(label) + " " +
           std::string(heading.substr(end + close.size()));
  }
  return {};
}

Label Split(std::string_view heading) {
  const std::u32string all = ToUtf32(heading);
  const std::u32string_view text = Trimmed(all);
  const std::u32string lower = InLowerCase(text);
  Found found = KeywordThenNumber(lower);
  if (found.end == 0) found = NumberThenKeyword(lower);
  if (found.end == 0) found = Ideographic(lower);
  if (found.end == 0) found = NumberThenCounter(lower);
  if (found.end == 0) {
    found = NumberAlone(lower);
    const std::u32string_view numeral = text.substr(0, found.end);
    // A word like "Mix" has lower-case letters, a Roman number has none.
    if (std::any_of(numeral.begin(), numeral.end(), IsLowerCase)) found = {};
  }
  if (found.end == 0) {
    return {.label = {}, .title = FromUtf32(WithoutStop(text))};
  }
  size_t title = found.end;
  if (title < text.size() && (text[title] == U')' || text[title] == U'）')) {
    ++title;
  }
  while (title < text.size() && IsSeparator(text[title])) ++title;
  return {.label = FromUtf32(text.substr(0, found.end)),
          .title = FromUtf32(WithoutStop(Trimmed(text.substr(title)))),
          .rank = found.rank,
          .number = found.number,
          .num_parts = found.num_parts};
}

}  // namespace

std::string_view WithoutMarks(std::string_view line) {
  constexpr std::string_view kMarks = "_*=~+-";
  const char mark = line.empty() ? '\0' : line.front();
  if (kMarks.find(mark) == std::string_view::npos) return line;
  const size_t begin = std::min(line.find_first_not_of(mark), line.size());
  const size_t end = line.find_last_not_of(mark) + 1;
  if (end <= begin || end == line.size()) return line;
  std::string_view rest = line.substr(begin, end - begin);
  // "__init__" is a name, "*this* or *that*" has two marked words.
  const bool is_blank = rest.front() == ' ' && rest.back() == ' ';
  if ((mark == '_' && begin > 1) || (mark == '-' && !is_blank) ||
      (mark != '-' && rest.find(mark) != std::string_view::npos)) {
    return line;
  }
  while (!rest.empty() && rest.front() == ' ') rest.remove_prefix(1);
  while (!rest.empty() && rest.back() == ' ') rest.remove_suffix(1);
  return rest.empty() ? line : rest;
}

std::string_view WithoutNote(std::string_view heading) {
  const size_t bracket = heading.rfind('[');
  const bool has_number =
      bracket != std::string_view::npos && bracket > 0 &&
      heading.back() == ']' && heading.size() - bracket <= 5 &&
      heading.find_first_not_of("0123456789*", bracket + 1) + 1 ==
          heading.size();
  const size_t words = heading.find_last_not_of('*') + 1;
  const bool has_star =
      words > 0 && words < heading.size() && heading.find('*') == words &&
      (IsLetter(CharacterBefore(heading, words)) || heading[words - 1] == '.');
  if (!has_number && !has_star) return heading;
  std::string_view rest = heading.substr(0, has_number ? bracket : words);
  rest = rest.substr(0, rest.find_last_not_of(' ') + 1);
  // "A*" has a star of its own.
  const size_t word = rest.find_last_of(' ') + 1;
  const Label label = SplitLabel(rest);
  const bool is_label = label.rank != Rank::kNone &&
                        label.rank != Rank::kNumber && label.title.empty();
  const bool is_whole = has_number || rest.size() - word > 2 || is_label;
  return is_whole && !rest.empty() ? rest : heading;
}

Label SplitLabel(std::string_view heading) {
  if (heading.size() > kMaxHeadingBytes) {
    return {.label = {}, .title = std::string(heading)};
  }
  Label label = Split(heading);
  if (label.rank != Rank::kNone) return label;
  for (const std::string& inner :
       {std::string(WithoutMarks(heading)), WithoutBrackets(heading)}) {
    if (inner.empty() || inner == heading) continue;
    Label marked = Split(inner);
    // A number in brackets is that of a note.
    if (marked.rank != Rank::kNone && marked.rank != Rank::kNumber) {
      return marked;
    }
  }
  return label;
}

int NumberOf(std::string_view text) {
  if (text.size() > 80) return 0;
  const std::u32string all = InLowerCase(ToUtf32(text));
  std::u32string_view number = Trimmed(all);
  if (!number.empty() && number.back() == U'.') number.remove_suffix(1);
  for (int (Scanner::*take)() :
       {&Scanner::TakeDigits, &Scanner::TakeSpelled, &Scanner::TakeRoman,
        &Scanner::TakeIdeographic}) {
    Scanner scanner(number);
    const int value = (scanner.*take)();
    if (value > 0 && scanner.AtEnd()) return value;
  }
  return 0;
}

std::string RomanOf(int value) {
  constexpr std::pair<int, std::string_view> kSigns[] = {
      {1000, "m"}, {900, "cm"}, {500, "d"}, {400, "cd"}, {100, "c"},
      {90, "xc"},  {50, "l"},   {40, "xl"}, {10, "x"},   {9, "ix"},
      {5, "v"},    {4, "iv"},   {1, "i"}};
  std::string roman;
  for (const auto& [worth, sign] : kSigns) {
    for (; value >= worth; value -= worth) roman += sign;
  }
  return roman;
}

bool IsUnnumberedPart(std::string_view title) {
  return IsOneOf(kUnnumberedParts, title);
}

bool IsContentsTitle(std::string_view title) {
  return IsOneOf(kContentsTitles, title) || !VolumeOfContents(title).empty();
}

std::string VolumeOfContents(std::string_view title) {
  if (title.size() > 80) return {};
  static const auto* const kTitles =
      new std::vector<std::u32string_view>(Split(kContentsTitles, U'|'));
  const std::u32string all = ToUtf32(title);
  const std::u32string lower = InLowerCase(all);
  for (const std::u32string_view contents : *kTitles) {
    if (lower.compare(0, contents.size(), contents) != 0) continue;
    size_t at = contents.size();
    if (at == lower.size() || !IsSeparator(lower[at])) continue;
    while (at < lower.size() && IsSeparator(lower[at])) ++at;
    for (const std::u32string_view of : Split(kOfVolume, U'|')) {
      if (lower.compare(at, of.size(), of) != 0) continue;
      at += of.size();
      break;
    }
    Label label = SplitLabel(FromUtf32(all.substr(at)));
    const bool is_volume = label.rank == Rank::kVolume ||
                           label.rank == Rank::kBook ||
                           label.rank == Rank::kPart;
    if (is_volume && label.title.empty()) return std::move(label.label);
  }
  return {};
}

bool IsIndexTitle(std::string_view title) {
  return IsOneOf(kIndexTitles, title);
}

std::string HeadingKey(std::string_view heading) {
  std::u32string key;
  for (const char32_t c : ToUtf32(heading)) {
    if (IsLetter(c) || IsDigit(c)) key += WithoutAccents(LowerCase(c));
  }
  return FromUtf32(key);
}

}  // namespace tiercel::document

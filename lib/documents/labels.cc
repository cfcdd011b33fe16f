#include "lib/documents/labels.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "lib/documents/unicode.h"

namespace tiercel::document {
namespace {

// A longer line is no heading.
constexpr size_t kMaxHeadingBytes = 1000;

struct Keyword {
  std::u32string_view word;
  Rank rank;
};
constexpr Keyword kKeywords[] = {
    {U"volume", Rank::kVolume},     {U"vol.", Rank::kVolume},
    {U"tome", Rank::kVolume},       {U"tomo", Rank::kVolume},
    {U"band", Rank::kVolume},       {U"том", Rank::kVolume},
    {U"book", Rank::kBook},         {U"buch", Rank::kBook},
    {U"livre", Rank::kBook},        {U"libro", Rank::kBook},
    {U"livro", Rank::kBook},        {U"boek", Rank::kBook},
    {U"книга", Rank::kBook},        {U"part", Rank::kPart},
    {U"teil", Rank::kPart},         {U"theil", Rank::kPart},
    {U"partie", Rank::kPart},       {U"parte", Rank::kPart},
    {U"deel", Rank::kPart},         {U"часть", Rank::kPart},
    {U"act", Rank::kPart},          {U"akt", Rank::kPart},
    {U"aufzug", Rank::kPart},       {U"acte", Rank::kPart},
    {U"acto", Rank::kPart},         {U"atto", Rank::kPart},
    {U"акт", Rank::kPart},          {U"действие", Rank::kPart},
    {U"chapter", Rank::kChapter},   {U"chap.", Rank::kChapter},
    {U"kapitel", Rank::kChapter},   {U"capitel", Rank::kChapter},
    {U"chapitre", Rank::kChapter},  {U"capítulo", Rank::kChapter},
    {U"capitulo", Rank::kChapter},  {U"capitolo", Rank::kChapter},
    {U"hoofdstuk", Rank::kChapter}, {U"глава", Rank::kChapter},
    {U"canto", Rank::kChapter},     {U"gesang", Rank::kChapter},
    {U"chant", Rank::kChapter},     {U"песнь", Rank::kChapter},
    {U"stave", Rank::kChapter},     {U"letter", Rank::kChapter},
    {U"brief", Rank::kChapter},     {U"lettre", Rank::kChapter},
    {U"carta", Rank::kChapter},     {U"lettera", Rank::kChapter},
    {U"письмо", Rank::kChapter},    {U"lecture", Rank::kChapter},
    {U"lesson", Rank::kChapter},    {U"appendix", Rank::kChapter},
    {U"anhang", Rank::kChapter},    {U"annex", Rank::kChapter},
    {U"annexe", Rank::kChapter},    {U"apéndice", Rank::kChapter},
    {U"appendice", Rank::kChapter}, {U"приложение", Rank::kChapter},
    {U"section", Rank::kSection},   {U"abschnitt", Rank::kSection},
    {U"scene", Rank::kSection},     {U"szene", Rank::kSection},
    {U"scène", Rank::kSection},     {U"auftritt", Rank::kSection},
    {U"сцена", Rank::kSection},     {U"явление", Rank::kSection},
    {U"附录", Rank::kChapter},      {U"附錄", Rank::kChapter},
    {U"付録", Rank::kChapter},
};

struct Counter {
  char32_t character;
  Rank rank;
};
constexpr Counter kCounters[] = {
    {U'卷', Rank::kVolume},  {U'巻', Rank::kVolume},  {U'集', Rank::kVolume},
    {U'册', Rank::kVolume},  {U'部', Rank::kPart},    {U'編', Rank::kPart},
    {U'编', Rank::kPart},    {U'篇', Rank::kPart},    {U'幕', Rank::kPart},
    {U'章', Rank::kChapter}, {U'回', Rank::kChapter}, {U'話', Rank::kChapter},
    {U'话', Rank::kChapter}, {U'課', Rank::kChapter}, {U'课', Rank::kChapter},
    {U'讲', Rank::kChapter}, {U'講', Rank::kChapter}, {U'帖', Rank::kChapter},
    {U'节', Rank::kSection}, {U'節', Rank::kSection}, {U'場', Rank::kSection},
    {U'场', Rank::kSection}, {U'권', Rank::kVolume},  {U'부', Rank::kPart},
    {U'장', Rank::kChapter}, {U'화', Rank::kChapter}, {U'절', Rank::kSection},
};

struct NumberWord {
  std::u32string_view word;
  int value;
};
// Up to twenty, where the twenties come by composition or by stem: the endings
// of German and Russian ordinals are cut off before they are looked up.
constexpr NumberWord kNumberWords[] = {
    {U"one", 1},          {U"two", 2},          {U"three", 3},
    {U"four", 4},         {U"five", 5},         {U"six", 6},
    {U"seven", 7},        {U"eight", 8},        {U"nine", 9},
    {U"ten", 10},         {U"eleven", 11},      {U"twelve", 12},
    {U"thirteen", 13},    {U"fourteen", 14},    {U"fifteen", 15},
    {U"sixteen", 16},     {U"seventeen", 17},   {U"eighteen", 18},
    {U"nineteen", 19},    {U"twenty", 20},      {U"thirty", 30},
    {U"forty", 40},       {U"fifty", 50},       {U"sixty", 60},
    {U"seventy", 70},     {U"eighty", 80},      {U"ninety", 90},
    {U"first", 1},        {U"second", 2},       {U"third", 3},
    {U"fourth", 4},       {U"fifth", 5},        {U"sixth", 6},
    {U"seventh", 7},      {U"eighth", 8},       {U"ninth", 9},
    {U"tenth", 10},       {U"eleventh", 11},    {U"twelfth", 12},
    {U"eins", 1},         {U"zwei", 2},         {U"drei", 3},
    {U"vier", 4},         {U"fünf", 5},         {U"sechs", 6},
    {U"sieben", 7},       {U"acht", 8},         {U"neun", 9},
    {U"zehn", 10},        {U"elf", 11},         {U"zwölf", 12},
    {U"dreizehn", 13},    {U"vierzehn", 14},    {U"fünfzehn", 15},
    {U"sechzehn", 16},    {U"siebzehn", 17},    {U"achtzehn", 18},
    {U"neunzehn", 19},    {U"zwanzig", 20},     {U"erst", 1},
    {U"zweit", 2},        {U"dritt", 3},        {U"viert", 4},
    {U"fünft", 5},        {U"sechst", 6},       {U"siebent", 7},
    {U"siebt", 7},        {U"neunt", 9},        {U"zehnt", 10},
    {U"elft", 11},        {U"zwölft", 12},      {U"dreizehnt", 13},
    {U"vierzehnt", 14},   {U"fünfzehnt", 15},   {U"sechzehnt", 16},
    {U"siebzehnt", 17},   {U"achtzehnt", 18},   {U"neunzehnt", 19},
    {U"zwanzigst", 20},   {U"premier", 1},      {U"première", 1},
    {U"deuxième", 2},     {U"seconde", 2},      {U"troisième", 3},
    {U"quatrième", 4},    {U"cinquième", 5},    {U"sixième", 6},
    {U"septième", 7},     {U"huitième", 8},     {U"neuvième", 9},
    {U"dixième", 10},     {U"primero", 1},      {U"primera", 1},
    {U"segundo", 2},      {U"segunda", 2},      {U"tercero", 3},
    {U"tercera", 3},      {U"cuarto", 4},       {U"cuarta", 4},
    {U"quinto", 5},       {U"quinta", 5},       {U"primo", 1},
    {U"prima", 1},        {U"secondo", 2},      {U"seconda", 2},
    {U"terzo", 3},        {U"terza", 3},        {U"quarto", 4},
    {U"quarta", 4},       {U"один", 1},         {U"перв", 1},
    {U"втор", 2},         {U"трет", 3},         {U"четверт", 4},
    {U"четвёрт", 4},      {U"пят", 5},          {U"шест", 6},
    {U"седьм", 7},        {U"восьм", 8},        {U"девят", 9},
    {U"десят", 10},       {U"одиннадцат", 11},  {U"двенадцат", 12},
    {U"тринадцат", 13},   {U"четырнадцат", 14}, {U"пятнадцат", 15},
    {U"шестнадцат", 16},  {U"семнадцат", 17},   {U"восемнадцат", 18},
    {U"девятнадцат", 19}, {U"двадцат", 20},
};
constexpr std::u32string_view kOrdinalEndings[] = {
    U"es", U"er", U"en", U"e",  U"ая", U"ый",
    U"ой", U"ое", U"ья", U"ий", U"ье", U"ь",
};

constexpr std::u32string_view kUnnumberedParts[] = {
    U"preface",
    U"prologue",
    U"epilogue",
    U"introduction",
    U"foreword",
    U"afterword",
    U"conclusion",
    U"appendix",
    U"appendices",
    U"acknowledgements",
    U"acknowledgments",
    U"postscript",
    U"author's note",
    U"vorwort",
    U"nachwort",
    U"einleitung",
    U"prolog",
    U"epilog",
    U"anhang",
    U"vorrede",
    U"schluss",
    U"préface",
    U"avant-propos",
    U"postface",
    U"épilogue",
    U"prefacio",
    U"prólogo",
    U"epílogo",
    U"introducción",
    U"prefazione",
    U"prologo",
    U"epilogo",
    U"introduzione",
    U"предисловие",
    U"пролог",
    U"эпилог",
    U"введение",
    U"вступление",
    U"заключение",
    U"послесловие",
    U"приложение",
    U"序",
    U"序言",
    U"序章",
    U"序文",
    U"自序",
    U"前言",
    U"引言",
    U"楔子",
    U"后记",
    U"後記",
    U"尾声",
    U"尾聲",
    U"跋",
    U"结语",
    U"附录",
    U"附錄",
    U"終章",
    U"はじめに",
    U"おわりに",
    U"まえがき",
    U"あとがき",
    U"プロローグ",
    U"エピローグ",
    U"解説",
    U"付録",
};
constexpr std::u32string_view kContents[] = {
    U"contents",
    U"table of contents",
    U"inhalt",
    U"inhaltsverzeichnis",
    U"table des matières",
    U"sommaire",
    U"índice",
    U"indice",
    U"sommario",
    U"sumário",
    U"inhoud",
    U"содержание",
    U"оглавление",
    U"目录",
    U"目錄",
    U"目次",
};
constexpr std::u32string_view kIndices[] = {
    U"index",
    U"general index",
    U"register",
    U"sachregister",
    U"stichwortverzeichnis",
    U"указатель",
    U"предметный указатель",
    U"алфавитный указатель",
    U"索引",
};

bool IsBlank(char32_t c) {
  return c == U' ' || c == U'\t' || c == 0x3000 || c == 0xA0;
}

bool IsSeparator(char32_t c) {
  return IsBlank(c) || std::u32string_view(U".:;,-–—―・。：、．|").find(c) !=
                           std::u32string_view::npos;
}

std::u32string InLowerCase(std::u32string_view text) {
  std::u32string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(), LowerCase);
  return lower;
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

  std::u32string_view Word() {
    const size_t begin = at_;
    while (!AtEnd() && IsLetter(text_[at_])) ++at_;
    return text_.substr(begin, at_ - begin);
  }

  // Takes a keyword and returns its rank; kNone if there is none here.
  Rank TakeKeyword() {
    for (const Keyword& keyword : kKeywords) {
      const size_t begin = at_;
      if (Skip(keyword.word) && AtBoundary()) return keyword.rank;
      at_ = begin;
    }
    return Rank::kNone;
  }

  Rank TakeCounter() {
    for (const Counter& counter : kCounters) {
      if (Peek() == counter.character) {
        ++at_;
        return counter.rank;
      }
    }
    return Rank::kNone;
  }

  // Each of these takes a number and returns its value. If there is none it
  // takes nothing and returns 0.
  int TakeDigits() {
    const size_t begin = at_;
    int value = 0;
    for (; !AtEnd() && at_ - begin < 4; ++at_) {
      const char32_t c = text_[at_];
      if (c >= U'0' && c <= U'9') {
        value = value * 10 + static_cast<int>(c - U'0');
      } else if (c >= U'０' && c <= U'９') {
        value = value * 10 + static_cast<int>(c - U'０');
      } else {
        break;
      }
    }
    if (at_ == begin || (!AtEnd() && IsDigit(text_[at_]))) {
      at_ = begin;
      return 0;
    }
    return value;
  }

  int TakeRoman();
  int TakeSpelled();
  int TakeIdeographic();

 private:
  const std::u32string_view text_;
  size_t at_ = 0;
};

int RomanDigit(char32_t c) {
  switch (c) {
    case U'i':
      return 1;
    case U'v':
      return 5;
    case U'x':
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

std::u32string RomanOf(int value) {
  constexpr std::pair<int, std::u32string_view> kSigns[] = {
      {1000, U"m"}, {900, U"cm"}, {500, U"d"}, {400, U"cd"}, {100, U"c"},
      {90, U"xc"},  {50, U"l"},   {40, U"xl"}, {10, U"x"},   {9, U"ix"},
      {5, U"v"},    {4, U"iv"},   {1, U"i"}};
  std::u32string roman;
  for (const auto& [worth, sign] : kSigns) {
    for (; value >= worth; value -= worth) roman += sign;
  }
  return roman;
}

int Scanner::TakeRoman() {
  const size_t begin = at_;
  int value = 0;
  int before = 0;
  for (; !AtEnd() && at_ - begin < 16; ++at_) {
    const int digit = RomanDigit(text_[at_]);
    if (digit == 0) break;
    value += digit > before ? digit - 2 * before : digit;
    before = digit;
  }
  // "mix" is a Roman number, "civil" is none: a number has only one spelling.
  if (at_ == begin || !AtBoundary() ||
      RomanOf(value) != text_.substr(begin, at_ - begin)) {
    at_ = begin;
    return 0;
  }
  return value;
}

int SpelledValue(std::u32string_view word) {
  for (const NumberWord& number : kNumberWords) {
    if (word == number.word) return number.value;
  }
  for (const std::u32string_view ending : kOrdinalEndings) {
    if (word.size() < ending.size() + 3) continue;
    const size_t stem = word.size() - ending.size();
    if (word.substr(stem) != ending) continue;
    for (const NumberWord& number : kNumberWords) {
      if (word.substr(0, stem) == number.word) return number.value;
    }
  }
  // In capitals "twenty-one" may be written "twentyone".
  for (const NumberWord& tens : kNumberWords) {
    if (tens.value < 20 || word.size() <= tens.word.size() ||
        word.substr(0, tens.word.size()) != tens.word) {
      continue;
    }
    const int ones = SpelledValue(word.substr(tens.word.size()));
    if (ones > 0 && ones < 10) return tens.value + ones;
  }
  return 0;
}

int Scanner::TakeSpelled() {
  const size_t begin = at_;
  int value = SpelledValue(Word());
  if (value == 0) {
    at_ = begin;
    return 0;
  }
  if (value >= 20 && value % 10 == 0 && (Peek() == U'-' || Peek() == U' ')) {
    const size_t tens_end = at_;
    ++at_;
    const int ones = SpelledValue(Word());
    if (ones > 0 && ones < 10) {
      value += ones;
    } else {
      at_ = tens_end;
    }
  }
  return value;
}

int Scanner::TakeIdeographic() {
  constexpr std::u32string_view kDigits = U"〇一二三四五六七八九";
  const auto digit_of = [&](char32_t c) -> int {
    if (c == U'零') return 0;
    if (c == U'两' || c == U'兩') return 2;
    const size_t found = kDigits.find(c);
    return found == std::u32string_view::npos ? -1 : static_cast<int>(found);
  };
  const size_t begin = at_;
  int total = 0;
  int digits = -1;  // digits since the last multiplier, none yet
  for (; !AtEnd() && at_ - begin < 10; ++at_) {
    const char32_t c = text_[at_];
    const int unit = c == U'十' ? 10 : c == U'百' ? 100 : c == U'千' ? 1000 : 0;
    if (unit > 0) {
      total += std::max(digits, 1) * unit;
      digits = -1;
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

// "chapter 3", "part the first", "глава пятая", "appendix b".
Found KeywordThenNumber(std::u32string_view text) {
  Scanner scanner(text);
  const Rank rank = scanner.TakeKeyword();
  if (rank == Rank::kNone) return {};
  scanner.Skip(U".");
  if (scanner.SkipBlanks() == 0) return {};
  if (scanner.Skip(U"the ")) scanner.SkipBlanks();
  const size_t begin = scanner.at();
  int number = scanner.TakeDigits();
  if (number == 0) number = scanner.TakeRoman();
  if (number == 0) number = scanner.TakeSpelled();
  if (number == 0) number = scanner.TakeIdeographic();
  if (number == 0 && scanner.Skip(U"last")) number = 1;
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
Found NumberThenKeyword(std::u32string_view text) {
  Scanner scanner(text);
  if (scanner.Skip(U"the ")) scanner.SkipBlanks();
  int number = scanner.TakeDigits();
  if (number > 0) {
    for (const std::u32string_view ending :
         {U"st", U"nd", U"rd", U"th", U".", U"º", U"ª"}) {
      if (scanner.Skip(ending)) break;
    }
  } else {
    number = scanner.TakeSpelled();
    if (number == 0) number = scanner.TakeRoman();
    scanner.Skip(U".");
  }
  if (number == 0 || scanner.SkipBlanks() == 0) return {};
  const Rank rank = scanner.TakeKeyword();
  if (rank == Rank::kNone) return {};
  return {scanner.at(), rank, number, 1};
}

// "第三章", "卷一".
Found Ideographic(std::u32string_view text) {
  Scanner scanner(text);
  Rank rank = Rank::kNone;
  if (!scanner.Skip(U"第") && !scanner.Skip(U"제")) {
    rank = scanner.TakeCounter();
  }
  const bool counter_first = rank != Rank::kNone;
  if (!counter_first && scanner.at() == 0) return {};
  scanner.SkipBlanks();
  int number = scanner.TakeDigits();
  if (number == 0) number = scanner.TakeIdeographic();
  if (number == 0) return {};
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

template <size_t n>
bool IsOneOf(const std::u32string_view (&words)[n], std::string_view title) {
  if (title.size() > 80) return false;
  std::u32string key = InLowerCase(ToUtf32(title));
  while (!key.empty() && IsSeparator(key.back())) key.pop_back();
  while (!key.empty() && IsBlank(key.front())) key.erase(0, 1);
  return std::find(std::begin(words), std::end(words), key) != std::end(words);
}

}  // namespace

Label SplitLabel(std::string_view heading) {
  if (heading.size() > kMaxHeadingBytes) {
    return {.label = {}, .title = std::string(heading)};
  }
  const std::u32string all = ToUtf32(heading);
  const std::u32string_view text = Trimmed(all);
  const std::u32string lower = InLowerCase(text);
  Found found = KeywordThenNumber(lower);
  if (found.end == 0) found = NumberThenKeyword(lower);
  if (found.end == 0) found = Ideographic(lower);
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

int NumberOf(std::string_view text) {
  if (text.size() > 80) return 0;
  const std::u32string all = InLowerCase(ToUtf32(text));
  std::u32string_view number = Trimmed(all);
  if (!number.empty() && number.back() == U'.') number.remove_suffix(1);
  for (int (Scanner::*take)() :
       {&Scanner::TakeDigits, &Scanner::TakeRoman, &Scanner::TakeSpelled,
        &Scanner::TakeIdeographic}) {
    Scanner scanner(number);
    const int value = (scanner.*take)();
    if (value > 0 && scanner.AtEnd()) return value;
  }
  return 0;
}

bool IsUnnumberedPart(std::string_view title) {
  return IsOneOf(kUnnumberedParts, title);
}

bool IsContentsTitle(std::string_view title) {
  return IsOneOf(kContents, title);
}

bool IsIndexTitle(std::string_view title) { return IsOneOf(kIndices, title); }

std::string HeadingKey(std::string_view heading) {
  std::u32string key;
  for (const char32_t c : ToUtf32(heading)) {
    if (IsLetter(c) || IsDigit(c)) key.push_back(LowerCase(c));
  }
  return FromUtf32(key);
}

}  // namespace tiercel::document

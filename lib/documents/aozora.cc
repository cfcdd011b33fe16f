#include "lib/documents/aozora.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "lib/documents/encoding.h"
#include "lib/documents/text_lines.h"
#include "lib/documents/text_writer.h"
#include "lib/documents/unicode.h"

namespace tiercel::document {
namespace {

constexpr std::string_view kNote = "［＃";
constexpr std::string_view kNoteEnd = "］";
constexpr std::string_view kReading = "《";
constexpr std::string_view kReadingEnd = "》";
constexpr std::string_view kBase = "｜";
constexpr std::string_view kLatin = "〔";
constexpr std::string_view kLatinEnd = "〕";
constexpr std::string_view kUnknown = "※";
constexpr std::string_view kExplanation = "【テキスト中に現れる記号について】";
// A longer one is not closed.
constexpr size_t kMaxNoteBytes = 600;

bool StartsAt(std::string_view text, size_t at, std::string_view words) {
  return text.substr(at, words.size()) == words;
}

size_t CountOf(std::string_view text, std::string_view words) {
  size_t count = 0;
  for (size_t at = text.find(words); at != std::string_view::npos;
       at = text.find(words, at + words.size())) {
    ++count;
  }
  return count;
}

bool IsAozora(std::string_view text) {
  return text.find(kExplanation) != std::string_view::npos ||
         (CountOf(text, kNote) >= 2 && CountOf(text, kReading) >= 2);
}

// Removes the explanation, which stands between two rules, and the rules.
std::string WithoutExplanation(std::string_view text) {
  const size_t words = text.find(kExplanation);
  if (words == std::string_view::npos) return std::string(text);
  const std::string_view rule = "\n-----";
  const size_t begin = text.rfind(rule, words);
  const size_t last = text.find(rule, words);
  if (begin == std::string_view::npos || last == std::string_view::npos) {
    return std::string(text);
  }
  const size_t end = std::min(text.find('\n', last + 1), text.size());
  return std::string(text.substr(0, begin + 1)) + std::string(text.substr(end));
}

// Returns the level of the heading that a note names ("大見出し"), 0 for
// others.
int HeadingLevel(std::string_view note) {
  constexpr std::array<std::string_view, 3> kLevels = {"大見出し", "中見出し",
                                                       "小見出し"};
  for (size_t level = 0; level < kLevels.size(); ++level) {
    if (note.find(kLevels[level]) != std::string_view::npos) {
      return static_cast<int>(level) + 1;
    }
  }
  return 0;
}

// Returns the place in JIS X 0213 that ends a note ("第3水準1-85-8", "1-2-22");
// "" if there is none, as in one with a page and a line alone ("10-5").
std::string PlaceOf(std::string_view note) {
  constexpr std::string_view kLevel = "水準";
  constexpr std::string_view kComma = "、";
  size_t begin = note.rfind(kLevel);
  if (begin != std::string_view::npos) {
    return std::string(note.substr(begin + kLevel.size()));
  }
  begin = note.rfind(kComma);
  if (begin == std::string_view::npos) return {};
  const std::string_view place = note.substr(begin + kComma.size());
  const bool is_place =
      place.find_first_not_of("0123456789-") == std::string_view::npos &&
      std::count(place.begin(), place.end(), '-') == 2;
  return is_place ? std::string(place) : std::string();
}

// Returns the character of a note behind "※": by its code in Unicode or by its
// place, or nothing.
std::optional<std::string> CharacterOf(std::string_view note) {
  const size_t unicode = note.find("U+");
  if (unicode != std::string_view::npos) {
    const std::string digits(note.substr(unicode + 2, 6));
    char* end = nullptr;
    const unsigned long code = std::strtoul(digits.c_str(), &end, 16);
    const bool is_character =
        code >= 0x20 && code <= 0x10FFFF && !(code >= 0xD800 && code < 0xE000);
    if (end == digits.c_str() || !is_character) return std::nullopt;
    return FromUtf32(std::u32string(1, static_cast<char32_t>(code)));
  }
  const std::string place = PlaceOf(note);
  int numbers[3] = {0, 0, 0};  // plane, row, cell
  const char* at = place.c_str();
  for (int& number : numbers) {
    char* end = nullptr;
    number = static_cast<int>(std::strtol(at, &end, 10));
    if (end == at) return std::nullopt;
    at = *end == '-' ? end + 1 : end;
  }
  const auto [plane, row, cell] =
      std::tuple(numbers[0], numbers[1], numbers[2]);
  if (plane < 1 || plane > 2 || row < 1 || row > 94 || cell < 1 || cell > 94) {
    return std::nullopt;
  }
  std::string bytes = plane == 2 ? "\x8F" : "";
  bytes += static_cast<char>(0xA0 + row);
  bytes += static_cast<char>(0xA0 + cell);
  std::vector<std::string> losses;
  std::string character = ToUtf8(bytes, "EUC-JISX0213", &losses);
  return losses.empty() ? std::optional(std::move(character)) : std::nullopt;
}

// Returns words of Latin letters with the accents that stand behind these
// ("Cafe'" is "Café"), or nothing if there are none.
std::optional<std::string> WithAccents(std::string_view words) {
  struct Accent {
    char sign;
    std::string_view letters;  // before the sign
    std::string_view mark;     // a combining one
  };
  constexpr Accent kAccents[] = {{'\'', "AEIOUYaeiouy", "\u0301"},
                                 {'`', "AEIOUaeiou", "\u0300"},
                                 {'^', "ACEGHIJOSUWYaceghijosuwy", "\u0302"},
                                 {'~', "ANOano", "\u0303"},
                                 {':', "AEIOUYaeiouy", "\u0308"},
                                 {'&', "AUau", "\u030a"},
                                 {',', "Cc", "\u0327"},
                                 {'_', "AEIOUaeiou", "\u0304"}};
  constexpr std::pair<std::string_view, std::string_view> kLigatures[] = {
      {"AE&", "Æ"}, {"ae&", "æ"}, {"OE&", "Œ"}, {"oe&", "œ"}, {"s&", "ß"},
      {"O/", "Ø"},  {"o/", "ø"},  {"L/", "Ł"},  {"l/", "ł"},  {"D/", "Đ"},
      {"d/", "đ"},  {"!@", "¡"},  {"?@", "¿"}};
  std::string composed;
  bool has_accent = false;
  for (size_t at = 0; at < words.size();) {
    const auto* const ligature = std::find_if(
        std::begin(kLigatures), std::end(kLigatures),
        [&](const auto& pair) { return StartsAt(words, at, pair.first); });
    if (ligature != std::end(kLigatures)) {
      composed += ligature->second;
      at += ligature->first.size();
      has_accent = true;
      continue;
    }
    size_t next = 0;
    if (IsIdeographic(CharacterAt(words, at, &next))) return std::nullopt;
    composed += words.substr(at, next - at);
    at = next;
    for (const Accent& accent : kAccents) {
      if (at >= words.size() || words[at] != accent.sign ||
          accent.letters.find(words[at - 1]) == std::string_view::npos) {
        continue;
      }
      composed += accent.mark;
      has_accent = true;
      ++at;
      break;
    }
  }
  if (!has_accent) return std::nullopt;
  return Composed(composed);
}

// Copies a text without its marks.
class Copier {
 public:
  explicit Copier(std::string_view text) : text_(text) {}

  std::string Copy(std::vector<Heading>* headings) {
    headings_ = headings;
    for (size_t at = 0; at < text_.size();) at = Step(at);
    return std::move(copy_);
  }

 private:
  // Copies what is at a place, and returns the next one.
  size_t Step(size_t at) {
    if (StartsAt(text_, at, kBase)) return at + kBase.size();
    if (StartsAt(text_, at, kReading)) {
      const size_t end = EndOf(at, kReadingEnd);
      if (end > at) return end;
    }
    if (StartsAt(text_, at, kLatin)) {
      const size_t end = EndOf(at, kLatinEnd);
      const size_t begin = at + kLatin.size();
      const std::optional<std::string> words =
          end == at ? std::nullopt
                    : WithAccents(
                          text_.substr(begin, end - kLatinEnd.size() - begin));
      if (words.has_value()) {
        copy_ += *words;
        return end;
      }
    }
    const bool is_unknown = StartsAt(text_, at, kUnknown) &&
                            StartsAt(text_, at + kUnknown.size(), kNote);
    const size_t note = is_unknown ? at + kUnknown.size() : at;
    if (StartsAt(text_, note, kNote)) {
      const size_t end = EndOf(note, kNoteEnd);
      if (end > note) {
        const size_t begin = note + kNote.size();
        const std::string_view words =
            text_.substr(begin, end - kNoteEnd.size() - begin);
        if (is_unknown) {
          copy_ += CharacterOf(words).value_or("〓");  // as print has it
        } else {
          ReadNote(words);
        }
        return end;
      }
    }
    copy_.push_back(text_[at]);
    return at + 1;
  }

  // Returns the place behind the end of a mark; `at` if it is not closed.
  size_t EndOf(size_t at, std::string_view end) const {
    // A note may have another within it.
    int depth = 0;
    const size_t most = std::min(text_.size(), at + kMaxNoteBytes);
    const bool is_note = end == kNoteEnd;
    for (size_t i = at; i < most && text_[i] != '\n'; ++i) {
      if (is_note && StartsAt(text_, i, "［")) ++depth;
      if (!StartsAt(text_, i, end)) continue;
      if (!is_note || --depth == 0) return i + end.size();
    }
    return at;
  }

  // "「朝」は中見出し" names the words before it; "中見出し" and
  // "中見出し終わり" stand around a heading.
  void ReadNote(std::string_view note) {
    const int level = HeadingLevel(note);
    if (level == 0) return;
    const size_t line = copy_.rfind('\n') + 1;  // 0 if there is none
    if (note.find("」は") != std::string_view::npos) {
      AddHeading(level, line);
    } else if (note.find("終わり") != std::string_view::npos) {
      if (open_.has_value()) AddHeading(level, *open_);
      open_.reset();
    } else {
      open_ = copy_.size();
    }
  }

  void AddHeading(int level, size_t begin) {
    constexpr std::string_view kSpace = "\u3000";
    while (begin < copy_.size()) {
      if (copy_[begin] == '\n' || copy_[begin] == ' ') {
        ++begin;
      } else if (StartsAt(copy_, begin, kSpace)) {
        begin += kSpace.size();
      } else {
        break;
      }
    }
    std::string words = OneLine(copy_.substr(begin));
    for (size_t at = words.find(kSpace); at != std::string::npos;
         at = words.find(kSpace, at)) {
      words.replace(at, kSpace.size(), " ");
    }
    headings_->push_back({level, std::move(words), begin, ""});
  }

  const std::string_view text_;
  std::string copy_;
  std::vector<Heading>* headings_ = nullptr;
  std::optional<size_t> open_;  // the place of a heading that is not ended
};

// Returns the number of the author's line in the first block: the last one that
// is no translator's or editor's. Before it may be a subtitle, and the title in
// another language.
size_t AuthorIn(const std::vector<TextLine>& lines) {
  constexpr std::string_view kOthers[] = {"訳", "編", "校訂", "校注", "訳者"};
  size_t author = lines[0].num_lines - 1;
  while (author > 1 &&
         std::any_of(std::begin(kOthers), std::end(kOthers),
                     [&](std::string_view end) {
                       const std::string_view line = lines[author].text;
                       return line.size() > end.size() &&
                              StartsAt(line, line.size() - end.size(), end);
                     })) {
    --author;
  }
  return author;
}

}  // namespace

std::vector<Heading> ReadAozora(Document* document) {
  std::vector<Heading> headings;
  if (!IsAozora(document->text)) return headings;
  document->text = Copier(WithoutExplanation(document->text)).Copy(&headings);
  const std::vector<TextLine> lines =
      LinesOf(std::string_view(document->text).substr(0, 4096));
  if (lines.size() > 2 && document->title.empty() && !lines[1].is_first) {
    document->title = lines[0].text;
    document->author = lines[AuthorIn(lines)].text;
  }
  document->warnings.emplace_back(
      "Aozora Bunko's marks, readings and notes were left out");
  return headings;
}

}  // namespace tiercel::document

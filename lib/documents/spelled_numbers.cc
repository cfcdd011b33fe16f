#include "lib/documents/spelled_numbers.h"

#include <algorithm>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "lib/documents/number_words.h"
#include "lib/documents/unicode.h"

namespace tiercel::document {
namespace {

constexpr size_t kMaxWordLetters = 40;
constexpr size_t kMinStem = 3;       // letters
constexpr size_t kMinLatinStem = 4;  // "tent" is no ordinal of ten
constexpr size_t kShortEnding = 3;

using Values = std::unordered_map<std::u32string_view, int>;

void AddWords(std::u32string_view words, int value, Values* values) {
  for (size_t begin = 0; begin < words.size();) {
    const size_t end = std::min(words.find(U' ', begin), words.size());
    values->emplace(words.substr(begin, end - begin), value);
    begin = end + 1;
  }
}

Values ValuesOf(std::span<const NumberWords> numbers) {
  Values values;
  for (const NumberWords& number : numbers) {
    AddWords(number.words, number.value, &values);
  }
  return values;
}

Values ValuesOf(std::u32string_view words) {
  Values values;
  AddWords(words, 1, &values);
  return values;
}

int ValueIn(const Values& values, std::u32string_view word) {
  const auto value = values.find(word);
  return value == values.end() ? 0 : value->second;
}

int Listed(std::u32string_view word) {
  static const auto* const kValues = new Values(ValuesOf(kNumberWords));
  return ValueIn(*kValues, word);
}

int ComposedOnes(std::u32string_view word) {
  static const auto* const kValues = new Values(ValuesOf(kComposedOnes));
  return ValueIn(*kValues, word);
}

int ComposedTens(std::u32string_view word) {
  static const auto* const kValues = new Values(ValuesOf(kComposedTens));
  return ValueIn(*kValues, word);
}

bool EndsIn(std::u32string_view word, std::u32string_view ending) {
  return word.size() > ending.size() &&
         word.substr(word.size() - ending.size()) == ending;
}

// Returns false for most words that are no numbers, by their first letters.
bool MayBeNumber(std::u32string_view word) {
  constexpr size_t kLetters = 3;
  static const auto* const kBeginnings = [] {
    auto* const all = new std::unordered_set<std::u32string_view>;
    for (const auto& values : {ValuesOf(kNumberWords), ValuesOf(kComposedOnes),
                               ValuesOf(kComposedTens)}) {
      for (const auto& value : values) all->insert(value.first.substr(0, 3));
    }
    return all;
  }();
  for (size_t n = 1; n <= std::min(kLetters, word.size()); ++n) {
    if (kBeginnings->count(word.substr(0, n)) > 0) return true;
  }
  return false;
}

// Returns the value that `value_of` has for a word, or for one of the stems
// that it may be an ordinal of; 0 for others.
template <typename ValueOf>
int OrdinalValue(std::u32string_view word, ValueOf value_of) {
  if (const int value = value_of(word); value > 0) return value;
  for (const std::u32string_view ending : kOrdinalEndings) {
    const bool is_short = ending[0] < 0x80 && ending.size() <= kShortEnding;
    const size_t least = is_short ? kMinLatinStem : kMinStem;
    if (!EndsIn(word, ending) || word.size() - ending.size() < least) continue;
    const std::u32string_view stem =
        word.substr(0, word.size() - ending.size());
    for (const std::u32string_view end : kStemEnds) {
      const int value = value_of(std::u32string(stem).append(end));
      if (value > 0) return value;
    }
  }
  return 0;
}

int OnesOf(std::u32string_view word) {
  const int composed = ComposedOnes(word);
  const int value = composed > 0 ? composed : OrdinalValue(word, Listed);
  return value < 10 ? value : 0;
}

// "kahdestoista", "kahdeskymmenes": ones with the ending of teens or tens.
int WithEnding(std::u32string_view word) {
  for (const NumberEnding& number : kNumberEndings) {
    if (!EndsIn(word, number.ending)) continue;
    const int ones = OnesOf(word.substr(0, word.size() - number.ending.size()));
    if (ones > 0) return ones * number.factor + number.sum;
  }
  return 0;
}

// The value of tens before ones in one word, which may have lost their last
// letter: "vent-uno".
int TensOf(std::u32string_view word) {
  int value = std::max(ComposedTens(word), WithEnding(word));
  for (const std::u32string_view end : {U"", U"i", U"a"}) {
    const int listed = Listed(std::u32string(word).append(end));
    if (listed >= 20) value = std::max(value, listed);
  }
  return value < 100 && value % 10 == 0 ? value : 0;
}

// "twentyone", "einundzwanzig", "ventuno".
int InOneWord(std::u32string_view word) {
  if (const int value = Listed(word); value > 0) return value;
  if (const int value = WithEnding(word); value > 0) return value;
  for (size_t i = 2; i + 2 <= word.size(); ++i) {
    const std::u32string_view first = word.substr(0, i);
    const std::u32string_view second = word.substr(i);
    if (const int tens = TensOf(first); tens > 0) {
      const int ones = OnesOf(second);
      if (ones > 0) return tens + ones;
    }
    for (const std::u32string_view joiner : kJoinersInWords) {
      if (second.size() <= joiner.size() ||
          second.substr(0, joiner.size()) != joiner) {
        continue;
      }
      const int tens = OrdinalValue(second.substr(joiner.size()), Listed);
      const int ones = tens >= 20 && tens < 100 ? OnesOf(first) : 0;
      if (ones > 0) return tens + ones;
    }
  }
  return 0;
}

int ValueOfWord(std::u32string_view word) {
  if (word.empty() || word.size() > kMaxWordLetters || !MayBeNumber(word)) {
    return 0;
  }
  return OrdinalValue(word, InOneWord);
}

// Returns the word at `at`, with an apostrophe within it.
std::u32string_view WordAt(std::u32string_view text, size_t at) {
  const auto is_letter = [&](size_t i) {
    return i < text.size() && (IsLetter(text[i]) || IsMark(text[i])) &&
           !IsIdeographic(text[i]);
  };
  size_t end = at;
  while (is_letter(end) || (end > at && is_letter(end + 1) &&
                            (text[end] == U'\'' || text[end] == U'\u2019'))) {
    ++end;
  }
  return at < text.size() ? text.substr(at, end - at) : std::u32string_view();
}

// Calls `accept` with the place behind each joiner that stands at `at` until it
// returns a number.
template <typename Accept>
SpelledNumber BehindJoiner(std::u32string_view text, size_t at, Accept accept) {
  for (const std::u32string_view joiner : kJoiners) {
    if (at >= text.size() || text.substr(at, joiner.size()) != joiner) continue;
    const SpelledNumber found = accept(at + joiner.size());
    if (found.value > 0) return found;
  }
  return {};
}

// "twenty-one", "quatre-vingt-dix", "décimo tercero".
SpelledNumber BelowHundred(std::u32string_view text, size_t begin) {
  const std::u32string_view first = WordAt(text, begin);
  SpelledNumber number = {ValueOfWord(first), begin + first.size()};
  const int composed = number.value % 10 == 0 ? ComposedTens(first) : 0;
  if (number.value == 0 && composed == 0) return {};
  const auto word_behind = [&](int least, int most) {
    return BehindJoiner(text, number.length, [&](size_t at) {
      const std::u32string_view word = WordAt(text, at);
      SpelledNumber next = {std::max(ValueOfWord(word), ComposedOnes(word)),
                            at + word.size()};
      if (next.value == 10 && most > 10) next = BelowHundred(text, at);
      return next.value >= least && next.value <= most ? next : SpelledNumber();
    });
  };
  if (number.value > 0 && number.value < 10) {
    const SpelledNumber behind =
        BehindJoiner(text, number.length, [&](size_t at) {
          const std::u32string_view word = WordAt(text, at);
          for (const NumberEnding& next : kWordsBehindOnes) {
            if (word != next.ending) continue;
            return SpelledNumber{number.value * next.factor + next.sum,
                                 at + word.size()};
          }
          return SpelledNumber();
        });
    if (behind.value > 0) {
      number = behind;
    } else if (text.substr(number.length, 2) == U" \u0648") {
      // "One and twenty", in Arabic.
      const std::u32string_view word = WordAt(text, number.length + 2);
      const int value = ValueOfWord(word);
      if (value >= 20 && value < 100) {
        return {value + number.value, number.length + 2 + word.size()};
      }
    }
  }
  if (number.value == 4) {  // "quatre-vingts"
    const SpelledNumber twenty = word_behind(20, 20);
    if (twenty.value > 0) number = {80, twenty.length};
  }
  const int tens = std::max(number.value, composed);
  if (tens < 10 || tens > 90 || tens % 10 != 0) return number;
  // "soixante-dix", "quatre-vingt-onze", "dix-sept".
  const int most = tens == 60 || tens == 80 ? 19 : 9;
  const bool is_dix = tens == 10 && composed == 0;
  const SpelledNumber ones = word_behind(is_dix ? 7 : 1, most);
  if (ones.value > 0) return {tens + ones.value, ones.length};
  return number.value > 0 ? number : SpelledNumber();
}

constexpr std::u32string_view kSigns =
    U"\u02b9\u0374\u0384\u00b4\u2019'"
    U"\u05f3\u05f4\"";

int ValueOfLetter(char32_t letter) {
  // By their values: ones, tens, hundreds.
  constexpr std::u32string_view kGreek =
      U"αβγδε\u03dbζηθικλμνξοπ\u03dfρστυφχψω\u03e1";
  constexpr std::u32string_view kHebrew = U"אבגדהוזחטיכלמנסעפצקרשת";
  for (const std::u32string_view letters : {kGreek, kHebrew}) {
    const size_t at = letters.find(letter);
    if (at == std::u32string_view::npos) continue;
    constexpr int kUnits[] = {1, 10, 100};
    return (static_cast<int>(at % 9) + 1) * kUnits[at / 9];
  }
  return 0;
}

}  // namespace

SpelledNumber ReadSpelled(std::u32string_view text, bool with_articles) {
  static const auto* const kArticleValues = new Values(ValuesOf(kArticles));
  SpelledNumber number = BelowHundred(text, 0);
  if (number.value == 0) {
    const std::u32string_view word = WordAt(text, 0);
    if (!with_articles || ValueIn(*kArticleValues, word) == 0) return {};
    return {1, word.size()};
  }
  int hundreds = number.value == 100 ? 1 : 0;
  if (number.value < 10) {
    const SpelledNumber hundred =
        BehindJoiner(text, number.length, [&](size_t at) {
          const std::u32string_view word = WordAt(text, at);
          return ValueOfWord(word) == 100
                     ? SpelledNumber{number.value, at + word.size()}
                     : SpelledNumber();
        });
    if (hundred.value > 0) {
      hundreds = number.value;
      number.length = hundred.length;
    }
  }
  if (hundreds == 0) return number;
  const SpelledNumber rest = BehindJoiner(text, number.length, [&](size_t at) {
    const SpelledNumber below = BelowHundred(text, at);
    return below.value < 100 ? below : SpelledNumber();
  });
  return {hundreds * 100 + rest.value, std::max(number.length, rest.length)};
}

SpelledNumber ReadLast(std::u32string_view text) {
  static const auto* const kValues = new Values(ValuesOf(kLastWords));
  const std::u32string_view word = WordAt(text, 0);
  return {ValueIn(*kValues, word), word.size()};
}

SpelledNumber ReadLetters(std::u32string_view text) {
  constexpr int kMostWithoutSign = 39;
  const auto unit_of = [](int letter) {
    return letter >= 100 ? 100 : letter >= 10 ? 10 : 1;
  };
  int value = 0;
  int before = 0;
  bool has_sign = false;
  size_t at = 0;
  for (; at < text.size(); ++at) {
    if (value > 0 && kSigns.find(text[at]) != std::u32string_view::npos) {
      has_sign = true;
      continue;
    }
    const bool is_stigma = text.substr(at, 2) == U"στ";
    const int letter = is_stigma ? 6 : ValueOfLetter(text[at]);
    // Each has a lower unit; in Hebrew 15 is 9 and 6, and 16 is 9 and 7.
    const bool is_next = before == 0 || unit_of(letter) < unit_of(before) ||
                         (before == 9 && (letter == 6 || letter == 7));
    if (letter == 0 || !is_next) break;
    value += letter;
    before = letter;
    at += is_stigma ? 1 : 0;
  }
  const bool ends = at == text.size() || !IsLetter(text[at]);
  if (!ends || (!has_sign && value > kMostWithoutSign)) return {};
  return {value, at};
}

}  // namespace tiercel::document

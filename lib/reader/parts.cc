#include "lib/reader/parts.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <span>

#include "lib/reader/text.h"

namespace tiercel::reader {
namespace {

// An end within the first sixteenth of the reach is too early.
constexpr size_t kTooLittle = 16;

bool IsBlank(char c) { return kBlanks.find(c) != std::string_view::npos; }

// The length of the character at `at`; a byte that is not UTF-8 counts as one.
size_t CharacterBytes(std::string_view text, size_t at) {
  size_t end = at + 1;
  while (end < text.size() && end - at < 4 &&
         (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) {
    ++end;
  }
  return end - at;
}

bool IsOneOf(std::string_view character, const auto& set) {
  return std::find(set.begin(), set.end(), character) != set.end();
}

// Marks that end a sentence before a blank, and marks that end one anywhere.
constexpr std::array<std::string_view, 9> kStops = {".", "!", "?", "…", "؟",
                                                    "۔", "।", "॥", "።"};
constexpr std::array<std::string_view, 6> kWideStops = {"。", "！", "？",
                                                        "｡",  "．", "‼"};
// Marks that may follow the end of a sentence, closing around it.
constexpr std::array<std::string_view, 14> kClosers = {
    "\"", "'", ")", "]", "”", "’", "»", "›", "」", "』", "）", "】", "》", "*"};

bool IsLetter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

// Returns true if the full stop at `at` ends only an abbreviation: a single
// letter, or a word that stands before names.
bool Abbreviates(std::string_view text, size_t at) {
  size_t begin = at;
  while (begin > 0 && IsLetter(text[begin - 1])) --begin;
  static constexpr std::array<std::string_view, 10> kBeforeNames = {
      "Mr", "Mrs", "Ms", "Dr", "St", "Prof", "Capt", "Col", "Gen", "vs"};
  const std::string_view word = text.substr(begin, at - begin);
  return (word.size() == 1 && word != "I") || IsOneOf(word, kBeforeNames);
}

// Finds how far a run that begins at `begin` may go.
class Reach {
 public:
  Reach(std::string_view text, size_t begin, size_t usual_bytes,
        const FitsFn& fits)
      : text_(text), begin_(begin), usual_bytes_(usual_bytes), fits_(fits) {}

  // Returns the last of `ends` (ascending, above the start) up to which the run
  // fits; nothing if not even the first does. A galloping search from where a
  // run usually ends, then a binary one.
  std::optional<size_t> Last(std::span<const size_t> ends) const {
    if (ends.empty()) return std::nullopt;
    const auto guess =
        std::upper_bound(ends.begin(), ends.end(), begin_ + usual_bytes_);
    size_t fit = 0;  // the first `fit` of them fit
    size_t probe =
        std::max<size_t>(static_cast<size_t>(guess - ends.begin()), 1);
    size_t not_fit = ends.size() + 1;  // the first that does not
    if (Fits(ends[probe - 1])) {
      fit = probe;
      for (size_t step = 1; fit < ends.size(); step *= 2) {
        probe = std::min(fit + step, ends.size());
        if (!Fits(ends[probe - 1])) {
          not_fit = probe;
          break;
        }
        fit = probe;
      }
    } else {
      not_fit = probe;
      for (size_t step = 1; not_fit > 1; step *= 2) {
        probe = not_fit - std::min(step, not_fit - 1);
        if (Fits(ends[probe - 1])) {
          fit = probe;
          break;
        }
        not_fit = probe;
      }
    }
    while (not_fit - fit > 1) {
      probe = fit + (not_fit - fit) / 2;
      (Fits(ends[probe - 1]) ? fit : not_fit) = probe;
    }
    if (fit == 0) return std::nullopt;
    return ends[fit - 1];
  }

  bool Fits(size_t end) const {
    return fits_(text_.substr(begin_, end - begin_));
  }

 private:
  const std::string_view text_;
  const size_t begin_;
  const size_t usual_bytes_;
  const FitsFn& fits_;
};

// Returns the last of `offsets` in (low, high].
std::optional<size_t> LastIn(const std::vector<size_t>& offsets, size_t low,
                             size_t high) {
  const auto after = std::upper_bound(offsets.begin(), offsets.end(), high);
  if (after == offsets.begin() || *std::prev(after) <= low) {
    return std::nullopt;
  }
  return *std::prev(after);
}

// Returns a better end for the run from `begin`, which fits up to `end`: the
// last chapter or heading within reach.
size_t BetterEnd(const Divisions& divisions, const Reach& reach, size_t begin,
                 size_t end) {
  const size_t low = begin + (end - begin) / kTooLittle;
  for (const auto* better : {&divisions.chapters, &divisions.headings}) {
    const std::optional<size_t> at = LastIn(*better, low, end);
    if (at.has_value() && reach.Fits(*at)) return *at;
  }
  return end;
}

// Returns where to cut a paragraph, at the end of `text`, that does not fit
// from `begin` on; nothing if not even its first character fits. It looks only
// a little beyond what fits, since the paragraph may be a whole book.
std::optional<size_t> EndWithin(std::string_view text, const Reach& reach,
                                size_t begin, size_t usual_bytes) {
  constexpr size_t kLeast = 256;
  size_t bytes = kLeast + usual_bytes;
  while (begin + bytes < text.size() && reach.Fits(begin + bytes)) bytes *= 2;
  const std::string_view run = text.substr(begin, bytes);
  for (const auto begins : {SentenceBegins, WordBegins, CharacterBegins}) {
    std::vector<size_t> ends = begins(run);
    for (size_t& end : ends) end += begin;
    const std::optional<size_t> end = reach.Last(ends);
    if (end.has_value()) return end;
  }
  return std::nullopt;
}

}  // namespace

std::vector<size_t> ParagraphBegins(std::string_view text) {
  std::vector<size_t> begins;
  size_t line = 0;
  bool blank_before = false;
  bool any = false;  // there was text before
  while (line < text.size()) {
    const size_t end = std::min(text.find('\n', line), text.size());
    const bool blank =
        text.substr(line, end - line).find_first_not_of(kBlanks) ==
        std::string_view::npos;
    if (!blank && blank_before && any) begins.push_back(line);
    any = any || !blank;
    blank_before = blank;
    line = end + 1;
  }
  return begins;
}

std::vector<size_t> SentenceBegins(std::string_view text) {
  std::vector<size_t> begins;
  for (size_t at = 0; at < text.size();) {
    const size_t bytes = CharacterBytes(text, at);
    const std::string_view character = text.substr(at, bytes);
    const bool wide = IsOneOf(character, kWideStops);
    if (!wide && !IsOneOf(character, kStops)) {
      at += bytes;
      continue;
    }
    const bool abbreviates = character == "." && Abbreviates(text, at);
    at += bytes;
    while (at < text.size()) {
      const std::string_view next = text.substr(at, CharacterBytes(text, at));
      if (!IsOneOf(next, kStops) && !IsOneOf(next, kWideStops) &&
          !IsOneOf(next, kClosers)) {
        break;
      }
      at += next.size();
    }
    const size_t after =
        std::min(text.find_first_not_of(kBlanks, at), text.size());
    if (after == text.size()) break;
    const bool goes_on = text[after] >= 'a' && text[after] <= 'z';
    if (wide || (after > at && !abbreviates && !goes_on)) {
      begins.push_back(after);
    }
    at = after;
  }
  return begins;
}

std::vector<size_t> WordBegins(std::string_view text) {
  std::vector<size_t> begins;
  for (size_t at = 1; at < text.size(); ++at) {
    if (!IsBlank(text[at]) && IsBlank(text[at - 1])) begins.push_back(at);
  }
  return begins;
}

std::vector<size_t> CharacterBegins(std::string_view text) {
  std::vector<size_t> begins;
  for (size_t at = 0; at < text.size(); at += CharacterBytes(text, at)) {
    if (at > 0) begins.push_back(at);
  }
  return begins;
}

std::string_view WholeSentences(std::string_view text) {
  text = Trimmed(text);
  // The end of the last sentence is found only if another one follows.
  const std::string followed = std::string(text) + " Another";
  const std::vector<size_t> begins = SentenceBegins(followed);
  size_t end = begins.empty() ? 0 : begins.back();
  const size_t line = text.rfind('\n');
  if (line != std::string_view::npos && line >= text.size() / 2) {
    end = std::max(end, line);
  }
  return end > 0 ? Trimmed(text.substr(0, end)) : text;
}

Divisions DivisionsOf(const Document& book) {
  Divisions divisions;
  const int level = ChapterLevel(book);
  for (const Section& section : book.sections) {
    (section.level <= level ? divisions.chapters : divisions.headings)
        .push_back(section.begin);
  }
  return divisions;
}

std::vector<Part> CutIntoParts(std::string_view text,
                               const Divisions& divisions, size_t usual_bytes,
                               const FitsFn& fits) {
  // Ends that cut no sentence: paragraphs, chapters and headings, merged.
  std::vector<size_t> ends = ParagraphBegins(text);
  const size_t middle = ends.size();
  ends.insert(ends.end(), divisions.chapters.begin(), divisions.chapters.end());
  ends.insert(ends.end(), divisions.headings.begin(), divisions.headings.end());
  ends.push_back(text.size());
  std::sort(ends.begin() + static_cast<std::ptrdiff_t>(middle), ends.end());
  std::inplace_merge(ends.begin(),
                     ends.begin() + static_cast<std::ptrdiff_t>(middle),
                     ends.end());
  ends.erase(std::unique(ends.begin(), ends.end()), ends.end());

  std::vector<Part> parts;
  std::span<const size_t> left = ends;
  for (size_t begin = 0; begin < text.size();) {
    while (left.front() <= begin) left = left.subspan(1);
    const Reach reach(text, begin, usual_bytes, fits);
    std::optional<size_t> end = reach.Last(left);
    if (end.has_value() && *end < text.size()) {
      end = BetterEnd(divisions, reach, begin, *end);
      const size_t next = *std::upper_bound(left.begin(), left.end(), *end);
      const size_t enough = begin + kTooLittle * (*end - begin);
      if (next > enough) {
        const auto far =
            EndWithin(text.substr(0, next), reach, begin, usual_bytes);
        if (far.has_value() && *far > enough) end = far;
      }
    } else if (!end.has_value()) {
      end = EndWithin(text.substr(0, left.front()), reach, begin, usual_bytes);
    }
    if (!end.has_value()) return {};
    parts.push_back({begin, *end});
    usual_bytes = *end - begin;
    begin = *end;
  }
  return parts;
}

}  // namespace tiercel::reader

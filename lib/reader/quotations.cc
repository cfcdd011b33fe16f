#include "lib/reader/quotations.h"

#include <algorithm>
#include <array>
#include <optional>

#include "lib/documents/unicode.h"
#include "lib/reader/plain_form.h"
#include "lib/reader/text.h"

namespace tiercel::reader {
namespace {

constexpr size_t kFewestWords = 4;

// A pair of quotation marks. Marks that are apostrophes, too, close only behind
// a word, and open only before one.
struct Marks {
  std::string_view open;
  std::string_view close;
  bool apostrophe = false;
};
constexpr std::array<Marks, 15> kMarks = {{{"\"", "\""},
                                           {"“", "”"},
                                           {"„", "“"},
                                           {"„", "”"},
                                           {"”", "”"},
                                           {"«", "»"},
                                           {"»", "«"},
                                           {"‹", "›"},
                                           {"「", "」"},
                                           {"『", "』"},
                                           {"《", "》"},
                                           {"‘", "’", true},
                                           {"‚", "‘", true},
                                           {"’", "’", true},
                                           {"'", "'", true}}};

// Returns true for scripts that are written without spaces, such as Han, kana
// and Thai.
bool StandsAlone(char32_t code) {
  return (code >= 0x0E00 && code < 0x0EE0) ||
         (code >= 0x1000 && code < 0x10A0) ||
         (code >= 0x1780 && code < 0x1800) ||
         (code >= 0x3040 && code < 0x3100) ||
         (code >= 0x3400 && code < 0xA000) ||
         (code >= 0x20000 && code < 0x40000);
}

bool IsInText(char32_t character) {
  return document::IsLetter(character) || document::IsDigit(character) ||
         document::IsMark(character);
}

// Returns true for what belongs to a word that has blanks around it.
bool IsInWord(char32_t character) {
  return IsInText(character) && !StandsAlone(character);
}

// Returns the number of words in a plain form.
size_t CountWords(std::string_view text) {
  size_t words = 0;
  bool in_word = false;
  for (size_t at = 0; at < text.size();) {
    const char32_t character = document::CharacterAt(text, at, &at);
    const bool alone = StandsAlone(character);
    if (alone || (IsInWord(character) && !in_word)) ++words;
    in_word = !alone && character != ' ' && (in_word || IsInWord(character));
  }
  return words;
}

char32_t CharacterFrom(std::string_view text, size_t at) {
  size_t next = 0;
  return document::CharacterAt(text, at, &next);
}

// Returns true if a position cuts a word, or an accent off its letter.
bool CutsWord(std::string_view text, size_t at) {
  const char32_t next = CharacterFrom(text, at);
  return document::IsMark(next) ||
         (IsInWord(next) && IsInWord(document::CharacterBefore(text, at)));
}

// Returns true if words may not end here: "can" is not in "can't", but "homme"
// is in "l'homme".
bool CutsEnd(std::string_view text, size_t at) {
  return CutsWord(text, at) || (CharacterFrom(text, at) == '\'' &&
                                IsInWord(CharacterFrom(text, at + 1)) &&
                                IsInWord(document::CharacterBefore(text, at)));
}

// Returns a plain form without the marks before its first word and behind its
// last.
std::string_view WordsOf(std::string_view text) {
  size_t begin = 0;
  for (size_t next = 0; begin < text.size(); begin = next) {
    if (IsInText(document::CharacterAt(text, begin, &next))) break;
  }
  text.remove_prefix(begin);
  while (!text.empty()) {
    const char32_t last = document::CharacterBefore(text, text.size());
    if (IsInText(last)) break;
    text.remove_suffix(document::FromUtf32({&last, 1}).size());
  }
  return text;
}

// Returns the length of the first word.
size_t FirstWord(std::string_view text) {
  size_t end = 0;
  for (size_t next = 0; end < text.size(); end = next) {
    if (!IsInWord(document::CharacterAt(text, end, &next))) break;
  }
  return end;
}

bool IsSameInAnyCase(std::string_view a, std::string_view b) {
  return document::CaseFolded(std::string(a)) ==
         document::CaseFolded(std::string(b));
}

// Returns the first position from `begin` to `end` at which `text` has `wanted`
// as whole words, or npos. The first `any_case` bytes of these may be in
// another case.
size_t FindWords(std::string_view text, size_t begin, size_t end,
                 std::string_view wanted, size_t any_case) {
  const std::string_view first = wanted.substr(0, any_case);
  const std::string_view rest = wanted.substr(any_case);
  const std::string_view searched = text.substr(0, end);
  for (size_t at = searched.find(rest, begin + any_case);
       at != std::string_view::npos; at = searched.find(rest, at + 1)) {
    const size_t from = at - any_case;
    if (!CutsWord(text, from) && !CutsEnd(text, at + rest.size()) &&
        IsSameInAnyCase(text.substr(from, any_case), first)) {
      return from;
    }
  }
  return std::string_view::npos;
}

bool IsWordByte(std::string_view text, size_t at) {
  if (at >= text.size()) return false;
  const char c = text[at];
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
         (c >= 'A' && c <= 'Z') || static_cast<unsigned char>(c) >= 0x80;
}

bool IsAt(std::string_view text, size_t at, std::string_view what) {
  return text.substr(at, what.size()) == what;
}

// Returns the text enclosed by `marks`, which open at `at`; nothing if they do
// not close in the same paragraph.
std::optional<std::string_view> Enclosed(std::string_view text, size_t at,
                                         const Marks& marks) {
  if (marks.apostrophe && at > 0 && IsWordByte(text, at - 1)) {
    return std::nullopt;
  }
  const size_t begin = at + marks.open.size();
  const std::string_view paragraph = text.substr(0, text.find("\n\n", begin));
  for (size_t end = paragraph.find(marks.close, begin);
       end != std::string_view::npos;
       end = paragraph.find(marks.close, end + 1)) {
    if (marks.apostrophe && IsWordByte(paragraph, end + marks.close.size())) {
      continue;
    }
    return paragraph.substr(begin, end - begin);
  }
  return std::nullopt;
}

// Returns the texts between quotation marks.
std::vector<Quotation> Quoted(std::string_view answer) {
  std::vector<Quotation> quotations;
  for (size_t at = 0; at < answer.size();) {
    // If several marks open alike, the pair that closes first counts.
    std::optional<std::string_view> inside;
    const Marks* used = nullptr;
    for (const Marks& marks : kMarks) {
      if (!IsAt(answer, at, marks.open)) continue;
      const auto enclosed = Enclosed(answer, at, marks);
      if (!enclosed.has_value()) continue;
      if (inside.has_value() && inside->size() <= enclosed->size()) continue;
      inside = enclosed;
      used = &marks;
    }
    if (!inside.has_value()) {
      document::CharacterAt(answer, at, &at);
      continue;
    }
    if (CountWords(PlainForm(*inside).text()) >= kFewestWords) {
      quotations.push_back({.text = std::string(*inside)});
      at += used->open.size() + inside->size() + used->close.size();
    } else {
      // Behind the opening mark of a short quotation another one may begin.
      at += used->apostrophe
                ? used->open.size()
                : used->open.size() + inside->size() + used->close.size();
    }
  }
  return quotations;
}

}  // namespace

std::vector<Quotation> QuotationFinder::Find(std::string_view answer,
                                             const std::vector<Run>& first) {
  std::vector<Quotation> quotations = Quoted(answer);
  if (quotations.empty()) return quotations;
  if (!plain_.has_value()) plain_.emplace(book_);
  const std::string& text = plain_->text();
  std::vector<Run> runs;
  for (const Run& run : first) {
    runs.push_back({plain_->IndexOf(run.begin), plain_->IndexOf(run.end)});
  }
  runs.push_back({0, text.size()});
  for (Quotation& quotation : quotations) {
    const PlainForm form(quotation.text);
    const std::string_view whole = Trimmed(form.text());
    for (const Run& run : runs) {
      for (const std::string_view wanted : {whole, WordsOf(whole)}) {
        size_t at = FindWords(text, run.begin, run.end, wanted, 0);
        if (at == std::string_view::npos) {
          at = FindWords(text, run.begin, run.end, wanted, FirstWord(wanted));
        }
        if (at == std::string_view::npos) continue;
        quotation.found = true;
        quotation.begin = plain_->SourceOf(at);
        quotation.end = plain_->SourceOf(at + wanted.size());
        break;
      }
      if (quotation.found) break;
    }
  }
  return quotations;
}

}  // namespace tiercel::reader

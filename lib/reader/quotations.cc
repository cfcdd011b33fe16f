#include "lib/reader/quotations.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>

#include "lib/documents/unicode.h"
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

// These marks count as one; typewriters had no others.
constexpr std::array<std::string_view, 6> kDouble = {"“", "”", "„",
                                                     "‟", "«", "»"};
constexpr std::array<std::string_view, 6> kSingle = {"‘", "’", "‚",
                                                     "‛", "‹", "›"};

struct Character {
  uint32_t code;
  size_t bytes;
};

// Returns the character at `at`; a byte that is not UTF-8 stands for itself.
Character CharacterAt(std::string_view text, size_t at) {
  const auto lead = static_cast<unsigned char>(text[at]);
  const size_t bytes = lead < 0xC0 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  if (bytes == 1 || at + bytes > text.size()) return {lead, 1};
  uint32_t code = lead & (0x7Fu >> bytes);
  for (size_t i = 1; i < bytes; ++i) {
    code = code << 6 | (static_cast<unsigned char>(text[at + i]) & 0x3Fu);
  }
  return {code, bytes};
}

// Returns true for scripts that are written without spaces, such as Han, kana
// and Thai.
bool StandsAlone(uint32_t code) {
  return (code >= 0x0E00 && code < 0x0EE0) ||
         (code >= 0x1000 && code < 0x10A0) ||
         (code >= 0x1780 && code < 0x1800) ||
         (code >= 0x3040 && code < 0x3100) ||
         (code >= 0x3400 && code < 0xA000) ||
         (code >= 0x20000 && code < 0x40000);
}

size_t CountWords(std::string_view text) {
  size_t words = 0;
  bool in_word = false;
  for (size_t at = 0; at < text.size();) {
    const Character character = CharacterAt(text, at);
    const bool alone = StandsAlone(character.code);
    const bool blank = character.bytes == 1 &&
                       kBlanks.find(text[at]) != std::string_view::npos;
    if (alone || (!blank && !in_word)) ++words;
    in_word = !blank && !alone;
    at += character.bytes;
  }
  return words;
}

// Walks through the normalized form of a text, one byte at a time.
class Normal {
 public:
  explicit Normal(std::string_view text) : text_(text) {}

  // A byte of the normalized form, and the position in the text of the
  // character that it stands for; absent at the end.
  struct Byte {
    char byte;
    size_t at;
  };
  std::optional<Byte> Next() {
    if (at_ == text_.size()) return std::nullopt;
    const size_t begin = at_;
    if (kBlanks.find(text_[at_]) != std::string_view::npos) {
      at_ = std::min(text_.find_first_not_of(kBlanks, at_), text_.size());
      return Byte{' ', begin};
    }
    if (static_cast<unsigned char>(text_[at_]) >= 0xC0) {
      const size_t bytes = CharacterAt(text_, at_).bytes;
      const std::string_view character = text_.substr(at_, bytes);
      for (const auto& [marks, plain] :
           {std::pair(kDouble, '"'), std::pair(kSingle, '\'')}) {
        if (std::find(marks.begin(), marks.end(), character) == marks.end()) {
          continue;
        }
        at_ += bytes;
        return Byte{plain, begin};
      }
    }
    return Byte{text_[at_++], begin};
  }

 private:
  const std::string_view text_;
  size_t at_ = 0;
};

std::string Normalized(std::string_view text) {
  std::string bytes;
  Normal normal(text);
  while (const auto next = normal.Next()) bytes += next->byte;
  return bytes;
}

bool IsWordCharacter(char32_t character) {
  return (document::IsLetter(character) || document::IsDigit(character)) &&
         !StandsAlone(character);
}

// Returns true if a position is within a word of a script that has blanks
// between words.
bool IsInWord(std::string_view text, size_t at) {
  size_t next = 0;
  return IsWordCharacter(document::CharacterBefore(text, at)) &&
         IsWordCharacter(document::CharacterAt(text, at, &next));
}

// Returns the first position at which `text` has `wanted` as whole words, or
// npos.
size_t FindWords(std::string_view text, std::string_view wanted) {
  size_t at = text.find(wanted);
  while (at != std::string_view::npos &&
         (IsInWord(text, at) || IsInWord(text, at + wanted.size()))) {
    at = text.find(wanted, at + 1);
  }
  return at;
}

// FindWords, with the first letter capital as quoted or small as in the text: a
// quotation at the start of a sentence is capitalized.
size_t FindQuoted(std::string_view text, const std::string& wanted) {
  const size_t at = FindWords(text, wanted);
  if (at != std::string_view::npos || wanted.empty()) return at;
  size_t next = 0;
  const char32_t first =
      document::LowerCase(document::CharacterAt(wanted, 0, &next));
  const std::string lower =
      document::FromUtf32({&first, 1}) + wanted.substr(next);
  return lower != wanted && lower.size() == wanted.size()
             ? FindWords(text, lower)
             : at;
}

// Sets the start and end in `text` of the normalized bytes from `first` to
// `last`.
void Locate(std::string_view text, size_t first, size_t last,
            Quotation* quotation) {
  Normal normal(text);
  size_t index = 0;
  quotation->end = text.size();
  while (const auto next = normal.Next()) {
    if (index == first) quotation->begin = next->at;
    if (index == last) {
      quotation->end = next->at;
      return;
    }
    ++index;
  }
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

}  // namespace

std::vector<Quotation> FindQuotations(std::string_view answer,
                                      std::string_view book) {
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
      at += CharacterAt(answer, at).bytes;
      continue;
    }
    if (CountWords(*inside) >= kFewestWords) {
      quotations.push_back({.text = std::string(*inside)});
      at += used->open.size() + inside->size() + used->close.size();
    } else {
      // Behind the opening mark of a short quotation another one may begin.
      at += used->apostrophe
                ? used->open.size()
                : used->open.size() + inside->size() + used->close.size();
    }
  }
  if (quotations.empty()) return quotations;

  const std::string text = Normalized(book);
  for (Quotation& quotation : quotations) {
    std::string wanted = Normalized(quotation.text);
    while (!wanted.empty() && wanted.back() == ' ') wanted.pop_back();
    wanted.erase(0, std::min(wanted.find_first_not_of(' '), wanted.size()));
    size_t first = FindQuoted(text, wanted);
    if (first == std::string::npos && !wanted.empty() &&
        (wanted.back() == ',' || wanted.back() == '.')) {
      wanted.pop_back();
      first = FindQuoted(text, wanted);
    }
    if (first == std::string::npos) continue;
    quotation.found = true;
    Locate(book, first, first + wanted.size(), &quotation);
  }
  return quotations;
}

}  // namespace tiercel::reader

#include "lib/template/letter_case.h"

#include <utf8proc.h>

#include <string>

#include "lib/template/builtins.h"
#include "lib/text/utf8.h"

namespace tiercel::jinja {
namespace {

// Characters whose mapping is more than one (Unicode, SpecialCasing.txt); null:
// the mapping of the table of single characters.
struct Special {
  char32_t from;
  const char* upper;
  const char* title;
  const char* lower;
};
constexpr Special kSpecial[] = {
    {0x00DF, "SS", "Ss", nullptr},
    {0x0130, nullptr, nullptr, "i\u0307"},
    {0x0149, "\u02BCN", "\u02BCN", nullptr},
    {0x01F0, "J\u030C", "J\u030C", nullptr},
    {0x0390, "\u0399\u0308\u0301", "\u0399\u0308\u0301", nullptr},
    {0x03B0, "\u03A5\u0308\u0301", "\u03A5\u0308\u0301", nullptr},
    {0x0587, "\u0535\u0552", "\u0535\u0582", nullptr},
    {0x1E96, "H\u0331", "H\u0331", nullptr},
    {0x1E97, "T\u0308", "T\u0308", nullptr},
    {0x1E98, "W\u030A", "W\u030A", nullptr},
    {0x1E99, "Y\u030A", "Y\u030A", nullptr},
    {0x1E9A, "A\u02BE", "A\u02BE", nullptr},
    {0xFB00, "FF", "Ff", nullptr},
    {0xFB01, "FI", "Fi", nullptr},
    {0xFB02, "FL", "Fl", nullptr},
    {0xFB03, "FFI", "Ffi", nullptr},
    {0xFB04, "FFL", "Ffl", nullptr},
    {0xFB05, "ST", "St", nullptr},
    {0xFB06, "ST", "St", nullptr},
};

const Special* FindSpecial(char32_t from) {
  for (const Special& special : kSpecial) {
    if (special.from == from) return &special;
  }
  return nullptr;
}

std::string Encoded(utf8proc_int32_t code_point) {
  std::string text;
  AppendUtf8(static_cast<char32_t>(code_point), &text);
  return text;
}

std::string Upper(char32_t c) {
  const Special* const special = FindSpecial(c);
  if (special != nullptr && special->upper != nullptr) return special->upper;
  return Encoded(utf8proc_toupper(static_cast<utf8proc_int32_t>(c)));
}

std::string Title(char32_t c) {
  const Special* const special = FindSpecial(c);
  if (special != nullptr && special->title != nullptr) return special->title;
  return Encoded(utf8proc_totitle(static_cast<utf8proc_int32_t>(c)));
}

std::string Lower(char32_t c) {
  const Special* const special = FindSpecial(c);
  if (special != nullptr && special->lower != nullptr) return special->lower;
  return Encoded(utf8proc_tolower(static_cast<utf8proc_int32_t>(c)));
}

std::string Folded(char32_t c) {
  utf8proc_int32_t out[8];
  int boundary = 0;
  const utf8proc_ssize_t count = utf8proc_decompose_char(
      static_cast<utf8proc_int32_t>(c), out, 8, UTF8PROC_CASEFOLD, &boundary);
  std::string text;
  for (utf8proc_ssize_t i = 0; i < count && i < 8; ++i) {
    text += Encoded(out[i]);
  }
  return text;
}

// A capital sigma at the end of a word has a small form of its own.
bool IsFinalSigma(std::string_view text, size_t begin, size_t end) {
  return begin > 0 && ClassAt(text, CharacterBegin(text, begin)).cased() &&
         (end == text.size() || !ClassAt(text, end).cased());
}

}  // namespace

CharacterClass ClassAt(std::string_view text, size_t begin) {
  CharacterClass of;
  const Utf8Char c = Utf8At(text, begin);
  if (c.code_point == kNoCodePoint) return of;
  const auto code_point = static_cast<utf8proc_int32_t>(c.code_point);
  const utf8proc_category_t category = utf8proc_category(code_point);
  of.upper = category == UTF8PROC_CATEGORY_LU;
  of.lower = category == UTF8PROC_CATEGORY_LL || code_point == 0xAA ||
             code_point == 0xBA;
  of.title = category == UTF8PROC_CATEGORY_LT;
  of.letter = of.upper || of.lower || of.title ||
              category == UTF8PROC_CATEGORY_LM ||
              category == UTF8PROC_CATEGORY_LO;
  of.decimal = category == UTF8PROC_CATEGORY_ND;
  const bool raised = (code_point >= 0x2070 && code_point <= 0x2089) ||
                      code_point == 0xB2 || code_point == 0xB3 ||
                      code_point == 0xB9;
  of.digit = of.decimal || (raised && category == UTF8PROC_CATEGORY_NO);
  of.numeric = of.decimal || category == UTF8PROC_CATEGORY_NL ||
               category == UTF8PROC_CATEGORY_NO;
  of.printable =
      code_point == ' ' ||
      (category != UTF8PROC_CATEGORY_CN && category != UTF8PROC_CATEGORY_CC &&
       category != UTF8PROC_CATEGORY_CF && category != UTF8PROC_CATEGORY_CS &&
       category != UTF8PROC_CATEGORY_CO && category != UTF8PROC_CATEGORY_ZL &&
       category != UTF8PROC_CATEGORY_ZP && category != UTF8PROC_CATEGORY_ZS);
  return of;
}

Value WithCase(Rendering& rendering, const Text& text, Case to) {
  const std::string_view bytes = text.bytes();
  rendering.StepBytes(bytes.size());
  TextBuilder out(rendering);
  bool starts = true;  // a word, or the text
  for (size_t begin = 0; begin < bytes.size() && rendering.ok();) {
    const Utf8Char c = Utf8At(bytes, begin);
    const size_t end = begin + c.bytes;
    if (c.code_point == kNoCodePoint) {
      out.Append(text, begin, end);
      begin = end;
      continue;
    }
    const CharacterClass of = ClassAt(bytes, begin);
    Case own = to;
    if (to == Case::kSwapped) {
      // Numerals and letters in circles have case, too.
      const bool upper = of.upper ||
                         (c.code_point >= 0x2160 && c.code_point <= 0x216F) ||
                         (c.code_point >= 0x24B6 && c.code_point <= 0x24CF);
      own = of.title ? Case::kTitle : upper ? Case::kLower : Case::kUpper;
    } else if (to == Case::kTitleWords && starts) {
      own = Case::kUpper;
    } else if ((to == Case::kTitle || to == Case::kCapital) && starts) {
      own = Case::kTitle;
    } else if (to == Case::kTitle || to == Case::kTitleWords ||
               to == Case::kCapital) {
      own = Case::kLower;
    }
    std::string mapped = own == Case::kUpper    ? Upper(c.code_point)
                         : own == Case::kTitle  ? Title(c.code_point)
                         : own == Case::kFolded ? Folded(c.code_point)
                                                : Lower(c.code_point);
    if (own == Case::kLower && c.code_point == 0x3A3 &&
        IsFinalSigma(bytes, begin, end)) {
      mapped = "\u03C2";
    }
    out.Append(mapped, text.OriginAt(begin));
    const std::string_view character = bytes.substr(begin, c.bytes);
    starts =
        to == Case::kTitle ? !of.cased()
        : to == Case::kTitleWords
            ? IsSpace(character) || std::string_view("-({[<").find(character) !=
                                        std::string_view::npos
            : false;
    begin = end;
  }
  return MakeString(rendering, out.TakeText());
}

}  // namespace tiercel::jinja

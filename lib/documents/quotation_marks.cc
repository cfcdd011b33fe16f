#include "lib/documents/quotation_marks.h"

#include <string>

#include "lib/documents/encoding.h"
#include "lib/documents/unicode.h"

namespace tiercel::document {
namespace {

struct MarksOfLanguage {
  std::string_view languages;  // codes, each between blanks
  QuotationMarks marks;
};

constexpr MarksOfLanguage kMarks[] = {
    {" en zh ko tr vi nl pt th hi ", {"“", "”", "‘", "’"}},
    {" de cs sk sl bg lt is et ka ", {"„", "“", "‚", "‘"}},
    {" pl hu ro hr sr ", {"„", "”", "‚", "’"}},
    {" fr ", {"« ", " »", "« ", " »"}},
    {" ru uk be ", {"«", "»", "„", "“"}},
    {" es it ca el no nb nn hy fa ", {"«", "»", "“", "”"}},
    {" da sv fi ", {"”", "”", "’", "’"}},
    {" ja ", {"「", "」", "『", "』"}},
    {" he ", {"”", "”", "’", "’"}},
    {" ar ", {"”", "“", "’", "‘"}},
};

}  // namespace

QuotationMarks QuotationMarksOf(std::string_view language) {
  const std::string code =
      " " + Lowercase(language.substr(0, language.find_first_of("-_"))) + " ";
  for (const MarksOfLanguage& known : kMarks) {
    if (known.languages.find(code) != std::string_view::npos) {
      return known.marks;
    }
  }
  return kMarks[0].marks;
}

bool BeginsWithQuotationMark(std::string_view text) {
  constexpr std::u32string_view kAll = U"\"'“”„‟‘’‚‛«»‹›「」『』";
  size_t next = 0;
  const char32_t first = CharacterAt(text, 0, &next);
  return first != 0 && kAll.find(first) != std::u32string_view::npos;
}

}  // namespace tiercel::document

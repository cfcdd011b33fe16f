#ifndef TIERCEL_LIB_DOCUMENTS_QUOTATION_MARKS_H_
#define TIERCEL_LIB_DOCUMENTS_QUOTATION_MARKS_H_

#include <string_view>

namespace tiercel::document {

// The marks around a quotation, and around a quotation within one.
struct QuotationMarks {
  std::string_view open;
  std::string_view close;
  std::string_view inner_open;
  std::string_view inner_close;
};

// Returns the marks of a language ("de", "pt-BR"); those of English where it is
// not known.
QuotationMarks QuotationMarksOf(std::string_view language);

// Returns true if `text` begins with a quotation mark of any language.
bool BeginsWithQuotationMark(std::string_view text);

}  // namespace tiercel::document

#endif  // TIERCEL_LIB_DOCUMENTS_QUOTATION_MARKS_H_

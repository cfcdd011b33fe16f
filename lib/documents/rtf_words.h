#ifndef TIERCEL_LIB_DOCUMENTS_RTF_WORDS_H_
#define TIERCEL_LIB_DOCUMENTS_RTF_WORDS_H_

#include <string>
#include <string_view>

namespace tiercel::document {

// Returns the charset of a code page (\ansicpg1251), and of a font's charset
// (\fcharset204), by their numbers; "" if there is none.
std::string CharsetOfCodePage(int number);
std::string CharsetOfFont(int number);

// Returns the tag of a language by its number in Windows (\lang1031 is "de");
// "" for those that are not known.
std::string_view LanguageOf(int number);

// Returns the character that a control word stands for ("emdash"), in UTF-8; ""
// if it stands for none.
std::string_view SymbolOf(std::string_view word);

// Returns true if the group that a control word begins is no text: a picture, a
// table of colours, a running head.
bool IsNoText(std::string_view word);

}  // namespace tiercel::document

#endif  // TIERCEL_LIB_DOCUMENTS_RTF_WORDS_H_

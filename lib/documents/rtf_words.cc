#include "lib/documents/rtf_words.h"

#include <algorithm>
#include <utility>

#include "lib/documents/encoding.h"

namespace tiercel::document {
namespace {

// Charsets of fonts whose number is none of a code page.
constexpr std::pair<int, int> kFontCodePages[] = {
    {77, 10000}, {128, 932},  {129, 949},  {130, 1361}, {134, 936},
    {136, 950},  {161, 1253}, {162, 1254}, {163, 1258}, {177, 1255},
    {178, 1256}, {186, 1257}, {204, 1251}, {222, 874},  {238, 1250},
    {254, 437},  {255, 850}};

// The lower ten bits of a number name the language, the others its country.
constexpr int kLanguageBits = 0x3FF;
constexpr std::pair<int, std::string_view> kLanguages[] = {
    {0x01, "ar"}, {0x02, "bg"}, {0x03, "ca"}, {0x04, "zh"}, {0x05, "cs"},
    {0x06, "da"}, {0x07, "de"}, {0x08, "el"}, {0x09, "en"}, {0x0A, "es"},
    {0x0B, "fi"}, {0x0C, "fr"}, {0x0D, "he"}, {0x0E, "hu"}, {0x0F, "is"},
    {0x10, "it"}, {0x11, "ja"}, {0x12, "ko"}, {0x13, "nl"}, {0x14, "no"},
    {0x15, "pl"}, {0x16, "pt"}, {0x18, "ro"}, {0x19, "ru"}, {0x1A, "hr"},
    {0x1B, "sk"}, {0x1C, "sq"}, {0x1D, "sv"}, {0x1E, "th"}, {0x1F, "tr"},
    {0x21, "id"}, {0x22, "uk"}, {0x23, "be"}, {0x24, "sl"}, {0x25, "et"},
    {0x26, "lv"}, {0x27, "lt"}, {0x29, "fa"}, {0x2A, "vi"}, {0x2B, "hy"},
    {0x2D, "eu"}, {0x2F, "mk"}, {0x37, "ka"}, {0x39, "hi"}, {0x3E, "ms"},
    {0x56, "gl"}};

constexpr std::pair<std::string_view, std::string_view> kSymbols[] = {
    {"bullet", "•"},    {"emdash", "—"},    {"emspace", " "}, {"endash", "–"},
    {"enspace", " "},   {"ldblquote", "“"}, {"lquote", "‘"},  {"qmspace", " "},
    {"rdblquote", "”"}, {"rquote", "’"},    {"tab", "\t"},    {"zwj", "\u200D"},
    {"zwnj", "\u200C"}};

constexpr std::string_view kNoText[] = {
    "aftncn",   "aftnsep", "aftnsepc",  "annotation", "atnauthor", "atnid",
    "colortbl", "comment", "datafield", "filetbl",    "fldinst",   "footer",
    "footerf",  "footerl", "footerr",   "ftncn",      "ftnsep",    "ftnsepc",
    "header",   "headerf", "headerl",   "headerr",    "listtable", "nonshppict",
    "objdata",  "pict",    "private",   "revtbl",     "rxe",       "shprslt",
    "tc",       "tcn",     "template",  "txe",        "xe"};

}  // namespace

std::string CharsetOfCodePage(int number) {
  switch (number) {
    case 10000:
      return "MACINTOSH";
    case 1361:
      return "JOHAB";
    case 65001:
      return "UTF-8";
    case 936:
      return "GB18030";
    case 950:
      return "BIG5-HKSCS";
    default:
      return CharsetOfLabel("cp" + std::to_string(number));
  }
}

std::string CharsetOfFont(int number) {
  const auto* const known = std::find_if(
      std::begin(kFontCodePages), std::end(kFontCodePages),
      [&](const auto& charset) { return charset.first == number; });
  return known == std::end(kFontCodePages) ? ""
                                           : CharsetOfCodePage(known->second);
}

std::string_view LanguageOf(int number) {
  const auto* const known = std::find_if(
      std::begin(kLanguages), std::end(kLanguages), [&](const auto& language) {
        return language.first == (number & kLanguageBits);
      });
  return known == std::end(kLanguages) ? std::string_view() : known->second;
}

std::string_view SymbolOf(std::string_view word) {
  const auto* const known =
      std::find_if(std::begin(kSymbols), std::end(kSymbols),
                   [&](const auto& symbol) { return symbol.first == word; });
  return known == std::end(kSymbols) ? std::string_view() : known->second;
}

bool IsNoText(std::string_view word) {
  return std::binary_search(std::begin(kNoText), std::end(kNoText), word);
}

}  // namespace tiercel::document

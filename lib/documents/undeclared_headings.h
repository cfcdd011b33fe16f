#ifndef TIERCEL_LIB_DOCUMENTS_UNDECLARED_HEADINGS_H_
#define TIERCEL_LIB_DOCUMENTS_UNDECLARED_HEADINGS_H_

#include <string_view>
#include <vector>

#include "lib/documents/outline.h"

namespace tiercel::document {

// A heading with less text behind it is a line of a title page.
inline constexpr size_t kMinTextBytes = 80;
// The level of the document's title, above those of FindHeadings.
inline constexpr int kLevelOfTitle = 0;

// Returns the headings of a text of which a format declares some, in the order
// of the text. To those that are declared it adds the labels of chapters that
// stand in paragraphs, if none of their kind is declared and there are more of
// them than of declared headings between and behind them:
//
//   1. a declared heading right behind a label is its title;
//   2. lines of a title page before the first label are none, but the first is
//      the book's title, above all others;
//   3. headings between the labels lie within what the labels begin.
//
// Where nothing is declared the headings are those of FindHeadings.
std::vector<Heading> WithUndeclared(std::string_view text,
                                    std::vector<Heading> declared);
// Merges them with the headings that FindHeadings has found in the text before.
std::vector<Heading> WithUndeclared(std::string_view text,
                                    std::vector<Heading> declared,
                                    std::vector<Heading> found);

}  // namespace tiercel::document

#endif  // TIERCEL_LIB_DOCUMENTS_UNDECLARED_HEADINGS_H_

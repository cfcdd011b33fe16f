#ifndef TIERCEL_LIB_DOCUMENTS_PLAIN_TEXT_FOR_TEST_H_
#define TIERCEL_LIB_DOCUMENTS_PLAIN_TEXT_FOR_TEST_H_

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/documents/document.h"
#include "lib/documents/outline.h"
#include "lib/documents/plain_text.h"

namespace tiercel::document {

// A paragraph longer than any entry of a table of contents.
inline std::string Prose(int lines = 8) {
  std::string text = "\n";
  for (int i = 0; i < lines; ++i) {
    text += "It was the way of the wind there to turn at night, and to rest.\n";
  }
  return text + "\n";
}

inline Document ReadAsText(const std::string& text) {
  Document document;
  document.text = text;
  ReadPlainText(&document);
  FinishOutline(&document);
  return document;
}

// Returns "level label|title" for each section, at its position in the text.
inline std::string Tree(const std::string& text) {
  const Document document = ReadAsText(text);
  std::string lines;
  for (const Section& s : document.sections) {
    lines += std::to_string(s.level) + " " + s.label + "|" + s.title + "\n";
    const std::string& begun = s.label.empty() ? s.title : s.label;
    const std::string line = document.text.substr(
        s.begin, document.text.find('\n', s.begin) - s.begin);
    EXPECT_THAT(line, testing::HasSubstr(begun.substr(0, 2))) << s.begin;
    EXPECT_TRUE(s.begin == 0 || document.text[s.begin - 1] == '\n' ||
                document.text[s.begin - 1] == ' ' ||
                document.text[s.begin - 1] == '\f' ||
                document.text.compare(s.begin - 3, 3, "\u3000") == 0);
  }
  return lines;
}

}  // namespace tiercel::document

#endif  // TIERCEL_LIB_DOCUMENTS_PLAIN_TEXT_FOR_TEST_H_

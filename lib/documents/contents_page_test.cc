#include "lib/documents/contents_page.h"

#include <string>

#include "gtest/gtest.h"
#include "lib/documents/plain_text_for_test.h"

namespace tiercel::document {
namespace {

TEST(ContentsPageTest, ALabelAloneInTheContentsIsAnEntryOfItsOwn) {
  // "Chapter 3" and "Notes" are no entry of two lines.
  for (const std::string kind : {"Chapter ", ""}) {
    std::string list;
    std::string text;
    std::string tree;
    for (const std::string& entry :
         {kind + "1", kind + "2", kind + "3", std::string("Notes")}) {
      list += entry + "\n";
      text += entry + "\n" + Prose();
      tree += entry == "Notes" ? "1 |Notes\n" : "1 " + entry + "|\n";
    }
    EXPECT_EQ(Tree("Contents\n\n" + list + "\n" + text), tree);
  }
  // They are one if the text has the title without that label.
  EXPECT_EQ(Tree("Contents\n\nChapter 1\nRain\nChapter 2\nSnow\nChapter 3\n"
                 "Fog\n\nI. Rain\n" +
                 Prose() + "II. Snow\n" + Prose() + "III. Fog\n" + Prose()),
            "1 I|Rain\n1 II|Snow\n1 III|Fog\n");
}

}  // namespace
}  // namespace tiercel::document

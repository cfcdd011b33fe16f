#include "lib/reader/chapter_pattern.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tiercel::reader {
namespace {

using ::testing::HasSubstr;

TEST(ChapterPatternTest, LinesThatMatchAreSections) {
  document::Document book;
  book.text =
      "Tale\n\n  ~ 1. Dawn ~\nlong ago ~ 9 ~ lamps\n\n\xE2\x98\x85 Noon\n~ 2 "
      "~\n";
  book.sections = {{1, "", "Tale", 0, ""}};
  EXPECT_EQ(ChapterPattern("^ *~ \\d+.* ~$|^★").Apply(&book), 3u);
  std::string found;
  for (const document::Section& section : book.sections) {
    found += section.label + "|" + section.title + "|" +
             book.text.substr(section.begin, 3) + "\n";
  }
  EXPECT_EQ(found, "|~ 1. Dawn ~|~ 1\n|★ Noon|★\n|~ 2 ~|~ 2\n");
  EXPECT_EQ(ChapterPattern("^$").Apply(&book), 0u);
}

TEST(ChapterPatternTest, APatternThatIsNoneSaysWhy) {
  EXPECT_EQ(ChapterPattern("a|b").error(), "");
  EXPECT_THAT(ChapterPattern("a(b").error(), HasSubstr("missing"));
  EXPECT_NE(ChapterPattern("((a{1000}){1000}){1000}").error(), "");
}

}  // namespace
}  // namespace tiercel::reader

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

TEST(ContentsPageTest, TheContentsMayLackTheLabelsOrHaveOthers) {
  const std::string label = "CHAPTER I\n\nRain\n" + Prose() +
                            "CHAPTER II\n\nSnow\n" + Prose() +
                            "CHAPTER III\n\nFog\n" + Prose();
  const std::string tree =
      "1 CHAPTER I|Rain\n1 CHAPTER II|Snow\n1 CHAPTER III|Fog\n";
  for (const std::string list :
       {"Rain\nSnow\nFog\n", "Rain   1\nSnow   9\nFog   12\n",
        "1. Rain\n2. Snow\n3. Fog\n", "CHAP. I. Rain\nII. Snow\nIII. Fog\n",
        "CHAPTER I. Rain\nII. Snow\nIII. Fog\n", "A note\nRain\nSnow\nFog\n"}) {
    EXPECT_EQ(Tree("Contents\n\n" + list + "\n" + label), tree) << list;
  }
  // A number of a page is no label.
  EXPECT_EQ(Tree("Contents\n\nRain\nSnow\nFog\n\nRain\n" + Prose() +
                 "8\n\nSnow\n" + Prose() + "12\n\nFog\n" + Prose()),
            "1 |Rain\n1 |Snow\n1 |Fog\n");
}

TEST(ContentsPageTest, NumbersBelowListedTitlesAreNoChapters) {
  std::string text;
  for (const char* title : {"Rain", "Snow", "Fog"}) {
    text += std::string(title) + "\n\n";
    for (const char* number : {"I", "II", "III", "IV"}) {
      text += std::string(number) + "\n" + Prose();
    }
  }
  EXPECT_EQ(Tree("Contents\n\nRain\nSnow\nFog\n\n" + text),
            "1 |Rain\n1 |Snow\n1 |Fog\n");
  // The table may be that of one chapter.
  std::string chapters;
  std::string tree;
  for (const std::string number : {"1", "2", "3", "4", "5", "6"}) {
    chapters += number + ". Tree\n" + Prose();
    tree += "1 " + number + "|Tree\n";
    if (number != "2") continue;
    chapters += "Contents\n\nRain\nSnow\nFog\n\nRain\n" + Prose() + "Snow\n" +
                Prose() + "Fog\n" + Prose();
  }
  EXPECT_EQ(Tree(chapters), tree);
}

TEST(ContentsPageTest, EntriesMayHavePagesAndLeadersOfAnyKind) {
  const std::string text =
      "LE CHÂTEAU\n" + Prose() + "Snow 1\n" + Prose() + "ŒUVRE\n" + Prose();
  const std::string tree = "1 |LE CHÂTEAU\n1 |Snow 1\n1 |ŒUVRE\n";
  for (const std::string list :
       {"Le Chateau 1\nSnow 1 5\nOeuvre 12\n",
        "1  Le Château\n5  Snow 1\n12  Œuvre\n",
        "Le Château …… 1\nSnow 1 …… 5\nŒuvre …… 12\n",
        "Le Château ····· 1\nSnow 1 ····· 5\nŒuvre ····· 12\n",
        "Le Château ----- i\nSnow 1 ____ v\nŒuvre ----- x\n",
        "Le Château ........................................... 1\n"
        "Snow 1 ............................................... 5\n"
        "Œuvre ............................................... 12\n"
        "Errata .............................................. 20\n"}) {
    EXPECT_EQ(Tree("Contents\n\n" + list + "\n" + text), tree) << list;
  }
}

TEST(ContentsPageTest, TheTableMayHaveAnyTitleAndStandAtTheEnd) {
  const std::string list = "\n\nRain\nSnow\nFog\n\n";
  const std::string text =
      "Rain\n" + Prose() + "Snow\n" + Prose() + "Fog\n" + Prose();
  const std::string tree = "1 |Rain\n1 |Snow\n1 |Fog\n";
  for (const std::string title :
       {"THE CONTENTS", "C O N T E N T S", "_Contents_"}) {
    EXPECT_EQ(Tree(title + list + text), tree) << title;
  }
  EXPECT_EQ(Tree(text + "TABLE DES MATIÈRES" + list), tree);
  // It is not the book's if it lists the last pages alone.
  EXPECT_EQ(Tree(Prose() + Prose(80) + Prose() + text + "CONTENTS" + list), "");
}

TEST(ContentsPageTest, AnEntryMayBeLongerThanTheLines) {
  const std::string rain =
      "The very long and rather winding story of the rain that no one in the "
      "town had ever seen at night";
  const std::string over = " and told of to a child";
  EXPECT_EQ(Tree("Contents\n\n" + rain + over + "\nSnow\nFog\n\n" + rain +
                 "\n" + over.substr(1) + "\n" + Prose() + "Snow\n" + Prose() +
                 "Fog\n" + Prose()),
            "1 |" + rain + over + "\n1 |Snow\n1 |Fog\n");
}

}  // namespace
}  // namespace tiercel::document

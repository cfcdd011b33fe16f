#include "lib/documents/plain_text.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/documents/plain_text_for_test.h"

namespace tiercel::document {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(PlainTextTest, WordsAndNumbers) {
  EXPECT_EQ(Tree("My book\n\nCHAPTER I. The Road\n" + Prose() +
                 "CHAPTER II\n\nOF A LONG AND\nWINDING STAIR\n" + Prose() +
                 "Chapter 3:\nRest\n" + Prose() + "Epilogue\n" + Prose()),
            "1 CHAPTER I|The Road\n"
            "1 CHAPTER II|OF A LONG AND WINDING STAIR\n"
            "1 Chapter 3|Rest\n"
            "1 |Epilogue\n");
}

TEST(PlainTextTest, BlanksOfALabelMayBeOfAnyKind) {
  EXPECT_EQ(Tree("Chapter\u00a01.  Rain\n" + Prose() + "Chapter  2.\tSnow\n" +
                 Prose()),
            "1 Chapter 1|Rain\n1 Chapter 2|Snow\n");
}

TEST(PlainTextTest, PartsHaveChapters) {
  EXPECT_EQ(Tree("Preface\n" + Prose() + "PART ONE\n\nChapter 1\n" + Prose() +
                 "Chapter 2\n" + Prose() + "PART TWO\nChapter 1\n" + Prose() +
                 "Chapter 2\n" + Prose()),
            "1 |Preface\n1 PART ONE|\n2 Chapter 1|\n2 Chapter 2|\n"
            "1 PART TWO|\n2 Chapter 1|\n2 Chapter 2|\n");
}

TEST(PlainTextTest, SentencesAreNoHeadings) {
  EXPECT_EQ(
      Tree("Chapter 1\n" + Prose() + "Chapter 2 of it was long.\n" + Prose() +
           "Part of it remains.\n" + Prose() + "He read\nChapter 2 in bed.\n" +
           Prose() + "Chapter 2\n\n" + "It rained.\n" + Prose()),
      "1 Chapter 1|\n1 Chapter 2|\n");
}

TEST(PlainTextTest, TheContentsAreNoChapters) {
  const std::string body = "THE SEA\n" + Prose() + "I. The Road\n" + Prose() +
                           "II. The Stair\n" + Prose() + "III. Rest\n" +
                           Prose();
  const std::string tree =
      "1 |THE SEA\n1 I|The Road\n1 II|The Stair\n"
      "1 III|Rest\n";
  EXPECT_EQ(Tree("Contents\n\nThe Sea\n\nI. The Road\n\nII. The Stair\n\n"
                 "III. Rest\n\n\n" +
                 body),
            tree);
  EXPECT_EQ(
      Tree("Contents\n\n1. Rain\n   1.1. Snow\n2. Wind\n\nChapter 1. "
           "Rain\n" +
           Prose() + "1.1. Snow\n" + Prose() + "Chapter 2. Wind\n" + Prose()),
      "1 Chapter 1|Rain\n2 1.1|Snow\n1 Chapter 2|Wind\n");
  EXPECT_EQ(Tree("CONTENTS\n\n The Sea . . . . . 1\n The Road ........ 7\n"
                 " The Stair      12\n Rest      xx\n\n\n" +
                 body),
            tree);
}

TEST(PlainTextTest, ContentsWithoutATitleAreNoChaptersEither) {
  const std::string list = "Chapter 1. A\nChapter 2. B\n\nChapter 3. C\n\n";
  const std::string body = "Chapter 1. A\n" + Prose() + "Chapter 2. B\n" +
                           Prose() + "Chapter 3. C\n" + Prose();
  EXPECT_EQ(Tree(list + "A note on the text\n" + Prose() + body),
            "1 Chapter 1|A\n1 Chapter 2|B\n1 Chapter 3|C\n");
}

TEST(PlainTextTest, WhatOnlyTheContentsNameIsNoChapter) {
  EXPECT_EQ(Tree("Contents\n\nPreface\n\nChapter 1\n\nChapter 2\n\nChapter 3"
                 "\n\n\nChapter 1\n" +
                 Prose() + "Chapter 2\n" + Prose() + "Chapter 3\n" + Prose()),
            "1 Chapter 1|\n1 Chapter 2|\n1 Chapter 3|\n");
}

TEST(PlainTextTest, WhatAWholeTableOfContentsDoesNotListIsNone) {
  const std::string list = "Contents\n\nChapter 1\nChapter 2\nChapter 3\n\n";
  EXPECT_EQ(Tree(list + "Chapter 1\n" + Prose() + "Chapter 2\n" + Prose() +
                 "Book I. Of Whales\n" + Prose() + "Chapter 3\n" + Prose()),
            "1 Chapter 1|\n1 Chapter 2|\n1 Chapter 3|\n");
}

TEST(PlainTextTest, Underlines) {
  EXPECT_EQ(Tree("Manual\n******\n\n* 1. One\n\n1. One\n******\n\nText\n\n"
                 "1.1. \"debian/rules\" and ``x``\n=====================\n\na\n"
                 "b\n---\n\n2. Two\n******\n\nx\n"),
            "1 1|One\n2 1.1|debian/rules and x\n1 2|Two\n");
  EXPECT_EQ(ReadAsText("Manual\n******\n\n1. One\n******\n").title, "Manual");
}

TEST(PlainTextTest, Markdown) {
  EXPECT_EQ(Tree("# Book\n\n## One ##\n\n```\n# no\n```\n\n### *In* it\n\n"
                 "Two\n---\n\nx\n"),
            "1 |One\n2 |In it\n1 |Two\n");
}

TEST(PlainTextTest, MoreHeadingsThanABookHasAreNone) {
  std::string text;
  for (int i = 0; i < 100'000; ++i) text += "# a\n\n";
  EXPECT_EQ(ReadAsText(text).sections.size(), 100'000u);
  const Document document = ReadAsText(text + "# a\n");
  EXPECT_THAT(document.sections, IsEmpty());
  EXPECT_THAT(document.warnings, ElementsAre(HasSubstr("100001 headings")));
}

TEST(PlainTextTest, NumbersThatCount) {
  EXPECT_EQ(
      Tree("1. Scope\n" + Prose() + "1.1. Words\n" + Prose() + "7. A list\n" +
           Prose() + "2. Terms\n" + Prose() + "3. Rest\n" + Prose()),
      "1 1|Scope\n2 1.1|Words\n1 2|Terms\n1 3|Rest\n");
  EXPECT_EQ(Tree("I\n" + Prose() + "II.\n\nRAIN\n" + Prose()),
            "1 I|\n1 II|RAIN\n");
  // A numbered list has no headings.
  EXPECT_EQ(Tree(Prose() + "1. Milk\n\n2. Bread\n\n3. Salt\n\nand home."), "");
}

TEST(PlainTextTest, OtherLanguages) {
  EXPECT_EQ(
      Tree("Inhalt\n\nErstes Kapitel\nZweites Kapitel\nNachwort\n\n"
           "Erstes Kapitel\n\nDer Weg\n" +
           Prose() + "Zweites Kapitel\n" + Prose() + "Nachwort\n" + Prose()),
      "1 Erstes Kapitel|Der Weg\n1 Zweites Kapitel|\n1 |Nachwort\n");
  EXPECT_EQ(Tree("ЧАСТЬ ПЕРВАЯ\n\nГлава I\n" + Prose() + "Глава II\n" +
                 Prose() + "ЭПИЛОГ\n" + Prose()),
            "1 ЧАСТЬ ПЕРВАЯ|\n2 Глава I|\n2 Глава II|\n1 |ЭПИЛОГ\n");
  // Prose without blank lines.
  const std::string prose =
      "　　那天夜里风很大，谁也没有睡着，第二天早上大家都起得很晚，说话也很少。"
      "\n"
      "　　第一回合他赢了，第二回合他输了，大家都说下一次要在\n"
      "第三章 里再讲这件事\n这样就好了。\n";
  EXPECT_EQ(Tree("第一章　风\n" + prose + "第二章　雨\n" + prose + prose),
            "1 第一章|风\n1 第二章|雨\n");
  EXPECT_EQ(Tree("　　　　一\n" + Prose() + "　　　　二\n" + Prose()),
            "1 一|\n1 二|\n");
}

TEST(PlainTextTest, GutenbergsFrameIsLeftOutAndSaid) {
  const Document document = ReadAsText(
      "The Project Gutenberg EBook of Rain\n\nTitle: Rain\n  or Snow\n\n"
      "Author: A. B.\n\nLanguage: German\n\n"
      "*** START OF THIS PROJECT GUTENBERG EBOOK RAIN ***\n\nIt rains.\n\n\n"
      "End of Project Gutenberg's Rain\n\n"
      "*** END OF THIS PROJECT GUTENBERG EBOOK RAIN ***\nLicence\n");
  EXPECT_EQ(document.text, "\nIt rains.\n\n\n");
  EXPECT_EQ(document.title, "Rain or Snow");
  EXPECT_EQ(document.author, "A. B.");
  EXPECT_EQ(document.language, "de");
  EXPECT_THAT(document.warnings, ElementsAre(HasSubstr("left out")));
  // Another book may follow.
  const std::string start = "*** START OF THE PROJECT GUTENBERG EBOOK X ***\n";
  const std::string book =
      start + "It rains.\n" + "*** END OF THE PROJECT GUTENBERG EBOOK X ***\n";
  EXPECT_EQ(ReadAsText(book + book).text, book + book);
  // The text behind an end mark stays if it is no footer.
  const std::string much = std::string(70'000, 'x') + "\n";
  EXPECT_EQ(ReadAsText(book + much).text, (book + much).substr(start.size()));
  // A file that was cut has no end mark.
  const Document cut = ReadAsText(start + "It rains.\n");
  EXPECT_EQ(cut.text, "It rains.\n");
  EXPECT_THAT(cut.warnings, ElementsAre(HasSubstr("no end mark")));
}

TEST(PlainTextTest, TheLastEndMarkOfGutenbergCounts) {
  const std::string volumes =
      "It rains.\n\nEnd of the Project Gutenberg EBook of Rain, Vol. 1\n" +
      Prose(40) + "It snows.\n\n";
  EXPECT_EQ(ReadAsText("*** START OF THE PROJECT GUTENBERG EBOOK RAIN ***\n" +
                       volumes +
                       "End of Project Gutenberg's Rain\n\n*** END OF THE "
                       "PROJECT GUTENBERG EBOOK RAIN ***\nLicence\n")
                .text,
            volumes);
}

TEST(PlainTextTest, GutenbergsOldFrameEndsWithSmallPrint) {
  const Document document = ReadAsText(
      "***The Project Gutenberg Etext of Rain, by A. B.***\n\n***START**THE "
      "SMALL PRINT!**FOR PUBLIC DOMAIN ETEXTS**START***\nx\n"
      "*END*THE SMALL PRINT! FOR PUBLIC DOMAIN ETEXTS*Ver.04.29.93*END*\n\n"
      "It rains.\n\nEnd of The Project Gutenberg Etext of Rain\n");
  EXPECT_EQ(document.text, "\nIt rains.\n\n");
  EXPECT_EQ(document.title + "|" + document.author, "Rain|A. B.");
}

TEST(PlainTextTest, FormFeedsBeginPages) {
  EXPECT_EQ(Tree("Chapter 1\n" + Prose() + "end\n\fChapter 2\n" + Prose() +
                 "end\n\fChapter 3\n" + Prose()),
            "1 Chapter 1|\n1 Chapter 2|\n1 Chapter 3|\n");
}

TEST(PlainTextTest, ADoubleSpacedTextHasNoTitlesOfProse) {
  std::string text;
  for (int chapter = 1; chapter < 4; ++chapter) {
    text += "CHAPTER " + std::to_string(chapter) + "\n\n\n\n";
    for (int i = 0; i < 12; ++i) {
      text += "No one by the river could say why the lamps were lit so\n\n";
    }
    text += "early.\n\n\n";
  }
  EXPECT_EQ(Tree(text), "1 CHAPTER 1|\n1 CHAPTER 2|\n1 CHAPTER 3|\n");
}

TEST(PlainTextTest, TheBestOutlineWins) {
  std::string text;
  for (int chapter = 1; chapter < 4; ++chapter) {
    text += "Chapter " + std::to_string(chapter) + "\n" + Prose() +
            "\"Go home,\" he said.\n--------------------\n" + Prose() +
            "She left him there!\n--------------------\n" + Prose() +
            "\n# To set the language:\nexport LANG=C\n\n"
            "# To set the country:\n$ make country\n" +
            Prose();
  }
  EXPECT_EQ(Tree(text), "1 Chapter 1|\n1 Chapter 2|\n1 Chapter 3|\n");
  // Two lines that are underlined well do not outweigh chapters that count.
  EXPECT_EQ(Tree("Notes\n=====\n\nMore\n====\n\n" + text),
            "1 Chapter 1|\n1 Chapter 2|\n1 Chapter 3|\n");
}

TEST(PlainTextTest, NumbersMayHaveLostTheirSpace) {
  EXPECT_EQ(
      Tree("1Building\n" + Prose() + Prose() + "1.1The Elements\n" + Prose() +
           Prose() + "2D Printing\n" + Prose() + "2Data\n" + Prose() + Prose()),
      "1 1|Building\n2 1.1|The Elements\n1 2|Data\n");
}

TEST(PlainTextTest, AnEntryOfTheContentsMayTakeTwoLinesOrALetter) {
  // With so many entries the table counts as complete, even if two are lost.
  constexpr int kPlain = 24;
  std::string contents = "Contents\n\n";
  std::string text;
  std::string tree;
  for (int i = 1; i <= kPlain; ++i) {
    const std::string number = std::to_string(i);
    const std::string title =
        std::string("Tree ") + static_cast<char>('a' + i - 1);
    contents += number + ". " + title + "\n";
    text += "Chapter " + number + ". " + title + "\n" + Prose();
    tree += "1 Chapter " + number + "|" + title + "\n";
  }
  contents +=
      "25. The winding story of the lamps on\n   the bridge\n"
      "A. Manifesto\n\n";
  text += "Chapter 25. The winding story of the lamps on the bridge\n" +
          Prose() + "Appendix A. Manifesto\n" + Prose();
  tree +=
      "1 Chapter 25|The winding story of the lamps on the bridge\n"
      "1 Appendix A|Manifesto\n";
  EXPECT_EQ(Tree(contents + text), tree);
}

// A text with contents and numbered sections: each chapter has one that begins
// right below it, and some of which each is `below`.
struct Listed {
  std::string contents = "Contents\n\n";
  std::string text;
  std::string tree;

  explicit Listed(const std::string& below) {
    for (int i = 1; i <= 3; ++i) {
      const std::string number = std::to_string(i);
      Add(1, number, "Tree " + number, "");
      // A chapter may begin with contents of its own.
      text += number + ".1. Leaves\n" + number + ".2. Is it so?\n\n";
      Add(2, number + ".1", "Leaves", "");
      Add(3, number + ".1.1", "Green", Prose());
      for (int j = 2; j <= 8; ++j) {
        Add(2, number + "." + std::to_string(j), "Is it so?", below);
      }
    }
  }
  void Add(int level, const std::string& label, const std::string& title,
           const std::string& below) {
    contents += std::string(static_cast<size_t>(level), ' ') + label + ". " +
                title + "\n";
    text += label + ". " + title + "\n\n" + below;
    tree += std::to_string(level) + " " + label + "|" + title + "\n";
  }
};

TEST(PlainTextTest, SectionsThatTheContentsListMayBeShort) {
  const Listed listed("Yes.\n\n");
  EXPECT_EQ(Tree(listed.contents + "\n" + listed.text), listed.tree);
}

TEST(PlainTextTest, SectionsOfDifferentNumbersAreNotTheSame) {
  // One entry in seven is wrong, so the contents are not complete.
  const Listed listed(Prose());
  const std::string wrong = " Ash\n Elm\n Fir\n Oak\n Yew\n";
  EXPECT_EQ(Tree(listed.contents + wrong + "\n" + listed.text), listed.tree);
}

TEST(PlainTextTest, ContentsOfAChapterAreNotTheBooks) {
  std::string text;
  std::string tree;
  for (int i = 1; i <= 5; ++i) {
    const std::string number = std::to_string(i);
    text += "Chapter " + number + ". Tree " + number + "\n\n";
    if (i == 2) {
      text += "Contents\n\n2.1. Leaf\n2.2. Twig\n2.3. Root\n\n2.1. Leaf\n" +
              Prose() + "2.2. Twig\n" + Prose() + "2.3. Root\n";
    }
    text += Prose();
    tree += "1 Chapter " + number + "|Tree " + number + "\n";
  }
  EXPECT_EQ(Tree(text), tree);
}

const char* const kRoman[] = {"I", "II", "III", "IV", "V"};

// The chapters of one volume, in a list or with their text. Titles differ from
// volume to volume, numbers do not.
std::string Chapters(int volume, bool is_list, bool has_titles = true) {
  std::string text;
  for (int i = 0; i < 5; ++i) {
    text += "CHAPTER " + std::string(kRoman[i]);
    if (has_titles) {
      text += ". Tree " + std::to_string(volume * 10 + i);
    }
    text += is_list ? "\n" : "\n" + Prose();
  }
  return text + "\n";
}

std::string TreeOfVolumes(int num_volumes, bool has_titles = true) {
  std::string tree;
  for (int volume = 0; volume < num_volumes; ++volume) {
    tree += "1 VOLUME " + std::string(kRoman[volume]) + "|\n";
    for (int i = 0; i < 5; ++i) {
      tree += "2 CHAPTER " + std::string(kRoman[i]) + "|";
      if (has_titles) tree += "Tree " + std::to_string(volume * 10 + i);
      tree += "\n";
    }
  }
  return tree;
}

TEST(PlainTextTest, EachVolumeMayHaveAContentsPage) {
  for (const int num_volumes : {2, 3}) {
    for (const bool has_titles : {true, false}) {
      std::string over;     // VOLUME I, its contents, its chapters
      std::string between;  // contents, VOLUME I, its chapters
      std::string named;    // contents of VOLUME I, its chapters
      for (int volume = 0; volume < num_volumes; ++volume) {
        const std::string name = "VOLUME " + std::string(kRoman[volume]);
        const std::string list = Chapters(volume, true, has_titles);
        const std::string body = Chapters(volume, false, has_titles);
        over += name + "\n\nCONTENTS\n\n" + list + body;
        between += "CONTENTS\n\n" + list + name + "\n\n" + body;
        named += "CONTENTS OF " + name + "\n\n" + list + body;
      }
      for (const std::string& text :
           {over, between, named, "The winds\n\nby A. Writer\n\n" + over}) {
        EXPECT_EQ(Tree(text), TreeOfVolumes(num_volumes, has_titles))
            << text.substr(0, 100);
      }
    }
  }
}

TEST(PlainTextTest, TheContentsMayListAllVolumes) {
  for (const bool has_titles : {true, false}) {
    std::string list;
    std::string body;
    std::string lists;  // by a title for each
    std::string both;   // with contents of each volume in the text, too
    for (int volume = 0; volume < 2; ++volume) {
      const std::string name = "VOLUME " + std::string(kRoman[volume]);
      list += name + "\n\n" + Chapters(volume, true, has_titles);
      lists +=
          "CONTENTS OF " + name + "\n\n" + Chapters(volume, true, has_titles);
      body += name + "\n\n" + Chapters(volume, false, has_titles);
      both += name + "\n\nCONTENTS\n\n" + Chapters(volume, true, has_titles) +
              Chapters(volume, false, has_titles);
    }
    for (const std::string& text :
         {"CONTENTS\n\n" + list + body, lists + body,
          "CONTENTS\n\n" + list + both,
          "CONTENTS\n\n" + list + "Preface\n" + Prose() + body}) {
      std::string tree = TreeOfVolumes(2, has_titles);
      if (text.find("Preface") != std::string::npos) {
        // A complete table lists all there is.
        tree = TreeOfVolumes(2, has_titles);
      }
      EXPECT_EQ(Tree(text), tree) << text.substr(0, 60);
    }
  }
  // The front lists the volumes alone.
  EXPECT_EQ(Tree("CONTENTS\n\nVOLUME I\nVOLUME II\nVOLUME III\n\n" +
                 [] {
                   std::string text;
                   for (int volume = 0; volume < 3; ++volume) {
                     text += "VOLUME " + std::string(kRoman[volume]) +
                             "\n\nCONTENTS\n\n" + Chapters(volume, true) +
                             Chapters(volume, false);
                   }
                   return text;
                 }()),
            TreeOfVolumes(3));
}

TEST(PlainTextTest, OnlyTheFirstVolumeMayHaveAContentsPage) {
  EXPECT_EQ(Tree("VOLUME I\n\nCONTENTS\n\n" + Chapters(0, true) +
                 Chapters(0, false) + "VOLUME II\n\n" + Chapters(1, false)),
            TreeOfVolumes(2));
}

TEST(PlainTextTest, OnlyTheContentsMayKnowTheChaptersOfAVolume) {
  const auto volume = [](const std::string& name,
                         const char* const(&titles)[3]) {
    std::string list;
    std::string text;
    for (const char* title : titles) {
      list += std::string(title) + "\n";
      text += std::string(title) + "\n" + Prose();
    }
    return name + "\n\nCONTENTS\n\n" + list + "\n" + text;
  };
  EXPECT_EQ(Tree(volume("VOLUME I", {"Rain", "Snow", "Fog"}) +
                 volume("VOLUME II", {"Hail", "Wind", "Dew"})),
            "1 VOLUME I|\n2 |Rain\n2 |Snow\n2 |Fog\n"
            "1 VOLUME II|\n2 |Hail\n2 |Wind\n2 |Dew\n");
}

TEST(PlainTextTest, ANamedPartBelongsToTheVolumeWhoseChaptersFollow) {
  EXPECT_EQ(Tree("PREFACE\n" + Prose() + "VOLUME I\n\nINTRODUCTION\n" +
                 Prose() + Chapters(0, false) + "VOLUME II\n\n" +
                 Chapters(1, false) + "EPILOGUE\n" + Prose()),
            [] {
              std::string tree = "1 |PREFACE\n" + TreeOfVolumes(2);
              tree.insert(tree.find("2 CHAPTER"), "2 |INTRODUCTION\n");
              return tree + "1 |EPILOGUE\n";
            }());
}

TEST(PlainTextTest, NumbersAloneMayBeTheChaptersOfNamedParts) {
  std::string again;  // numbers that begin again in each part
  std::string on;     // numbers that go on
  std::string tree;
  std::string tree_on;
  const auto add = [](const std::string& number, std::string* text,
                      std::string* lines) {
    *text += number + "\n" + Prose();
    *lines += "2 " + number + "|\n";
  };
  for (int part = 0; part < 2; ++part) {
    const std::string name = part == 0 ? "PART ONE" : "PART TWO";
    for (std::string* text : {&again, &on}) *text += name + "\n\n";
    for (std::string* lines : {&tree, &tree_on}) *lines += "1 " + name + "|\n";
    again += "Introduction\n" + Prose();
    tree += "2 |Introduction\n";
    for (int i = 0; i < 2; ++i) {
      add(kRoman[i], &again, &tree);
      add(kRoman[2 * part + i], &on, &tree_on);
    }
  }
  EXPECT_EQ(Tree(again), tree);
  EXPECT_EQ(Tree(on), tree_on);
  // A part may have a single one.
  EXPECT_EQ(Tree("PART ONE\n\nI\n" + Prose() + "PART TWO\n\nI\n" + Prose()),
            "1 PART ONE|\n2 I|\n1 PART TWO|\n2 I|\n");
}

TEST(PlainTextTest, OneVolumeMayListItsNumbersAndTheOtherNot) {
  std::string list;
  std::string text;
  for (const char* number :
       {"I", "II", "III", "IV", "V", "VI", "VII", "VIII"}) {
    const std::string title =
        std::string(number) + ". Tree of " + number + "\n";
    list += title;
    text += title + Prose();
  }
  const Document document = ReadAsText("VOLUME I\n\nCONTENTS\n\n" + list +
                                       "\n" + text + "VOLUME II\n\n" + text);
  EXPECT_EQ(document.sections.size(), 18u);
  EXPECT_EQ(document.sections[0].label, "VOLUME I");
  EXPECT_EQ(document.sections[17].level, 2);
}

TEST(PlainTextTest, SectionsMayHaveTheNumbersOfNamedChapters) {
  EXPECT_EQ(Tree("Chapter 1. Trees\n" + Prose() + "1.1 Leaves\n" + Prose() +
                 "1.2 Twigs\n" + Prose() + "1.2.1 Green\n" + Prose() +
                 "5.3 is too far\n" + Prose() + "Chapter 2. Winds\n" + Prose() +
                 "1.3 Of another\n" + Prose() + "2.1 North\n" + Prose()),
            "1 Chapter 1|Trees\n2 1.1|Leaves\n2 1.2|Twigs\n3 1.2.1|Green\n"
            "1 Chapter 2|Winds\n2 2.1|North\n");
}

TEST(PlainTextTest, LettersMayStandApart) {
  const Document document = ReadAsText(
      "C H A P T E R   I\n\nT H E   M I L L\n" + Prose() +
      "C H A P T E R  II\nN O O N\n" + Prose() + "   C H A P T E R I I I\n" +
      Prose() + "Г Л А В А  4\n" + Prose() + "I a m a t h o m e\n" + Prose());
  std::string tree;
  for (const Section& section : document.sections) {
    tree += section.label + "|" + section.title + "@" +
            document.text.substr(section.begin, 3) + "\n";
  }
  EXPECT_EQ(tree,
            "CHAPTER I|THE MILL@C H\nCHAPTER II|NOON@C H\nCHAPTER III|@C H\n"
            "ГЛАВА 4|@Г \n");
}

TEST(PlainTextTest, ATitleMayComeAfterEachChapter) {
  std::string contents = "Contents\n\n";
  std::string text;
  std::string tree;
  for (const char* name : {"Rain", "Snow", "Fog", "Hail"}) {
    contents += std::string(name) + "\nNotes\n";
    text += name + ("\n" + Prose()) + "Notes\n\n1. Of leaves.\n\n";
    tree += "1 |" + std::string(name) + "\n1 |Notes\n";
  }
  // The last entry stands right before prose, or before the first chapter.
  for (const std::string& between :
       {std::string("\n"), Prose(), "\nTo the reader\n" + Prose()}) {
    EXPECT_EQ(Tree(contents + between + text), tree);
    // Some of what an incomplete table lists is not there.
    EXPECT_EQ(Tree(contents + "Wind\nSleet\n" + between + text), tree);
  }
}

TEST(PlainTextTest, TheFirstChapterMayHaveItsTitleOnTheNextLine) {
  for (const char* between : {"\n", "\n\n"}) {
    EXPECT_EQ(Tree("Contents\n\nCHAPTER I. Rain\nCHAPTER II. Snow\nCHAPTER "
                   "III. Fog\n\nCHAPTER I." +
                   std::string(between) + "Rain\n" + Prose() + "CHAPTER II." +
                   between + "Snow\n" + Prose() + "CHAPTER III." + between +
                   "Fog\n" + Prose()),
              "1 CHAPTER I|Rain\n1 CHAPTER II|Snow\n1 CHAPTER III|Fog\n");
  }
}

TEST(PlainTextTest, AnEntryThatLeadsTooFarIsNotFollowed) {
  EXPECT_EQ(Tree("Contents\n\nRain\nFog\nSnow\nHail\nWind\n\nRain\n" + Prose() +
                 "The Fog\n" + Prose() + "Snow\n" + Prose() + "Hail\n" +
                 Prose() + "Wind\n" + Prose() + "Fog\n" + Prose()),
            "1 |Rain\n1 |Snow\n1 |Hail\n1 |Wind\n");
}

TEST(PlainTextTest, ATitleInTheContentsMayLookLikeARomanNumber) {
  // "mc" would be 1100, and "C" 100.
  EXPECT_EQ(Tree("Contents\n\nChapter 1. Rain\n1.1. mc\n1.2. C\nChapter 2. "
                 "Snow  vii\n\nChapter 1. Rain\n" +
                 Prose() + "1.1. mc\n" + Prose() + "1.2. C\n" + Prose() +
                 "Chapter 2. Snow\n" + Prose()),
            "1 Chapter 1|Rain\n2 1.1|mc\n2 1.2|C\n1 Chapter 2|Snow\n");
  EXPECT_EQ(Tree("Contents\n\nRain\nMr. C\nSnow\nFog\n\nRain\n" + Prose() +
                 "Mr. C\n" + Prose() + "Snow\n" + Prose() + "Fog\n" + Prose()),
            "1 |Rain\n1 |Mr. C\n1 |Snow\n1 |Fog\n");
}

TEST(PlainTextTest, AnEntryOfTheContentsMayTakeSomeLines) {
  const std::string contents =
      "Contents\n\n1. Rain\n2. Why should I\n   choose this wind over\n"
      "   some other wind? Why\n   not?\n3. Snow\n\n";
  EXPECT_EQ(
      Tree(contents + "1. Rain\n" + Prose() +
           "2. Why should I\nchoose this wind\nover some other wind?\nWhy "
           "not?\n" +
           Prose() + "3. Snow\n" + Prose()),
      "1 1|Rain\n1 2|Why should I choose this wind over some other wind? Why "
      "not?\n"
      "1 3|Snow\n");
}

TEST(PlainTextTest, AozorasMarksAreReadAndLeftOut) {
  const std::string rule(55, '-');
  const Document document = ReadAsText(
      "話\n某\n\n" + rule +
      "\n【テキスト中に現れる記号について】\n\n《》：ルビ\n" + rule +
      "\n\n［＃５字下げ］一　朝［＃「一　朝」は大見出し］\n\n　川《かわ》は"
      "古い｜水車《すいしゃ》の※［＃「てへん＋劣」、第3水準1-84-77］※［＃"
      "「口＋世」、U+546D、1-1］※［＃謎］を［＃「を」に傍点］。\n\n"
      "［＃中見出し］一の二　昼［＃中見出し終わり］\n　灯《ひ》\n"
      "二　夜［＃「二　夜」は大見出し］\n　灯\n");
  EXPECT_EQ(document.title + "|" + document.author, "話|某");
  EXPECT_EQ(document.text,
            "話\n某\n\n\n\n一　朝\n\n　川は古い水車の挘呭〓を。\n\n"
            "一の二　昼\n　灯\n二　夜\n　灯\n");
  ASSERT_EQ(document.sections.size(), 3u);
  EXPECT_EQ(document.sections[0].title, "朝");
  EXPECT_EQ(document.sections[1].level, 2);
  EXPECT_EQ(document.text.compare(document.sections[2].begin, 3, "二"), 0);
  EXPECT_THAT(document.warnings, ElementsAre(HasSubstr("Aozora")));
  // Brackets of a text in no such notation stay.
  const std::string plain = "《書名》を読む。［＃一つ\n";
  EXPECT_EQ(ReadAsText(plain).text, plain);
}

TEST(PlainTextTest, AozorasHeadNamesTheAuthorLast) {
  const std::string marks = "\n\n朝《あさ》［＃改行］川《かわ》［＃改行］\n";
  const auto author_of = [&](const std::string& head) {
    const Document document = ReadAsText(head + marks);
    return document.title + "|" + document.author;
  };
  EXPECT_EQ(author_of("川\n――朝の話――\n某"), "川|某");
  EXPECT_EQ(author_of("川\nTHE RIVER\nベル　アン\n某訳"), "川|ベル　アン");
  EXPECT_EQ(author_of("川\n某"), "川|某");
}

TEST(PlainTextTest, AozorasCharactersMayBeNamedByTheirPlaceAlone) {
  const std::string marks = "《かわ》［＃改行］《かわ》［＃改行］";
  const Document document =
      ReadAsText(marks +
                 "※［＃二の字点、1-2-22］※［＃「口＋某」、10-5］"
                 "〔Cafe' franc,ais, l'OE&uvre〕〔人〕〔a b〕\n");
  EXPECT_EQ(document.text, "〻〓Café français, l'Œuvre〔人〕〔a b〕\n");
}

TEST(PlainTextTest, AnIndexAtTheEndIsLeftOutAndSaidAndContentsAreNone) {
  const Document document = ReadAsText("# One\n\na\n\n# Index\n\nwhale, 7\n");
  EXPECT_EQ(document.text, "# One\n\na\n");
  EXPECT_EQ(document.sections.size(), 1u);
  EXPECT_THAT(document.warnings, ElementsAre(HasSubstr("Index")));
  EXPECT_EQ(Tree("# Contents\n\nOne\n\n# One\n\na\n"), "1 |One\n");
  // A chapter named "Index" that others follow is no index.
  EXPECT_EQ(
      ReadAsText("# One\n\na\n\n# Index\n\nx\n\n# Two\n\nb\n").sections.size(),
      3u);
}

}  // namespace
}  // namespace tiercel::document

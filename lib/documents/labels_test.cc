#include "lib/documents/labels.h"

#include "gtest/gtest.h"

namespace tiercel::document {
namespace {

struct LabelCase {
  const char* heading;
  const char* label;
  const char* title;
  Rank rank = Rank::kNone;
  int number = 0;
};

class LabelsTest : public testing::TestWithParam<LabelCase> {};

TEST_P(LabelsTest, IsSplitOff) {
  const LabelCase& c = GetParam();
  const Label label = SplitLabel(c.heading);
  EXPECT_EQ(label.label, c.label);
  EXPECT_EQ(label.title, c.title);
  EXPECT_EQ(label.rank, c.rank);
  EXPECT_EQ(label.number, c.number);
}

INSTANTIATE_TEST_SUITE_P(
    MoreLanguages, LabelsTest,
    testing::Values(
        LabelCase{"Rozdział 3. Droga", "Rozdział 3", "Droga", Rank::kChapter,
                  3},
        LabelCase{"Část druhá", "Část druhá", "", Rank::kPart, 2},
        LabelCase{"Första kapitlet", "Första kapitlet", "", Rank::kChapter, 1},
        LabelCase{"Kolmas luku", "Kolmas luku", "", Rank::kChapter, 3},
        LabelCase{"II. fejezet", "II. fejezet", "", Rank::kChapter, 2},
        LabelCase{"ΚΕΦΑΛΑΙΟ Β", "ΚΕΦΑΛΑΙΟ Β", "", Rank::kChapter, 2},
        LabelCase{"Розділ 7", "Розділ 7", "", Rank::kChapter, 7},
        LabelCase{"Capitolul IV: Drum", "Capitolul IV", "Drum", Rank::kChapter,
                  4},
        LabelCase{"Chương 12", "Chương 12", "", Rank::kChapter, 12},
        LabelCase{"BİRİNCİ BÖLÜM", "BİRİNCİ BÖLÜM", "", Rank::kChapter, 1},
        LabelCase{"الفصل الثالث", "الفصل الثالث", "", Rank::kChapter, 3},
        LabelCase{"الفصل ٣", "الفصل ٣", "", Rank::kChapter, 3},
        LabelCase{"פרק ב", "פרק ב", "", Rank::kChapter, 2},
        LabelCase{"บทที่ ๕", "บทที่ ๕", "", Rank::kChapter, 5},
        LabelCase{"अध्याय २", "अध्याय २", "", Rank::kChapter, 2},
        LabelCase{"chapter.844 山中", "chapter.844", "山中", Rank::kChapter,
                  844},
        LabelCase{"第贰拾叁章 落雨", "第贰拾叁章", "落雨", Rank::kChapter, 23},
        LabelCase{"正文 第一章 起风", "正文 第一章", "起风", Rank::kChapter, 1},
        LabelCase{"2장. 아침", "2장", "아침", Rank::kChapter, 2},
        LabelCase{"3章鱼", "", "3章鱼"},
        LabelCase{"正文 起风", "", "正文 起风"},
        LabelCase{"Tomorrow 3", "", "Tomorrow 3"}));

INSTANTIATE_TEST_SUITE_P(
    English, LabelsTest,
    testing::Values(
        LabelCase{"CHAPTER 1. Loomings.", "CHAPTER 1", "Loomings",
                  Rank::kChapter, 1},
        LabelCase{"CHAPTER XIV: HOW", "CHAPTER XIV", "HOW", Rank::kChapter, 14},
        LabelCase{"Chapter Twenty-One", "Chapter Twenty-One", "",
                  Rank::kChapter, 21},
        LabelCase{"CHAPTER TWENTYTHREE", "CHAPTER TWENTYTHREE", "",
                  Rank::kChapter, 23},
        LabelCase{"PART THE SECOND — Rome", "PART THE SECOND", "Rome",
                  Rank::kPart, 2},
        LabelCase{"Book I", "Book I", "", Rank::kBook, 1},
        LabelCase{"The First Book", "The First Book", "", Rank::kBook, 1},
        LabelCase{"Appendix B: Tables", "Appendix B", "Tables", Rank::kChapter,
                  2},
        LabelCase{"2.1. Packages", "2.1", "Packages", Rank::kNumber, 1},
        LabelCase{"2.1.12 Packages", "2.1.12", "Packages", Rank::kNumber, 12},
        LabelCase{"A.1 More", "A.1", "More", Rank::kNumber, 1},
        LabelCase{"IV. Rain", "IV", "Rain", Rank::kNumber, 4},
        LabelCase{"XII", "XII", "", Rank::kNumber, 12},
        LabelCase{"_CHAPTER I._", "CHAPTER I", "", Rank::kChapter, 1},
        LabelCase{"=Chapter 2.= Rain", "", "=Chapter 2.= Rain"},
        LabelCase{"*** Chapter 2 ***", "Chapter 2", "", Rank::kChapter, 2},
        LabelCase{"- Chapter 2 -", "Chapter 2", "", Rank::kChapter, 2},
        LabelCase{"[Chapter 2] Rain", "Chapter 2", "Rain", Rank::kChapter, 2},
        LabelCase{"[2] Rain", "", "[2] Rain"},
        LabelCase{"Chapter #3: Rain", "Chapter #3", "Rain", Rank::kChapter, 3},
        LabelCase{"Letter No. 3", "Letter No. 3", "", Rank::kChapter, 3},
        LabelCase{"One", "", "One"},
        LabelCase{"3) Rain", "3", "Rain", Rank::kNumber, 3}));

INSTANTIATE_TEST_SUITE_P(
    OtherLanguages, LabelsTest,
    testing::Values(
        LabelCase{"Kapitel 3. Der Weg", "Kapitel 3", "Der Weg", Rank::kChapter,
                  3},
        LabelCase{"Erstes Kapitel", "Erstes Kapitel", "", Rank::kChapter, 1},
        LabelCase{"3. Kapitel: Der Weg", "3. Kapitel", "Der Weg",
                  Rank::kChapter, 3},
        LabelCase{"§ 5 Fristen", "§ 5", "Fristen", Rank::kNumber, 5},
        LabelCase{"Глава 5. Дорога", "Глава 5", "Дорога", Rank::kChapter, 5},
        LabelCase{"ЧАСТЬ ПЕРВАЯ", "ЧАСТЬ ПЕРВАЯ", "", Rank::kPart, 1},
        LabelCase{"Глава двадцать первая", "Глава двадцать первая", "",
                  Rank::kChapter, 21},
        LabelCase{"第三章 風の音", "第三章", "風の音", Rank::kChapter, 3},
        LabelCase{"第二十一回　賈寶玉", "第二十一回", "賈寶玉", Rank::kChapter,
                  21},
        LabelCase{"第１２話「海」", "第１２話", "「海」", Rank::kChapter, 12},
        LabelCase{"卷一", "卷一", "", Rank::kVolume, 1},
        LabelCase{"附录 A. 表", "附录 A", "表", Rank::kChapter, 1},
        LabelCase{"제3장 비", "제3장", "비", Rank::kChapter, 3},
        LabelCase{"【第三章】雨", "第三章", "雨", Rank::kChapter, 3},
        LabelCase{"三章　雨", "三章", "雨", Rank::kChapter, 3},
        LabelCase{"三部作", "", "三部作"},
        LabelCase{"七、雨", "七", "雨", Rank::kNumber, 7},
        LabelCase{"Première partie", "Première partie", "", Rank::kPart, 1},
        LabelCase{"Capítulo IV", "Capítulo IV", "", Rank::kChapter, 4}));

INSTANTIATE_TEST_SUITE_P(
    ComposedNumbers, LabelsTest,
    testing::Values(
        LabelCase{"Chapter One Hundred and Two", "Chapter One Hundred and Two",
                  "", Rank::kChapter, 102},
        LabelCase{"Chapter Twenty-First. Rain", "Chapter Twenty-First", "Rain",
                  Rank::kChapter, 21},
        LabelCase{"Chapter the Thirtieth", "Chapter the Thirtieth", "",
                  Rank::kChapter, 30},
        LabelCase{"CHAPITRE QUATRE-VINGT-DIX-NEUF",
                  "CHAPITRE QUATRE-VINGT-DIX-NEUF", "", Rank::kChapter, 99},
        LabelCase{"Chapitre vingt et un", "Chapitre vingt et un", "",
                  Rank::kChapter, 21},
        LabelCase{"Onzième chapitre", "Onzième chapitre", "", Rank::kChapter,
                  11},
        LabelCase{"CHAPITRE SOIXANTE-DIX", "CHAPITRE SOIXANTE-DIX", "",
                  Rank::kChapter, 70},
        LabelCase{"Capítulo treinta y dos", "Capítulo treinta y dos", "",
                  Rank::kChapter, 32},
        LabelCase{"CAPÍTULO DÉCIMO TERCERO", "CAPÍTULO DÉCIMO TERCERO", "",
                  Rank::kChapter, 13},
        LabelCase{"Capítulo decimocuarto", "Capítulo decimocuarto", "",
                  Rank::kChapter, 14},
        LabelCase{"Capítulo veintidós", "Capítulo veintidós", "",
                  Rank::kChapter, 22},
        LabelCase{"Capitolo ventunesimo", "Capitolo ventunesimo", "",
                  Rank::kChapter, 21},
        LabelCase{"Capitolo trentotto", "Capitolo trentotto", "",
                  Rank::kChapter, 38},
        LabelCase{"Capítulo vinte e um", "Capítulo vinte e um", "",
                  Rank::kChapter, 21},
        LabelCase{"Einundzwanzigstes Kapitel", "Einundzwanzigstes Kapitel", "",
                  Rank::kChapter, 21},
        LabelCase{"Dreizehntes Kapitel", "Dreizehntes Kapitel", "",
                  Rank::kChapter, 13},
        LabelCase{"EENENTWINTIGSTE HOOFDSTUK", "EENENTWINTIGSTE HOOFDSTUK", "",
                  Rank::kChapter, 21},
        LabelCase{"Tjugoförsta kapitlet", "Tjugoförsta kapitlet", "",
                  Rank::kChapter, 21},
        LabelCase{"Trettonde kapitlet", "Trettonde kapitlet", "",
                  Rank::kChapter, 13},
        LabelCase{"Kahdestoista luku", "Kahdestoista luku", "", Rank::kChapter,
                  12},
        LabelCase{"Kahdeskymmenesensimmäinen luku",
                  "Kahdeskymmenesensimmäinen luku", "", Rank::kChapter, 21},
        LabelCase{"Rozdział dwudziesty drugi", "Rozdział dwudziesty drugi", "",
                  Rank::kChapter, 22},
        LabelCase{"Глава сорок первая", "Глава сорок первая", "",
                  Rank::kChapter, 41},
        LabelCase{"Глава сто вторая", "Глава сто вторая", "", Rank::kChapter,
                  102},
        LabelCase{"Първа глава", "Първа глава", "", Rank::kChapter, 1},
        LabelCase{"Розділ п’ятий", "Розділ п’ятий", "", Rank::kChapter, 5},
        LabelCase{"CAPITOLUL AL DOISPREZECELEA", "CAPITOLUL AL DOISPREZECELEA",
                  "", Rank::kChapter, 12},
        LabelCase{"PARTEA A TREIA", "PARTEA A TREIA", "", Rank::kPart, 3},
        LabelCase{"On birinci bölüm", "On birinci bölüm", "", Rank::kChapter,
                  11},
        LabelCase{"Tizenegyedik fejezet", "Tizenegyedik fejezet", "",
                  Rank::kChapter, 11},
        LabelCase{"पहला अध्याय", "पहला अध्याय", "", Rank::kChapter, 1},
        LabelCase{"第廿一章 雨", "第廿一章", "雨", Rank::kChapter, 21},
        LabelCase{"Letzter Auftritt", "Letzter Auftritt", "", Rank::kSection,
                  1},
        LabelCase{"ΚΕΦΑΛΑΙΟ ΙΒ΄", "ΚΕΦΑΛΑΙΟ ΙΒ΄", "", Rank::kChapter, 12},
        LabelCase{"ΚΕΦΑΛΑΙΟ ΣΤʹ: Βροχή", "ΚΕΦΑΛΑΙΟ ΣΤʹ", "Βροχή",
                  Rank::kChapter, 6},
        LabelCase{"פרק י״א", "פרק י״א", "", Rank::kChapter, 11},
        LabelCase{"פרק ט״ו", "פרק ט״ו", "", Rank::kChapter, 15},
        LabelCase{"פרק יב", "פרק יב", "", Rank::kChapter, 12},
        LabelCase{"Chapter 2.5: Rain", "Chapter 2.5", "Rain", Rank::kChapter,
                  5},
        LabelCase{"Section 3.2.1 Rain", "Section 3.2.1", "Rain", Rank::kSection,
                  1},
        LabelCase{"Kapitel 3.Regen", "Kapitel 3", "Regen", Rank::kChapter, 3},
        LabelCase{"Chapter 0. Rain", "Chapter 0", "Rain", Rank::kChapter, 0},
        LabelCase{"Chapter 10000", "Chapter 10000", "", Rank::kChapter,
                  10000}));

INSTANTIATE_TEST_SUITE_P(
    NoLabel, LabelsTest,
    testing::Values(LabelCase{"1984 and after", "", "1984 and after"},
                    LabelCase{"Une lettre", "", "Une lettre"},
                    LabelCase{"Chapter on rain", "", "Chapter on rain"},
                    LabelCase{"Chapter tent", "", "Chapter tent"},
                    LabelCase{"Κεφάλαιο το νερό", "", "Κεφάλαιο το νερό"},
                    LabelCase{"7 Habits", "", "7 Habits"},
                    LabelCase{"Part of it", "", "Part of it"},
                    LabelCase{"Chapter and verse", "", "Chapter and verse"},
                    LabelCase{"Mix", "", "Mix"},
                    LabelCase{"M. Homais", "", "M. Homais"},
                    LabelCase{"Civil war", "", "Civil war"},
                    LabelCase{"第一回合", "", "第一回合"},
                    LabelCase{"20.000 Meilen", "", "20.000 Meilen"},
                    LabelCase{"And so on etc.", "", "And so on etc."},
                    LabelCase{"Wait...", "", "Wait..."},
                    LabelCase{"Epilogue.", "", "Epilogue"},
                    LabelCase{"", "", ""}));

// Returns the number of a heading's label if the whole heading is its label; 0
// if it is not.
int ChapterOf(const std::string& heading) {
  const Label label = SplitLabel(heading);
  return label.rank == Rank::kChapter && label.title.empty() ? label.number : 0;
}

TEST(LabelWordsTest, ChaptersAreCountedInWords) {
  EXPECT_EQ(ChapterOf("CHAPTER THE THIRTEENTH"), 13);
  EXPECT_EQ(ChapterOf("CHAPTER TWELFTH"), 12);
  EXPECT_EQ(ChapterOf("NINETEENTH CHAPTER"), 19);
  EXPECT_EQ(ChapterOf("Chapitre vingt et unième"), 21);
  EXPECT_EQ(ChapterOf("Розділ третій"), 3);
  EXPECT_EQ(ChapterOf("Розділ тринадцятий"), 13);
  EXPECT_EQ(ChapterOf("Глава прва"), 1);
  EXPECT_EQ(ChapterOf("Глава трећа"), 3);
  EXPECT_EQ(ChapterOf("Глава четврта"), 4);
  EXPECT_EQ(ChapterOf("פרק שישי"), 6);
  EXPECT_EQ(ChapterOf("פרק אחד עשר"), 11);
  EXPECT_EQ(ChapterOf("פרק שנים־עשר"), 12);
  EXPECT_EQ(ChapterOf("الفصل الحادي عشر"), 11);
  EXPECT_EQ(ChapterOf("الفصل الثالث عشر"), 13);
  EXPECT_EQ(ChapterOf("فصل یازدهم"), 11);
  EXPECT_EQ(ChapterOf("فصل بیست و یکم"), 21);
  EXPECT_EQ(ChapterOf("ALTINCI BÖLÜM"), 6);
  EXPECT_EQ(ChapterOf("Chương mười một"), 11);
  EXPECT_EQ(ChapterOf("Bab satu"), 1);
  EXPECT_EQ(ChapterOf("Bab kesepuluh"), 10);
  EXPECT_EQ(ChapterOf("Caput primum"), 1);
  EXPECT_EQ(ChapterOf("ΚΕΦΑΛΑΙΟΝ ΔΕΥΤΕΡΟΝ"), 2);
  EXPECT_EQ(ChapterOf("Chương thứ nhất"), 1);
  EXPECT_EQ(ChapterOf("CHƯƠNG HAI MƯƠI MỐT"), 21);
  EXPECT_EQ(ChapterOf("Bab Dua Puluh Satu"), 21);
  EXPECT_EQ(ChapterOf("Bab dua belas"), 12);
  EXPECT_EQ(ChapterOf("الفصل الحادي والعشرون"), 21);
  EXPECT_EQ(ChapterOf("פרק עשרים ואחד"), 21);
  EXPECT_EQ(ChapterOf("РОЗДІЛ ІІІ"), 3);
  EXPECT_EQ(ChapterOf("РОЗДІЛ ХІ"), 11);
  EXPECT_EQ(ChapterOf("BÖLÜM ALTI"), 6);
  EXPECT_EQ(ChapterOf("Caput vicesimum primum"), 21);
}

TEST(LabelWordsTest, NumbersAreRead) {
  EXPECT_EQ(NumberOf("XXXII."), 32);
  EXPECT_EQ(NumberOf("seventeen"), 17);
  EXPECT_EQ(NumberOf("百二十"), 120);
  EXPECT_EQ(NumberOf("fifty-five"), 55);
  EXPECT_EQ(NumberOf("12a"), 0);
  EXPECT_EQ(NumberOf("IIII"), 0);
  EXPECT_EQ(NumberOf(""), 0);
}

TEST(LabelWordsTest, NotesAndMarksAreNoPartsOfAHeading) {
  EXPECT_EQ(WithoutNote("CHAPTER I[1]"), "CHAPTER I");
  EXPECT_EQ(WithoutNote("The Mill [12]"), "The Mill");
  EXPECT_EQ(WithoutNote("CHAPTER I*"), "CHAPTER I");
  EXPECT_EQ(WithoutNote("The Mill*"), "The Mill");
  for (const char* const heading :
       {"3.4 A*", "debian/patches/*", "[1]", "*this*", "The [mill]", ""}) {
    EXPECT_EQ(WithoutNote(heading), heading);
  }
  EXPECT_EQ(WithoutMarks("_The Mill_"), "The Mill");
  for (const char* const heading :
       {"__init__", "*this* or *that*", "-x-", "_", "***", ""}) {
    EXPECT_EQ(WithoutMarks(heading), heading);
  }
}

TEST(LabelWordsTest, PartsWithoutNumbers) {
  EXPECT_TRUE(IsUnnumberedPart("EPILOGUE."));
  EXPECT_TRUE(IsUnnumberedPart("Предисловие"));
  EXPECT_TRUE(IsUnnumberedPart(" あとがき"));
  EXPECT_FALSE(IsUnnumberedPart("The epilogue"));
  EXPECT_TRUE(IsContentsTitle("CONTENTS"));
  EXPECT_TRUE(IsContentsTitle("目次"));
  EXPECT_FALSE(IsContentsTitle("Content"));
  EXPECT_FALSE(IsContentsTitle("Contents of a drawer"));
  EXPECT_EQ(VolumeOfContents("CONTENTS OF VOL. II."), "VOL. II");
  EXPECT_EQ(VolumeOfContents("Contents of the First Volume"),
            "the First Volume");
  EXPECT_EQ(VolumeOfContents("Table of Contents: Part Two"), "Part Two");
  EXPECT_EQ(VolumeOfContents("Contents of Volume I: Rain"), "");
  EXPECT_TRUE(IsIndexTitle("Index"));
}

TEST(LabelWordsTest, KeysLeaveOutWhatPrintersChange) {
  EXPECT_EQ(HeadingKey("The Lad’s  “Étude”, 2."),
            HeadingKey("the lads étude 2"));
  EXPECT_NE(HeadingKey("第一章"), HeadingKey("第二章"));
}

}  // namespace
}  // namespace tiercel::document

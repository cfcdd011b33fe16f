#include "lib/documents/folder.h"

#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/documents/document.h"
#include "lib/documents/document_for_test.h"

namespace tiercel::document {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class FolderTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "folder_test.XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = std::filesystem::path(name) / "book";
    std::filesystem::create_directory(folder_);
  }
  void TearDown() override {
    std::filesystem::remove_all(folder_.parent_path());
  }

  void Write(const std::string& name, const std::string& bytes) const {
    std::ofstream(folder_ / name, std::ios::binary) << bytes;
  }
  Result Read() const { return ReadDocument(folder_.string()); }

  std::filesystem::path folder_;
};

std::string LevelsOf(const Document& document) {
  std::string lines;
  for (const Section& section : document.sections) {
    lines += std::to_string(section.level) + " " + section.title + "\n";
  }
  return lines;
}

TEST_F(FolderTest, ListsComeBeforeWordsAndGiveLevels) {
  Write("index.html",
        "<h1>Guide</h1><p>The terms are in <a href=terms.html>Terms</a>.</p>"
        "<dl><dt>Part 1. <a href=day.html>Day</a><dd><dl><dt><a href=noon.html>"
        "Noon</a><dd><dl><dt><a href='noon.html#BELLS'>Bells</a></dl></dl>"
        "<dt><a href=terms.html>Terms</a></dl>");
  Write("day.html", "<h1>Day</h1>a");
  Write("noon.html", "<h1>Noon</h1>b<h1 id=BELLS>Bells</h1>c<h2>Iron</h2>d");
  Write("terms.html", "<h1>Terms</h1>e");
  EXPECT_EQ(LevelsOf(Good(Read())),
            "1 Day\n2 Noon\n3 Bells\n4 Iron\n1 Terms\n");
}

TEST_F(FolderTest, NavigationMayBeTheList) {
  for (const char* navigation : {"nav", "div role=navigation"}) {
    Write("index.html",
          "<title>Guide</title><" + std::string(navigation) +
              "><ul><li><a href=day.html>Day</a><ul><li><a href=noon.html>Noon"
              "</a></ul><li><a href=night.html>Night</a></ul>");
    Write("day.html", "<h1>Day</h1>a<nav><a href=noon.html>next</a></nav>");
    Write("noon.html", "<h1>Noon</h1>b");
    Write("night.html", "<h1>Night</h1>c");
    const Document document = Good(Read());
    EXPECT_EQ(document.text, "Day\n\na\n\nNoon\n\nb\n\nNight\n\nc\n");
    EXPECT_EQ(LevelsOf(document), "1 Day\n2 Noon\n1 Night\n");
    EXPECT_TRUE(document.warnings.empty());
  }
  // A menu beside a list is none.
  Write("index.html",
        "<h1>Guide</h1><nav><a href=night.html>Night</a></nav><ul><li>"
        "<a href=day.html>Day</a><li><a href=noon.html>Noon</a></ul>");
  EXPECT_EQ(LevelsOf(Good(Read())), "1 Day\n1 Noon\n");
}

TEST_F(FolderTest, ChaptersInParagraphsAreFound) {
  std::string links = "<h1>Guide</h1>";
  for (const std::string number : {"1", "2", "3"}) {
    links += "<p><a href=" + number + ".html>Next</a></p>";
    Write(number + ".html",
          "<p>Chapter " + number + "</p><p>" + std::string(400, 'x') + "</p>");
  }
  Write("index.html", links);
  const Document document = Good(Read());
  ASSERT_EQ(document.sections.size(), 3u);
  EXPECT_EQ(document.sections[2].label, "Chapter 3");
}

TEST_F(FolderTest, FramesAreFollowed) {
  Write("index.html",
        "<title>Manual</title><frameset><frame src=toc.html><frame src=a.html>"
        "<noframes>none</noframes></frameset>");
  Write("toc.html", "<a href=a.html>A</a><a href=b.html>B</a>");
  Write("a.html", "<h1>A</h1>one");
  Write("b.html", "<h1>B</h1>two");
  const Document document = Good(Read());
  EXPECT_EQ(document.title, "Manual");
  EXPECT_EQ(LevelsOf(document), "1 A\n1 B\n");
  EXPECT_EQ(document.text.find("none"), std::string::npos);
}

TEST_F(FolderTest, PagesComeInTheOrderOfTheIndex) {
  Write("index.html",
        "<html lang=en><title>Site</title><nav><a href=b.html>b</a></nav>"
        "<h1>Book</h1><h2>Parts</h2><a href='c.html#x'>C</a>"
        "<a href='b.html'>B</a><a href='c.html'>again</a>"
        "<a href='http://x/d.html'>D</a><a href='gone.html'>gone</a>");
  Write("b.html", "<h1>2. Second</h1>b<h2>2.1. In it</h2>c");
  Write("c.html", "<h1>1. First</h1>a");
  Write("search.html", "<h1>Search</h1>");
  const Document document = Good(Read());
  EXPECT_EQ(document.title, "Book");
  EXPECT_EQ(document.language, "en");
  ASSERT_EQ(document.sections.size(), 3u);
  EXPECT_EQ(document.sections[0].title, "First");
  EXPECT_EQ(document.sections[0].anchor, "c.html");
  EXPECT_EQ(document.sections[1].label, "2");
  EXPECT_EQ(document.sections[2].level, 2);
  EXPECT_EQ(document.text.substr(document.sections[1].begin),
            "2. Second\n\nb\n\n2.1. In it\n\nc\n");
  EXPECT_THAT(document.warnings, ElementsAre(HasSubstr("search.html")));
}

TEST_F(FolderTest, NothingIsReadFromElsewhere) {
  std::ofstream(folder_.parent_path() / "secret.html") << "secret";
  std::filesystem::create_symlink("../secret.html", folder_ / "link.html");
  Write("index.html",
        "x<a href='../secret.html'></a><a href='%2e%2e/secret.html'></a>"
        "<a href='link.html'></a><a href='/etc/passwd'></a>"
        "<a href='a/../../secret.html'></a>");
  EXPECT_EQ(Good(Read()).text, "x\n");
}

TEST_F(FolderTest, PagesThatAreNotThereAreSaid) {
  Write("index.html",
        "<ul><li><a href=a.html>A</a><li><a href=b.html#x>B</a></ul>"
        "<a href=c.html>c</a>");
  Write("a.html", "<h1>A</h1>");
  EXPECT_THAT(Good(Read()).warnings,
              ElementsAre("1 pages that the index lists are not there: "
                          "b.html"));
}

TEST_F(FolderTest, AnIndexOfALanguage) {
  Write("index.de.html", "<h1>Buch</h1>");
  EXPECT_EQ(Good(Read()).title, "Buch");
}

TEST_F(FolderTest, WithoutAnIndexItIsAnError) {
  Write("a.html", "x");
  EXPECT_EQ(CodeOf(Read()), "not_a_regular_file");
  // A pipe is no index, and opening it does not block.
  ASSERT_EQ(mkfifo((folder_ / "index.html").c_str(), 0600), 0);
  EXPECT_EQ(CodeOf(Read()), "not_a_regular_file");
}

TEST_F(FolderTest, AWrongPageIsAnError) {
  Write("index.html", "<a href='a.html'>a</a>");
  Write("a.html", std::string("a\0b", 3));
  EXPECT_EQ(CodeOf(Read()), "not_text");
}

TEST_F(FolderTest, AllPagesTogetherHaveALimit) {
  Write("index.html",
        "<a href='a.html'></a><a href='b.html'></a>"
        "<a href='c.html'></a>");
  for (const char* name : {"a.html", "b.html", "c.html"}) {
    Write(name, std::string(kMaxHtmlBytes, ' '));
  }
  EXPECT_EQ(CodeOf(Read()), "document_too_large");
}

}  // namespace
}  // namespace tiercel::document

#include "lib/documents/document.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/documents/document_for_test.h"
#include "lib/documents/encoding.h"
#include "lib/documents/epub_for_test.h"

namespace tiercel::document {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class DocumentTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "document_test.XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string Path(const std::string& name) const {
    return (folder_ / name).string();
  }
  Result Read(const std::string& name, const std::string& bytes) const {
    std::ofstream(Path(name), std::ios::binary) << bytes;
    return ReadDocument(Path(name));
  }

  std::filesystem::path folder_;
};

TEST_F(DocumentTest, PlainTextIsReadAsItIs) {
  const Document document = Good(Read("a.txt", "One\r\ntwo\n\n<b>é\n"));
  EXPECT_EQ(document.text, "One\ntwo\n\n<b>é\n");
  EXPECT_EQ(document.title, "");
  EXPECT_THAT(document.warnings, IsEmpty());
}

TEST_F(DocumentTest, AnEmptyFileIsAnEmptyText) {
  for (const char* name : {"a.txt", "a.epub", "a.pdf"}) {
    EXPECT_EQ(Good(Read(name, "")).text, "") << name;
  }
}

TEST_F(DocumentTest, ByteOrderMarksAreHonouredAndDropped) {
  EXPECT_EQ(Good(Read("a", "\xEF\xBB\xBFx")).text, "x");
  EXPECT_EQ(Good(Read("b", std::string("\xFF\xFEh\0i\0", 6))).text, "hi");
  EXPECT_EQ(Good(Read("c", std::string("\xFE\xFF\0h\0i", 6))).text, "hi");
  EXPECT_EQ(Good(Read("d", std::string("\xFF\xFE\0\0h\0\0\0", 8))).text, "h");
}

TEST_F(DocumentTest, OtherBytesAreWindows1252WithAWarning) {
  const Document document = Good(Read("a.txt", "caf\xE9"));
  EXPECT_EQ(document.text, "café");
  EXPECT_THAT(document.warnings, ElementsAre(HasSubstr("WINDOWS-1252")));
}

TEST_F(DocumentTest, ControlCharactersBecomeSpacesWithAWarning) {
  const Document document = Good(Read("a.txt",
                                      "a\x01"
                                      "b\x7F\x1B\tc\fd\n"));
  EXPECT_EQ(document.text, "a b  \tc\fd\n");
  EXPECT_THAT(document.warnings,
              ElementsAre(HasSubstr("3 control characters")));
  EXPECT_EQ(Good(Read("a.html", "<title>x&#27;[2J</title>a&#1;b")).text,
            "a b\n");
  EXPECT_EQ(Good(Read("a.html", "<title>x&#27;[2J</title>a")).title, "x [2J");
}

TEST_F(DocumentTest, NumbersThatAreNoCharactersStayOutOfTheText) {
  const Document document =
      Good(Read("a.html", "<title>&#13;t</title>a&#x8056eeeeeeee;b&#13;c"));
  EXPECT_TRUE(IsUtf8(document.text)) << document.text;
  EXPECT_EQ(document.text.find('\r'), std::string::npos);
  EXPECT_EQ(document.title.find('\r'), std::string::npos);
  EXPECT_EQ(document.text.front(), 'a');
}

// Returns `text` in UTF-16, without a mark.
std::string InUtf16(std::u16string_view text, bool is_big_endian) {
  std::string bytes;
  for (const char16_t unit : text) {
    const char low = static_cast<char>(unit & 0xFF);
    const char high = static_cast<char>(unit >> 8);
    bytes += is_big_endian ? std::string{high, low} : std::string{low, high};
  }
  return bytes;
}

TEST_F(DocumentTest, Utf16NeedsNoMark) {
  for (const bool is_big_endian : {false, true}) {
    for (const std::u16string_view text :
         {std::u16string_view(u"Chapter 1\n\nThe mill stood still.\n"),
          std::u16string_view(
              u"河水慢慢地流过旧磨坊，桥上没有人说得出来。\n")}) {
      const Document document =
          Good(Read("a.txt", InUtf16(text, is_big_endian)));
      EXPECT_EQ(document.text.find('\0'), std::string::npos);
      EXPECT_THAT(document.text,
                  AnyOf(HasSubstr("The mill"), HasSubstr("旧磨坊")));
      EXPECT_THAT(document.warnings, ElementsAre(HasSubstr("UTF-16")));
    }
  }
  std::string text(100, 'a');
  text[33] = '\0';
  EXPECT_EQ(CodeOf(Read("a.txt", text)), "not_text");
  text[34] = '\0';
  EXPECT_EQ(CodeOf(Read("a.txt", text)), "not_text");
}

TEST_F(DocumentTest, ForeignFormatsAreNamed) {
  const std::string zeros(80, '\0');
  const std::pair<std::string, const char*> kFiles[] = {
      {"\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1" + zeros, "Microsoft Office"},
      {zeros.substr(0, 60) + "BOOKMOBI", "MOBI"},
      {"AT&TFORM" + zeros, "DjVu"},
      {"%!PS-Adobe-3.0\n", "PostScript"},
      {"BZh9", "bzip2"},
      {"\x89PNG\r\n\x1A\n", "PNG"},
      {ZipOf({{"[Content_Types].xml", "x"}, {"word/document.xml", "x"}}),
       "DOCX"},
      {ZipOf({{"content.xml", "x"}, {"META-INF/manifest.xml", "x"}}), "ODT"},
      {ZipOf({{"a.fb2", "x"}, {"b.fb2", "x"}}), "2 books"}};
  for (const auto& [bytes, format] : kFiles) {
    const Result result = Read("book", bytes);
    ASSERT_EQ(CodeOf(result), "unsupported_document") << format;
    EXPECT_THAT(std::get<Error>(result).message, HasSubstr(format));
  }
}

const char kFb2[] =
    "<?xml version='1.0'?><FictionBook xmlns='x' xmlns:l='y'><description>"
    "<title-info><author><first-name>Анна</first-name><last-name>Б</last-name>"
    "</author><book-title>Река</book-title><lang>ru</lang></title-info>"
    "</description><body><title><p>Анна Б</p><p>Река</p></title><section>"
    "<title><p>Часть 1</p></title><section><title><p>Глава 1</p><p>Утро</p>"
    "</title><p>Текст<a l:href='#n1' type='note'>1</a>, "
    "x<sup>2</sup>, y<sup><a l:href='#n1'>1</a></sup>.</p><empty-line/>"
    "<poem><stanza><v>Строка</v><v>Другая &amp; она</v></stanza></poem>"
    "</section></section></body><body name='notes'><section id='n1'><title>"
    "<p>1</p></title><p>Примечание</p></section></body>"
    "<binary id='i'>QUJD</binary></FictionBook>";

TEST_F(DocumentTest, FormsOfXmlThatAreNotReadAreNamed) {
  const std::pair<std::string, const char*> kFiles[] = {
      {"<?xml version='1.0'?><o:document xmlns:o='urn:oasis:names:tc:"
       "opendocument:xmlns:office:1.0'><o:body>x",
       "FODT"},
      {"<w:wordDocument xmlns:w='x'><w:p>x</w:p></w:wordDocument>", "Word"},
      {"<?xml version='1.0'?><!DOCTYPE book PUBLIC '-//OASIS//DTD DocBook XML "
       "V4.5//EN' 'x.dtd'><book><title>x",
       "DocBook"},
      {"\xEF\xBB\xBF<TEI xmlns='http://www.tei-c.org/ns/1.0'><text>x", "TEI"}};
  for (const auto& [bytes, format] : kFiles) {
    const Result result = Read("book.xml", bytes);
    ASSERT_EQ(CodeOf(result), "unsupported_document") << format;
    EXPECT_THAT(std::get<Error>(result).message, HasSubstr(format));
  }
  for (const std::string other :
       {"<book><title>x</title></book>\n", "TEI <TEI>\n"}) {
    EXPECT_EQ(Good(Read("a.xml", other)).text, other);
  }
  std::string prefixed = kFb2;
  prefixed.replace(prefixed.find("<FictionBook xmlns="), 19,
                   "<fb:FictionBook xmlns:fb=");
  prefixed.insert(prefixed.find("</FictionBook") + 2, "fb:");
  EXPECT_EQ(Good(Read("a", prefixed)).title, "Река");
}

TEST_F(DocumentTest, PiecesOfPagesAreHtml) {
  EXPECT_EQ(Good(Read("a.txt", "<h1>A</h1><p>One.\nTwo.</p>\n")).text,
            "A\n\nOne. Two.\n");
  EXPECT_EQ(Good(Read("a.txt", "<p>One.</p>\n\n<p>Two.</p>\n")).text,
            "One.\n\nTwo.\n");
  for (const std::string text :
       {"<p align=center>Logo</p>\n\n# Title\n\nOne <b>two</b>\n",
        "<div>x</div>\n\nOne\n\nTwo\n\n<br>\n", "<one> and <two>\n"}) {
    EXPECT_EQ(Good(Read("a.txt", text)).text, text);
  }
}

TEST_F(DocumentTest, Fb2IsReadAlsoFromAnArchive) {
  for (const std::string& bytes :
       {std::string(kFb2), ZipOf({{"kniga.fb2", kFb2}})}) {
    const Document document = Good(Read("book", bytes));
    EXPECT_EQ(document.title + "|" + document.author + "|" + document.language,
              "Река|Анна Б|ru");
    EXPECT_THAT(
        document.text,
        HasSubstr("Глава 1 Утро\n\nТекст[1], x2, y[1].\n\nСтрока\n\nДругая & "
                  "она\n"));
    EXPECT_EQ(document.text.find("QUJD"), std::string::npos);
    ASSERT_GE(document.sections.size(), 2u);
    EXPECT_EQ(document.sections[0].label, "Часть 1");
    EXPECT_EQ(document.sections[1].level, 2);
    EXPECT_EQ(document.sections[1].title, "Утро");
  }
  // A later body without a name is text, and the title of a poem no heading.
  std::string later = kFb2;
  later.insert(later.find("<poem>") + 6, "<title><p>Стих</p></title>");
  later.insert(later.find("<body name"),
               "<body><title><p>Книга 2</p></title><section><title><p>Глава 2"
               "</p></title><p>Ещё.</p></section></body>");
  std::string titles;
  for (const Section& section : Good(Read("book", later)).sections) {
    titles += section.label + section.title + "|";
  }
  EXPECT_EQ(titles, "Часть 1|Глава 1Утро|Книга 2|Глава 2|");
  std::string bare = kFb2;
  bare.replace(bare.find("Утро"), std::string("Утро").size(),
               "A & B &co &amp; C&D");
  EXPECT_EQ(Good(Read("book", bare)).sections[1].title, "A & B &co & C&D");
  EXPECT_EQ(CodeOf(Read("book", "<FictionBook><description/></FictionBook>")),
            "invalid_fb2");
}

TEST_F(DocumentTest, BinaryFilesAreRefused) {
  EXPECT_EQ(CodeOf(Read("a.txt", std::string("ab\0c", 4))), "not_text");
  std::string noise;
  for (int i = 1; i < 256; ++i) noise.push_back(static_cast<char>(i));
  EXPECT_EQ(CodeOf(Read("b.txt", noise)), "not_text");
  // A text may have one odd byte in a hundred.
  const std::string text = std::string(197, 'a') + "\xE9";
  EXPECT_EQ(CodeOf(Read("c.txt", text + "\x01\x02")), "no error");
  EXPECT_EQ(CodeOf(Read("c.txt", text + "\x01\x02\x03")), "not_text");
}

TEST_F(DocumentTest, FormatsAreToldByBytesAndByExtension) {
  EXPECT_EQ(CodeOf(Read("a.pdf", "x")), "invalid_pdf");
  EXPECT_EQ(CodeOf(Read("a.EPUB", "x")), "invalid_epub");
  EXPECT_EQ(CodeOf(Read("a", "%PDF-1.7\n%\xE2\xE3")), "invalid_pdf");
  for (const char* before :
       {"\xEF\xBB\xBF", "HTTP/1.1 200 OK\r\n\r\n", "\x01", " \n"}) {
    EXPECT_EQ(CodeOf(Read("a", before + std::string("%PDF-1.7\n%%EOF\n"))),
              "invalid_pdf");
  }
  EXPECT_EQ(CodeOf(Read("a", " \n%PDF-1.7\n")), "invalid_pdf");
  const std::string of_pdf = "Such files begin with %PDF-1.7.\n";
  for (const std::string& text :
       {of_pdf, std::string("Their mark:\n\n%PDF-1.4\n"),
        std::string("“%PDF-1.7” is the mark.\n")}) {
    EXPECT_EQ(Good(Read("a.txt", text)).text, text);
  }
  EXPECT_EQ(Good(Read("a.html", "<p>" + of_pdf)).text, of_pdf);
  EXPECT_EQ(CodeOf(Read("b", "PK\x03\x04")), "invalid_epub");
  const std::string archive = ZipOf({{"a", "b"}});
  EXPECT_EQ(CodeOf(Read("b", archive)), "unsupported_document");
  EXPECT_EQ(CodeOf(Read("b", "HTTP/1.1 200 OK\r\n\r\n" + archive)),
            "unsupported_document");
  for (const char* mark : {"PK\x03\x04", "PK\x05\x06"}) {
    EXPECT_EQ(Good(Read("b.txt", "A mark: " + std::string(mark))).text,
              "A mark: PK  ");
  }
  EXPECT_EQ(CodeOf(Read("c.txt", "\x1F\x8B\x08....")), "invalid_archive");
}

TEST_F(DocumentTest, HtmlByExtensionOrByItsFirstBytes) {
  EXPECT_EQ(Good(Read("a.html", "a <b>b</b>")).text, "a b\n");
  EXPECT_EQ(Good(Read("a.HTM", "a <b>b</b>")).text, "a b\n");
  EXPECT_EQ(Good(Read("a.xhtml", "a <b>b</b>")).text, "a b\n");
  EXPECT_EQ(Good(Read("a", " \n<!DOCTYPE html><p>x")).text, "x\n");
  EXPECT_EQ(Good(Read("b", "<?xml version='1.0'?>\n<html><p>x</html>")).text,
            "x\n");
  EXPECT_EQ(Good(Read("c", "<!-- saved --><HTML><p>x")).text, "x\n");
  EXPECT_EQ(Good(Read("d", "<html lang=en><p>x")).text, "x\n");
  EXPECT_EQ(
      Good(Read("e", "<!doctype html [<!ENTITY a SYSTEM 'b'>]><p>x")).text,
      "x\n");
  for (const char* text : {"a <b>b</b>", "<!-- a <b>b</b> -->x", "<?xml?><a/>",
                           "see <html>", "<htm>"}) {
    EXPECT_EQ(Good(Read("a.txt", text)).text, text);
  }
}

TEST_F(DocumentTest, HtmlInItsDeclaredCharset) {
  const Document document =
      Good(Read("a.html", "<meta charset=iso-8859-1><p>caf\xE9 \x96"));
  EXPECT_EQ(document.text, "café –\n");
  EXPECT_THAT(document.warnings, IsEmpty());
  EXPECT_EQ(Good(Read("b.html", "<meta charset=koi8-r><p>\xC1")).text, "а\n");
  // Bytes that are UTF-8 are read as UTF-8, whatever the page declares.
  EXPECT_EQ(Good(Read("b.html", "<meta charset=koi8-r><p>é")).text, "é\n");
  EXPECT_THAT(Good(Read("b.html", "<meta charset=no-such><p>\xE9")).warnings,
              ElementsAre(HasSubstr("no-such"), HasSubstr("WINDOWS-1252")));
}

TEST_F(DocumentTest, APageWithoutTextWarns) {
  const Document document = Good(Read("a.html", "<script>x</script>"));
  EXPECT_EQ(document.text, "");
  EXPECT_THAT(document.warnings, ElementsAre("no readable text"));
}

TEST_F(DocumentTest, ANameThatLooksLikeAnOptionIsAFile) {
  std::ofstream(Path("-rf")) << "x";
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(folder_);
  EXPECT_EQ(Good(ReadDocument("-rf")).text, "x");
  std::filesystem::current_path(before);
}

TEST_F(DocumentTest, WhatIsNoRegularFileIsRefusedWithoutBlocking) {
  EXPECT_EQ(CodeOf(ReadDocument(folder_.string())), "not_a_regular_file");
  ASSERT_EQ(mkfifo(Path("fifo").c_str(), 0600), 0);
  EXPECT_EQ(CodeOf(ReadDocument(Path("fifo"))), "not_a_regular_file");
  EXPECT_EQ(CodeOf(ReadDocument("/dev/zero")), "not_a_regular_file");
}

TEST_F(DocumentTest, AMissingFileIsAnIoError) {
  const Result result = ReadDocument(Path("none"));
  EXPECT_EQ(CodeOf(result), "file_not_found");
  EXPECT_EQ(std::get<Error>(result).kind, Error::Kind::kIo);
  EXPECT_THAT(std::get<Error>(result).message, HasSubstr("none"));
}

TEST_F(DocumentTest, AFileBeyondTheLimitIsRefusedBeforeItIsRead) {
  const int file = open(Path("big").c_str(), O_CREAT | O_WRONLY, 0600);
  ASSERT_GE(file, 0);
  ASSERT_EQ(ftruncate(file, static_cast<off_t>(kMaxFileBytes) + 1), 0);
  close(file);
  EXPECT_EQ(CodeOf(ReadDocument(Path("big"))), "document_too_large");
}

TEST_F(DocumentTest, AnHtmlPageHasALimitOfItsOwn) {
  std::string page(kMaxHtmlBytes, ' ');
  page.replace(0, 8, "<html>x ");
  EXPECT_EQ(Good(ReadDocumentBytes("page", page)).text, "x\n");
  EXPECT_EQ(CodeOf(ReadDocumentBytes("page", page + " ")),
            "document_too_large");
}

TEST_F(DocumentTest, AnUnsizedFileIsReadToItsEnd) {
  // Files in /proc report a size of 0.
  EXPECT_THAT(Good(ReadDocument("/proc/self/status")).text, HasSubstr("Name:"));
}

}  // namespace
}  // namespace tiercel::document

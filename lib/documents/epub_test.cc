#include "lib/documents/epub.h"

#include <malloc.h>
#include <zip.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <variant>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/documents/document.h"
#include "lib/documents/document_for_test.h"
#include "lib/documents/epub_for_test.h"
#include "lib/documents/zip_archive.h"

namespace tiercel::document {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using Files = std::map<std::string, std::string>;

const char kContainer[] =
    "<container><rootfiles><rootfile full-path='OPS/book.opf'/></rootfiles>"
    "</container>";

std::string Opf(const std::string& metadata, const std::string& manifest,
                const std::string& spine) {
  return "<?xml version='1.0'?><opf:package xmlns:opf='x'><opf:metadata>" +
         metadata + "</opf:metadata><opf:manifest>" + manifest +
         "</opf:manifest><opf:spine toc='ncx'>" + spine +
         "</opf:spine></opf:package>";
}

Files TwoChapters() {
  return {
      {"mimetype", "application/epub+zip"},
      {"META-INF/container.xml", kContainer},
      {"OPS/book.opf",
       Opf("<dc:title>Das  Buch</dc:title><dc:creator>A</dc:creator>"
           "<dc:creator>B</dc:creator><dc:language>de</dc:language>",
           "<item id='n' href='nav.xhtml' properties='nav'/>"
           "<item id='ncx' href='toc.ncx' "
           "media-type='application/x-dtbncx+xml'/>"
           "<item id='notes' href='notes.xhtml'/>"
           "<item id='one' href='text/one%201.xhtml'/>"
           "<item id='two' href='text/two.xhtml'/>",
           "<itemref idref='notes' linear='no'/><itemref idref='one'/>"
           "<itemref idref='two'/>")},
      {"OPS/text/one 1.xhtml",
       "<?xml version='1.0'?><html><head><title/></head><body><h1>1. Eins</h1>"
       "<p>größer</p><h2 id='s'>Mehr</h2><a id='p2' "
       "epub:type='pagebreak' title='2'/>text</body></html>"},
      {"OPS/text/two.xhtml", "<h1>2. Zwei</h1><p>Ende</p>"},
      {"OPS/notes.xhtml", "<p>Noten</p>"},
      {"OPS/nav.xhtml",
       "<html><body><nav epub:type='landmarks'><ol><li><a href='x'>no</a></li>"
       "</ol></nav><nav epub:type='toc'><ol><li><a href='text/one%201.xhtml'>"
       "Eins</a><ol><li><a href='text/one%201.xhtml#s'>Mehr</a></li></ol></li>"
       "<li><span>Teil II</span><ol><li><a href='text/two.xhtml'>Zwei</a></li>"
       "</ol></li></ol></nav></body></html>"},
      {"OPS/toc.ncx",
       "<ncx><navMap><navPoint><navLabel><text>One</text></navLabel>"
       "<content src='text/one%201.xhtml'/><navPoint><navLabel><text>One"
       "</text></navLabel><content src='text/one%201.xhtml'/></navPoint>"
       "</navPoint><navPoint><navLabel><text>Two</text></navLabel>"
       "<content src='text/two.xhtml'/></navPoint></navMap></ncx>"}};
}

Result Read(const Files& files) {
  return ReadDocumentBytes("book", ZipOf(files));
}

std::string ToString(const Document& document) {
  std::string lines;
  for (const Section& s : document.sections) {
    lines += std::to_string(s.level) + " " + s.label + "|" + s.title + "|" +
             document.text.substr(s.begin,
                                  document.text.find('\n', s.begin) - s.begin) +
             "|" + s.anchor + "\n";
  }
  return lines;
}

TEST(EpubTest, TextSectionsAndPages) {
  const Document document = Good(Read(TwoChapters()));
  EXPECT_EQ(document.title, "Das Buch");
  EXPECT_EQ(document.author, "A, B");
  EXPECT_EQ(document.language, "de");
  EXPECT_EQ(document.text,
            "1. Eins\n\ngrößer\n\nMehr\n\ntext\n\n2. Zwei\n\nEnde\n\nNoten\n");
  EXPECT_EQ(ToString(document),
            "1 1|Eins|1. Eins|OPS/text/one 1.xhtml\n"
            "2 |Mehr|Mehr|OPS/text/one 1.xhtml#s\n"
            "1 Teil II||2. Zwei|OPS/text/two.xhtml\n"
            "2 2|Zwei|2. Zwei|OPS/text/two.xhtml\n");
  ASSERT_EQ(document.pages.size(), 1u);
  EXPECT_EQ(document.pages[0].number, "2");
  EXPECT_EQ(document.text.substr(document.pages[0].begin, 4), "text");
  EXPECT_THAT(document.warnings, IsEmpty());
}

TEST(EpubTest, EntriesOfTheNavigationAreReadAsTheyAreShown) {
  const std::pair<const char*, const char*> kEntries[] = {
      {"Chapter 1<br/>The Mill", "Chapter 1|The Mill"},
      {"<span>Chapter 1</span><span>The Mill</span>", "Chapter 1|The Mill"},
      {"<span>1.1</span>THE MILL", "1.1|THE MILL"},
      {"<p>The Mill</p>and Road", "|The Mill and Road"},
      {"<b>C</b>HAPTER I<i>I</i>", "CHAPTER II|"},
      {"CHAPTER I<i>THE MILL</i>", "CHAPTER I|THE MILL"},
      {"<b>T</b>he H<sub>2</sub>O <b>I</b>t", "|The H2O It"},
      {"<img src='x' alt='Morning'/>", "|Morning"},
      {"<ruby>水<rt>みず</rt></ruby>", "|水"}};
  for (const auto& [entry, expected] : kEntries) {
    Files files = TwoChapters();
    std::string& nav = files["OPS/nav.xhtml"];
    nav.replace(nav.find("Mehr</a>"), 4, entry);
    const Section section = Good(Read(files)).sections[1];
    EXPECT_EQ(section.label + "|" + section.title, expected);
  }
}

TEST(EpubTest, ThePackageIsThatOfAnEpub) {
  Files files = TwoChapters();
  std::string& container = files["META-INF/container.xml"];
  container.insert(
      container.find("<rootfile "),
      "<rootfile full-path='x.pdf' media-type='application/pdf'/>");
  EXPECT_EQ(Good(Read(files)).title, "Das Buch");
}

TEST(EpubTest, WithoutNavigationTheNcxThenTheHeadings) {
  Files files = TwoChapters();
  files.erase("OPS/nav.xhtml");
  EXPECT_EQ(ToString(Good(Read(files))),
            "1 |One|1. Eins|OPS/text/one 1.xhtml\n"
            "1 |Two|2. Zwei|OPS/text/two.xhtml\n");
  files.erase("OPS/toc.ncx");
  EXPECT_EQ(ToString(Good(Read(files))),
            "1 1|Eins|1. Eins|OPS/text/one 1.xhtml\n"
            "2 |Mehr|Mehr|OPS/text/one 1.xhtml#s\n"
            "1 2|Zwei|2. Zwei|OPS/text/two.xhtml\n");
}

TEST(EpubTest, NamesInUpperAndLowerCaseAreOne) {
  Files files = TwoChapters();
  files["OPS/TEXT/Two.xhtml"] = files["OPS/text/two.xhtml"];
  files.erase("OPS/text/two.xhtml");
  EXPECT_THAT(Good(Read(files)).text, HasSubstr("2. Zwei"));
}

TEST(EpubTest, WhatIsLostIsSaid) {
  Files files = TwoChapters();
  files.erase("OPS/text/two.xhtml");
  EXPECT_THAT(Good(Read(files)).warnings,
              ElementsAre(HasSubstr("1 pages"), HasSubstr("2 entries")));
  files.erase("OPS/text/one 1.xhtml");
  files.erase("OPS/notes.xhtml");
  EXPECT_EQ(CodeOf(Read(files)), "invalid_epub");
}

TEST(EpubTest, PagesThatAreNotTextAreLeftOutAndSaid) {
  Files files = TwoChapters();
  const std::string picture("\x89PNG\0\0\0\rIHDR", 12);
  files["OPS/notes.xhtml"] = picture;
  const Document document = Good(Read(files));
  EXPECT_EQ(document.text.substr(document.text.size() - 11), "Zwei\n\nEnde\n");
  EXPECT_THAT(document.warnings,
              ElementsAre(AllOf(HasSubstr("1 pages"), HasSubstr("notes"))));
  // The encrypted text, not declared so, is less than half of the book.
  files["OPS/text/two.xhtml"] = picture;
  EXPECT_EQ(CodeOf(Read(files)), "not_text");
}

TEST(EpubTest, WhatIsListedTwiceIsOneSection) {
  Files files = TwoChapters();
  std::string& nav = files["OPS/nav.xhtml"];
  nav.insert(nav.find("</ol></nav></body>"),
             "<li><a href='text/one%201.xhtml'>Eins</a></li>");
  const Document document = Good(Read(files));
  ASSERT_EQ(document.sections.size(), 4u) << ToString(document);
  EXPECT_EQ(document.sections[1].title, "Mehr");
}

TEST(EpubTest, GutenbergsFrameIsNoChapter) {
  Files files = TwoChapters();
  files["OPS/text/two.xhtml"] =
      "<section id='pg-header'><h2 id='pg'>The Project</h2></section>"
      "<h1>2. Zwei</h1>";
  std::string& nav = files["OPS/nav.xhtml"];
  nav.insert(nav.find("<li><span>Teil"),
             "<li><a href='text/two.xhtml#pg'>The Project</a></li>");
  const Document document = Good(Read(files));
  EXPECT_EQ(document.sections.size(), 4u);
  EXPECT_THAT(document.warnings,
              ElementsAre(HasSubstr("Gutenberg"), HasSubstr("1 entries")));
}

TEST(EpubTest, ATableOfContentsIsNoChapter) {
  Files files = TwoChapters();
  std::string& opf = files["OPS/book.opf"];
  opf.insert(opf.find("<item id='one'"), "<item id='c' href='c.xhtml'/>");
  opf.insert(opf.find("<itemref idref='one'"), "<itemref idref='c'/>");
  files["OPS/c.xhtml"] =
      "<h1>What is in it</h1><a href='text/one%201.xhtml'>1</a>"
      "<a href='text/two.xhtml#x'>2</a><a href='notes.xhtml'>notes</a>";
  std::string& nav = files["OPS/nav.xhtml"];
  nav.insert(nav.find("<li><a href='text/one"),
             "<li><a href='c.xhtml'>What is in it</a></li>");
  EXPECT_EQ(Good(Read(files)).sections[0].title, "Eins");
}

// A page in a format that readers need not know names another in its stead.
TEST(EpubTest, TheFallbackOfAPageIsRead) {
  Files files = TwoChapters();
  std::string& opf = files["OPS/book.opf"];
  const std::string item = "<item id='two' href='text/two.xhtml'/>";
  opf.replace(
      opf.find(item), item.size(),
      "<item id='two' href='a.png' media-type='image/png' fallback='x'/>"
      "<item id='x' href='a.pdf' media-type='a/b' fallback='y'/>"
      "<item id='y' href='text/two.xhtml' "
      "media-type='application/xhtml+xml'/>");
  EXPECT_EQ(Good(Read(files)).text, Good(Read(TwoChapters())).text);
}

TEST(EpubTest, AnIndexAtTheEndIsLeftOutAndSaid) {
  Files files = TwoChapters();
  files["OPS/notes.xhtml"] = "<h1>Index</h1><h2>W</h2><p>whale, 7</p>";
  const Document document = Good(Read(files));
  EXPECT_EQ(document.text.substr(document.text.size() - 11), "Zwei\n\nEnde\n");
  EXPECT_THAT(document.warnings, ElementsAre(HasSubstr("Index")));
}

TEST(EpubTest, DamagedBooks) {
  EXPECT_EQ(CodeOf(Read({{"a", "b"}})), "unsupported_document");
  for (const char* file : {"META-INF/container.xml", "OPS/book.opf"}) {
    Files files = TwoChapters();
    files[file] = "<";
    EXPECT_EQ(CodeOf(Read(files)), "invalid_epub") << file;
  }
  std::string bytes = ZipOf(TwoChapters());
  EXPECT_EQ(CodeOf(ReadDocumentBytes("b", bytes.substr(0, bytes.size() / 2))),
            "invalid_epub");
  // Changing a byte of packed text makes its checksum wrong.
  const size_t page = bytes.find("OPS/text/two.xhtml");
  bytes[page + 20] ^= 1;
  EXPECT_EQ(CodeOf(ReadDocumentBytes("b", bytes)), "invalid_epub");
}

TEST(EpubTest, EncryptedBooks) {
  EXPECT_EQ(CodeOf(ReadDocumentBytes("b", ZipOf(TwoChapters(), "secret"))),
            "encrypted_document");
  const std::string fonts =
      "<encryption><enc:EncryptedData><enc:EncryptionMethod "
      "Algorithm='http://www.idpf.org/2008/embedding'/><CipherData>"
      "<CipherReference URI='OPS/text/two.xhtml'/></CipherData>"
      "</enc:EncryptedData>";
  const auto encrypted = [&](const std::string& path) {
    return fonts +
           "<EncryptedData><EncryptionMethod Algorithm='aes128-cbc'/>"
           "<CipherData><CipherReference URI='" +
           path + "'/></CipherData></EncryptedData></encryption>";
  };
  Files files = TwoChapters();
  files["META-INF/encryption.xml"] = fonts + "</encryption>";
  EXPECT_EQ(CodeOf(Read(files)), "no error");
  // Sounds may be encrypted; pages may not, however they are spelled.
  files["META-INF/encryption.xml"] = encrypted("OPS/audio/intro.mp3");
  EXPECT_EQ(CodeOf(Read(files)), "no error");
  for (const char* page : {"OPS/text/one%201.xhtml", "ops/Text/TWO.xhtml"}) {
    files["META-INF/encryption.xml"] = encrypted(page);
    EXPECT_EQ(CodeOf(Read(files)), "encrypted_document") << page;
  }
}

TEST(EpubTest, NamesAreReadAsTheirMakersMeantThem) {
  const std::string text = Good(Read(TwoChapters())).text;
  Files packed;  // with its folder, by a program that has '\\' in names
  for (const auto& [name, bytes] : TwoChapters()) {
    std::string other = "My Book/" + name;
    std::replace(other.begin() + 8, other.end(), '/', '\\');
    packed[other] = bytes;
  }
  EXPECT_EQ(Good(Read(packed)).text, text);
  Files files = TwoChapters();  // "é" as one character and as two
  files["OPS/text/caf\xC3\xA9.xhtml"] = "<p>x</p>";
  std::string& opf = files["OPS/book.opf"];
  opf.replace(opf.find("notes.xhtml"), 11, "/OPS/text/cafe\xCC\x81.xhtml");
  EXPECT_THAT(Good(Read(files)).text, HasSubstr("Ende\n\nx\n"));
  files["OPS/text/one%201.xhtml"] = files["OPS/text/one 1.xhtml"];
  files.erase("OPS/text/one 1.xhtml");
  EXPECT_THAT(Good(Read(files)).text, HasSubstr("Eins"));
}

TEST(EpubTest, AuthorsAreThoseWithTheRoleAndTheTitleIsTheMainOne) {
  Files files = TwoChapters();
  std::string& opf = files["OPS/book.opf"];
  const size_t begin = opf.find("<dc:title>");
  const size_t end = opf.find("<dc:language>");
  const auto with = [&](const std::string& metadata) {
    Files changed = files;
    changed["OPS/book.opf"] =
        std::string(opf).replace(begin, end - begin, metadata);
    const Document document = Good(Read(changed));
    return document.title + "|" + document.author;
  };
  EXPECT_EQ(
      with("<dc:title id='s'>Series</dc:title><dc:title id='t'>Real"
           "</dc:title><meta refines='#s' property='title-type'>"
           "collection</meta><meta refines='#t' property='title-type'>"
           "main</meta><dc:creator id='a'>Ann</dc:creator>"
           "<dc:creator>Bob</dc:creator><dc:creator id='i'>Ida</dc:creator>"
           "<meta refines='#a' property='role'>aut</meta>"
           "<meta refines='#i' property='role'>ill</meta>"),
      "Real|Ann");
  EXPECT_EQ(with("<dc:title>T</dc:title><dc:creator id='a'>Ann</dc:creator>"
                 "<dc:creator id='b'>Bob</dc:creator><dc:creator>Cy"
                 "</dc:creator><meta refines='#b' property='display-seq'>1"
                 "</meta><meta refines='#a' property='display-seq'>2</meta>"),
            "T|Bob, Ann, Cy");
  EXPECT_EQ(with("<dc:title>T</dc:title><dc:creator opf:role='bkp'>calibre"
                 "</dc:creator><dc:creator opf:role='edt'>Ed</dc:creator>"),
            "T|Ed");
  EXPECT_EQ(with("<dc-metadata><dc:Title>Old</dc:Title><dc:Creator "
                 "role='trl'>Tr</dc:Creator><dc:Creator role='aut'>Al"
                 "</dc:Creator></dc-metadata>"),
            "Old|Al");
}

TEST(EpubTest, EntitiesOfHtmlAreKnownInEveryTable) {
  Files files = TwoChapters();
  std::string& nav = files["OPS/nav.xhtml"];
  nav.replace(nav.find("Mehr"), 4, "Caf&eacute; &mdash; x&nbsp;&amp;");
  EXPECT_EQ(Good(Read(files)).sections[1].title, "Café — x &");
  files.erase("OPS/nav.xhtml");
  std::string& ncx = files["OPS/toc.ncx"];
  ncx.replace(ncx.find("Two"), 3, "&Uuml;ber");
  EXPECT_EQ(Good(Read(files)).sections[1].title, "Über");
}

// A book of eight chapters, whose navigation lists `listed`.
Files EightChapters(int listed, const std::string& heading) {
  std::string manifest =
      "<item id='n' href='nav.xhtml' properties='nav'/><item id='ncx' "
      "href='toc.ncx' media-type='application/x-dtbncx+xml'/>";
  std::string spine;
  std::string nav;
  std::string ncx;
  Files files = {{"META-INF/container.xml", kContainer}};
  for (int i = 1; i <= 8; ++i) {
    const std::string n = std::to_string(i);
    manifest += "<item id='c" + n + "' href='c" + n + ".xhtml'/>";
    spine += "<itemref idref='c" + n + "'/>";
    if (i <= listed) {
      nav += "<li><a href='c" + n + ".xhtml#gone'>Part " + n + "</a></li>";
    }
    ncx += "<navPoint><navLabel><text>Title " + n +
           "</text></navLabel>"
           "<content src='c" +
           n + ".xhtml'/></navPoint>";
    files["OPS/c" + n + ".xhtml"] = "<title>Chapter " + n + "</title>" +
                                    heading + "Chapter " + n + "</p><p>text " +
                                    n + "</p>";
  }
  files["OPS/book.opf"] = Opf("<dc:title>T</dc:title>", manifest, spine);
  files["OPS/nav.xhtml"] = "<html><body><nav epub:type='toc'><ol>" + nav +
                           "</ol></nav></body></html>";
  files["OPS/toc.ncx"] = "<ncx><navMap>" + ncx + "</navMap></ncx>";
  return files;
}

TEST(EpubTest, TheRicherTableIsTakenAndSaid) {
  const Document sparse = Good(Read(EightChapters(2, "<h1>")));
  EXPECT_EQ(sparse.sections.size(), 8u);
  EXPECT_EQ(sparse.sections[7].title, "Title 8");
  EXPECT_THAT(sparse.warnings, ElementsAre(HasSubstr("has 2 entries")));
  const Document full = Good(Read(EightChapters(6, "<h1>")));
  EXPECT_EQ(full.sections.size(), 6u);
  EXPECT_THAT(full.warnings, IsEmpty());
}

TEST(EpubTest, WithoutAnyTableTheHeadingsOrTheFirstLinesOfPages) {
  Files files = EightChapters(1, "<h1>");
  files.erase("OPS/toc.ncx");
  EXPECT_EQ(Good(Read(files)).sections.size(), 8u);
  files = EightChapters(0, "<p>");
  files.erase("OPS/toc.ncx");
  EXPECT_EQ(Good(Read(files)).sections.size(), 8u);
}

TEST(EpubTest, ATitlePageDoesNotHideChaptersInParagraphs) {
  const std::string prose = "<p>" + std::string(400, 'x') + "</p>";
  std::string items = "<item id='t' href='t.xhtml'/>";
  std::string spine = "<itemref idref='t'/>";
  Files files = {{"META-INF/container.xml", kContainer},
                 {"OPS/t.xhtml", "<h1>The Mill</h1><h2>A. Writer</h2>"}};
  for (const std::string number : {"1", "2", "3", "4"}) {
    items += "<item id='c" + number + "' href='" + number + ".xhtml'/>";
    spine += "<itemref idref='c" + number + "'/>";
    files["OPS/" + number + ".xhtml"] = "<p>Chapter " + number + "</p>" + prose;
  }
  files["OPS/book.opf"] = Opf("<dc:title>The Mill</dc:title>", items, spine);
  const std::string outline = ToString(Good(Read(files)));
  EXPECT_EQ(outline.substr(0, 34), "1 Chapter 1||Chapter 1|OPS/1.xhtml");
  EXPECT_EQ(std::count(outline.begin(), outline.end(), '\n'), 4);
  // Neither does a table of contents that lists the title page alone, nor one
  // page that has all.
  files["OPS/toc.ncx"] =
      "<ncx><navMap><navPoint><navLabel><text>Title</text></navLabel>"
      "<content src='t.xhtml'/></navPoint></navMap></ncx>";
  std::string& all = files["OPS/1.xhtml"];
  for (const char* number : {"2", "3", "4"}) {
    all += files["OPS/" + std::string(number) + ".xhtml"];
  }
  files["OPS/book.opf"] = Opf(
      "<dc:title>The Mill</dc:title>",
      "<item id='t' href='t.xhtml'/><item id='c1' href='1.xhtml'/>"
      "<item id='ncx' href='toc.ncx' media-type='application/x-dtbncx+xml'/>",
      "<itemref idref='t'/><itemref idref='c1'/>");
  EXPECT_EQ(ToString(Good(Read(files))),
            "1 Chapter 1||Chapter 1|\n1 Chapter 2||Chapter 2|\n"
            "1 Chapter 3||Chapter 3|\n1 Chapter 4||Chapter 4|\n");
}

TEST(EpubTest, AFragmentThatIsGoneIsItsHeading) {
  Files files = TwoChapters();
  files["OPS/text/two.xhtml"] =
      "<h1>Zwei</h1><p>a</p><h1>Drei</h1><p>b</p><h1>Vier</h1><p>c</p>";
  files["OPS/nav.xhtml"] =
      "<nav epub:type='toc'><ol><li><a href='text/two.xhtml#x'>Zwei</a></li>"
      "<li><a href='text/two.xhtml#y'>3. Drei</a></li>"
      "<li><a href='text/two.xhtml#z'>Vier</a></li></ol></nav>";
  const Document document = Good(Read(files));
  std::string lines;
  for (const Section& s : document.sections) {
    lines += document.text.substr(s.begin, 4) + " ";
  }
  EXPECT_EQ(lines, "Zwei Drei Vier ");
}

// A large file is not read but for its text.
TEST(EpubTest, ABookOfPicturesMayBeLarge) {
  const std::string path = ::testing::TempDir() + "/large.epub";
  {
    std::ofstream file(path, std::ios::binary);
    file << ZipOf(TwoChapters());
  }
  int error = 0;
  zip_t* const archive = zip_open(path.c_str(), 0, &error);
  ASSERT_NE(archive, nullptr);
  const std::string picture(kMaxFileBytes, 'x');
  zip_source_t* const source =
      zip_source_buffer(archive, picture.data(), picture.size(), 0);
  const zip_int64_t index =
      zip_file_add(archive, "OPS/picture.jpeg", source, ZIP_FL_ENC_UTF_8);
  ASSERT_GE(index, 0);
  zip_set_file_compression(archive, static_cast<zip_uint64_t>(index),
                           ZIP_CM_STORE, 0);
  ASSERT_EQ(zip_close(archive), 0);
  EXPECT_EQ(Good(ReadDocument(path)).text, Good(Read(TwoChapters())).text);
  std::remove(path.c_str());
}

TEST(EpubTest, HostileNames) {
  for (const char* name : {"../x", "//etc/x", "a/../../x", "..\\x", "c:x"}) {
    Files files = TwoChapters();
    files[name] = "x";
    EXPECT_EQ(CodeOf(Read(files)), "hostile_name") << name;
  }
  Files files = TwoChapters();
  std::string& opf = files["OPS/book.opf"];
  opf.replace(opf.find("text/two.xhtml"), 14, "../../../../x");
  EXPECT_EQ(CodeOf(Read(files)), "hostile_name");
}

TEST(EpubTest, BombsAreNotUnpacked) {
  Files files = TwoChapters();
  files["OPS/text/two.xhtml"] = std::string(kMinZipBombBytes + 1, 'x');
  EXPECT_EQ(CodeOf(Read(files)), "zip_bomb");
  files["OPS/text/two.xhtml"].pop_back();
  EXPECT_EQ(CodeOf(Read(files)), "no error");
  // A file that is no page is not checked.
  files["OPS/picture.png"] = std::string(4 * kMinZipBombBytes, 'x');
  EXPECT_EQ(CodeOf(Read(files)), "no error");
}

TEST(EpubTest, ArchivesOfManyFilesAreRefused) {
  Files files = TwoChapters();
  for (int i = 0; i <= kMaxZipFiles; ++i) files[std::to_string(i)] = "";
  EXPECT_EQ(CodeOf(Read(files)), "too_many_files");
}

TEST(EpubTest, EntitiesAreThoseOfTheFileItself) {
  Files files = TwoChapters();
  std::string& opf = files["OPS/book.opf"];
  opf.insert(opf.find("<opf:package"),
             "<!DOCTYPE p [<!ENTITY a 'aaaaaaaaaa'><!ENTITY b '&a;&a;&a;'>"
             "<!ENTITY f SYSTEM 'file:///etc/passwd'>]>");
  opf.replace(opf.find("Das  Buch"), 9, "T&b;&f;");
  EXPECT_EQ(Good(Read(files)).title, "T" + std::string(30, 'a'));
}

TEST(EpubTest, DeepFilesEnd) {
  Files files = TwoChapters();
  std::string deep;
  for (int i = 0; i < 100'000; ++i) deep += "<li><ol>" + std::to_string(i);
  files["OPS/nav.xhtml"] = "<nav epub:type='toc'><ol>" + deep;
  files.erase("OPS/toc.ncx");
  EXPECT_EQ(Good(Read(files)).sections.size(), 3u);  // from the headings
}

TEST(EpubTest, Epub2WithUtf16AndOldMetadata) {
  Files files = TwoChapters();
  files["OPS/book.opf"] =
      "<package><metadata><dc-metadata><dc:Title>Old</dc:Title></dc-metadata>"
      "</metadata><manifest><item id='a' href='a.html'/></manifest><spine>"
      "<itemref idref='a'/></spine></package>";
  files["OPS/a.html"] = std::string("\xFF\xFE<\0p\0>\0x\0", 10);
  const Document document = Good(Read(files));
  EXPECT_EQ(document.title, "Old");
  EXPECT_EQ(document.text, "x\n");
}

// The peak memory of this process since it was last reset.
size_t PeakBytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.rfind("VmHWM:", 0) == 0) {
      return std::stoul(line.substr(line.find_first_of("0123456789"))) * 1024;
    }
  }
  return 0;
}
void ForgetPeak() { std::ofstream("/proc/self/clear_refs") << "5"; }

TEST(EpubTest, ABookOf50MegabytesTakesLittleMoreThanItself) {
#ifdef TIERCEL_SANITIZED  // sanitizers keep freed memory, and take long
  constexpr int kPages = 20;
  constexpr size_t kPicture = 1'000'000;
#else
  constexpr int kPages = 300;
  constexpr size_t kPicture = 49'000'000;
#endif
  Files files = TwoChapters();
  std::string manifest;
  std::string spine;
  std::string page = "<h1>x</h1>";
  while (page.size() < 60'000) page += "<p>" + std::to_string(page.size());
  for (int i = 0; i < kPages; ++i) {
    const std::string name = "p" + std::to_string(i);
    manifest += "<item id='" + name + "' href='" + name + "'/>";
    spine += "<itemref idref='" + name + "'/>";
    files["OPS/" + name] = page;
  }
  std::string& opf = files["OPS/book.opf"];
  opf.insert(opf.find("<item id='one'"), manifest);
  opf.insert(opf.find("<itemref idref='one'"), spine);
  // Noise, which does not compress, stands for a picture.
  std::string& picture = files["OPS/picture.png"];
  uint32_t state = 1;
  while (picture.size() < kPicture) {
    state = state * 1664525 + 1013904223;
    picture.push_back(static_cast<char>(state >> 24));
  }
  std::string bytes = ZipOf(files);
  files.clear();
  ASSERT_GT(bytes.size(), kPicture);
  malloc_trim(0);
  ForgetPeak();
  const size_t before = PeakBytes();
  const Document document = Good(ReadDocumentBytes("book", std::move(bytes)));
  EXPECT_GT(document.text.size(), kPages * 30'000u);
#ifndef TIERCEL_SANITIZED
  // The peak holds the text, twice as it grows, and the tree of one page.
  EXPECT_LT(PeakBytes() - before, 3 * document.text.size() + (8u << 20));
#else
  EXPECT_GE(PeakBytes(), before);
#endif
}

// The files of an EPUB, unpacked into a folder.
class EpubFolderTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "epub_folder_test.XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    top_ = name;
    for (const auto& [file, bytes] : TwoChapters()) Write(file, bytes);
  }
  void TearDown() override { std::filesystem::remove_all(top_); }

  std::filesystem::path Path(const std::string& file) const {
    return top_ / "Book.epub" / file;
  }
  void Write(const std::string& file, const std::string& bytes) const {
    std::filesystem::create_directories(Path(file).parent_path());
    std::ofstream(Path(file), std::ios::binary) << bytes;
  }
  Result Read() const { return ReadDocument((top_ / "Book.epub").string()); }

  std::filesystem::path top_;
};

TEST_F(EpubFolderTest, ReadsAsTheArchiveDoes) {
  const Document packed =
      Good(ReadDocumentBytes("b.epub", ZipOf(TwoChapters())));
  const Document unpacked = Good(Read());
  EXPECT_EQ(unpacked.text, packed.text);
  EXPECT_EQ(unpacked.title, packed.title);
  EXPECT_EQ(unpacked.warnings, packed.warnings);
  ASSERT_EQ(unpacked.sections.size(), packed.sections.size());
  for (size_t i = 0; i < packed.sections.size(); ++i) {
    EXPECT_EQ(unpacked.sections[i].title, packed.sections[i].title);
    EXPECT_EQ(unpacked.sections[i].begin, packed.sections[i].begin);
  }
  EXPECT_EQ(Good(ReadDocument(top_.string())).text, packed.text);
  // A slash behind its name, and other programs' spelling of a file's.
  EXPECT_EQ(Good(ReadDocument((top_ / "Book.epub/").string())).text,
            packed.text);
  std::filesystem::rename(Path("OPS/text/two.xhtml"),
                          Path("OPS/text/Two.XHTML"));
  EXPECT_EQ(Good(Read()).text, packed.text);
}

TEST_F(EpubFolderTest, NothingIsReadFromElsewhere) {
  std::ofstream(top_ / "secret.xhtml") << "<p>secret</p>";
  std::filesystem::remove(Path("OPS/text/two.xhtml"));
  std::filesystem::create_symlink(top_ / "secret.xhtml",
                                  Path("OPS/text/two.xhtml"));
  const Document document = Good(Read());
  EXPECT_THAT(document.text, testing::Not(HasSubstr("secret")));
  EXPECT_THAT(document.warnings,
              testing::Contains("1 pages of the book are not in the folder"));
}

TEST_F(EpubFolderTest, ItsMessagesSayThatItIsAFolder) {
  const auto message = [&] {
    const Result result = Read();
    const Error* const error = std::get_if<Error>(&result);
    return error == nullptr ? "no error" : error->message;
  };
  std::filesystem::remove_all(Path("OPS/text"));
  std::filesystem::remove(Path("OPS/notes.xhtml"));
  EXPECT_THAT(message(), HasSubstr("none of its pages is in the folder"));
  Write("OPS/book.opf",
        "<package><manifest><item id='a' href='../../a.xhtml'/></manifest>"
        "<spine><itemref idref='a'/></spine></package>");
  EXPECT_THAT(message(), HasSubstr("names a page out of the folder"));
  Write("META-INF/container.xml", "<container/>");
  EXPECT_THAT(message(), HasSubstr("names no package in the folder"));
  EXPECT_EQ(message().find("archive"), std::string::npos);
}

TEST_F(EpubFolderTest, WhatIsWrongInIt) {
  Write("OPS/text/two.xhtml", std::string(kMaxHtmlBytes + 1, ' '));
  EXPECT_EQ(CodeOf(Read()), "zip_bomb");
  Write("META-INF/container.xml", "<container/>");
  EXPECT_EQ(CodeOf(Read()), "invalid_epub");
  // Without a container it is a folder like others.
  std::filesystem::remove(Path("META-INF/container.xml"));
  EXPECT_EQ(CodeOf(Read()), "not_a_regular_file");
}

}  // namespace
}  // namespace tiercel::document

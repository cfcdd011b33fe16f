#include "lib/documents/mhtml.h"

#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/documents/document_for_test.h"
#include "lib/documents/mime.h"

namespace tiercel::document {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Returns a saved page whose parts are headers and bodies.
std::string MailOf(
    const std::vector<std::pair<std::string, std::string>>& parts,
    const std::string& parameters = "") {
  std::string mail =
      "From: <Saved by a browser>\r\nSubject: x\r\nMIME-Version: 1.0\r\n"
      "Content-Type: multipart/related;\r\n\ttype=\"text/html\";\r\n"
      "\tboundary=\"--a b\"" +
      parameters + "\r\n\r\nNo part of it.\r\n";
  for (const auto& [header, body] : parts) {
    mail += "----a b\r\n" + header + "\r\n\r\n" + body + "\r\n";
  }
  return mail + "----a b--\r\nNor is this.\r\n";
}

Document ReadMail(const std::string& mail) {
  return Good(ReadDocumentBytes("page", mail));
}

const char kHtmlPart[] = "Content-Type: text/html";
const char kPicturePart[] =
    "Content-Type: image/png\r\nContent-Transfer-Encoding: base64";

TEST(MhtmlTest, TheFirstPageIsReadAsHtmlIs) {
  const Document document = ReadMail(MailOf(
      {{"Content-Type: text/html\r\nContent-Transfer-Encoding: "
        "quoted-printable",
        "<html lang=3D\"en\"><title>A =\r\nbook</title><meta name=3Dauthor "
        "content=3D\"A. B.\"><body><h1>1. Rain</h1><p>It was caf=C3=A9 time "
        "=3D "
        "l=\r\nate. =  \r\n=ZZ</p><h1>2. Sn=6Fw</h1><p>b</p>"},
       {kPicturePart, "AAEC\r\nAwQ="},
       {kHtmlPart, "<p>another</p>"}}));
  EXPECT_EQ(document.title + "|" + document.author + "|" + document.language,
            "A book|A. B.|en");
  EXPECT_EQ(document.text,
            "1. Rain\n\nIt was café time = late. =ZZ\n\n2. Snow\n\nb\n");
  ASSERT_EQ(document.sections.size(), 2u);
  EXPECT_EQ(document.sections[1].title, "Snow");
  EXPECT_EQ(document.text.substr(document.sections[1].begin, 2), "2.");
  EXPECT_THAT(document.warnings, IsEmpty());
}

TEST(MhtmlTest, TheMailMaySayWhichPartIsShown) {
  const std::vector<std::pair<std::string, std::string>> parts = {
      {std::string(kHtmlPart) + "\r\nContent-ID: <a@b>", "<p>a</p>"},
      {std::string(kHtmlPart) + "\r\nContent-ID: <c@d>", "<p>c</p>"}};
  EXPECT_EQ(ReadMail(MailOf(parts, ";\r\n start=\"<c@d>\"")).text, "c\n");
  EXPECT_EQ(ReadMail(MailOf(parts, "; start=\"<e@f>\"")).text, "a\n");
  // Parts within parts.
  EXPECT_EQ(
      ReadMail(
          MailOf({{"Content-Type: multipart/alternative; boundary=in",
                   "--in\r\nContent-Type: text/plain\r\n\r\np\r\n--in\r\n"
                   "Content-Type: text/html\r\n\r\n<p>h\r\n--inner\r\n--in--"},
                  {kHtmlPart, "<p>later</p>"}}))
          .text,
      "h --inner\n");
}

TEST(MhtmlTest, CharsetsAndEncodings) {
  const auto page = [](const std::string& header, const std::string& body) {
    return ReadMail(MailOf({{"content-type: TEXT/HTML" + header, body}})).text;
  };
  EXPECT_EQ(page("; charset=\"koi8-r\"", "<meta charset=latin1><p>\xC1"),
            "а\n");
  EXPECT_EQ(page(";\r\n  Charset=KOI8-R", "<p>\xC1"), "а\n");
  EXPECT_EQ(page("", "<meta charset=koi8-r><p>\xC1"), "а\n");
  EXPECT_EQ(page("; charset=us-ascii", "<p>é"), "é\n");
  EXPECT_EQ(
      page("\r\nContent-Transfer-Encoding: BASE64", "PHA+Y2Fmw6k8L3A+\r\n"),
      "café\n");
  EXPECT_EQ(page("\r\nContent-Transfer-Encoding: 8bit", "<p>a=3D"), "a=3D\n");
  EXPECT_THAT(ReadMail(MailOf({{"Content-Type: text/html; charset=no-such",
                                "<p>\xE9"}}))
                  .warnings,
              ElementsAre(HasSubstr("no-such"), HasSubstr("WINDOWS-1252")));
}

TEST(MhtmlTest, FramesAreReadIfTheyAreParts) {
  const Document document = ReadMail(MailOf(
      {{kHtmlPart,
        "<title>Both</title><frameset><frame src='cid:one@m'><frame "
        "src='http://a.b/two'><frame src='http://a.b/gone'><frame "
        "src='cid:one@m'><frame src='cid:pic'></frameset>"},
       {std::string(kHtmlPart) + "\r\nContent-Location: http://a.b\r\n /two",
        "<h1>2. Two</h1><p>b</p>"},
       {"Content-Type: image/png\r\nContent-ID: <pic>", "x"},
       {std::string(kHtmlPart) + "\r\nContent-ID: <one@m>",
        "<h1>1. One</h1><p>a</p>"}}));
  EXPECT_EQ(document.title, "Both");
  EXPECT_EQ(document.text, "1. One\n\na\n\n2. Two\n\nb\n");
  ASSERT_EQ(document.sections.size(), 2u);
  EXPECT_EQ(document.sections[1].title, "Two");
  EXPECT_EQ(document.text.substr(document.sections[1].begin, 2), "2.");
}

TEST(MhtmlTest, ItIsToldByItsHeader) {
  const std::string one =
      "MIME-Version: 1.0\nContent-Type: text/html\n\n<p>x</p>\n";
  EXPECT_EQ(Good(ReadDocumentBytes("a.mht", one)).text, "x\n");
  EXPECT_EQ(Good(ReadDocumentBytes("a.MHTML", "<html><p>x")).text, "x\n");
  EXPECT_EQ(Good(ReadDocumentBytes("-", one)).text, "x\n");
  for (const std::string& text :
       {std::string("Note: x\n\nMIME-Version: 1.0\n"),
        std::string("From: x\nContent-Type: text/html\n\n<p>x</p>\n"),
        std::string(
            "A text about MIME-Version: 1.0 and multipart/related\n")}) {
    EXPECT_EQ(Good(ReadDocumentBytes("a.txt", text)).text, text);
  }
}

TEST(MhtmlTest, MailsAreReadAsTheyAreShown) {
  const std::string plain =
      "From: x\nContent-Type: text/plain; charset=koi8-r\n"
      "Content-Transfer-Encoding: quoted-printable\n\n=C1 =3D\n";
  EXPECT_EQ(Good(ReadDocumentBytes("a.eml", plain)).text, "а =\n");
  EXPECT_EQ(Good(ReadDocumentBytes("-", plain)).text, "а =\n");
  const std::string both =
      "MIME-Version: 1.0\nContent-Type: multipart/alternative; boundary=b\n\n"
      "--b\nContent-Type: text/plain\n\np\n";
  const Document document = Good(ReadDocumentBytes(
      "-", both + "--b\nContent-Type: text/html\n\n<p>h\n--b--\n"));
  EXPECT_EQ(document.text, "h\n");
  EXPECT_EQ(Good(ReadDocumentBytes("-", both + "--b--\n")).text, "p\n");
}

TEST(MhtmlTest, WhatIsDamagedOrHostile) {
  EXPECT_EQ(CodeOf(ReadDocumentBytes("a", MailOf({}))), "invalid_mhtml");
  EXPECT_EQ(CodeOf(ReadDocumentBytes("a", MailOf({{kPicturePart, "AAEC"}}))),
            "invalid_mhtml");
  EXPECT_EQ(CodeOf(ReadDocumentBytes(
                "a", MailOf({{kHtmlPart, std::string("a\0\1\2", 4)}}))),
            "not_text");
  // A mail that is cut has the parts that it has.
  const std::string whole = MailOf({{kHtmlPart, "<p>a b c</p>"}});
  EXPECT_EQ(ReadMail(whole.substr(0, whole.find("b c"))).text, "a\n");
  // Parts in parts, and more of them than any page has.
  std::string deep = "<p>x</p>";
  for (int i = 0; i < 100; ++i) {
    const std::string boundary = "b" + std::to_string(i);
    deep = (i == 0 ? "--b0\nContent-Type: text/html\n\n" + deep
                   : "--" + boundary +
                         "\nContent-Type: multipart/related; boundary=b" +
                         std::to_string(i - 1) + "\n\n" + deep) +
           "\n--" + boundary + "--\n";
  }
  const std::string header =
      "MIME-Version: 1.0\nContent-Type: multipart/related; boundary=b";
  EXPECT_EQ(CodeOf(ReadDocumentBytes("a", header + "99\n\n" + deep)),
            "invalid_mhtml");
  std::string many;
  for (int i = 0; i < 100'000; ++i) many += "--b\n\n";
  EXPECT_EQ(CodeOf(ReadDocumentBytes("a", header + "\n\n" + many)),
            "invalid_mhtml");
}

}  // namespace
}  // namespace tiercel::document

#include "lib/documents/gzip.h"

#include <zlib.h>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/documents/document_for_test.h"

namespace tiercel::document {
namespace {

using ::testing::HasSubstr;

std::string Gzip(const std::string& text) {
  z_stream stream = {};
  EXPECT_EQ(deflateInit2(&stream, 9, Z_DEFLATED, MAX_WBITS + 16, 8,
                         Z_DEFAULT_STRATEGY),
            Z_OK);
  std::string packed(deflateBound(&stream, text.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

std::string TextOf(const Result& result) {
  const auto* const document = std::get_if<Document>(&result);
  return document == nullptr ? std::get<Error>(result).message : document->text;
}

TEST(GzipTest, ADocumentOfAnyFormat) {
  EXPECT_EQ(TextOf(ReadDocumentBytes("a.txt.gz", Gzip("One.\n"))), "One.\n");
  // Its own name says the format, where its bytes do not.
  EXPECT_EQ(TextOf(ReadDocumentBytes("a.html.gz", Gzip("a<b>b</b>&amp;"))),
            "ab&\n");
  EXPECT_EQ(TextOf(ReadDocumentBytes("a.gz", Gzip("<html><p>x"))), "x\n");
  EXPECT_EQ(TextOf(ReadDocumentBytes("a.gz", Gzip(""))), "");
}

TEST(GzipTest, ItsBytesDecideWhatItsNameCannot) {
  for (const char* name : {"a.epub", "a.pdf", "a.EPUB.gz", "a.pdf.gz"}) {
    EXPECT_EQ(TextOf(ReadDocumentBytes(name, Gzip("One.\n"))), "One.\n");
    EXPECT_EQ(TextOf(ReadDocumentBytes(name, Gzip("<html><p>x"))), "x\n");
    EXPECT_EQ(CodeOf(ReadDocumentBytes(name, Gzip("%PDF-1.7\n"))),
              "invalid_pdf");
    EXPECT_EQ(CodeOf(ReadDocumentBytes(name, Gzip("PK\x03\x04"))),
              "invalid_epub");
    EXPECT_EQ(CodeOf(ReadDocumentBytes(name, Gzip(std::string(9, '\0')))),
              "not_text");
  }
}

TEST(GzipTest, SeveralMembersAreOneText) {
  const std::string two = Gzip("One. ") + Gzip("Two.\n");
  EXPECT_EQ(TextOf(ReadDocumentBytes("a", two)), "One. Two.\n");
  EXPECT_EQ(TextOf(ReadDocumentBytes("a", two + std::string(600, '\0'))),
            "One. Two.\n");
}

TEST(GzipTest, WhatIsDamaged) {
  const std::string packed = Gzip("One two three four five six seven.\n");
  for (const size_t length :
       {size_t{3}, size_t{10}, packed.size() / 2, packed.size() - 1}) {
    EXPECT_EQ(CodeOf(ReadDocumentBytes("a", packed.substr(0, length))),
              "invalid_archive")
        << length;
  }
  std::string changed = packed;
  changed[packed.size() - 6] ^= 1;  // the checksum
  EXPECT_EQ(CodeOf(ReadDocumentBytes("a", changed)), "invalid_archive");
  EXPECT_EQ(CodeOf(ReadDocumentBytes("a", packed + packed.substr(0, 12))),
            "invalid_archive");
}

TEST(GzipTest, ItUnpacksNoMoreThanAFileMayHave) {
  const std::string most(kMaxFileBytes, 'x');
  EXPECT_EQ(CodeOf(ReadDocumentBytes("a", Gzip(most + "x"))), "zip_bomb");
  EXPECT_EQ(std::get<std::string>(UnpackGzip("a", Gzip(most))).size(),
            kMaxFileBytes);
}

TEST(GzipTest, WhatIsInIt) {
  const std::string twice = Gzip(Gzip("x"));
  EXPECT_EQ(CodeOf(ReadDocumentBytes("a", twice)), "unsupported_document");
  EXPECT_EQ(TextOf(ReadDocumentBytes("a", Gzip("{\\rtf1 x}"))), "x\n");
  EXPECT_THAT(TextOf(ReadDocumentBytes("a", Gzip("%!PS-Adobe-3.0\n"))),
              HasSubstr("PostScript"));
}

}  // namespace
}  // namespace tiercel::document

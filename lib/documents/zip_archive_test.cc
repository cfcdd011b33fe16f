#include "lib/documents/zip_archive.h"

#include <memory>
#include <string>
#include <variant>

#include "gtest/gtest.h"
#include "lib/documents/epub_for_test.h"
#include "lib/documents/error.h"

namespace tiercel::document {
namespace {

std::string CodeOf(const std::variant<std::string, Error>& read) {
  const auto* const error = std::get_if<Error>(&read);
  return error == nullptr ? "no error" : error->code;
}

TEST(ZipArchiveTest, AFileMayBeNoLongerThanAsked) {
  const std::string bytes = ZipOf({{"a", std::string(100, 'x')}});
  auto opened = ZipArchive::Open("book", bytes);
  auto& archive = *std::get<std::unique_ptr<ZipArchive>>(opened);
  EXPECT_EQ(CodeOf(archive.Read("a", 99)), "zip_bomb");
  EXPECT_EQ(CodeOf(archive.Read("a", 100)), "no error");
}

TEST(ZipArchiveTest, AllFilesTogetherAreLimited) {
  // No file swells as a bomb does; each is read again and again.
  const std::string bytes = ZipOf({{"a", std::string(kMinZipBombBytes, 'x')}});
  auto opened = ZipArchive::Open("book", bytes);
  auto& archive = *std::get<std::unique_ptr<ZipArchive>>(opened);
  for (uint64_t i = 0; i < kMaxUnpackedBytes / kMinZipBombBytes; ++i) {
    ASSERT_EQ(CodeOf(archive.Read("a", kMinZipBombBytes)), "no error") << i;
  }
  EXPECT_EQ(CodeOf(archive.Read("a", kMinZipBombBytes)), "zip_bomb");
}

TEST(ZipArchiveTest, OtherBytesMayStandBeforeIt) {
  const std::string bytes = std::string(100, 'j') + ZipOf({{"a", "x"}});
  auto opened = ZipArchive::Open("book", bytes);
  auto* const archive = std::get_if<std::unique_ptr<ZipArchive>>(&opened);
  ASSERT_NE(archive, nullptr);
  EXPECT_EQ(std::get<std::string>((*archive)->Read("a", 100)), "x");
}

TEST(ZipArchiveTest, AnUnknownMethodIsNoDamage) {
  std::string bytes = ZipOf({{"a", std::string(100, 'x')}});
  // The method's place in the header and in the directory.
  bytes[8] = 98;
  bytes[bytes.find("PK\x01\x02") + 10] = 98;  // PPMd
  auto opened = ZipArchive::Open("book", bytes);
  auto& archive = *std::get<std::unique_ptr<ZipArchive>>(opened);
  EXPECT_EQ(CodeOf(archive.Read("a", 100)), "unsupported_document");
}

// libzip opens no archive with such a name; but a book may name any file.
TEST(ZipArchiveTest, ErrorsShowNoControlCharacters) {
  const std::string bytes = ZipOf({{"a", "x"}});
  auto opened = ZipArchive::Open("book", bytes);
  auto& archive = *std::get<std::unique_ptr<ZipArchive>>(opened);
  const auto read = archive.Read("b\x1b[2J\nc", 100);
  ASSERT_EQ(CodeOf(read), "invalid_archive");
  const std::string& message = std::get<Error>(read).message;
  EXPECT_EQ(message.find_first_of("\x1b\n"), std::string::npos) << message;
}

}  // namespace
}  // namespace tiercel::document

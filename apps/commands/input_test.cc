#include "apps/commands/input.h"

#include <filesystem>
#include <fstream>

#include "apps/cli/error.h"
#include "gtest/gtest.h"
#include "lib/documents/document.h"

namespace tiercel::cli {
namespace {

TEST(ParseTokensTest, DecimalIdsWithBlanksBetween) {
  const absl::StatusOr<std::vector<int32_t>> ids =
      ParseTokens("  1 2\t3\r\n4\n\n2147483647");
  ASSERT_TRUE(ids.ok()) << ids.status();
  EXPECT_EQ(*ids, std::vector<int32_t>({1, 2, 3, 4, 2147483647}));
}

TEST(ParseTokensTest, NoTokensAreNone) {
  for (const char* text : {"", " ", "\n\n"}) {
    const absl::StatusOr<std::vector<int32_t>> ids = ParseTokens(text);
    ASSERT_TRUE(ids.ok());
    EXPECT_TRUE(ids->empty());
  }
}

TEST(ParseTokensTest, OtherWordsAreInvalidTokens) {
  for (const char* text : {"-1", "2147483648", "1 2 x", "1,2", "1.0", "0x1",
                           "99999999999999999999"}) {
    const absl::StatusOr<std::vector<int32_t>> ids = ParseTokens(text);
    EXPECT_EQ(ExitOf(ids.status()), Exit::kInput) << text;
    EXPECT_EQ(CodeOf(ids.status()), "invalid_token") << text;
  }
  EXPECT_FALSE(ParseTokens(std::string_view("1\0002", 3)).ok());
}

TEST(ParseTokensTest, SaysWhichToken) {
  const absl::StatusOr<std::vector<int32_t>> ids = ParseTokens("5 6 seven");
  EXPECT_EQ(ids.status().message(),
            "token 2 is 'seven', need an id from 0 to 2147483647");
}

TEST(ReadInputTest, GivesTheBytesAsTheyAre) {
  const std::string path = ::testing::TempDir() + "input_test.bin";
  const std::string bytes("a\0b\xff\r\n", 6);
  std::ofstream(path, std::ios::binary) << bytes;
  const absl::StatusOr<std::string> text = ReadInput(path);
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_EQ(*text, bytes);
}

TEST(ReadInputTest, NoMoreThanADocumentHas) {
  const std::string path = ::testing::TempDir() + "input_test.large";
  std::ofstream(path, std::ios::binary) << "x";
  std::filesystem::resize_file(path, document::kMaxFileBytes);
  EXPECT_TRUE(ReadInput(path).ok());
  // The sparse file is larger than an input may be.
  std::filesystem::resize_file(path, uint64_t{1} << 42);
  for (const std::string& endless : {path, std::string("/dev/zero")}) {
    const absl::StatusOr<std::string> text = ReadInput(endless);
    EXPECT_EQ(ExitOf(text.status()), Exit::kInput) << endless;
    EXPECT_EQ(CodeOf(text.status()), "input_too_large");
    EXPECT_NE(text.status().message().find(endless), absl::string_view::npos);
  }
  std::filesystem::remove(path);
}

TEST(ReadInputTest, WhatCannotBeReadIsAnIoError) {
  const struct {
    const char* path;
    const char* code;
  } kCases[] = {{"/nonexistent/file", "file_not_found"},
                {"/proc/self/mem", "io_error"}};
  for (const auto& [path, code] : kCases) {
    const absl::StatusOr<std::string> text = ReadInput(path);
    EXPECT_EQ(ExitOf(text.status()), Exit::kIo) << path;
    EXPECT_EQ(CodeOf(text.status()), code);
    EXPECT_NE(text.status().message().find(path), absl::string_view::npos);
  }
}

TEST(ReadInputTest, ADirectoryIsNoInput) {
  const absl::StatusOr<std::string> text = ReadInput("/");
  EXPECT_EQ(ExitOf(text.status()), Exit::kInput);
  EXPECT_EQ(CodeOf(text.status()), "not_a_regular_file");
  EXPECT_EQ(text.status().message(), "'/' is a directory");
}

TEST(ReadTextTest, Utf16IsNamed) {
  const std::string path = ::testing::TempDir() + "input_test.txt";
  for (const std::string& bytes :
       {std::string("\xFF\xFEh\0i\0", 6), std::string("\xFE\xFF\0h\0i", 6)}) {
    std::ofstream(path, std::ios::binary) << bytes;
    const absl::StatusOr<std::string> text = ReadText(path);
    EXPECT_EQ(ExitOf(text.status()), Exit::kInput);
    EXPECT_EQ(CodeOf(text.status()), "not_utf8");
    EXPECT_NE(text.status().message().find("UTF-16"), absl::string_view::npos);
    EXPECT_TRUE(ReadInput(path).ok());
  }
  std::ofstream(path, std::ios::binary) << "\xEF\xBB\xBFhi";
  EXPECT_TRUE(ReadText(path).ok());
}

}  // namespace
}  // namespace tiercel::cli

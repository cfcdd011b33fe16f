#include "runtime/rates_cache.h"

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "gtest/gtest.h"

namespace tiercel::rates_cache_test {
namespace {

namespace fs = std::filesystem;

constexpr Rates kRates = {.prompt_row_s = 1e-5,
                          .prompt_position_s = 2.5e-9,
                          .step_s = 3e-4,
                          .step_position_s = 4e-8,
                          .logits_s = 5e-3,
                          .copy_bytes_per_s = 6e9,
                          .copy_slowdown = 1.75};

class RatesCacheTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "/rates_XXXXXX";
    ASSERT_NE(mkdtemp(folder_.data()), nullptr);
  }
  void TearDown() override { fs::remove_all(folder_); }

  // The one file there is.
  fs::path File() const { return *fs::directory_iterator(folder_); }
  std::string Text() const {
    std::ifstream file(File());
    return {std::istreambuf_iterator<char>(file),
            std::istreambuf_iterator<char>()};
  }
  // Whether the file is believed with `from` replaced by `to`.
  bool Believed(const std::string& from, const std::string& to) {
    KeepRates(folder_, "key", kRates);
    std::string text = Text();
    const size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    text.replace(at, from.size(), to);
    std::ofstream(File()) << text;
    return ReadRates(folder_, "key").has_value();
  }

  std::string folder_;
};

TEST_F(RatesCacheTest, WhatIsKeptComesBack) {
  const std::string deeper = folder_ + "/a/b";
  EXPECT_FALSE(ReadRates(deeper, "key").has_value());
  KeepRates(deeper, "key", kRates);
  const std::optional<Rates> back = ReadRates(deeper, "key");
  ASSERT_TRUE(back.has_value());
  EXPECT_EQ(back->prompt_row_s, kRates.prompt_row_s);
  EXPECT_EQ(back->prompt_position_s, kRates.prompt_position_s);
  EXPECT_EQ(back->step_s, kRates.step_s);
  EXPECT_EQ(back->step_position_s, kRates.step_position_s);
  EXPECT_EQ(back->logits_s, kRates.logits_s);
  EXPECT_EQ(back->copy_bytes_per_s, kRates.copy_bytes_per_s);
  EXPECT_EQ(back->copy_slowdown, kRates.copy_slowdown);
  EXPECT_FALSE(ReadRates(deeper, "another").has_value());
  // Nothing unfinished stays.
  EXPECT_EQ(std::distance(fs::directory_iterator(deeper), {}), 1);
}

TEST_F(RatesCacheTest, TheKeyIsComparedNotItsHash) {
  EXPECT_TRUE(Believed("\"key\":\"key\"", "\"key\":\"key\""));
  EXPECT_FALSE(Believed("\"key\":\"key\"", "\"key\":\"yek\""));
}

TEST_F(RatesCacheTest, WhatIsNotWholeIsMeasuredAnew) {
  EXPECT_FALSE(Believed("}", ""));
  EXPECT_FALSE(Believed("\"step_s\"", "\"steps\""));
  EXPECT_FALSE(Believed("\"step_s\":", "\"step_s\":-"));
  EXPECT_FALSE(Believed("1.75", "\"1.75\""));
  EXPECT_FALSE(Believed("1.75", "1e999"));
  std::ofstream(File()) << "";
  EXPECT_FALSE(ReadRates(folder_, "key").has_value());
  std::ofstream(File()) << "[]";
  EXPECT_FALSE(ReadRates(folder_, "key").has_value());
}

TEST_F(RatesCacheTest, AMachineChangesInAWeek) {
  EXPECT_TRUE(Believed("\"measured\":", "\"measured\": "));
  EXPECT_FALSE(Believed("\"measured\":1", "\"measured\":"));  // long ago
  EXPECT_FALSE(Believed("\"measured\":", "\"measured\":9"));  // not yet
}

TEST_F(RatesCacheTest, WhereNothingCanBeWrittenNothingIsKept) {
  KeepRates("/dev/null/x", "key", kRates);
  EXPECT_FALSE(ReadRates("/dev/null/x", "key").has_value());
}

}  // namespace
}  // namespace tiercel::rates_cache_test

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
    fs::remove_all(folder_);
    Add(kRates, kNow);
    std::string text = Text();
    const size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    text.replace(at, from.size(), to);
    std::ofstream(File()) << text;
    return At(kNow).Get().has_value();
  }
  RatesCache At(int64_t now, const std::string& key = "key") const {
    return RatesCache(folder_, key, now);
  }
  void Add(const Rates& rates, int64_t now) { At(now).Add(rates, now); }

  static constexpr int64_t kNow = 1'800'000'000;
  static constexpr int64_t kDay = 24 * 3600;
  std::string folder_;
};

TEST_F(RatesCacheTest, WhatIsKeptComesBack) {
  folder_ += "/a/b";
  EXPECT_FALSE(At(kNow).Get().has_value());
  EXPECT_TRUE(At(kNow).WantsMore());
  Add(kRates, kNow);
  const std::optional<Rates> back = At(kNow).Get();
  ASSERT_TRUE(back.has_value());
  EXPECT_EQ(back->prompt_row_s, kRates.prompt_row_s);
  EXPECT_EQ(back->prompt_position_s, kRates.prompt_position_s);
  EXPECT_EQ(back->step_s, kRates.step_s);
  EXPECT_EQ(back->step_position_s, kRates.step_position_s);
  EXPECT_EQ(back->logits_s, kRates.logits_s);
  EXPECT_EQ(back->copy_bytes_per_s, kRates.copy_bytes_per_s);
  EXPECT_EQ(back->copy_slowdown, kRates.copy_slowdown);
  EXPECT_FALSE(At(kNow, "another").Get().has_value());
  // Nothing unfinished stays.
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), {}), 1);
}

TEST_F(RatesCacheTest, SomeOfTheFirstUsesMeasureEverFurtherApart) {
  const struct {
    int64_t after;    // seconds, the first
    double measured;  // so many times the usual
    double middle;    // from then on
  } kUses[] = {{0, 2, 2}, {30, 1, 1}, {90, 4, 2}, {210, 3, 2}, {450, 5, 3}};
  for (const auto& use : kUses) {
    if (use.after > 0) {
      EXPECT_FALSE(At(kNow + use.after - 1).WantsMore()) << use.after;
    }
    EXPECT_TRUE(At(kNow + use.after).WantsMore()) << use.after;
    Rates rates = kRates;
    rates.step_s *= use.measured;
    Add(rates, kNow + use.after);
    EXPECT_EQ(At(kNow + use.after).Get()->step_s, use.middle * kRates.step_s);
    EXPECT_EQ(At(kNow + use.after).Get()->logits_s, kRates.logits_s);
  }
  EXPECT_FALSE(At(kNow + 6 * kDay).WantsMore());
  // A machine changes in a week: what is older does not count.
  EXPECT_TRUE(At(kNow + 7 * kDay + 400).WantsMore());
  EXPECT_EQ(At(kNow + 7 * kDay + 400).Get()->step_s, 5 * kRates.step_s);
}

// Two ways to tell a prompt's time apart, and a step's.
TEST_F(RatesCacheTest, WhatWasFittedTogetherStaysTogether) {
  Rates steep = kRates;
  steep.prompt_row_s = kRates.prompt_row_s / 2;
  steep.prompt_position_s = kRates.prompt_position_s * 5;
  steep.step_position_s = 0;
  steep.step_s = kRates.step_s * 5;
  Add(kRates, kNow);
  Add(steep, kNow + 60);
  const std::optional<Rates> rates = At(kNow + 60).Get();
  ASSERT_TRUE(rates.has_value());
  EXPECT_EQ(rates->prompt_position_s == kRates.prompt_position_s,
            rates->prompt_row_s == kRates.prompt_row_s);
  EXPECT_EQ(rates->step_position_s == kRates.step_position_s,
            rates->step_s == kRates.step_s);
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
  EXPECT_FALSE(Believed("\"time\":", "\"times\":"));
  EXPECT_FALSE(Believed("\"time\":1", "\"time\":0.1"));
  EXPECT_FALSE(Believed("[{", "[1,{"));
  EXPECT_FALSE(Believed("[{", "{\"a\":[{"));
  for (const char* text : {"", "[]", "{}", "{\"key\":\"key\"}",
                           "{\"key\":\"key\",\"measurements\":{}}",
                           "{\"key\":\"key\",\"measurements\":[]}"}) {
    std::ofstream(File()) << text;
    EXPECT_FALSE(At(kNow).Get().has_value()) << text;
    EXPECT_TRUE(At(kNow).WantsMore()) << text;
  }
}

TEST_F(RatesCacheTest, OnlyTheLastWeekCounts) {
  Add(kRates, kNow);
  EXPECT_TRUE(At(kNow + 7 * kDay).Get().has_value());
  EXPECT_FALSE(At(kNow + 7 * kDay + 1).Get().has_value());
  EXPECT_FALSE(At(kNow - 1).Get().has_value());  // not yet
}

TEST_F(RatesCacheTest, WhereNothingCanBeWrittenNothingIsKept) {
  RatesCache cache("/dev/null/x", "key", kNow);
  cache.Add(kRates, kNow);
  EXPECT_TRUE(cache.Get().has_value());
  EXPECT_FALSE(RatesCache("/dev/null/x", "key", kNow).Get().has_value());
}

}  // namespace
}  // namespace tiercel::rates_cache_test

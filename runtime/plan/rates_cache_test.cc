#include "runtime/plan/rates_cache.h"

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/status/error.h"

namespace tiercel::rates_cache_test {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

constexpr Rates kRates = {.prompt_row_s = 1.234e-5,
                          .prompt_position_s = 2.56e-9,
                          .step_s = 3.04e-4,
                          .step_position_s = 0,
                          .logits_s = 5e-3,
                          .copy_bytes_per_s = 6.78e9,
                          .copy_slowdown = 1.75,
                          .disk_bytes_per_s = 1.23e9,
                          .disk_bytes_per_cpu_s = 2.34e9};
constexpr double kMost = kMostSpread;

Measurement Measured(double spread, double times = 1, int attempts = 1) {
  Measurement measured = {
      .rates = kRates, .spread = spread, .attempts = attempts};
  measured.rates.step_s *= times;
  return measured;
}

class RatesCacheTest : public testing::Test {
 protected:
  void SetUp() override {
    made_ = testing::TempDir() + "/rates_XXXXXX";
    ASSERT_NE(mkdtemp(made_.data()), nullptr);
    folder_ = made_;
  }
  void TearDown() override { fs::remove_all(made_); }

  RatesCache Cache() const { return RatesCache(folder_); }
  KeptRates Add(const Measurement& measured) const {
    const absl::StatusOr<KeptRates> kept =
        Cache().Add(kKey, "a.gguf", measured);
    EXPECT_TRUE(kept.ok()) << kept.status();
    return kept.ok() ? *kept : KeptRates();
  }
  size_t Files() const {
    return static_cast<size_t>(
        std::distance(fs::directory_iterator(folder_), {}));
  }
  // The one file there is.
  fs::path File() const { return *fs::directory_iterator(folder_); }
  std::string Text() const {
    std::ifstream file(File());
    return {std::istreambuf_iterator<char>(file),
            std::istreambuf_iterator<char>()};
  }
  // Returns true if the file is still accepted with `from` replaced by `to`.
  bool Believed(const std::string& from, const std::string& to) {
    Add(Measured(0.125));
    const std::string whole = Text();
    std::string text = whole;
    const size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from << " in " << text;
    text.replace(at, from.size(), to);
    std::ofstream(File()) << text;
    const bool believed = Cache().Get(kKey).has_value();
    EXPECT_EQ(Cache().List()->at(0).contains("rates"), believed) << text;
    EXPECT_EQ(Cache().Get(kKey).has_value(), believed);
    fs::remove_all(File());
    return believed;
  }

  const nlohmann::json kKey = {{"cpu", "some"}, {"threads", 2}};
  std::string made_;    // removed when the test ends
  std::string folder_;  // the cache is there, or below
};

void ExpectEqual(const Rates& a, const Rates& b) {
  EXPECT_EQ(a.prompt_row_s, b.prompt_row_s);
  EXPECT_EQ(a.prompt_position_s, b.prompt_position_s);
  EXPECT_EQ(a.step_s, b.step_s);
  EXPECT_EQ(a.step_position_s, b.step_position_s);
  EXPECT_EQ(a.logits_s, b.logits_s);
  EXPECT_EQ(a.copy_bytes_per_s, b.copy_bytes_per_s);
  EXPECT_EQ(a.copy_slowdown, b.copy_slowdown);
  EXPECT_EQ(a.disk_bytes_per_s, b.disk_bytes_per_s);
  EXPECT_EQ(a.disk_bytes_per_cpu_s, b.disk_bytes_per_cpu_s);
}

TEST_F(RatesCacheTest, WhatIsKeptComesBack) {
  folder_ += "/a/b";
  EXPECT_FALSE(Cache().Get(kKey).has_value());
  ASSERT_TRUE(Cache().CheckWritable().ok());
  const KeptRates added = Add(Measured(0.125, 1, 2));
  const std::optional<KeptRates> back = Cache().Get(kKey);
  ASSERT_TRUE(back.has_value());
  for (const KeptRates& kept : {added, *back}) {
    ExpectEqual(kept.best.rates, kRates);
    ExpectEqual(kept.costs, {.prompt_row_s = 1.2e-5,
                             .prompt_position_s = 2.6e-9,
                             .step_s = 3e-4,
                             .step_position_s = 0,
                             .logits_s = 5e-3,
                             .copy_bytes_per_s = 6.8e9,
                             .copy_slowdown = 1.8,
                             .disk_bytes_per_s = 1.2e9,
                             .disk_bytes_per_cpu_s = 2.3e9});
    EXPECT_EQ(kept.best.spread, 0.125);
    EXPECT_EQ(kept.best.attempts, 2);
    EXPECT_FALSE(kept.wants_more());
    EXPECT_EQ(kept.Warning(), "");
  }
  EXPECT_FALSE(Cache().Get({{"cpu", "other"}, {"threads", 2}}).has_value());
  EXPECT_EQ(Files(), 1);  // nothing unfinished stays
}

TEST_F(RatesCacheTest, TheSteadiestCountsAndCostsStay) {
  const struct {
    double spread;
    double times;
    double counts;  // the time that counts from then on
    int attempts;   // so far
    bool wants_more;
  } kUses[] = {{0.5, 2, 2, 1, true},
               {0.75, 3, 2, 2, true},
               {0.375, 4, 4, 3, false},
               {0.125, 5, 5, 4, false}};
  for (const auto& use : kUses) {
    Add(Measured(use.spread, use.times));
    const KeptRates kept = *Cache().Get(kKey);
    EXPECT_EQ(kept.best.rates.step_s, use.counts * kRates.step_s);
    EXPECT_EQ(kept.best.attempts, use.attempts);
    EXPECT_EQ(kept.wants_more(), use.wants_more);
    EXPECT_EQ(kept.costs.step_s, 6.1e-4);  // the first: 6.08e-4
    EXPECT_EQ(kept.Warning().empty(), kept.best.steady());
    EXPECT_EQ(kept.Warning().find("off; a run that takes longer") !=
                  std::string::npos,
              kept.wants_more());
    EXPECT_EQ(kept.Warning().find("tiercel cache clear") != std::string::npos,
              !kept.wants_more() && !kept.best.steady());
  }
  Add(Measured(0.25, 6));  // not as steady as what is kept
  EXPECT_EQ(Cache().Get(kKey)->best.rates.step_s, 5 * kRates.step_s);
}

TEST_F(RatesCacheTest, OneSteadyMeasurementIsEnough) {
  EXPECT_FALSE(Add(Measured(kMost)).wants_more());
  fs::remove_all(File());
  const KeptRates busy = Add(Measured(1.5));
  EXPECT_TRUE(busy.wants_more());
  EXPECT_THAT(busy.Warning(), HasSubstr("150 %"));
  EXPECT_FALSE(Add(Measured(kMost)).wants_more());
}

TEST_F(RatesCacheTest, TheKeyIsComparedNotItsHash) {
  EXPECT_TRUE(Believed("\"cpu\":\"some\"", "\"cpu\":\"some\""));
  Add(Measured(0));
  std::string text = Text();
  text.replace(text.find("some"), 4, "same");
  std::ofstream(File()) << text;
  EXPECT_FALSE(Cache().Get(kKey).has_value());
}

TEST_F(RatesCacheTest, WhatIsNotWholeIsMeasuredAnew) {
  EXPECT_FALSE(Believed("}", ""));
  EXPECT_FALSE(Believed("\"rates\"", "\"rate\""));
  EXPECT_FALSE(Believed("\"costs\"", "\"cost\""));
  EXPECT_FALSE(Believed("\"step_s\"", "\"steps\""));
  EXPECT_FALSE(Believed("\"step_s\":", "\"step_s\":-"));
  EXPECT_FALSE(Believed("1.75", "\"1.75\""));
  EXPECT_FALSE(Believed("1.75", "1e999"));
  EXPECT_FALSE(Believed("1.75", "0"));
  EXPECT_FALSE(Believed("\"spread\":", "\"spreads\":"));
  EXPECT_FALSE(Believed("\"spread\":0.125", "\"spread\":\"0\""));
  EXPECT_FALSE(Believed("\"attempts\":1", "\"attempts\":1.5"));
  EXPECT_FALSE(Believed("\"attempts\":1", "\"attempts\":-1"));
  EXPECT_FALSE(Believed("\"key\":", "\"keys\":"));
  EXPECT_FALSE(Believed("\"a.gguf\"", "1"));
  Add(Measured(0));
  for (const char* text : {"", "[]", "{}", "1", "{\"key\":{}}"}) {
    std::ofstream(File()) << text;
    EXPECT_FALSE(Cache().Get(kKey).has_value()) << text;
  }
  // It is written over.
  Add(Measured(0));
  EXPECT_TRUE(Cache().Get(kKey).has_value());
  EXPECT_EQ(Files(), 1);
}

TEST_F(RatesCacheTest, ListsAndClearsItsOwnFiles) {
  EXPECT_TRUE(Cache().List()->empty());
  EXPECT_EQ(*Cache().Clear(), 0);
  Add(Measured(0.5));
  const auto touch = [&](const std::string& name) {
    std::ofstream(fs::path(folder_) / name) << "x";
  };
  const std::string digits = "0123456789abcdef";
  for (const char* name :
       {"model.gguf", "ratios.json", "a", "rates-.json", "rates-0123.json",
        "rates-x.json", "rates-0123456789abcdeg.json",
        "a-rates-0123456789abcdef.json", "rates-0123456789abcdef.jsonx",
        "rates-0123456789abcdef"}) {
    touch(name);
  }
  const size_t others = Files() - 1;
  touch("rates-" + digits + ".json");       // not whole
  touch("rates-" + digits + ".json.77.0");  // left by one that was killed
  const absl::StatusOr<nlohmann::json> list = Cache().List();
  ASSERT_TRUE(list.ok()) << list.status();
  ASSERT_EQ(list->size(), 2);
  for (const nlohmann::json& file : *list) {
    const bool whole = file.contains("rates");
    EXPECT_EQ(file["file"] == "rates-" + digits + ".json", !whole);
    EXPECT_EQ(file["bytes"], fs::file_size(fs::path(folder_) / file["file"]));
    EXPECT_GT(file["modified"], 1'700'000'000);
    EXPECT_EQ(file.size(), whole ? 11 : 3) << file;
    if (!whole) continue;
    EXPECT_EQ(file["model"], "a.gguf");
    EXPECT_EQ(file["key"], kKey);
    EXPECT_EQ(file["steady"], false);
  }
  EXPECT_EQ(*Cache().Clear(), 3);
  EXPECT_EQ(Files(), others);
  EXPECT_EQ(*Cache().Clear(), 0);
}

TEST_F(RatesCacheTest, AFolderAmongItsFilesStaysAlone) {
  Add(Measured(0.5));
  const fs::path folder = fs::path(folder_) / "rates-0000000000000000.json";
  fs::create_directories(folder / "mine");
  EXPECT_EQ(Cache().List()->size(), 1);
  const absl::Status status = Cache().Clear().status();
  EXPECT_EQ(CodeOf(status), "cannot_write");
  EXPECT_EQ(ClassOf(status), ErrorClass::kIo);
  EXPECT_THAT(status.message(), HasSubstr(folder.string() + "': got a folder"));
  EXPECT_TRUE(fs::exists(folder / "mine"));
  EXPECT_EQ(Files(), 1u);
}

TEST_F(RatesCacheTest, SaysWhereNothingCanBeKept) {
  const RatesCache nowhere("/dev/null/x");
  for (const absl::Status& status :
       {nowhere.CheckWritable(),
        nowhere.Add(kKey, "a", Measured(0)).status()}) {
    EXPECT_EQ(CodeOf(status), "cannot_write");
    EXPECT_EQ(ClassOf(status), ErrorClass::kIo);
    EXPECT_THAT(status.message(), HasSubstr("/dev/null/x"));
  }
  EXPECT_FALSE(nowhere.Get(kKey).has_value());
  EXPECT_EQ(CodeOf(nowhere.List().status()), "cannot_read");
  // A folder that is not there holds nothing.
  EXPECT_TRUE(RatesCache(folder_ + "/none").List()->empty());
}

}  // namespace
}  // namespace tiercel::rates_cache_test

#include "runtime/plan/rates.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "lib/status/error.h"
#include "runtime/model/model.h"
#include "tests/golden.h"

namespace tiercel::rates_test {
namespace {

// Fake measurements that take `seconds` each, with `spreads` in turn.
struct Turns {
  std::vector<double> spreads;
  double seconds = 0;
  int taken = 0;

  absl::StatusOr<std::optional<Measurement>> Steadiest(
      const MeasuringAgain& again) {
    return SteadiestOf(again, [&](int attempt) -> absl::StatusOr<Measurement> {
      EXPECT_EQ(attempt, taken++);
      const auto i = static_cast<size_t>(attempt);
      return Measurement{.rates = {.step_s = static_cast<double>(1 + i)},
                         .spread = spreads.at(i),
                         .seconds = seconds};
    });
  }
};

TEST(SteadiestTest, MeasuresUntilSteadyAndNotForEver) {
  const struct {
    std::vector<double> spreads;  // the measurements', in turn
    int taken;
    size_t counts;  // index of the one that counts
  } kCases[] = {{{0.25}, 1, 0},
                {{0.26, 0.1}, 2, 1},
                {{0.5, 0.9, 0.2}, 3, 2},
                {{0.9, 0.5, 0.7}, 3, 1},
                {{0.26, 0.7, 0.9}, 3, 0}};
  for (const auto& one : kCases) {
    Turns turns = {one.spreads};
    const auto steadiest = turns.Steadiest({});
    ASSERT_TRUE(steadiest.ok()) << steadiest.status();
    ASSERT_TRUE(steadiest->has_value());
    EXPECT_EQ(turns.taken, one.taken);
    EXPECT_EQ((*steadiest)->attempts, one.taken);
    EXPECT_EQ((*steadiest)->spread, one.spreads[one.counts]);
    EXPECT_EQ((*steadiest)->rates.step_s, static_cast<double>(1 + one.counts));
    EXPECT_EQ((*steadiest)->steady(), one.spreads[one.counts] <= 0.25);
  }
}

// Measurements after the first one take no more seconds in all than are given.
TEST(SteadiestTest, MeasuresAgainForSoLongAtMost) {
  const std::vector<double> kBusy(9, 1.0);
  const struct {
    double each;
    MeasuringAgain again;
    int taken;
  } kCases[] = {{2.9, {}, 3},
                {3.0, {}, 3},
                {3.1, {}, 2},
                {6.1, {}, 1},
                {2.0, {.seconds = 1.9}, 1},
                {2.0, {.seconds = -1}, 1},
                {2.0, {.attempts = 9, .seconds = 9}, 5},
                {2.0, {.seconds = 2, .first_s = 2}, 1},
                {2.0, {.seconds = 3.9, .first_s = 2}, 1},
                {2.0, {.seconds = 4, .first_s = 2}, 2},
                {2.0, {.seconds = 1.9, .first_s = 2}, 0},
                {2.0, {.seconds = -1, .first_s = 2}, 0},
                {2.0, {.attempts = 0}, 0},
                {2.0, {.attempts = -4}, 0}};
  for (const auto& one : kCases) {
    Turns turns = {kBusy, one.each};
    const auto steadiest = turns.Steadiest(one.again);
    ASSERT_TRUE(steadiest.ok());
    EXPECT_EQ(turns.taken, one.taken);
    EXPECT_EQ(steadiest->has_value(), one.taken > 0);
    if (one.taken == 0) continue;
    EXPECT_EQ((*steadiest)->attempts, one.taken);
    EXPECT_EQ((*steadiest)->seconds, one.each);
    const double again =
        one.each * (one.again.first_s > 0 ? one.taken : one.taken - 1);
    EXPECT_LE(again, std::max(0.0, one.again.seconds));
  }
}

TEST(SteadiestTest, AnErrorEndsIt) {
  int taken = 0;
  EXPECT_EQ(ClassOf(SteadiestOf({},
                                [&](int) -> absl::StatusOr<Measurement> {
                                  if (++taken == 2) return CancelledError();
                                  return Measurement{.rates = {}, .spread = 1};
                                })
                        .status()),
            ErrorClass::kCancelled);
  EXPECT_EQ(taken, 2);
}

class MeasureRatesTest : public testing::Test {
 protected:
  void SetUp() override {
    Model::Options options;
    options.path = CheckpointPath("llama_chat.gguf");
    options.machine.threads = 2;
    auto model = Model::Open(options, [](uint64_t, uint64_t) { return true; });
    ASSERT_TRUE(model.ok()) << model.status();
    model_ = *std::move(model);
    auto stream = model_->machine->NewStream();
    ASSERT_TRUE(stream.ok()) << stream.status();
    stream_ = *std::move(stream);
  }

  absl::StatusOr<Measurement> Measure(RatesProgress progress) {
    const ModelConfig& config = model_->config;
    return MeasureRates(
        {.config = config,
         .weights = *model_->weights,
         .layers = config.layers,
         .weight_bytes_per_token = model_->weights->bytes_per_token(),
         .compute = Compute::kQ8,
         .layout = {DType::kF16, DType::kF16, config.kv_heads,
                    config.head_dim}},
        *stream_, progress);
  }

  std::unique_ptr<Model> model_;
  std::unique_ptr<Stream> stream_;
};

TEST_F(MeasureRatesTest, EveryRateIsATime) {
  uint64_t furthest = 0;
  uint64_t of = 0;
  const absl::StatusOr<Measurement> measured =
      Measure([&](uint64_t done, uint64_t total) {
        EXPECT_GE(done, furthest);
        EXPECT_TRUE(of == 0 || total == of);
        furthest = done;
        of = total;
        EXPECT_LT(done, total);
        return true;
      });
  ASSERT_TRUE(measured.ok()) << measured.status();
  EXPECT_EQ(furthest, of - 1);  // the last of its parts has been begun
  const Rates& rates = measured->rates;
  for (const double seconds : {rates.step_s, rates.logits_s, rates.prompt_row_s,
                               rates.copy_bytes_per_s}) {
    EXPECT_GT(seconds, 0);
    EXPECT_TRUE(std::isfinite(seconds));
  }
  EXPECT_GE(rates.step_position_s, 0);
  EXPECT_GE(rates.prompt_position_s, 0);
  EXPECT_GE(rates.copy_slowdown, 1);
  EXPECT_GE(measured->spread, 0);
  EXPECT_TRUE(std::isfinite(measured->spread));
  EXPECT_EQ(measured->attempts, 1);
  EXPECT_GT(measured->seconds, 0);
}

TEST_F(MeasureRatesTest, StopsWhereItIsToldTo) {
  // It stops in its first pass, among tokens, in a prompt, at depth, beside
  // copies.
  for (const uint64_t last : {0, 1, 2, 3, 4, 5, 10, 15}) {
    bool stopped = false;
    EXPECT_EQ(ClassOf(Measure([&](uint64_t done, uint64_t) {
                        EXPECT_FALSE(stopped);
                        stopped = done == last;
                        return !stopped;
                      }).status()),
              ErrorClass::kCancelled);
    EXPECT_TRUE(stopped) << last;
  }
}

}  // namespace
}  // namespace tiercel::rates_test

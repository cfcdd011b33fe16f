#include "runtime/plan/known_rates.h"

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "gtest/gtest.h"
#include "lib/status/error.h"
#include "runtime/generate/generate.h"
#include "runtime/plan/plan.h"
#include "runtime/session/predicted.h"
#include "tests/golden.h"

namespace tiercel::known_rates_test {
namespace {

namespace fs = std::filesystem;

std::unique_ptr<Model> Open(Model::Options options) {
  options.path = CheckpointPath("llama_chat.gguf");
  if (options.machine.threads == 0) options.machine.threads = 2;
  auto model = Model::Open(options, [](uint64_t, uint64_t) { return true; });
  EXPECT_TRUE(model.ok()) << model.status();
  return model.ok() ? *std::move(model) : nullptr;
}

KvLayout LayoutOf(const Model& model, const Session::Options& options = {}) {
  return options.Layout(model.config);
}

std::string NewFolder() {
  std::string folder = testing::TempDir() + "/known_rates_XXXXXX";
  EXPECT_NE(mkdtemp(folder.data()), nullptr);
  return folder;
}

class KnownRatesTest : public testing::Test {
 protected:
  // Measures once for all tests, which takes seconds, by a header alone.
  static void SetUpTestSuite() {
    measured_folder_ = NewFolder();
    std::tie(first_, measured_first_) =
        Measure(*Open({.weights = false}), measured_folder_);
  }
  static void TearDownTestSuite() { fs::remove_all(measured_folder_); }
  void SetUp() override {
    folder_ = NewFolder();
    model_ = Open({});
  }
  void TearDown() override { fs::remove_all(folder_); }

  // Returns the rates, and true if this call measured something.
  static std::pair<KeptRates, bool> Measure(const Model& model,
                                            const std::string& folder,
                                            double again_s = 60) {
    bool measured = false;
    const absl::StatusOr<KeptRates> kept = MeasureKnownRates(
        model, LayoutOf(model), folder, again_s, [&](uint64_t, uint64_t) {
          measured = true;
          return true;
        });
    EXPECT_TRUE(kept.ok()) << kept.status();
    return {kept.ok() ? *kept : KeptRates(), measured};
  }
  // Copies the measurement made for all tests into this test's folder.
  void MeasuredBefore() {
    fs::copy(measured_folder_, folder_, fs::copy_options::recursive);
  }
  // Replaces numbers in the only file.
  void Keep(double step_s, double spread, int attempts) {
    const fs::path file = *fs::directory_iterator(folder_);
    auto kept = nlohmann::json::parse(std::ifstream(file));
    kept["rates"]["step_s"] = step_s;
    kept["costs"]["step_s"] = 2 * step_s;
    kept["spread"] = spread;
    kept["attempts"] = attempts;
    std::ofstream(file) << kept;
  }
  std::optional<KeptRates> Known() const {
    return KnownRates(*model_, LayoutOf(*model_), folder_);
  }
  nlohmann::json Plan() const {
    const absl::StatusOr<nlohmann::json> plan =
        DescribePlan(*model_, {}, Known());
    EXPECT_TRUE(plan.ok()) << plan.status();
    return plan.ok() ? *plan : nlohmann::json();
  }

  static inline std::string measured_folder_;
  static inline KeptRates first_;
  static inline bool measured_first_ = false;
  std::string folder_;
  std::unique_ptr<Model> model_;
};

TEST_F(KnownRatesTest, NothingMeasuresUnasked) {
  EXPECT_FALSE(Known().has_value());
  const nlohmann::json plan = Plan();
  EXPECT_TRUE(plan["ttft_s"].is_null());
  EXPECT_TRUE(plan["tbt_ms"].is_null());
  EXPECT_TRUE(fs::is_empty(folder_));
}

TEST_F(KnownRatesTest, WhatWasMeasuredServesEveryone) {
  MeasuredBefore();
  Keep(/*step_s=*/0.5, /*spread=*/0, /*attempts=*/1);
  for (const bool weights : {true, false}) {
    const auto [kept, measured] = Measure(*Open({.weights = weights}), folder_);
    EXPECT_FALSE(measured);
    EXPECT_EQ(kept.best.rates.step_s, 0.5);
    EXPECT_EQ(kept.costs.step_s, 1);
  }
  const double layers = model_->config.layers;
  const Work work = {.cached = 0, .prompt = 100};
  const auto session = MakeSession(*model_);
  const KeptRates known = *Known();
  EXPECT_GE(PredictedBy(*session, known.best.rates, work).tbt_s, layers * 0.5);
  EXPECT_LT(PredictedBy(*session, known.best.rates, work).tbt_s, layers * 0.6);
  EXPECT_GE(PredictedBy(*session, known.costs, work).tbt_s, layers);
  EXPECT_EQ(known.Warning(), "");
  const nlohmann::json plan = Plan();
  EXPECT_GE(plan["tbt_ms"].get<double>(), layers * 500);
  EXPECT_TRUE(plan["warnings"].empty());

  // Rates of another type, thread count or layout are measured separately.
  for (const auto& [other, options] :
       {std::pair(Open({.compute = Compute::kF32}), Session::Options()),
        std::pair(Open({.machine = {.threads = 1}}), Session::Options()),
        std::pair(Open({.machine = {.device = DeviceKind::kRef}}),
                  Session::Options()),
        std::pair(Open({}), Session::Options{.type_k = DType::kF32}),
        std::pair(Open({}), Session::Options{.type_v = DType::kBF16})}) {
    EXPECT_FALSE(
        KnownRates(*other, LayoutOf(*other, options), folder_).has_value());
  }
}

// A prediction counts the tokens that were cached, read and generated.
TEST_F(KnownRatesTest, AReportPredictsItsOwnWork) {
  const Rates rates = {.prompt_row_s = 1,
                       .prompt_position_s = 1e-2,
                       .step_s = 1,
                       .step_position_s = 1e-2,
                       .logits_s = 1,
                       .copy_bytes_per_s = 1e9};
  const auto session = MakeSession(*model_);
  const std::vector<int32_t> ids(300, 1);
  for (const int64_t cached : {0, 100}) {
    const int64_t rows = 100 + cached;
    const absl::StatusOr<PrefillReport> prefill =
        Prefill(*session, ids.data(), static_cast<size_t>(rows),
                [](uint64_t, uint64_t) { return true; });
    ASSERT_TRUE(prefill.ok());
    GenerateParams params;
    params.max_tokens = 40;
    params.ignore_eos = true;
    const std::unique_ptr<Session> fork = *session->Fork();
    for (Session* const one : {session.get(), fork.get()}) {
      const bool is_fork = one == fork.get();
      Report report =
          Generate(*one, params, nullptr, is_fork ? PrefillReport() : *prefill);
      ASSERT_TRUE(report.status.ok());
      EXPECT_FALSE(report.predicted.has_value());
      AddPrediction(*one, rates, &report);
      const Work work = {.cached = is_fork ? cached + rows : cached,
                         .prompt = cached + rows,
                         .generated = 40};
      const Prediction want = PredictedBy(*one, rates, work);
      const std::optional<Prediction>& said = report.predicted;
      ASSERT_TRUE(said.has_value());
      EXPECT_EQ(said->ttft_s, want.ttft_s);
      EXPECT_EQ(said->tbt_s, want.tbt_s);
      // A plain form's fast steps count by their share.
      report.rounds.schedule = ScheduleReport{
          .plain = true,
          .taken = {{.steps = {9}}, {.slow = true, .steps = {3}}},
          .fast_positions = 20};
      AddPrediction(*one, rates, &report);
      Work mixed = work;
      mixed.fast = {20, 0.75};
      EXPECT_EQ(report.predicted->tbt_s, PredictedBy(*one, rates, mixed).tbt_s);
      EXPECT_NE(report.predicted->tbt_s, want.tbt_s);
    }
    session->Truncate(100);
  }
}

TEST_F(KnownRatesTest, TheHeaderIsEnough) {
  EXPECT_TRUE(measured_first_);
  EXPECT_GT(first_.best.rates.step_s, 0);
  EXPECT_TRUE(
      KnownRates(*model_, LayoutOf(*model_), measured_folder_).has_value());
}

TEST_F(KnownRatesTest, WhatIsNotSteadyIsSaidAndMeasuredAgain) {
  MeasuredBefore();
  Keep(/*step_s=*/0.5, /*spread=*/1e6, /*attempts=*/2);
  EXPECT_NE(Known()->Warning(), "");
  EXPECT_EQ(Plan()["warnings"], nlohmann::json::array({Known()->Warning()}));
  // It does not measure again if the last measurement took longer than
  // `again_s`.
  const double last_s = Known()->best.seconds;
  EXPECT_GT(last_s, 0);
  for (const double again_s : {-1.0, 0.0, 0.99 * last_s}) {
    EXPECT_FALSE(Measure(*model_, folder_, again_s).second);
    EXPECT_EQ(Known()->best.attempts, 2);
  }
  const auto [kept, measured] = Measure(*model_, folder_, last_s);
  EXPECT_TRUE(measured);
  EXPECT_LT(kept.best.spread, 1e6);
  EXPECT_LT(kept.best.rates.step_s, 0.5);
  EXPECT_EQ(kept.costs.step_s, 1);  // as they were
  EXPECT_EQ(kept.best.attempts, 3);
  // Attempts are limited: some machines are never quiet.
  Keep(/*step_s=*/0.5, /*spread=*/1e6, MeasuringAgain::kMostAttempts);
  EXPECT_FALSE(Measure(*model_, folder_).second);
}

TEST_F(KnownRatesTest, StoppedItKeepsNothing) {
  uint64_t calls = 0;
  for (const bool weights : {true, false}) {
    const auto model = Open({.weights = weights});
    EXPECT_EQ(ClassOf(MeasureKnownRates(
                          *model, LayoutOf(*model), folder_, /*again_s=*/60,
                          [&](uint64_t, uint64_t) { return ++calls % 40 != 0; })
                          .status()),
              ErrorClass::kCancelled);
    EXPECT_EQ(calls % 40, 0);
    EXPECT_TRUE(fs::is_empty(folder_));
  }
}

TEST_F(KnownRatesTest, WhereNothingCanBeKeptNothingIsMeasured) {
  EXPECT_EQ(CodeOf(MeasureKnownRates(*model_, LayoutOf(*model_), "/dev/null/x",
                                     /*again_s=*/0,
                                     [](uint64_t, uint64_t) {
                                       ADD_FAILURE();
                                       return true;
                                     })
                       .status()),
            "cannot_write");
}

}  // namespace
}  // namespace tiercel::known_rates_test

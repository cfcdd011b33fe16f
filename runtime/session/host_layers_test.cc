// Layers whose weights lie in the host tier give the same bytes, and cross the
// link once a pass.

#include <algorithm>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/system/testing.h"
#include "lib/status/error.h"
#include "runtime/plan/plan.h"
#include "runtime/policies/policy.h"
#include "tests/drafting.h"
#include "tests/tiers.h"

namespace tiercel::host_layers_test {
namespace {

class HostLayersTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    model_ = OpenReference(
                 {.path = Deepened("llama_chat"), .machine = {.threads = 2}})
                 .release();
    prompt_ = new Ids(RepeatedText(60, 14));
  }
  static void TearDownTestSuite() {
    delete prompt_;
    delete model_;
  }

  // Opens the model with such layers, on a device that has room for a session
  // of `options` beside the other layers; `all`: for all layers.
  static std::unique_ptr<Model> Open(int count, const Session::Options& options,
                                     double link = kFast, bool all = true) {
    Model::Options with = model_->options;
    with.host_layers = count;
    int64_t bytes = BytesFor(*model_, options, Budget::kMiddle);
    if (!all) bytes = BytesFor(*model_, options, Budget::kLeast) - Saved(count);
    with.machine.simulation = {{.bytes = bytes, .link = {link, 0}}};
    return OpenModel(with);
  }
  // Bytes of the device that `count` host layers leave to others.
  static int64_t Saved(int count) {
    const auto sizes = MeasureWeights(*model_->checkpoint, model_->config);
    int64_t most = 0;
    int64_t bytes = 0;
    for (int layer : StreamedLayers::Choose(count, model_->config.layers)) {
      const int64_t own = sizes->layers[static_cast<size_t>(layer)];
      most = std::max(most, own);
      bytes += own;
    }
    return bytes - 2 * most;
  }

  static inline Model* model_ = nullptr;  // it has six layers
  static inline Ids* prompt_ = nullptr;
};

TEST_F(HostLayersTest, LogitsAreTheSameBytes) {
  const std::vector<int32_t> ids = RandomIds(300, model_->config.vocab);
  const Session::Options options = {.context = 400};
  const auto whole = MakeSession(*model_, options);
  const std::vector<float> expected = AllLogits(*whole, ids, 300);
  for (const int count : {3, 4, 6}) {
    for (const size_t rows : {1, 64, 300}) {
      const auto model = Open(count, options);
      ASSERT_NE(model, nullptr);
      const auto session = MakeSession(*model, options);
      EXPECT_TRUE(SameBits(AllLogits(*session, ids, rows), expected))
          << count << " " << rows;
    }
  }
}

TEST_F(HostLayersTest, TextsOfPoliciesAreTheSame) {
  for (const char* name : {"full", "triforce", "speed"}) {
    PolicyParams params = {.policy = PolicyNamed(name),
                           .proposer = Proposer::kNgram,
                           .verify = VerifyMode::kCoupled,
                           .view = kSmallView};
    const Session::Options options =
        params.OptionsFor(*model_, {.context = 1400});
    const auto text = [&](const Model& model) {
      const auto session = Prefilled(model, *prompt_, options);
      return DraftedText(*session, DraftedParams(0.8f, 30), params);
    };
    const Ids expected = text(*model_);
    for (const int count : {3, 6}) {
      EXPECT_EQ(text(*Open(count, options)), expected) << name << " " << count;
    }
  }
}

// The device has room for the other layers alone; each pass moves the bytes of
// every host layer, whatever it is for.
TEST_F(HostLayersTest, AModelThatDoesNotFitRuns) {
  const Session::Options options = {.context = 300};
  const auto sizes = MeasureWeights(*model_->checkpoint, model_->config);
  ASSERT_TRUE(sizes.ok());
  const auto model = Open(6, options, kFast, /*all=*/false);
  ASSERT_NE(model, nullptr);
  EXPECT_LT(model->machine->DeviceBudget(),
            BytesFor(*model_, options, Budget::kLeast));
  const auto measured = model->MeasureRanks();
  ASSERT_TRUE(measured.ok());
  EXPECT_EQ(measured->front().bytes, model->machine->memory().used());
  EXPECT_EQ(measured->front().bytes, sizes->bytes - Saved(6));
  const int64_t pass = measured->front().host_bytes;

  const auto session = MakeSession(*model, options);
  ASSERT_NE(session, nullptr);
  const Ids ids(prompt_->begin(), prompt_->begin() + 100);
  const auto read = Prefill(*session, ids.data(), ids.size(), kNoProgress);
  ASSERT_TRUE(read.ok());
  const auto policy = NewPolicy(*session, {});
  const Report report =
      Generate(*session, **policy, *read, DraftedParams(0.0f, 5), nullptr);
  ASSERT_TRUE(report.status.ok()) << report.status;
  const Traffic traffic = session->traffic();
  // Five tokens take four passes after the prompt's; the first layer is on its
  // way for the next.
  EXPECT_GE(traffic.moves.weight_bytes, 5 * pass);
  EXPECT_LT(traffic.moves.weight_bytes, 6 * pass);
  const nlohmann::json ledger = report.ToJson()["ledger"];
  EXPECT_EQ(ledger["formula"]["weight_bytes"], traffic.moves.weight_bytes);
  EXPECT_EQ(ledger["h2d_bytes"], traffic.ranks.at(0).h2d_bytes);
  EXPECT_GT(ledger["phases"]["verify"]["h2d_bytes"], 3 * pass);
}

// A header tells what the weights take of each tier.
TEST_F(HostLayersTest, AreInThePlan) {
  const Session::Options options = {.context = 300};
  const auto model = Open(3, options);
  Model::Options with = model->options;
  with.weights = false;
  const auto header = OpenModel(with);
  for (const Model* of : {model.get(), header.get()}) {
    const auto plan = DescribePlan(*of, options);
    ASSERT_TRUE(plan.ok()) << plan.status();
    const nlohmann::json& tiers = (*plan)["tiers"];
    EXPECT_EQ(tiers["device"]["weights"], model->machine->memory().used());
    EXPECT_EQ(tiers["host"]["weights"],
              model->MeasureRanks()->front().host_bytes);
    EXPECT_EQ((*plan)["fits"], true);
  }
  // The machine's memory holds them, too.
  EXPECT_GE(PromisedBytesOn(*model->machine),
            model->MeasureRanks()->front().host_bytes);
  EXPECT_EQ(PromisedBytesOn(*header->machine), 0);
}

// Sessions may compute at the same time, each at a layer of its own, and a
// callback of one may run another.
TEST_F(HostLayersTest, SessionsShareTheLayers) {
  const Session::Options options = {.context = 900};
  const Ids expected = DraftedText(*Prefilled(*model_, *prompt_, options),
                                   DraftedParams(0.8f, 20), {});
  Model::Options with = model_->options;
  with.host_layers = 4;
  with.machine.simulation = {{.bytes = int64_t{1} << 30, .link = {kFast, 0}}};
  const auto model = OpenModel(with);
  ASSERT_NE(model, nullptr);
  const auto text = [&](Ids* out) {
    *out = DraftedText(*Prefilled(*model, *prompt_, options),
                       DraftedParams(0.8f, 20), {});
  };
  Ids texts[3];
  std::thread first([&] { text(&texts[0]); });
  std::thread second([&] { text(&texts[1]); });
  const auto session = MakeSession(*model, options);
  int calls = 0;
  const auto read = Prefill(*session, prompt_->data(), prompt_->size(),
                            [&](uint64_t, uint64_t) {
                              if (++calls == 3) text(&texts[2]);
                              return true;
                            });
  first.join();
  second.join();
  ASSERT_TRUE(read.ok());
  EXPECT_GE(calls, 3);
  for (const Ids& ids : texts) EXPECT_EQ(ids, expected);
  EXPECT_EQ(DraftedText(*session, DraftedParams(0.8f, 20), {}), expected);
}

// An error says how many layers would do, and they do.
TEST_F(HostLayersTest, WeightsThatDoNotFitNameACount) {
  Model::Options with = model_->options;
  const auto sizes = MeasureWeights(*model_->checkpoint, model_->config);
  const int64_t bytes = sizes->bytes - Saved(4);
  with.machine.simulation = {{.bytes = bytes, .link = {kFast, 0}}};
  const auto open = [&] {
    return Model::Open(with, [](uint64_t, uint64_t) { return true; }).status();
  };
  const absl::Status refused = open();
  EXPECT_EQ(CodeOf(refused), "out_of_memory");
  EXPECT_NE(refused.message().find("the weights of 4 of 6 layers"),
            std::string::npos)
      << refused;
  with.host_layers = 3;
  EXPECT_EQ(CodeOf(open()), "out_of_memory");
  with.host_layers = 4;
  EXPECT_TRUE(open().ok());
}

TEST_F(HostLayersTest, CountsThatCannotBeAreRefused) {
  const auto opened = [&](int count, int ranks, bool behind_a_link) {
    Model::Options with = model_->options;
    with.machine.device = DeviceKind::kCpu;
    with.host_layers = count;
    with.ranks = ranks;
    if (behind_a_link) {
      with.machine.simulation = {
          {.bytes = int64_t{1} << 28, .link = {kFast, 0}}};
    }
    const auto model =
        Model::Open(with, [](uint64_t, uint64_t) { return true; });
    return model.ok() ? "" : CodeOf(model.status());
  };
  EXPECT_EQ(opened(3, 1, true), "");
  for (const int count : {-1, 1, 2, 7}) {
    EXPECT_EQ(opened(count, 1, true), "invalid_host_layers") << count;
  }
  EXPECT_EQ(opened(3, 2, true), "invalid_host_layers");
  EXPECT_EQ(opened(3, 1, false), "invalid_host_layers");

  const auto of_two =
      Model::Open({.path = CheckpointPath("qwen2"), .host_layers = 3},
                  [](uint64_t, uint64_t) { return true; });
  ASSERT_FALSE(of_two.ok());
  EXPECT_NE(of_two.status().message().find("need 0, as the model has 2"),
            std::string::npos)
      << of_two.status();
}

}  // namespace
}  // namespace tiercel::host_layers_test

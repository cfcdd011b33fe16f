#include "runtime/plan/session_plan.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/status/error.h"

namespace tiercel {
namespace {

ModelConfig Shape(int layers, int heads, int head_dim) {
  ModelConfig config;
  config.layers = layers;
  config.heads = heads;
  config.head_dim = head_dim;
  return config;
}

// The view's memory is counted as it is taken: in q8_0 if a head has whole
// blocks, whatever the store's types.
TEST(SessionSiteTest, AViewHoldsTheSmallestRows) {
  ModelConfig config = Shape(30, 9, 64);
  for (const auto& [head_dim, type] :
       {std::pair(64, DType::kQ8_0), {72, DType::kF16}}) {
    const SessionSite site = {.config = config,
                              .weights = {},
                              .layout = {DType::kF16, DType::kF16, 3, head_dim},
                              .retrieval = RetrievalSize()};
    const Retrieval::Shape shape = site.RetrievalShape(8000);
    EXPECT_EQ(shape.layout.type_k, DType::kF16);
    EXPECT_EQ(shape.view_layout.type_k, type);
    EXPECT_EQ(shape.view_layout.type_v, type);
    EXPECT_EQ(shape.view_layout.head_dim, head_dim);
    EXPECT_EQ(shape.view_layout.kv_heads, 3);
  }
}

// Llama2-7B-128K in f16 on a card of 24 GB, less what its driver takes.
class CardTest : public testing::Test {
 protected:
  static ModelConfig Llama2() {
    ModelConfig config = Shape(32, 32, 128);
    config.kv_heads = 32;
    config.hidden = 4096;
    config.ffn = 11008;
    config.vocab = 32000;
    config.rope_dims = 128;
    config.context = 1 << 17;
    return config;
  }

  const ModelConfig config_ = Llama2();
  SessionSite site_ = {.config = config_,
                       .weights = {.bytes = 13'477'363'712},
                       .layout = {DType::kF16, DType::kF16, 32, 128},
                       .retrieval = RetrievalSize{.budget = 8192},
                       .device = {DeviceKind::kCuda, /*apart=*/true},
                       .device_bytes = int64_t{23} << 30};

  // The model on two such cards; `split` has two ranks and outlives the result.
  std::vector<SessionSite> OverTwo(const ModelSplit& split) const {
    std::vector<SessionSite> sites(2, site_);
    for (int rank = 0; rank < 2; ++rank) {
      SessionSite& site = sites[static_cast<size_t>(rank)];
      site.split = &split;
      site.rank = rank;
      site.layout.kv_heads = 16;
      site.weights.bytes /= 2;
    }
    return sites;
  }
};

TEST_F(CardTest, HoldsWhatTriForceNeeds) {
  const TierPlan plan = site_.PlanFor(1 << 17);
  EXPECT_TRUE(plan.fits());
  EXPECT_FALSE(plan.in_place);
  EXPECT_EQ(plan.host_kv, int64_t{1} << 36);
  // A prompt's hidden states are in the host tier, but for three blocks of
  // rows.
  EXPECT_EQ(plan.host_states, int64_t{1} << 31);
  EXPECT_EQ(plan.state_rows, 3 * 1024);
  EXPECT_GT(plan.shape.resident_pages, 0);
  // With them on the card 22 GiB would be too few.
  site_.device_bytes = int64_t{22} << 30;
  EXPECT_TRUE(site_.PlanFor(1 << 17).fits());
  site_.device_bytes = int64_t{20} << 30;
  EXPECT_FALSE(site_.PlanFor(1 << 17).fits());
}

// A fork begins within a page, and has a view; of rows that pass together the
// device has folds, and the host the logits.
TEST_F(CardTest, CountsForks) {
  const TierNeeds alone = site_.Needs(1 << 17);
  site_.forks = 3;
  site_.fork_tokens = 300;
  const TierNeeds needs = site_.Needs(1 << 17);
  EXPECT_EQ(needs.forks.count, 3);
  EXPECT_EQ(needs.forks.pages, 3 + 1);
  EXPECT_EQ(needs.views, 4 * alone.views);
  EXPECT_EQ(site_.RowsTogether(), 4 * kMaxStepRows);
  EXPECT_EQ(needs.workspace - alone.workspace, 2 * 4 * kMaxStepRows * 32 * 4);
  EXPECT_EQ(needs.distributions - alone.distributions,
            4 * kMaxStepRows * 32000 * 4);
}

TEST_F(CardTest, ForksHaveBounds) {
  const auto check = [this](int64_t forks, int64_t tokens) {
    SessionOptions options;
    options.forks = forks;
    options.fork_tokens = tokens;
    return CheckSessionOptions(config_, options);
  };
  EXPECT_TRUE(check(63, 1 << 17).ok());
  for (const int64_t wrong : {-1, 64}) {
    EXPECT_EQ(CodeOf(check(wrong, 0)), "invalid_argument") << wrong;
  }
  for (const int64_t wrong : {-1, (1 << 17) + 1}) {
    EXPECT_EQ(CodeOf(check(1, wrong)), "invalid_argument") << wrong;
  }
}

// While a layer of a prompt goes to disk, its hidden states are there twice.
TEST_F(CardTest, CountsTheStatesOfKeptLayers) {
  constexpr int64_t kContext = 1 << 17;
  constexpr int64_t kStates = kContext * 4096 * 4;
  const int64_t without = site_.MachineBytes(site_.PlanFor(kContext));
  site_.keeps_layers = true;
  const TierPlan plan = site_.PlanFor(kContext);
  EXPECT_EQ(plan.host_states,
            2 * kStates);  // computed, and on their way to disk
  EXPECT_EQ(site_.MachineBytes(plan), without + kStates);
  site_.machine_bytes = without + kStates - 1;
  EXPECT_FALSE(site_.Fits(kContext));
  ++site_.machine_bytes;
  EXPECT_TRUE(site_.Fits(kContext));
  // Layers are not saved if the KV is on the card alone.
  EXPECT_EQ(site_.PlanFor(4096).host_states, 0);
  EXPECT_EQ(site_.MachineBytes(site_.PlanFor(4096)), 0);
  // In place the states count in the one budget.
  SessionSite in_place = site_;
  in_place.device = {};
  in_place.device_bytes = in_place.LeastDeviceBytes(kContext);
  in_place.machine_bytes = int64_t{1} << 40;
  EXPECT_TRUE(in_place.Fits(kContext));
  --in_place.device_bytes;
  EXPECT_FALSE(in_place.Fits(kContext));
  in_place.device_bytes += 1 - kStates;
  EXPECT_FALSE(in_place.Fits(kContext));
  in_place.keeps_layers = false;
  EXPECT_TRUE(in_place.Fits(kContext));
}

// KV that fits stays on the card, and takes no host memory.
TEST_F(CardTest, HasAHostTierWhereTheKvDoesNotFit) {
  const TierPlan small = site_.PlanFor(4096);
  EXPECT_TRUE(small.on_device);
  EXPECT_TRUE(small.in_place);
  EXPECT_TRUE(small.fits());
  EXPECT_EQ(site_.MachineBytes(small), 0);
  site_.machine_bytes = (int64_t{1} << 36) + (int64_t{1} << 31);
  EXPECT_TRUE(site_.Fits(1 << 17));
  --site_.machine_bytes;
  EXPECT_FALSE(site_.Fits(1 << 17));
  EXPECT_TRUE(site_.Fits(4096));
  // A simulated device always has both tiers.
  site_.device.limited = true;
  EXPECT_FALSE(site_.PlanFor(4096).in_place);
}

// An error names the rank that does not fit.
TEST_F(CardTest, TheRankThatDoesNotFitIsNamed) {
  const absl::StatusOr<ModelSplit> split = ModelSplit::Create(config_, 2);
  ASSERT_TRUE(split.ok()) << split.status();
  SessionSite alone = site_;
  alone.device_bytes = int64_t{1} << 30;
  std::vector<SessionSite> sites = OverTwo(*split);
  sites[1].device_bytes = int64_t{1} << 30;
  for (const int64_t context : {int64_t{1} << 17, int64_t{0}}) {
    const absl::Status status = PlanRanks(sites, context).status();
    EXPECT_EQ(CodeOf(status), "does_not_fit");
    EXPECT_THAT(std::string(status.message()),
                testing::StartsWith("rank 1 of 2: context "));
  }
  EXPECT_THAT(std::string(CheckRanksFit({alone}, 1 << 17).message()),
              testing::StartsWith("context 131072 needs "));
}

// The error comes from the first rank without room, but names a context that
// all ranks have room for.
TEST_F(CardTest, NamesAContextThatAllRanksServe) {
  const auto split = ModelSplit::Create(config_, 2);
  ASSERT_TRUE(split.ok()) << split.status();
  std::vector<SessionSite> sites = OverTwo(*split);
  sites[0].host_bytes = int64_t{28} << 30;
  sites[1].host_bytes = int64_t{20} << 30;
  const int64_t most = LargestContext(sites, 1 << 17);
  EXPECT_GT(most, 0);
  EXPECT_LT(most, sites[0].LargestContext(1 << 17));
  const absl::Status status = CheckRanksFit(sites, 1 << 17);
  EXPECT_THAT(std::string(status.message()),
              testing::StartsWith("rank 0 of 2: context "));
  EXPECT_THAT(std::string(status.message()),
              testing::EndsWith("a context of " + std::to_string(most)));
  EXPECT_TRUE(CheckRanksFit(sites, most).ok());
}

// With a large vocabulary the packed rows of logits take more than any op.
TEST_F(CardTest, HasRoomForWhatRanksGather) {
  ModelConfig config = config_;
  config.vocab = 250'000;
  const auto split = ModelSplit::Create(config, 2);
  ASSERT_TRUE(split.ok()) << split.status();
  SessionSite site = {.config = config,
                      .weights = {},
                      .layout = {},
                      .device = {DeviceKind::kCuda, /*apart=*/true}};
  const int64_t alone = site.Scratch(4096);
  EXPECT_LT(alone, LogitRows() * 250'000 * 4);
  site.split = &*split;
  EXPECT_GE(site.Scratch(4096), LogitRows() * 250'000 * 4);
  site.device = {};
  EXPECT_LT(site.Scratch(4096), LogitRows() * 250'000 * 4);
}

}  // namespace
}  // namespace tiercel

#include "runtime/plan/prediction.h"

#include <algorithm>
#include <cmath>

#include "gtest/gtest.h"
#include "kernels/system/resource_limits.h"

namespace tiercel {
namespace {

constexpr Rates kRates = {.prompt_row_s = 1e-4,
                          .prompt_position_s = 1e-8,
                          .step_s = 1e-3,
                          .step_position_s = 1e-7,
                          .logits_s = 5e-3,
                          .copy_bytes_per_s = 0,
                          .copy_slowdown = 1};
constexpr int kLayers = 10;
constexpr double kClose = 1e-9;

class PredictionTest : public testing::Test {
 protected:
  PredictionTest() {
    config_.layers = kLayers;
    config_.hidden = 64;
    config_.heads = 4;
    config_.kv_heads = 2;
    config_.head_dim = 16;
    config_.ffn = 128;
    config_.rope_dims = 16;
    config_.context = 8192;
  }

  SessionSite Site(bool in_place, int64_t device_bytes) const {
    return {.config = config_,
            .weights = {.bytes = 1'000'000, .bytes_per_token = 1'000'000},
            .layout = {DType::kF16, DType::kF16, config_.kv_heads,
                       config_.head_dim},
            .threads = 1,
            .device = {.limited = !in_place},
            .device_bytes = device_bytes};
  }
  // 128 positions of 2 heads of 16, K and V, 2 bytes each
  static constexpr int64_t kPageBytes = 128 * 2 * 16 * 2 * 2;

  ModelConfig config_;
};

TEST_F(PredictionTest, InPlaceIsWhatItsPartsTake) {
  const SessionSite site = Site(/*in_place=*/true, int64_t{1} << 40);
  const TierPlan plan = site.PlanFor(4096);
  const Prediction p = Predict(site, plan, std::nullopt, kRates,
                               {.cached = 0, .prompt = 1000, .generated = 100});
  // 1000 rows that attend to 1 to 1000 positions
  EXPECT_NEAR(p.ttft_s, kLayers * (1000 * 1e-4 + 1000 * 1001 / 2 * 1e-8) + 5e-3,
              kClose);
  // the token after 1,050
  EXPECT_NEAR(p.tbt_s, kLayers * (1e-3 + 1051 * 1e-7) + 5e-3, kClose);
  EXPECT_EQ(p.memory.host, 9 * kLayers * kPageBytes);  // 1,100 positions
  EXPECT_EQ(p.memory.device, site.PlanFor(1000).DeviceBytes());
}

// A block of some rows reads the experts of all of them: here half of a token's
// bytes are of 2 of 8 experts, so 4 rows are expected to read
// 8 (1 - 0.75^4) / 2 = 2.734 times those.
TEST_F(PredictionTest, FewRowsReadMoreExpertsThanOne) {
  SessionSite site = Site(/*in_place=*/true, int64_t{1} << 40);
  const auto sweep_s = [&](int64_t rows) {
    return Predict(site, site.PlanFor(4096), std::nullopt, kRates,
                   {.cached = 100, .prompt = 100 + rows})
        .ttft_s;
  };
  const double dense = sweep_s(4);
  config_.experts = {.count = 8, .used = 2, .ffn = 64};
  site.weights.expert_bytes = site.weights.bytes_per_token / 2;
  const double more = 0.5 * (8 * (1 - std::pow(0.75, 4)) / 2 - 1);
  EXPECT_NEAR(sweep_s(4) - dense, kLayers * kRates.step_s * more, kClose);
  EXPECT_NEAR(sweep_s(1),
              kLayers * (kRates.step_s + 101 * kRates.prompt_position_s) +
                  kRates.logits_s,
              kClose);
}

// Layers whose weights lie in the host tier take the link for 5 ms each, in
// every pass.
TEST_F(PredictionTest, WeightsOfTheHostTierCrossTheLink) {
  SessionSite site = Site(/*in_place=*/false, int64_t{1} << 40);
  const LinkRate link = {1e9, 0};
  const auto predicted = [&](int64_t prompt, double share) {
    return Predict(site, site.PlanFor(4096), link, kRates,
                   {.cached = 0,
                    .prompt = prompt,
                    .generated = 100,
                    .fast = {300, share}});
  };
  const Prediction without = predicted(1000, 1);
  const double rows = predicted(1000, 0).ttft_s;
  site.weights.host_bytes = kLayers * 5'000'000;
  EXPECT_LT(without.tbt_s, 0.02);
  EXPECT_NEAR(predicted(1000, 1).tbt_s, kLayers * 5e-3, 1e-3);
  EXPECT_NEAR(predicted(1000, 0).tbt_s, kLayers * 5e-3, 1e-3);
  // A prompt's rows take longer than the weights, but for the first layer's.
  EXPECT_NEAR(predicted(1000, 0).ttft_s, rows + 5e-3, 1e-3);
  EXPECT_NEAR(predicted(1, 0).ttft_s, kLayers * 5e-3, 7e-3);
}

TEST_F(PredictionTest, AViewIsThatOfTheWholeContext) {
  SessionSite site = Site(/*in_place=*/true, int64_t{1} << 40);
  const auto device = [&](int64_t context) {
    return Predict(site, site.PlanFor(context), std::nullopt, kRates,
                   {.cached = 980, .prompt = 1000, .generated = 100})
        .memory.device;
  };
  const int64_t rows = device(4096);
  site.retrieval = RetrievalSize();
  EXPECT_EQ(device(4096), rows + site.PlanFor(4096).views);
  EXPECT_GT(device(8192), device(4096));
}

// Three steps of four read 300 positions, and wait for no copy.
TEST_F(PredictionTest, FastStepsTakeWhatTheyRead) {
  const Work work = {.prompt = 1000, .generated = 100, .fast = {300, 0.75}};
  const double fast = kLayers * (1e-3 + 300 * 1e-7) + 5e-3;
  const auto tbt = [&](bool in_place, Work of) {
    const SessionSite site =
        Site(in_place, in_place ? int64_t{1} << 40 : 8'000'000);
    const LinkRate link = {.bytes_per_s = 1e7, .latency_s = 0};
    return Predict(site, site.PlanFor(4096),
                   in_place ? std::nullopt : std::optional(link), kRates, of)
        .tbt_s;
  };
  for (const bool in_place : {false, true}) {
    Work none = work;
    none.fast.share = 0;
    EXPECT_NEAR(tbt(in_place, work), 0.75 * fast + 0.25 * tbt(in_place, none),
                kClose);
    Work all = work;
    all.fast = {5000, 1};  // as much as there is
    EXPECT_NEAR(tbt(in_place, all), kLayers * (1e-3 + 1051 * 1e-7) + 5e-3,
                kClose);
  }
}

// The link and the host, which is as fast, work at the same time. The first
// pages are resident.
TEST_F(PredictionTest, TheHostTakesAShareOfSweeps) {
  const LinkRate link = {.bytes_per_s = 1e7, .latency_s = 0};
  const Work work = {.prompt = 3000, .generated = 2};
  SessionSite site = Site(/*in_place=*/false, 8'000'000);
  site.link_bytes_per_s = link.bytes_per_s;
  const Prediction alone =
      Predict(site, site.PlanFor(4096), link, kRates, work);
  site.host_bytes_per_s = 1e7;
  const TierPlan plan = site.PlanFor(4096);
  EXPECT_EQ(plan.host_buffers,
            HostAttention::HostBytes(site.ShareOptions(), site.threads));
  const int64_t pages = 3001 / kPageTokens - plan.shape.resident_pages;
  const int64_t hosts = plan.shape.host.Pages(pages);
  EXPECT_GT(hosts, pages / 3);
  EXPECT_LE(hosts, pages / 2);
  const Prediction shared = Predict(site, plan, link, kRates, work);
  const double left =
      static_cast<double>(pages - hosts) / static_cast<double>(pages);
  EXPECT_DOUBLE_EQ(shared.swept_bytes, alone.swept_bytes * left);
  EXPECT_NEAR(shared.tbt_s, alone.tbt_s * left, alone.tbt_s * 0.02);
}

// Seven of ten layers have the whole prompt; the other three have its last two
// rows, its first position and the answer.
TEST_F(PredictionTest, AShallowPromptTakesTheFullLayers) {
  SessionSite site = Site(/*in_place=*/true, int64_t{1} << 40);
  site.extent = KvExtent{.full_layers = 7, .sinks = 1, .tail = 2};
  const Work work = {.cached = 0, .prompt = 1000, .generated = 100};
  const Prediction p =
      Predict(site, site.PlanFor(4096), std::nullopt, kRates, work);
  EXPECT_NEAR(p.ttft_s,
              7 * (1000 * 1e-4 + 1000 * 1001 / 2 * 1e-8) + 3 * 1e-3 + 5e-3,
              kClose);
  EXPECT_NEAR(p.tbt_s, 7 * (1e-3 + 1051 * 1e-7) + 3 * (1e-3 + 54 * 1e-7) + 5e-3,
              kClose);
  // Nine pages; in the three layers above the first page, and the two with
  // positions 998 to 1,099.
  EXPECT_EQ(p.memory.host, (9 * 7 + 3 * 3) * kPageBytes);

  const LinkRate link = {.bytes_per_s = 1e7, .latency_s = 0};
  const auto behind = [&](bool shallow) {
    SessionSite tiered = Site(/*in_place=*/false, 8'000'000);
    if (shallow) tiered.extent = site.extent;
    const TierPlan plan = tiered.PlanFor(4096);
    EXPECT_EQ(plan.shape.resident_pages, 0);
    return Predict(tiered, plan, link, kRates, work);
  };
  // A sweep that waits for the link takes seven tenths of one.
  EXPECT_NEAR(behind(true).tbt_s / behind(false).tbt_s, 0.7, 0.05);
}

TEST_F(PredictionTest, CachedTokensAreAttendedToAndNotComputed) {
  const SessionSite site = Site(/*in_place=*/true, int64_t{1} << 40);
  const TierPlan plan = site.PlanFor(4096);
  const Prediction p = Predict(site, plan, std::nullopt, kRates,
                               {.cached = 900, .prompt = 1000, .generated = 1});
  EXPECT_NEAR(
      p.ttft_s,
      kLayers * (100 * 1e-4 + (100 * 900 + 100 * 101 / 2) * 1e-8) + 5e-3,
      kClose);
}

// However few rows a prompt has, every layer's weights are read.
TEST_F(PredictionTest, ARowTakesAsLongAsAStep) {
  const SessionSite site = Site(/*in_place=*/true, int64_t{1} << 40);
  const Prediction p = Predict(site, site.PlanFor(4096), std::nullopt, kRates,
                               {.cached = 900, .prompt = 901});
  EXPECT_NEAR(p.ttft_s, kLayers * (1e-3 + 901 * 1e-8) + 5e-3, kClose);
}

// Earlier pages come to the device for every layer, and do not go back.
TEST_F(PredictionTest, APromptThatGoesOnReadsWhatWasThere) {
  SessionSite site = Site(/*in_place=*/false, 0);
  site.device_bytes = site.LeastDeviceBytes(4096);
  const TierPlan plan = site.PlanFor(4096);
  ASSERT_EQ(plan.shape.resident_pages, 0);
  const Prediction p = Predict(site, plan, LinkRate{1e6, 0}, kRates,
                               {.cached = 1280, .prompt = 1408});
  // Ten pages up, one down; computing hides behind them.
  EXPECT_NEAR(p.ttft_s, kLayers * 11 * kPageBytes / 1e6 + 5e-3, kClose);
}

TEST_F(PredictionTest, ASlowLinkTakesWhatItsBytesTake) {
  SessionSite site = Site(/*in_place=*/false, 0);
  site.device_bytes = site.LeastDeviceBytes(4096);
  const TierPlan plan = site.PlanFor(4096);
  ASSERT_EQ(plan.shape.resident_pages, 0);
  const LinkRate link = {.bytes_per_s = 1e6, .latency_s = 0};
  const Work work = {.cached = 0, .prompt = 1280, .generated = 20};
  const Prediction p = Predict(site, plan, link, kRates, work);
  EXPECT_NEAR(p.tbt_s, kLayers * 10 * kPageBytes / 1e6, kClose);
  EXPECT_EQ(p.memory.host, 10 * kLayers * kPageBytes);
  EXPECT_EQ(p.memory.device, plan.DeviceBytes());
  // Each transfer waits once more.
  const Prediction late =
      Predict(site, plan, LinkRate{1e6, 1e-3}, kRates, work);
  EXPECT_NEAR(late.tbt_s - p.tbt_s, kLayers * 1e-3, kClose);
  // A prompt's pages go to the host once: on a slow link that takes all the
  // time after the first layer.
  const double layer = 1280 * 1e-4 + 1280 * 1281 / 2 * 1e-8;
  const double down = 10 * kPageBytes / 1e6;
  ASSERT_GT(down, layer);
  EXPECT_NEAR(p.ttft_s, layer + kLayers * down + 5e-3, 1e-6);
}

// Hidden states of a prompt that has more rows than the device holds cross the
// link twice in every layer, in blocks of 512.
TEST_F(PredictionTest, ALongPromptsStatesComeAndGo) {
  SessionSite site = Site(/*in_place=*/false, 0);
  site.device_bytes = site.LeastDeviceBytes(4096);
  const TierPlan plan = site.PlanFor(4096);
  ASSERT_EQ(plan.state_rows, 1536);
  const auto ttft = [&](int64_t rows, const LinkRate& link) {
    return Predict(site, plan, link, kRates, {.cached = 0, .prompt = rows})
        .ttft_s;
  };
  const LinkRate slow = {.bytes_per_s = 1e6, .latency_s = 0};
  const double layer = 2 * 2048 * 64 * 4 / 1e6;  // more than it computes
  const double down = 16 * kPageBytes / 1e6;
  EXPECT_NEAR(ttft(2048, slow), kLayers * (layer + down) + 5e-3, 0.05);
  EXPECT_NEAR(ttft(2048, {1e6, 1e-3}) - ttft(2048, slow),
              kLayers * (2 * 4 + 1) * 1e-3, 1e-2);
  EXPECT_LT(ttft(1536, slow), kLayers * layer / 2);
  // A fast one hides them.
  EXPECT_NEAR(ttft(2048, {1e12, 0}),
              kLayers * (2048 * 1e-4 + 2048 * 2049 / 2 * 1e-8) + 5e-3, 1e-3);
}

// Pages on disk cost a sweep the time to read their bytes, without a link and
// behind one that is faster; pages in memory cost the disk nothing.
TEST_F(PredictionTest, PagesOnDiskTakeWhatTheirBytesTake) {
  Rates rates = kRates;
  rates.disk_bytes_per_s = 1e6;
  const auto step = [&](const TierPlan& plan,
                        const std::optional<LinkRate>& link) {
    const SessionSite site = Site(/*in_place=*/false, int64_t{1} << 30);
    return Predict(site, plan, link, rates,
                   {.cached = 0, .prompt = 4000, .generated = 0})
        .tbt_s;
  };
  const SessionSite site = Site(/*in_place=*/false, 0);
  const TierNeeds needs = site.Needs(4096);
  const int64_t least = PlanTiers(needs, 0).DeviceBytes();
  TierPlan plan = PlanWithDisk(needs, least, /*pages_budget=*/0);
  ASSERT_EQ(plan.shape.resident_pages, 0);
  const double layer_s = 31 * kPageBytes / 1e6;  // full pages before 4,000
  // The disk is busy all the time, but for the work after the last layer.
  EXPECT_NEAR(step(plan, std::nullopt), kLayers * layer_s, 1e-6);
  EXPECT_NEAR(step(plan, LinkRate{1e9, 0}), kLayers * layer_s, 1e-6);
  EXPECT_GT(step(plan, LinkRate{1e5, 0}), 9 * kLayers * layer_s);
  plan.shape.disk_pages = 16;  // the last of 32
  EXPECT_NEAR(step(plan, LinkRate{1e9, 0}), kLayers * layer_s * 15 / 31, 1e-6);
  // Reading slows computation if the same CPU does both.
  rates.disk_bytes_per_s = 1e9;
  rates.disk_bytes_per_cpu_s = 1e7;
  rates.copy_slowdown = 2;
  const double alone = kLayers * (1e-3 + 4001 * 1e-7) + 5e-3;
  const double reading = kLayers * 15 * kPageBytes / 1e7;
  EXPECT_NEAR(step(plan, std::nullopt),
              alone * (1 + std::min(1.0, reading / alone)), 1e-6);
  // A disk whose rate is not known is not counted.
  rates.disk_bytes_per_s = 0;
  EXPECT_LT(step(plan, std::nullopt), layer_s);
}

TEST_F(PredictionTest, ResidentPagesStayAway) {
  SessionSite site = Site(/*in_place=*/false, 0);
  site.device_bytes =
      site.LeastDeviceBytes(4096) + 4 * (kLayers - 2) * kPageBytes;
  const TierPlan plan = site.PlanFor(4096);
  ASSERT_EQ(plan.shape.resident_pages, 4);
  const Prediction p = Predict(site, plan, LinkRate{1e6, 0}, kRates,
                               {.cached = 0, .prompt = 1280, .generated = 20});
  EXPECT_NEAR(p.tbt_s, kLayers * 6 * kPageBytes / 1e6, kClose);
}

TEST_F(PredictionTest, TheCpuThatPlaysTheLinkIsSlowerMeanwhile) {
  SessionSite site = Site(/*in_place=*/false, 0);
  site.device_bytes = site.LeastDeviceBytes(4096);
  const TierPlan plan = site.PlanFor(4096);
  const Work work = {.cached = 0, .prompt = 1280, .generated = 20};
  const LinkRate fast = {.bytes_per_s = 1e12, .latency_s = 0};
  const double alone = Predict(site, plan, fast, kRates, work).tbt_s;
  EXPECT_NEAR(alone, kLayers * (1e-3 + 1291 * 1e-7) + 5e-3, kClose);
  // Copying takes half of the step's time, and doubles what runs beside it.
  Rates busy = kRates;
  busy.copy_slowdown = 2;
  busy.copy_bytes_per_s = 2 * kLayers * 10 * kPageBytes / alone;
  EXPECT_NEAR(Predict(site, plan, fast, busy, work).tbt_s, 1.5 * alone,
              1e-6 * alone);
  // No link is faster than the CPU that does its copies.
  busy.copy_bytes_per_s = 1e5;
  EXPECT_NEAR(Predict(site, plan, fast, busy, work).tbt_s,
              kLayers * 10 * kPageBytes / 1e5, kClose);
}

// The second of two ranks has two of three panels of the vocabulary, and each
// has half of all else.
TEST_F(PredictionTest, RanksShareAndGather) {
  config_.vocab = 48;
  const absl::StatusOr<ModelSplit> split = ModelSplit::Create(config_, 2);
  ASSERT_TRUE(split.ok()) << split.status();
  SessionSite site = Site(/*in_place=*/true, int64_t{1} << 40);
  site.split = &*split;
  const double turns = std::max(1.0, 2.0 / AllowedCpus());
  // Floats of a row that a rank gathers: of attention, twice of the hidden
  // state and of ffn; and the other rank's 32 logits.
  const double layer = (32 + 2 * 32 + 64) * 4 / 4e9;
  const double logits = 32 * 4 / 4e9;
  const Rates own = RatesOfRanks(site, kRates);
  EXPECT_NEAR(own.prompt_row_s, 1e-4 / 2 * turns + layer, kClose);
  EXPECT_NEAR(own.prompt_position_s, 1e-8 / 2 * turns, 1e-15);
  EXPECT_NEAR(own.step_s, 1e-3 / 2 * turns + 25e-6 + layer, kClose);
  EXPECT_NEAR(own.step_position_s, 1e-7 / 2 * turns, 1e-14);
  EXPECT_NEAR(own.logits_s, 5e-3 * 2 / 3 * turns + 5e-6 + logits, kClose);

  const ModelSplit whole = ModelSplit::Whole(config_);
  site.split = &whole;
  EXPECT_EQ(RatesOfRanks(site, kRates).logits_s, kRates.logits_s);
}

}  // namespace
}  // namespace tiercel

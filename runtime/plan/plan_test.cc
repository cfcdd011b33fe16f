#include "runtime/plan/plan.h"

#include <limits>
#include <set>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/status/error.h"
#include "tests/golden.h"

namespace tiercel {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kContext = 3000;

std::unique_ptr<Model> Open(Model::Options options) {
  options.path = CheckpointPath("llama_chat.gguf");
  options.machine.threads = 2;
  auto model = Model::Open(options, [](uint64_t, uint64_t) { return true; });
  EXPECT_TRUE(model.ok()) << model.status();
  return model.ok() ? *std::move(model) : nullptr;
}

Model::Options DeviceOf(int64_t bytes) {
  return {.machine = {.simulation = {{.bytes = bytes, .link = {2e9, 0}}}}};
}

nlohmann::json Describe(const Model& model, const Session::Options& options) {
  const absl::StatusOr<nlohmann::json> plan = DescribePlan(model, options);
  EXPECT_TRUE(plan.ok()) << plan.status();
  return plan.ok() ? *plan : nlohmann::json();
}

absl::Status Created(const Model& model, const Session::Options& options) {
  return Session::Create(model, options).status();
}

TEST(PlanTest, TheHeaderTellsWhatASessionTakes) {
  Model::Options options = DeviceOf(100'000'000);
  options.weights = false;
  const auto header = Open(options);
  const nlohmann::json plan = Describe(*header, {.context = kContext});
  EXPECT_EQ(plan["fits"], true);

  const auto model = Open(DeviceOf(100'000'000));
  const auto session = Session::Create(*model, {.context = kContext});
  ASSERT_TRUE(session.ok()) << session.status();
  int64_t device = 0;
  for (const auto& [part, bytes] : plan["tiers"]["device"].items()) {
    device += bytes.get<int64_t>();
  }
  EXPECT_EQ(device, model->machine->memory().used());
  EXPECT_EQ(plan["tiers"]["host"]["kv"], (*session)->kv().plan().host_kv);
}

TEST(PlanTest, EveryPartIsItsOwn) {
  const Session::Options options = {.context = kContext,
                                    .retrieval = RetrievalSize()};
  const auto model = Open(DeviceOf(100'000'000));
  const nlohmann::json device = Describe(*model, options)["tiers"]["device"];
  const auto session = Session::Create(*model, options);
  ASSERT_TRUE(session.ok()) << session.status();
  const TierPlan& taken = (*session)->kv().plan();
  EXPECT_EQ(device["weights"], taken.weights);
  EXPECT_EQ(device["staging"], taken.staging);
  EXPECT_EQ(device["workspace"], taken.workspace);
  EXPECT_EQ(device["views"], taken.views);
  EXPECT_EQ(device["resident"], taken.resident);
  const std::set<int64_t> parts = {taken.weights, taken.staging,
                                   taken.workspace, taken.views,
                                   taken.resident};
  EXPECT_EQ(parts.size(), 5u);
}

TEST(PlanTest, WhatDoesNotFitSaysWhatWould) {
  Model::Options options = DeviceOf(1'000'000);
  options.weights = false;
  const nlohmann::json plan = Describe(*Open(options), {.context = kContext});
  ASSERT_EQ(plan["fits"], false);
  const auto least = plan["min_device_bytes"].get<int64_t>();
  EXPECT_TRUE(Created(*Open(DeviceOf(least)), {.context = kContext}).ok());
  const auto small = Open(DeviceOf(least - 64));
  const absl::Status status = Created(*small, {.context = kContext});
  EXPECT_EQ(CodeOf(status), "does_not_fit");
  EXPECT_EQ(ClassOf(status), ErrorClass::kMemory);
  EXPECT_THAT(status.message(), HasSubstr(std::to_string(least)));

  const nlohmann::json less = Describe(*small, {.context = kContext});
  const auto most = less["max_context"].get<int64_t>();
  ASSERT_GT(most, 0);
  ASSERT_LT(most, kContext);
  EXPECT_TRUE(Created(*small, {.context = most}).ok());
  EXPECT_FALSE(Created(*small, {.context = most + 1}).ok());
}

// Pages of types that the heads are too small for have no size.
TEST(PlanTest, OptionsThatAreRefusedGoNowhere) {
  Model::Options header = DeviceOf(1000);
  header.weights = false;
  const auto model = Open(header);
  SessionOptions options = {
      .context = kContext, .type_k = DType::kQ8_0, .type_v = DType::kQ4_0};
  options.texts.emplace();
  EXPECT_FALSE(GoesToDisk(*model, options));
  EXPECT_EQ(CodeOf(DescribePlan(*model, options).status()), "invalid_kv_type");
}

TEST(PlanTest, WithoutAWishTheContextIsWhatFits) {
  Model::Options options;
  options.weights = false;
  const nlohmann::json all = Describe(*Open(options), {});
  const int64_t checkpoint = all["context"];
  EXPECT_EQ(all["fits"], true);
  const auto whole = Open({});
  const auto unlimited = Session::Create(*whole, {});
  ASSERT_TRUE(unlimited.ok()) << unlimited.status();
  EXPECT_EQ((*unlimited)->kv().plan().context, checkpoint);

  // The bytes for a context of 1,000, from the header; all tiers are one
  // memory.
  const nlohmann::json thousand = Describe(*Open(options), {.context = 1000});
  for (const auto& tier : thousand["tiers"]) {
    for (const auto& bytes : tier) {
      options.machine.device_memory_bytes += bytes.get<int64_t>();
    }
  }
  const nlohmann::json some = Describe(*Open(options), {});
  ASSERT_EQ(some["fits"], false);
  const auto most = some["max_context"].get<int64_t>();
  ASSERT_GE(most, 1000);
  ASSERT_LT(most, checkpoint);

  const auto model =
      Open({.machine = {.device_memory_bytes =
                            options.machine.device_memory_bytes}});
  auto session = Session::Create(*model, {});
  ASSERT_TRUE(session.ok()) << session.status();
  EXPECT_EQ((*session)->kv().plan().context, most);
  EXPECT_EQ((*session)->sequence().room(), most);
  // A prompt that is too long for the memory, but not for the checkpoint.
  const std::vector<int32_t> ids(static_cast<size_t>(most) + 1, 1);
  const absl::Status status = (*session)->Append(ids.data(), ids.size());
  EXPECT_EQ(CodeOf(status), "does_not_fit") << status;
  EXPECT_EQ(CodeOf((*(*session)->Fork())->Append(ids.data(), ids.size())),
            "does_not_fit");
  const std::vector<int32_t> more(static_cast<size_t>(checkpoint) + 1, 1);
  EXPECT_EQ(CodeOf((*session)->Append(more.data(), more.size())),
            "context_length_exceeded");

  EXPECT_EQ(CodeOf(Created(
                *Open({.machine = {.device_memory_bytes = 1'000'000}}), {})),
            "does_not_fit");
}

TEST(PlanTest, TheMachinesMemoryCounts) {
  const auto model = Open({});
  SessionSite site = SiteOf(
      *model,
      {.bytes = model->machine->memory().used(), .bytes_per_token = 1000}, {},
      /*threads=*/2);
  EXPECT_TRUE(site.device.in_place());
  EXPECT_EQ(site.device_bytes, site.machine_bytes);
  EXPECT_GT(site.machine_bytes, model->machine->memory().used());
  // A huge simulated device on a machine that has less memory.
  site.device.limited = true;
  site.device_bytes = int64_t{1} << 40;
  const TierPlan plan = site.PlanFor(kContext);
  ASSERT_TRUE(plan.fits());
  site.machine_bytes = plan.DeviceBytes() + plan.HostBytes();
  EXPECT_TRUE(PlanRanks({site}, kContext).ok());
  --site.machine_bytes;
  const absl::Status status = PlanRanks({site}, kContext).status();
  EXPECT_EQ(CodeOf(status), "does_not_fit");
  EXPECT_THAT(status.message(), HasSubstr("this machine's memory"));
}

// A plan without weights describes the simulated machine, if both of its tiers
// have a given size; a session takes memory of this one.
TEST(PlanTest, ASimulatedMachineMayHaveMoreThanThisOne) {
  constexpr int64_t kDevice = 100'000'000;
  constexpr int64_t kHuge = int64_t{1} << 50;
  Model::Options options = DeviceOf(kDevice);
  const auto model = Open(options);
  options.weights = false;
  const auto header = Open(options);
  options.machine.host_memory_bytes = kHuge;
  const auto elsewhere = Open(options);
  options.weights = true;
  const auto loaded = Open(options);
  const auto machine_bytes = [](const Model& of) {
    return Describe(of, {.context = kContext})["machine_bytes"].get<int64_t>();
  };
  EXPECT_EQ(machine_bytes(*elsewhere), kDevice + kHuge);
  for (const Model* here : {model.get(), header.get(), loaded.get()}) {
    EXPECT_LT(machine_bytes(*here), kHuge);
  }
}

// Memory that other sessions and models hold is not free for one more.
TEST(PlanTest, WhatOthersHoldCounts) {
  Model::Options options = DeviceOf(100'000'000);
  options.weights = false;
  const auto header = Open(options);
  ASSERT_EQ(Describe(*header, {})["tiers"]["device"].count("others"), 0u);
  const auto model = Open(DeviceOf(100'000'000));
  const nlohmann::json alone = Describe(*model, {.context = kContext});
  EXPECT_EQ(alone["tiers"], Describe(*header, {.context = kContext})["tiers"]);
  const auto weights = alone["tiers"]["device"]["weights"].get<int64_t>();

  const auto session = Session::Create(*model, {.context = kContext});
  ASSERT_TRUE(session.ok()) << session.status();
  const int64_t held = model->machine->memory().used() - weights;
  const nlohmann::json beside = Describe(*model, {.context = kContext});
  EXPECT_EQ(beside["tiers"]["device"]["others"], held);
  EXPECT_EQ(beside["tiers"]["device"]["weights"], weights);
  // A model on the same machine whose weights are yet to be read.
  Model::Options late = {.weights = false, .beside = model->machine};
  late.path = CheckpointPath("llama_chat.gguf");
  EXPECT_EQ(Describe(*OpenModel(late), {})["tiers"]["device"]["others"],
            held + weights);

  // A second session gets what the plan said.
  ASSERT_EQ(beside["fits"], true);
  const auto second = Session::Create(*model, {.context = kContext});
  ASSERT_TRUE(second.ok()) << second.status();
  int64_t device = 0;
  for (const auto& [part, bytes] : beside["tiers"]["device"].items()) {
    device += bytes.get<int64_t>();
  }
  EXPECT_EQ(device, model->machine->memory().used());
}

// The limit on this machine's memory bounds both tiers of a simulated device.
TEST(PlanTest, AWishBoundsBothTiers) {
  const TierPlan plan = (*Session::Create(*Open(DeviceOf(int64_t{1} << 30)),
                                          {.context = kContext}))
                            ->kv()
                            .plan();
  const int64_t both = plan.DeviceBytes() + plan.HostBytes();
  for (const int64_t wish : {both, both - 1}) {
    Model::Options options = DeviceOf(int64_t{1} << 30);
    options.machine.device_memory_bytes = wish;
    const absl::Status status = Created(*Open(options), {.context = kContext});
    if (wish == both) {
      EXPECT_TRUE(status.ok()) << status;
    } else {
      EXPECT_EQ(CodeOf(status), "does_not_fit");
      EXPECT_THAT(status.message(), HasSubstr(absl::StrCat(wish)));
    }
  }
}

TEST(PlanTest, OneRankAloneIsPlannedAsIfThereWereOne) {
  const KeptRates kept = {};
  const auto plan = [&](Model::Options options, int ranks) {
    options.ranks = ranks;
    return *DescribePlan(*Open(options), {.context = kContext}, kept);
  };
  const nlohmann::json tiers = plan({}, 1)["tiers"];
  int64_t need = tiers["host"]["kv"].get<int64_t>();
  for (const auto& [part, bytes] : tiers["device"].items()) {
    need += bytes.get<int64_t>();
  }
  std::set<bool> seen;
  for (const int64_t wish : {need / 2, need - 4096, need + 4096, 3 * need}) {
    const Model::Options wished = {.machine = {.device_memory_bytes = wish}};
    const bool fits = plan(wished, 1)["fits"];
    EXPECT_EQ(plan(wished, 2)["one_rank"]["fits"], fits) << wish;
    seen.insert(fits);
  }
  for (const int64_t device : {1'000'000, 100'000'000}) {
    Model::Options simulated = DeviceOf(device);
    simulated.machine.device_memory_bytes = 3 * need;
    const bool fits = plan(simulated, 1)["fits"];
    EXPECT_EQ(plan(simulated, 2)["one_rank"]["fits"], fits) << device;
    seen.insert(fits);
  }
  EXPECT_EQ(seen.size(), 2u);
}

// The first of two ranks has one of three KV heads, the second has two.
TEST(PlanTest, EachRankSaysWhetherItFits) {
  const auto plan = [](int64_t device) {
    Model::Options options = DeviceOf(device);
    options.path = CheckpointPath("llama_gqa.gguf");
    options.weights = false;
    options.ranks = 2;
    return Describe(*OpenModel(options), {.context = 1000});
  };
  const nlohmann::json none = plan(1000);
  EXPECT_EQ(none["ranks"][0]["fits"], false);
  EXPECT_EQ(none["ranks"][1]["fits"], false);
  const auto least = none["min_device_bytes"].get<int64_t>();
  EXPECT_EQ(plan(least)["fits"], true);
  const nlohmann::json first = plan(least - 64);
  EXPECT_EQ(first["fits"], false);
  EXPECT_EQ(first["ranks"][0]["fits"], true);
  EXPECT_EQ(first["ranks"][1]["fits"], false);
  EXPECT_FALSE(first["ranks"][0].contains("min_device_bytes"));
  EXPECT_EQ(first["ranks"][1]["min_device_bytes"], least);
  EXPECT_LT(none["ranks"][0]["min_device_bytes"], least);
}

TEST(PlanTest, OptionsAreCheckedAsASessionsAre) {
  const auto model = Open({});
  EXPECT_EQ(CodeOf(DescribePlan(*model, {.context = -1}).status()),
            "invalid_context");
  EXPECT_EQ(CodeOf(DescribePlan(*model, {.first_position = -1}).status()),
            "invalid_argument");
  EXPECT_EQ(CodeOf(DescribePlan(*model, {.type_v = DType::kQ4_0}).status()),
            "invalid_kv_type");
}

}  // namespace
}  // namespace tiercel

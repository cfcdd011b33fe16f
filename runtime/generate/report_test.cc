// Tests every figure of a report with a clock that says how long things take.

#include "runtime/generate/report.h"

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <limits>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/system/clock_for_test.h"
#include "kernels/system/faults.h"
#include "runtime/generate/generate.h"
#include "tests/drafting.h"
#include "tests/golden.h"
#include "tests/tiers.h"

namespace tiercel::report_test {
namespace {

using Json = nlohmann::json;

constexpr double kClose = 1e-6;  // a clock counts nanoseconds, over hours

Json TimesBetweenTokens(std::vector<double> gap_ms) {
  Report report;
  report.token_seconds = {100};  // the first token has no gap
  for (const double ms : gap_ms) report.token_seconds.push_back(ms / 1000);
  return report.ToJson()["tbt_ms"];
}

TEST(ReportTest, PercentilesAreSamples) {
  std::vector<double> gaps;
  for (int i = 0; i < 200; ++i) gaps.push_back((i * 77) % 200 + 1);
  Json tbt = TimesBetweenTokens(gaps);  // 1 to 200, in some order
  EXPECT_DOUBLE_EQ(tbt["p50"], 100);
  EXPECT_DOUBLE_EQ(tbt["p90"], 180);
  EXPECT_DOUBLE_EQ(tbt["p99"], 198);
  EXPECT_EQ(tbt["samples"], 200);
  tbt = TimesBetweenTokens({3, 1, 2});
  EXPECT_DOUBLE_EQ(tbt["p50"], 2);
  EXPECT_DOUBLE_EQ(tbt["p90"], 3);
  tbt = TimesBetweenTokens({4, 1, 2, 3});
  EXPECT_DOUBLE_EQ(tbt["p50"], 2);
  tbt = TimesBetweenTokens({7});
  for (const char* key : {"p50", "p90", "p99"}) EXPECT_DOUBLE_EQ(tbt[key], 7);
  EXPECT_EQ(tbt["samples"], 1);
}

TEST(ReportTest, RatesAreOfTheirOwnTokensAndTimes) {
  Report report;
  report.prefill.prompt_tokens = 14;
  report.prefill.cached_tokens = 4;
  report.prefill.spent.seconds = 4;
  report.tokens = {5, 6, 7, 8, 9, 10, 11};
  report.token_seconds = {8, 0.25, 0.25, 0.5, 1, 0.5, 0.5};
  report.sweeps = 4;
  report.rounds.levels = {{.drafter = "ngram",
                           .drafted = 9,
                           .checked = 7,
                           .accepted = 3,
                           .cost_ratio = 0},
                          {.drafter = "retrieval",
                           .drafted = 8,
                           .checked = 6,
                           .accepted = 5,
                           .branches = 4,
                           .branch_accepted = 2,
                           .ahead = 1,
                           .cost_ratio = 2.5}};
  const Json json = report.ToJson();
  EXPECT_EQ(json["prompt_tokens"], 14);
  EXPECT_EQ(json["cached_tokens"], 4);
  EXPECT_EQ(json["ttft_s"], 12);
  EXPECT_EQ(json["prefill_tok_s"], 2.5);
  EXPECT_EQ(json["decode_tok_s"], 2);
  const Json& speculation = json["speculation"];
  EXPECT_EQ(speculation["sweeps"], 4);
  EXPECT_EQ(speculation["tokens_per_sweep"], 1.5);
  EXPECT_EQ(speculation["levels"],
            Json::parse(R"([{"drafter": "ngram", "drafted": 9, "checked": 7,
                             "accepted": 3, "branches": 0,
                             "branch_accepted": 0, "ahead": 0},
                            {"drafter": "retrieval", "drafted": 8,
                             "checked": 6, "accepted": 5, "branches": 4,
                             "branch_accepted": 2, "ahead": 1,
                             "cost_ratio": 2.5}])"));
}

TEST(ReportTest, WhatHasNoMeaningIsNull) {
  Report report;
  for (const char* key : {"ttft_s", "prefill_tok_s", "decode_tok_s"}) {
    EXPECT_TRUE(report.ToJson()[key].is_null()) << key;
  }
  report.prefill.spent.seconds = 2;
  report.prefill.prompt_tokens = 1;
  report.tokens = {5};
  report.token_seconds = {1};
  const Json json = report.ToJson();
  EXPECT_EQ(json["ttft_s"], 3);
  EXPECT_EQ(json["prefill_tok_s"], 0.5);
  EXPECT_TRUE(json["decode_tok_s"].is_null());
  EXPECT_EQ(
      json["tbt_ms"],
      Json::parse(R"({"p50": null, "p90": null, "p99": null, "samples": 0})"));
  EXPECT_TRUE(json["speculation"]["tokens_per_sweep"].is_null());
  const Json& phases = json["ledger"]["phases"];
  EXPECT_EQ(phases["prefill"]["link_busy_share"], 0);
  EXPECT_TRUE(phases["draft"]["link_busy_share"].is_null());
}

// In doubles 0.3 less 0.1 is less than 0.2.
TEST(TimeSpentTest, ARestIsNotNegative) {
  const TimeSpent whole = {0.3, 0.3};
  const TimeSpent before = {0.1, 0.1};
  const TimeSpent rest = whole - before - TimeSpent{0.2, 0.2};
  EXPECT_EQ(rest.seconds, 0);
  EXPECT_EQ(rest.link_seconds, 0);
  EXPECT_EQ((whole - before).link_seconds, 0.3 - 0.1);
}

TEST(ReportTest, APhaseHasItsOwnSecondsAndBytes) {
  Report report;
  report.prefill.spent = {1, 0.5};
  report.rounds.refresh = {2, 0.5};
  report.rounds.draft = {4, 3};
  report.rounds.fast = {16, 12};
  report.rounds.verify = {8, 7};
  for (size_t i = 0; i < kNumPhases; ++i) {
    report.prefill.traffic.link[i] = {1u << i, 0x20u << i, 0.25};
    report.traffic.link[i] = {0x400u << i, 0x8000u << i, 0.25};
  }
  const Json ledger = report.ToJson()["ledger"];
  EXPECT_EQ(ledger["h2d_bytes"], 0x7c1f);
  EXPECT_EQ(ledger["d2h_bytes"], 0xf83e0);
  EXPECT_EQ(ledger["disk_read_bytes"], 0);  // see prompt_cache_test.cc
  const auto expect = [&](const char* name, Phase phase,
                          const TimeSpent& spent) {
    const Json& json = ledger["phases"][name];
    const auto i = static_cast<size_t>(phase);
    EXPECT_EQ(json["seconds"], spent.seconds) << name;
    EXPECT_EQ(json["h2d_bytes"], 0x401u << i) << name;
    EXPECT_EQ(json["d2h_bytes"], 0x8020u << i) << name;
    EXPECT_EQ(json["link_busy_s"], spent.link_seconds) << name;
    EXPECT_EQ(json["link_busy_share"], spent.link_seconds / spent.seconds)
        << name;
  };
  expect("prefill", Phase::kPrefill, report.prefill.spent);
  expect("refresh", Phase::kRefresh, report.rounds.refresh);
  expect("draft", Phase::kDraft, report.rounds.draft);
  expect("fast", Phase::kFast, report.rounds.fast);
  expect("verify", Phase::kVerify, report.rounds.verify);
}

// Each rank has its own bytes, of the prompt and of the answer; with one rank
// the ledger's formula is its formula.
TEST(ReportTest, EachRankHasItsOwnBytes) {
  Report report;
  report.ranks = {{.device_bytes = 40, .plan = {}}};
  report.prefill.traffic.ranks = {{1, 2, 0, {}}};
  report.traffic.ranks = {{4, 8, 0, {}}};
  const Json first = Json::parse(R"({"device_bytes": 40, "h2d_bytes": 5,
                                     "d2h_bytes": 10, "gathered_bytes": 0})");
  EXPECT_EQ(report.ToJson()["ranks"], Json::array({first}));
  report.ranks.push_back({.device_bytes = 50, .plan = {}});
  report.ranks[1].plan.shape.layout = {DType::kF16, DType::kF16, 1, 64};
  report.prefill.traffic.ranks.push_back({0, 0, 100, {.swept_pages = 3}});
  report.traffic.ranks.push_back({0, 16, 1000, {.swept_pages = 4}});
  const Json two = report.ToJson();
  EXPECT_EQ(two["ranks"][0]["h2d_bytes"], 5);
  EXPECT_EQ(two["ranks"][1]["device_bytes"], 50);
  EXPECT_EQ(two["ranks"][1]["d2h_bytes"], 16);
  EXPECT_EQ(two["ranks"][1]["gathered_bytes"], 1100);
  EXPECT_EQ(two["ranks"][1]["formula"]["swept_pages"], 7);
  EXPECT_EQ(two["ranks"][1]["formula"]["page_bytes"], 128 * 64 * 4);
  EXPECT_EQ(two["ledger"]["formula"], Json::object());
}

TEST(ReportTest, TheFormulaHasEveryCount) {
  Report report;
  report.plan.shape.layout = {DType::kF16, DType::kQ8_0, 2, 32};
  report.plan.shape.layers = 3;
  report.plan.shape.resident_pages = 4;
  report.plan.shape.host.host_s = 1;
  report.prefill.traffic.moves = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
  report.traffic.moves = {10, 20, 30, 40, 50, 60, 70, 80, 90, 100, 110, 200};
  report.prefill.traffic.disk = {
      .read_bytes = 7, .read_pages = 2, .opening_seconds = 0.5};
  report.traffic.disk = {
      .read_bytes = 60, .read_pages = 10, .opening_seconds = 0.25};
  EXPECT_EQ(report.ToJson()["ledger"]["disk_read_bytes"], 67);
  EXPECT_EQ(report.ToJson()["ledger"]["opened_s"], 0.75);
  EXPECT_EQ(report.ToJson()["ledger"]["formula"],
            Json::parse(R"({"page_bytes": 25088, "page_tokens": 128,
                            "layers": 3, "resident_pages": 4, "newest_pages": 0,
                            "swept_pages": 11, "ahead_pages": 22,
                            "host_pages": 33,
                            "reopened_pages": 44, "gathered_bytes": 55,
                            "resumed_pages": 66, "resumed_bytes": 77,
                            "closed_pages": 88, "parked_pages": 99,
                            "parked_bytes": 110, "states_up_bytes": 121,
                            "states_down_bytes": 212, "opened_pages": 12})"));
  report.plan.in_place = true;
  EXPECT_EQ(report.ToJson()["ledger"]["formula"],
            Json::parse(R"({"page_bytes": 25088, "opened_pages": 12})"));
  report.prefill.traffic.disk = report.traffic.disk = {};
  EXPECT_EQ(report.ToJson()["ledger"]["formula"], Json::object());
}

TEST(ReportTest, PredictionsAreInTheirUnits) {
  Report report;
  report.memory = {.host = 30, .device = 40};
  EXPECT_FALSE(report.ToJson().contains("predicted"));
  report.predicted = {.ttft_s = 2, .tbt_s = 0.5, .memory = {10, 20}};
  EXPECT_EQ(report.ToJson()["predicted"],
            Json::parse(R"({"ttft_s": 2.0, "tbt_ms": 500.0, "host_bytes": 10,
                            "device_bytes": 20})"));
  report.rounds.levels.emplace_back();
  EXPECT_TRUE(report.ToJson()["predicted"]["tbt_ms"].is_null());
  report.rounds.levels.clear();
  report.rounds.schedule.emplace();
  EXPECT_EQ(report.ToJson()["predicted"]["tbt_ms"], 500);
  EXPECT_EQ(report.ToJson()["memory"]["host_bytes"], 30);
  EXPECT_EQ(report.ToJson()["memory"]["device_bytes"], 40);
}

class TimesTest : public testing::Test {
 protected:
  TimesTest()
      : model_(OpenModel({.path = CheckpointPath("llama_chat.gguf"),
                          .machine = {.threads = 2, .clock = &clock_}})) {}

  // Reads the prompt in `seconds`.
  PrefillReport Read(Session& session, double seconds) {
    const absl::StatusOr<PrefillReport> report =
        Prefill(session, prompt_.data(), prompt_.size(),
                [&](uint64_t done, uint64_t total) {
                  if (done == total) clock_.Pass(seconds);
                  return true;
                });
    EXPECT_TRUE(report.ok()) << report.status();
    return report.ok() ? *report : PrefillReport();
  }

  // The tokens of a drafter that is always right.
  ScriptedDrafter::Script Right(const Ids& expected) const {
    return [this, &expected](const Ids& tokens, int64_t most) {
      const size_t done = tokens.size() - prompt_.size();
      const size_t end =
          std::min(expected.size(), done + static_cast<size_t>(most));
      return Ids(expected.begin() + static_cast<std::ptrdiff_t>(done),
                 expected.begin() + static_cast<std::ptrdiff_t>(end));
    };
  }

  double Now() { return SecondsBetween({}, clock_.Now()); }

  double tick_ = 0;  // the time that each reading of the clock takes
  ManualClock clock_{[this](ManualClock& clock) { clock.Pass(tick_); }};
  std::unique_ptr<Model> model_;
  const Ids prompt_ = RepeatedText(60, 3);
};

TEST_F(TimesTest, ATokensTimeIsSinceTheOneBefore) {
  const auto session = MakeSession(*model_);
  const PrefillReport prefill = Read(*session, 2.5);
  const std::vector<double> gaps = {0.5, 0.125, 4, 1, 0.25};
  size_t given = 0;
  const GenerateParams params = DraftedParams(0.0f, 6);
  Report report = Generate(
      *session, params,
      [&](const OutputToken&) {
        if (given < gaps.size()) clock_.Pass(gaps[given++]);
        return true;
      },
      prefill);
  ASSERT_TRUE(report.status.ok()) << report.status;
  EXPECT_NEAR(report.prefill.spent.seconds, 2.5, kClose);
  ASSERT_EQ(report.token_seconds.size(), 6u);
  EXPECT_EQ(report.token_seconds[0], 0);
  for (size_t i = 0; i < gaps.size(); ++i) {
    EXPECT_NEAR(report.token_seconds[i + 1], gaps[i], kClose);
  }
  const Json json = report.ToJson();
  EXPECT_NEAR(json["prefill_tok_s"], static_cast<double>(prompt_.size()) / 2.5,
              kClose);
  EXPECT_NEAR(json["decode_tok_s"], 5 / 5.875, kClose);
  EXPECT_NEAR(json["ttft_s"], 2.5, kClose);
  EXPECT_EQ(report.sweeps, 5);

  // This generation has the same prompt, which was read once; now every
  // reading of the clock takes a second. All the time of a generation belongs
  // to some token.
  session->Truncate(prompt_.size());
  tick_ = 1;
  const double begin = Now();
  report = Generate(*session, params, nullptr, prefill);
  ASSERT_TRUE(report.status.ok()) << report.status;
  const double end = Now();
  double sum = 0;
  for (const double seconds : report.token_seconds) {
    EXPECT_GT(seconds, 0.5);
    sum += seconds;
  }
  EXPECT_NEAR(sum, (end - 1) - (begin + 1), kClose);
  EXPECT_NEAR(report.prefill.spent.seconds, 2.5, kClose);
  EXPECT_NEAR(report.ToJson()["ttft_s"], 2.5 + report.token_seconds[0], kClose);
}

TEST_F(TimesTest, WhatWasThereIsNotRead) {
  const auto session = MakeSession(*model_);
  ASSERT_TRUE(Prefill(*session, prompt_.data(), 100, kNoProgress).ok());
  const auto rest = static_cast<int64_t>(prompt_.size()) - 100;
  const absl::StatusOr<PrefillReport> prefill =
      Prefill(*session, prompt_.data() + 100, static_cast<size_t>(rest),
              [&](uint64_t done, uint64_t total) {
                if (done == total) clock_.Pass(4);
                return true;
              });
  ASSERT_TRUE(prefill.ok()) << prefill.status();
  const Json json =
      Generate(*session, DraftedParams(0.0f, 2), nullptr, *prefill).ToJson();
  EXPECT_EQ(json["prompt_tokens"], prompt_.size());
  EXPECT_EQ(json["cached_tokens"], 100);
  EXPECT_NEAR(json["prefill_tok_s"], static_cast<double>(rest) / 4, kClose);
}

// A block's tokens come at once. Tokens that a stop text takes back, or for
// which the text has no room, have no time.
TEST_F(TimesTest, ABlocksTokensShareItsTime) {
  ScriptedParams params = DraftedParams(0.0f, 13);
  params.verify = VerifyMode::kCoupled;
  const Ids expected = PlainText(*model_, prompt_, params);
  int drafts = 0;
  ScriptedDrafter right([&](const Ids& tokens, int64_t most) {
    clock_.Pass(++drafts * 12);
    return Right(expected)(tokens, most);
  });
  params.drafter = &right;
  params.draft_length = DraftLength::Fixed(5);
  const auto session = MakeSession(*model_);
  Read(*session, 2.5);
  params.max_tokens = 10;
  const Report report = Generate(*session, params, nullptr);
  ASSERT_TRUE(report.status.ok()) << report.status;
  // The tokens are one that is known, a block of six, and three that fit of
  // another block.
  const std::vector<double> seconds = {0, 2, 2, 2, 2, 2, 2, 8, 8, 8};
  ASSERT_EQ(report.token_seconds.size(), seconds.size());
  for (size_t i = 0; i < seconds.size(); ++i) {
    EXPECT_NEAR(report.token_seconds[i], seconds[i], kClose) << i;
  }
  EXPECT_EQ(report.sweeps, 2);
  EXPECT_EQ(report.ToJson()["speculation"]["tokens_per_sweep"], 4.5);
  EXPECT_NEAR(report.rounds.draft.seconds, 36, kClose);
  EXPECT_EQ(report.rounds.verify.seconds, 0);
  EXPECT_EQ(report.rounds.refresh.seconds, 0);
}

TEST_F(TimesTest, WhatAStopTextTakesBackHasNoTime) {
  GenerateParams params = DraftedParams(0.0f, 40);
  const auto session = MakeSession(*model_);
  Read(*session, 0);
  const std::string text = Generate(*session, params, nullptr).text;
  // The stop text reaches from the first token's end into the next tokens.
  for (size_t length : {1, 3, 6}) {
    session->Truncate(prompt_.size());
    params.stops = {text.substr(10, length)};
    const Report report = Generate(*session, params, nullptr);
    ASSERT_TRUE(report.status.ok()) << report.status;
    ASSERT_EQ(report.finish_reason, "stop");
    EXPECT_EQ(report.token_seconds.size(), report.tokens.size()) << length;
  }
  // A token whose callback asks to stop belongs to the text.
  session->Truncate(prompt_.size());
  params.stops.clear();
  int given = 0;
  const Report report = Generate(*session, params, [&](const OutputToken&) {
    clock_.Pass(1);
    return ++given < 4;
  });
  EXPECT_EQ(report.finish_reason, "cancelled");
  ASSERT_EQ(report.tokens.size(), 4u);
  ASSERT_EQ(report.token_seconds.size(), 4u);
  EXPECT_NEAR(report.token_seconds[3], 1, kClose);
}

TEST_F(TimesTest, ChoosingAViewIsNoDrafting) {
  Session* session = nullptr;
  int64_t refreshes = 0;
  ManualClock clock([&](ManualClock& now) {
    if (session == nullptr) return;
    const int64_t count = session->draft_view().first().refreshes();
    now.Pass(16 * static_cast<double>(count - std::exchange(refreshes, count)));
  });
  Model::Options options = model_->options;
  options.machine.clock = &clock;
  const auto model = OpenModel(options);
  const auto made = Prefilled(*model, prompt_, {.retrieval = kSmallView});
  session = made.get();
  int drafts = 0;
  ScriptedDrafter some([&](const Ids&, int64_t) {
    clock.Pass(3);
    ++drafts;
    return Ids{1, 2, 3};
  });
  ScriptedParams params = DraftedParams(0.0f, 20);
  params.drafter = &some;
  params.over_view = true;
  const Report report = Generate(*session, params, nullptr);
  ASSERT_TRUE(report.status.ok()) << report.status;
  EXPECT_GT(drafts, 0);
  EXPECT_GT(refreshes, 0);
  EXPECT_NEAR(report.rounds.draft.seconds, 3.0 * drafts, kClose);
  EXPECT_NEAR(report.rounds.refresh.seconds,
              16.0 * static_cast<double>(refreshes), kClose);
  EXPECT_EQ(report.rounds.verify.seconds, 0);
}

// Keeping the rows of a sweep takes all the time here.
TEST_F(TimesTest, KeepingWhatHoldsIsPartOfASweep) {
  const Session* session = nullptr;
  int64_t length = 0;
  int keeps = 0;
  ManualClock clock([&](ManualClock& now) {
    if (session == nullptr) return;
    if (std::exchange(length, session->sequence().kv_length()) <
        session->sequence().kv_length()) {
      now.Pass(16);
      ++keeps;
    }
  });
  Model::Options options = model_->options;
  options.machine.clock = &clock;
  const auto model = OpenModel(options);
  const auto made = Prefilled(*model, prompt_);
  session = made.get();
  length = session->sequence().kv_length();
  ScriptedDrafter some([](const Ids&, int64_t) { return Ids{1, 2, 3}; });
  ScriptedParams params = DraftedParams(0.0f, 6);
  params.drafter = &some;
  const Report report = Generate(*made, params, nullptr);
  ASSERT_TRUE(report.status.ok()) << report.status;
  EXPECT_EQ(keeps, report.sweeps);
  EXPECT_NEAR(report.rounds.verify.seconds, 16.0 * keeps, kClose);
  EXPECT_EQ(report.rounds.draft.seconds, 0);
}

// Holds copies back until the test lets their bytes cross the link.
class Gate {
 public:
  void Open(int64_t bytes) {
    const std::lock_guard<std::mutex> lock(mutex_);
    open_ = bytes;
    changed_.notify_all();
  }
  void Pass(int64_t bytes) {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [&] { return open_ >= bytes; });
    open_ -= bytes;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int64_t open_ = std::numeric_limits<int64_t>::max();
};

// The device holds no page for good: a page crosses in a second, and nothing
// else takes time but the drafter, in seconds that it says.
TEST_F(TimesTest, APhaseHasTheTimeThatItTook) {
  const auto like =
      OpenModel({.path = Deepened("llama_chat"), .machine = {.threads = 2}});
  const int64_t layers = like->config.layers;
  ASSERT_EQ(layers, 6);
  const int64_t page = KvLayout{DType::kF16, DType::kF16, like->config.kv_heads,
                                like->config.head_dim}
                           .PageBytes();
  Gate gate;
  const Faults faults(Callee::kLink, [&](const Operation& copy) {
    gate.Pass(copy.bytes);
    return 0;
  });
  const Tiered tiered = MakeTiered(*like, {.context = 1500}, Budget::kLeast,
                                   static_cast<double>(page), 2, clock_);
  Session& session = *tiered.session;
  const Ids ids = RandomIds(1000, like->config.vocab);
  const int64_t full = 1000 / kPageTokens;
  const absl::StatusOr<PrefillReport> prefill =
      Prefill(session, ids.data(), ids.size(), kNoProgress);
  ASSERT_TRUE(prefill.ok()) << prefill.status();
  EXPECT_NEAR(prefill->spent.seconds, 42, kClose);
  EXPECT_NEAR(prefill->spent.link_seconds, 42, kClose);

  // A sweep fetches two layers of the next one: they come while it is drafted.
  int drafts = 0;
  ScriptedDrafter some([&](const Ids&, int64_t) {
    const int64_t ahead = drafts > 0 ? 2 * full : 0;
    const auto crossed = static_cast<double>(42 + drafts * 42 + ahead);
    gate.Open(ahead * page);
    while (session.Elapsed().link_seconds < crossed - 0.5) {
      std::this_thread::yield();
    }
    gate.Open((layers * full - ahead) * page);
    ++drafts;
    clock_.Pass(100);
    return Ids{1, 2, 3};
  });
  ScriptedParams params = DraftedParams(0.0f, 5);
  params.verify = VerifyMode::kCoupled;
  params.drafter = &some;
  const Report report = Generate(session, params, nullptr, *prefill);
  ASSERT_TRUE(report.status.ok()) << report.status;
  gate.Open(std::numeric_limits<int64_t>::max());
  ASSERT_EQ(report.sweeps, drafts);
  const int later = drafts - 1;
  EXPECT_NEAR(report.rounds.verify.seconds, 42 + 28 * later, kClose);
  EXPECT_NEAR(report.rounds.verify.link_seconds, 42 + 28 * later, kClose);
  EXPECT_NEAR(report.rounds.draft.seconds, 100 * drafts + 14 * later, kClose);
  EXPECT_NEAR(report.rounds.draft.link_seconds, 14 * later, kClose);
  EXPECT_EQ(report.rounds.refresh.seconds, 0);
  double sum = 0;
  for (const double seconds : report.token_seconds) sum += seconds;
  EXPECT_NEAR(sum, 142 * drafts, kClose);

  // No token comes faster than the link brings the KV that it reads.
  const Json json = report.ToJson();
  EXPECT_LE(json["decode_tok_s"].get<double>(), 4.0 / (42 * drafts) + kClose);
  const Json& verify = json["ledger"]["phases"]["verify"];
  EXPECT_NEAR(verify["link_busy_share"], 1, kClose);
  EXPECT_EQ(verify["h2d_bytes"], (42 * drafts + 14) * page);
}

// A prompt goes on: bytes that crossed before do not count as its own.
TEST_F(TimesTest, AReportIsOfTheLastPromptAlone) {
  const auto like =
      OpenModel({.path = Deepened("llama_chat"), .machine = {.threads = 2}});
  const Tiered tiered = MakeTiered(*like, {.context = 1500}, Budget::kLeast);
  Session& session = *tiered.session;
  const Ids ids = RandomIds(1128, like->config.vocab);
  ASSERT_TRUE(Prefill(session, ids.data(), 1000, kNoProgress).ok());
  const absl::StatusOr<PrefillReport> last =
      Prefill(session, ids.data() + 1000, 128, kNoProgress);
  ASSERT_TRUE(last.ok()) << last.status();
  const Json prefill =
      NewReport(session, *last).ToJson()["ledger"]["phases"]["prefill"];
  // Six layers each read seven pages, and an eighth fills.
  const int64_t page = session.kv().plan().shape.layout.PageBytes();
  EXPECT_EQ(prefill["h2d_bytes"], 6 * 7 * page);
  EXPECT_EQ(prefill["d2h_bytes"], 6 * page);
}

// Two prompts and an answer on a small device: each has its own bytes, and
// together they have all.
TEST(TrafficReportTest, PromptsAndAnswersCountTheirOwn) {
  const auto like =
      OpenModel({.path = Deepened("llama_chat"), .machine = {.threads = 2}});
  const Tiered small = MakeTiered(*like, {.context = 900}, Budget::kLeast);
  Session& session = *small.session;
  const Ids ids = RandomIds(700, like->config.vocab);
  std::vector<Traffic> parts;
  for (const auto& [begin, end] : {std::pair(0, 300), std::pair(300, 700)}) {
    const absl::StatusOr<PrefillReport> prefill =
        Prefill(session, ids.data() + begin, static_cast<size_t>(end - begin),
                kNoProgress);
    ASSERT_TRUE(prefill.ok()) << prefill.status();
    parts.push_back(prefill->traffic);
    EXPECT_GT(parts.back().moves.closed_pages, 0);
  }
  parts.push_back(Generate(session, DraftedParams(0.0f, 20), nullptr).traffic);
  EXPECT_GT(parts.back().moves.swept_pages, 0);

  Traffic all;
  for (const Traffic& part : parts) all += part;
  const Traffic expected = session.traffic();
  for (size_t phase = 0; phase < all.link.size(); ++phase) {
    EXPECT_EQ(all.link[phase].h2d_bytes, expected.link[phase].h2d_bytes);
    EXPECT_EQ(all.link[phase].d2h_bytes, expected.link[phase].d2h_bytes);
  }
  EXPECT_EQ(all.moves.closed_pages, expected.moves.closed_pages);
  EXPECT_EQ(all.moves.swept_pages, expected.moves.swept_pages);
}

}  // namespace
}  // namespace tiercel::report_test

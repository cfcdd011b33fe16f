#include "apps/commands/sampling.h"

#include <cstdint>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tiercel::cli {
namespace {

TEST(ToApiTest, EveryFlagIsHanded) {
  SamplingOptions from;
  from.max_tokens = 7;
  from.temperature = 0.5;
  from.top_k = 40;
  from.top_p = 0.75;
  from.min_p = 0.125;
  from.repeat_penalty = 1.25;
  from.dry_multiplier = 0.5;
  from.dry_base = 2.5;
  from.dry_allowed_length = 3;
  from.dry_breakers = {":", "- "};
  from.stops = {"[end]", "\n"};
  from.stop_ids = {7, 2};
  from.ignore_eos = true;
  ApiTexts texts;
  const tiercel_sampling to = ToApi(from, /*seed=*/5, &texts);
  EXPECT_EQ(to.max_tokens, 7);
  EXPECT_EQ(to.seed, 5u);
  EXPECT_EQ(to.temperature, 0.5f);
  EXPECT_EQ(to.top_k, 40);
  EXPECT_EQ(to.top_p, 0.75f);
  EXPECT_EQ(to.min_p, 0.125f);
  EXPECT_EQ(to.repeat_penalty, 1.25f);
  EXPECT_THAT(std::vector<std::string>(to.stops, to.stops + to.num_stops),
              ::testing::ElementsAre("[end]", "\n"));
  EXPECT_THAT(std::vector<int32_t>(to.stop_ids, to.stop_ids + to.num_stop_ids),
              ::testing::ElementsAre(7, 2));
  EXPECT_NE(to.ignore_eos, 0);
  EXPECT_EQ(to.dry_multiplier, 0.5f);
  EXPECT_EQ(to.dry_base, 2.5f);
  EXPECT_EQ(to.dry_allowed_length, 3);
  EXPECT_THAT(std::vector<std::string>(to.dry_breakers,
                                       to.dry_breakers + to.num_dry_breakers),
              ::testing::ElementsAre(":", "- "));
  EXPECT_EQ(to.dry_no_breakers, 0);
}

TEST(ToApiTest, BreakersAreTheUsualOnesOrNone) {
  SamplingOptions from;
  ApiTexts texts;
  EXPECT_EQ(ToApi(from, 0, &texts).num_dry_breakers, 0u);
  EXPECT_EQ(ToApi(from, 0, &texts).dry_no_breakers, 0);
  from.dry_breakers.emplace();
  EXPECT_EQ(ToApi(from, 0, &texts).num_dry_breakers, 0u);
  EXPECT_EQ(ToApi(from, 0, &texts).dry_no_breakers, 1);
}

TEST(ToApiTest, WhatTheHeaderTakesForOff) {
  SamplingOptions from;
  ApiTexts texts;
  EXPECT_EQ(ToApi(from, 0, &texts).max_tokens, 0);
  // These are above 0, but not as floats; they must not switch the cut off.
  from.top_p = 1e-60;
  from.repeat_penalty = 1e-60;
  EXPECT_GT(ToApi(from, 0, &texts).top_p, 0);
  EXPECT_GT(ToApi(from, 0, &texts).repeat_penalty, 0);
}

Json ReportOf(const std::vector<int32_t>& tokens) {
  return {{"output", Json::array({{{"tokens", tokens}}})},
          {"memory", {{"device_bytes", 1000}}},
          {"ledger", {{"formula", {{"resident_pages", 3}}}}}};
}

TEST(ComparedTest, AgreesTokenForToken) {
  const Json full = ReportOf({1, 2, 3});
  const Json same = Compared(full, 30, full, 20);
  EXPECT_EQ(same["agree"], true);
  EXPECT_TRUE(same["first_difference"].is_null());
  const auto difference = [&](const std::vector<int32_t>& tokens) {
    const Json other = Compared(ReportOf(tokens), 30, full, 20);
    EXPECT_EQ(other["agree"], false);
    return other["first_difference"];
  };
  EXPECT_EQ(difference({1, 2, 4}), 2);
  EXPECT_EQ(difference({0, 2, 3}), 0);
  EXPECT_EQ(difference({1, 2}), 2);
  EXPECT_EQ(difference({1, 2, 3, 4}), 3);
}

TEST(ComparedTest, ASpeedUpIsHowMuchFasterItWas) {
  const Json report = ReportOf({1});
  const Json timed = Compared(report, 30, report, 20);
  EXPECT_EQ(timed["speedup"], 1.5);
  EXPECT_EQ(timed["decode_tok_s"], 20);
  EXPECT_TRUE(Compared(report, 30, report, 0)["speedup"].is_null());
}

TEST(PromiseOfTest, OnlyWhatIsCoupledOrGreedyIsTheText) {
  SamplingOptions from;
  from.policy = "triforce";
  EXPECT_EQ(PromiseOf(from), Promise::kText);  // greedy, with any policy
  from.temperature = 0.5;
  EXPECT_EQ(PromiseOf(from), Promise::kDistribution);
  from.verify = "residual";
  EXPECT_EQ(PromiseOf(from), Promise::kDistribution);
  from.verify = "coupled";
  EXPECT_EQ(PromiseOf(from), Promise::kText);
  from.plain = true;
  EXPECT_EQ(PromiseOf(from), Promise::kNone);
  from.temperature = 0;
  EXPECT_EQ(PromiseOf(from), Promise::kNone);
}

// A baseline has the same context and sampling, and no drafts.
TEST(BaselineOfTest, NobodyDrafts) {
  Options options;
  options.sampling.draft = "small";
  options.sampling.draft_path = "a model";
  options.sampling.draft_layers = 3;
  options.sampling.branches = 2;
  options.sampling.draft_ahead = true;
  options.sampling.settings = "a=1";
  options.sampling.temperature = 0.5;
  options.sampling.plain = true;
  options.session.prompt_cache_dir = "prompt_cache";
  options.session.cache_dir = "rates";
  for (const char* policy : {"full", "triforce", "sfi", "sadas", "speed"}) {
    options.sampling.policy = policy;
    const Options full = BaselineOf(options, {{"context", 700}});
    const bool forces = std::string(policy) == "sadas";
    EXPECT_EQ(full.sampling.policy, forces ? "sadas" : "full");
    EXPECT_EQ(full.sampling.baseline, forces);
    EXPECT_EQ(full.sampling.settings, forces ? "a=1" : "");
    EXPECT_STREQ(full.sampling.Drafter(), "none");
    EXPECT_EQ(full.sampling.draft_path, "");
    EXPECT_EQ(full.sampling.draft_layers, 0);
    EXPECT_EQ(full.sampling.branches, 0);
    EXPECT_FALSE(full.sampling.draft_ahead);
    EXPECT_FALSE(full.sampling.plain);
    EXPECT_EQ(full.sampling.temperature, 0.5);
    EXPECT_EQ(full.session.context, 700);
    EXPECT_EQ(full.session.prompt_cache_dir, "");
    EXPECT_EQ(full.session.cache_dir, "");
  }
}

}  // namespace
}  // namespace tiercel::cli

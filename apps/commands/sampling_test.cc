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
  from.stops = {"[end]", "\n"};
  from.ignore_eos = true;
  std::vector<const char*> stops;
  const tiercel_sampling to = ToApi(from, /*seed=*/5, &stops);
  EXPECT_EQ(to.max_tokens, 7);
  EXPECT_EQ(to.seed, 5u);
  EXPECT_EQ(to.temperature, 0.5f);
  EXPECT_EQ(to.top_k, 40);
  EXPECT_EQ(to.top_p, 0.75f);
  EXPECT_EQ(to.min_p, 0.125f);
  EXPECT_EQ(to.repeat_penalty, 1.25f);
  EXPECT_THAT(std::vector<std::string>(to.stops, to.stops + to.num_stops),
              ::testing::ElementsAre("[end]", "\n"));
  EXPECT_NE(to.ignore_eos, 0);
}

TEST(ToApiTest, WhatTheHeaderTakesForOff) {
  SamplingOptions from;
  std::vector<const char*> stops;
  EXPECT_EQ(ToApi(from, 0, &stops).max_tokens, 0);
  // Above 0, but not as a float: it must not switch the cut off.
  from.top_p = 1e-60;
  from.repeat_penalty = 1e-60;
  EXPECT_GT(ToApi(from, 0, &stops).top_p, 0);
  EXPECT_GT(ToApi(from, 0, &stops).repeat_penalty, 0);
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

}  // namespace
}  // namespace tiercel::cli

#include "apps/commands/command.h"

#include "gtest/gtest.h"

namespace tiercel::cli {
namespace {

TEST(SessionParamsTest, EveryFlagIsHanded) {
  Options options;
  options.session.context = 4096;
  options.session.kv_type_k = "f32";
  options.session.kv_type_v = "q8_0";
  options.session.cache_dir = "/cache";
  options.session.prompt_cache_dir = "/cache/texts";
  options.session.budget = 256;
  options.session.sink = 40;
  options.session.window = 48;
  options.session.chunk = 16;
  options.sampling.policy = "triforce";
  options.sampling.draft = "self";
  options.sampling.verify = "coupled";
  options.sampling.draft_ahead = true;
  options.sampling.gamma1 = 3;
  options.sampling.gamma2 = 9;
  options.sampling.cost_ratio = 2.5;
  options.sampling.draft_layers = 4;
  const SessionParams params(options, nullptr);
  EXPECT_EQ(params.session.context, 4096);
  EXPECT_STREQ(params.session.kv_type_k, "f32");
  EXPECT_STREQ(params.session.kv_type_v, "q8_0");
  EXPECT_STREQ(params.session.cache_dir, "/cache");
  EXPECT_STREQ(params.session.prompt_cache_dir, "/cache/texts");
  const tiercel_policy& policy = *params.session.policy;
  EXPECT_STREQ(policy.name, "triforce");
  EXPECT_STREQ(policy.draft, "self");
  EXPECT_EQ(policy.draft_model, nullptr);
  EXPECT_STREQ(policy.verify, "coupled");
  EXPECT_EQ(policy.draft_ahead, 1);
  EXPECT_EQ(policy.gamma1, 3);
  EXPECT_EQ(policy.gamma2, 9);
  EXPECT_EQ(policy.cost_ratio, 2.5);
  EXPECT_EQ(policy.draft_layers, 4);
  EXPECT_EQ(policy.budget, 256);
  EXPECT_EQ(policy.sink, 40);
  EXPECT_EQ(policy.window, 48);
  EXPECT_EQ(policy.chunk, 16);
}

TEST(SessionParamsTest, WhatIsNotAskedForIsTheLibrarysChoice) {
  const Options options;
  const SessionParams params(options, nullptr);
  EXPECT_EQ(params.session.cache_dir, nullptr);
  EXPECT_EQ(params.session.prompt_cache_dir, nullptr);
  EXPECT_STREQ(params.policy.draft, "none");
  EXPECT_STREQ(params.policy.verify, "residual");
  EXPECT_EQ(params.policy.draft_ahead, 0);
  EXPECT_EQ(params.policy.budget, 0);
}

TEST(VersionNumberTest, IsTheNumberAlone) {
  EXPECT_EQ(VersionNumber().find_first_not_of("0123456789."),
            std::string::npos);
}

}  // namespace
}  // namespace tiercel::cli

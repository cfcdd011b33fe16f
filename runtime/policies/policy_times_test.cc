#include "runtime/policies/policy_times.h"

#include <cmath>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/policies/policy.h"
#include "runtime/policies/sadas/sadas_params.h"
#include "runtime/policies/speed/speed_params.h"

namespace tiercel::policy_times_test {
namespace {

using ::testing::HasSubstr;

constexpr int kLayers = 4;

// A model whose step takes 1 ms a layer, and 1 us more for each position.
class PolicyTimesTest : public testing::Test {
 protected:
  PolicyTimesTest() {
    config_.layers = kLayers;
    config_.hidden = 64;
    config_.heads = config_.kv_heads = 1;
    config_.head_dim = 64;
    config_.ffn = 64;
    config_.vocab = 100;
    config_.context = 100'000;
    rates_.step_s = 1e-3;
    rates_.step_position_s = 1e-6;
    rates_.prompt_row_s = 1e-4;
    rates_.prompt_position_s = 1e-7;
    rates_.logits_s = 1e-3;
    view_.budget = 1000;
    view_.window = 84;
  }

  // The times on one rank, in place or behind a link.
  PolicyTimes Times(const PolicyParams& params, int64_t length,
                    std::optional<LinkRate> link = std::nullopt) const {
    SessionSite site = {.config = config_, .weights = {}, .layout = layout_};
    site.device.limited = link.has_value();
    site.retrieval = params.RetrievalView();
    site.device_bytes = int64_t{1} << 24;
    const TierPlan plan = site.PlanFor(length + 1000);
    const std::optional<PolicyTimes> times =
        TimesOf(params, {site}, {plan}, link, rates_, length);
    EXPECT_TRUE(times.has_value());
    return times.value_or(PolicyTimes());
  }

  PolicyParams Params(const PolicyKind* policy,
                      PolicyForm form = PolicyForm::kVerified) const {
    PolicyParams params;
    params.policy = policy;
    params.form = form;
    params.view = view_;
    return params;
  }

  ModelConfig config_;
  const KvLayout layout_ = {DType::kF16, DType::kF16, 1, 64};
  Rates rates_;
  RetrievalSize view_;
};

TEST_F(PolicyTimesTest, DraftsAndTheirSweepByHand) {
  constexpr double kStep = kLayers * 1e-3 + 1e-3;
  for (const int64_t length : {100, 10'000}) {
    const PolicyTimes times = Times(Params(PolicyNamed("triforce")), length);
    const auto n = static_cast<double>(length);
    EXPECT_NEAR(times.full_s, kStep + kLayers * (n + 1) * 1e-6, 1e-12);
    // Sixteen drafts over at most 1,100 positions each; then a sweep of
    // seventeen rows, each over everything.
    const double draft = kStep + kLayers * std::min(n, 1100.0) * 1e-6;
    const double sweep =
        kLayers * (17 * 1e-4 + (17 * n + 17 * 18 / 2) * 1e-7) + 1e-3;
    double tokens = 0;
    for (int i = 0; i <= 16; ++i) tokens += std::pow(0.9, i);
    EXPECT_NEAR(times.policy_s, (16 * draft + sweep) / tokens, 1e-12);
  }
  // The times depend on the most tokens of a sweep.
  PolicyParams params = Params(PolicyNamed("triforce"));
  const double usual = Times(params, 100).policy_s;
  params.gamma2 = DraftLength::Fixed(16);
  EXPECT_EQ(Times(params, 100).policy_s, usual);
  params.gamma2 = DraftLength::Fixed(4);
  EXPECT_NE(Times(params, 100).policy_s, usual);
}

TEST_F(PolicyTimesTest, ALongTextPaysBehindASlowLinkMost) {
  const PolicyParams params = Params(PolicyNamed("triforce"));
  const PolicyTimes here = Times(params, 100);
  EXPECT_GT(here.policy_s, here.full_s);
  const PolicyTimes behind = Times(params, 10'000, LinkRate{1e7, 0});
  const PolicyTimes without = Times(params, 10'000);
  EXPECT_LT(behind.policy_s / behind.full_s,
            0.5 * without.policy_s / without.full_s);
  EXPECT_EQ(SlowerThanFull(params, behind), "");
  EXPECT_THAT(SlowerThanFull(params, here),
              HasSubstr("policy triforce: slower here than full"));
}

TEST_F(PolicyTimesTest, APlainFormIsItsSteps) {
  PolicyParams params = Params(PolicyNamed("sadas"), PolicyForm::kPlain);
  params.Own<SadasParams>().window = 100;
  params.Own<SadasParams>().gate = ThinkGate::kAlways;
  const PolicyTimes times = Times(params, 10'000);
  EXPECT_NEAR(times.policy_s, kLayers * 1e-3 + 1e-3 + kLayers * 100 * 1e-6,
              1e-12);
  EXPECT_GT(times.full_s, times.policy_s);
  EXPECT_EQ(SlowerThanFull(params, times), "");
}

TEST_F(PolicyTimesTest, DraftsOfEachPolicy) {
  const double triforce =
      Times(Params(PolicyNamed("triforce")), 10'000).policy_s;
  // Above the cut no row reads the prompt, but for the anchor.
  PolicyParams speed = Params(PolicyNamed("speed"));
  constexpr int kAnchor = 1;
  speed.Own<SpeedParams>().depth.cut = 2;
  speed.Own<SpeedParams>().depth.anchor = kAnchor;
  EXPECT_NEAR(
      triforce - Times(speed, 10'000).policy_s,
      16 * 2 * (1100 - kAnchor) * 1e-6 / ((1 - std::pow(0.9, 17)) / 0.1),
      1e-12);
  // The window is smaller than the view.
  PolicyParams sadas = Params(PolicyNamed("sadas"));
  sadas.Own<SadasParams>().window = 100;
  EXPECT_LT(Times(sadas, 10'000).policy_s, triforce);
  sadas.Own<SadasParams>().window = 50'000;
  EXPECT_EQ(Times(sadas, 10'000).policy_s, triforce);
}

TEST_F(PolicyTimesTest, WhatIsNoPolicyIsNotCompared) {
  const SessionSite site = {
      .config = config_, .weights = {}, .layout = layout_};
  for (const PolicyParams& params :
       {Params(PolicyNamed("full")),
        Params(PolicyNamed("sadas"), PolicyForm::kBaseline)}) {
    EXPECT_FALSE(TimesOf(params, {site}, {TierPlan()}, std::nullopt, rates_, 9)
                     .has_value());
    EXPECT_EQ(SlowerThanFull(params, std::nullopt), "");
  }
}

TEST_F(PolicyTimesTest, ASentenceSaysByHowMuch) {
  const PolicyParams drafts = Params(PolicyNamed("sfi"));
  const PolicyParams plain = Params(PolicyNamed("sfi"), PolicyForm::kPlain);
  const PolicyTimes slower = {.policy_s = 0.0105, .full_s = 0.0077};
  EXPECT_EQ(SlowerThanFull(drafts, slower),
            "policy sfi: slower here than full, by the plan: 10.50 ms a token "
            "where nine of ten drafts hold, full 7.70");
  EXPECT_EQ(SlowerThanFull(plain, slower),
            "policy sfi: slower here than full, by the plan: 10.50 ms a token, "
            "full 7.70");
  EXPECT_EQ(SlowerThanFull(plain, PolicyTimes{0.0078, 0.0077}), "");
}

}  // namespace
}  // namespace tiercel::policy_times_test

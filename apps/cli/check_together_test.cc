#include "apps/cli/args_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tiercel::cli {
namespace {

using ::testing::HasSubstr;

TEST_F(ArgsTest, WhatHasNoEffectIsRefused) {
  const Args full = {"generate", "-p", "x"};
  const Args ngram = {"generate", "-p", "x", "--draft", "ngram"};
  const Args alone = {"generate", "-p",      "x",   "--policy",
                      "triforce", "--draft", "none"};
  const Args prompts = {"bench", "--draft", "ngram", "-f", "x",
                        "-d",    "9",       "-n",    "0"};
  const Args unscaled = {"plan", "--rope-scaling", "none"};
  const Args linear = {"plan", "--rope-scaling", "linear"};
  const struct {
    Args args;
    const char* flag;
    const char* value;
  } kCases[] = {{full, "--budget", "64"},
                {full, "--chunk", "8"},
                {full, "--sink", "8"},
                {full, "--window", "8"},
                {full, "--gamma1", "2"},
                {full, "--gamma2", "2"},
                {full, "--branches", "2"},
                {full, "--verify-against", "full"},
                {full, "--cost-ratio", "2"},
                {ngram, "--budget", "64"},
                {ngram, "--sink", "8"},
                {ngram, "--gamma2", "2"},
                {ngram, "--branches", "2"},
                {alone, "--gamma1", "2"},
                {{"plan"}, "--budget", "64"},
                {full, "--verify", "coupled"},
                {full, "--verify", "residual"},
                {{"bench"}, "--verify", "coupled"},
                {{"bench"}, "--temp", "0.5"},
                {{"bench"}, "--seed", "0"},
                {{"bench"}, "--top-k", "4"},
                {{"bench"}, "--top-p", "0.5"},
                {{"bench"}, "--min-p", "0.5"},
                {{"bench"}, "--repeat-penalty", "1.1"},
                {{"bench"}, "--dry-multiplier", "1"},
                {full, "--dry-base", "2"},
                {full, "--dry-allowed-length", "4"},
                {full, "--dry-sequence-breaker", "none"},
                {prompts, "--temp", "0.5"},
                {prompts, "--verify-against", "full"},
                {unscaled, "--rope-scale", "2"},
                {unscaled, "--yarn-orig-ctx", "64"},
                {linear, "--yarn-orig-ctx", "64"}};
  for (const auto& [args, flag, value] : kCases) {
    Args all = args;
    all.insert(all.end(), {flag, value});
    EXPECT_THAT(Refusal(all),
                HasSubstr(std::string(flag) + ": it has no effect without"));
  }
  EXPECT_EQ(
      Parse({"plan", "--policy", "triforce", "--budget", "64"}).session.budget,
      64);
  EXPECT_EQ(Parse({"generate", "-p", "x", "--policy", "triforce", "--gamma2",
                   "auto", "--cost-ratio", "2"})
                .sampling.cost_ratio,
            2);
  // The view drafts if no proposer is chosen.
  Args compared = alone;
  compared.insert(compared.end(), {"--verify-against", "full"});
  EXPECT_TRUE(Parse(compared).sampling.verify_against_full);
  for (const Args& drafts : {ngram, alone}) {
    Args coupled = drafts;
    coupled.insert(coupled.end(), {"--verify", "coupled"});
    EXPECT_EQ(Parse(coupled).sampling.verify, "coupled");
  }
  // A scale without --rope-scaling is accepted: the checkpoint may use it.
  EXPECT_EQ(Parse({"plan", "--rope-scale", "2"}).model.rope_scale, 2);
  EXPECT_EQ(Parse({"plan", "--rope-scale", "2", "--yarn-orig-ctx", "64"})
                .model.yarn_orig_ctx,
            64);
  // Cuts have no effect on a greedy choice, but scripts pass them.
  const Options greedy = Parse({"generate", "-p", "x", "--top-k", "40",
                                "--top-p", "0.9", "--min-p", "0.1"});
  EXPECT_EQ(greedy.warnings.size(), 3u);
  EXPECT_THAT(greedy.warnings[0], HasSubstr("--top-k"));
  EXPECT_THAT(
      Parse({"generate", "-p", "x", "--top-k", "40", "--temp", "1"}).warnings,
      ::testing::IsEmpty());
}

// The reason suits the policy and the form: a policy that does not guess ahead
// needs a flag that does; with --plain there is none.
TEST_F(ArgsTest, WhyItHasNoEffect) {
  const std::string plain = "with --plain, which neither guesses nor checks";
  const Args checks = {"--verify", "coupled"};
  const struct {
    Args policy;
    Args flag;
    std::string why;
  } kCases[] = {
      {{},
       checks,
       "without --policy triforce, sfi, sadas or speed, or --draft"},
      {{"--policy", "sfi", "--plain"}, checks, plain},
      {{"--policy", "sadas", "--plain"}, checks, plain},
      {{"--policy", "speed", "--plain"}, checks, plain},
      {{"--policy", "sadas", "--plain"}, {"--budget", "64"}, plain},
      {{"--policy", "speed", "--plain"}, {"--budget", "64"}, plain},
      {{"--policy", "sadas", "--plain"}, {"--chunk", "8"}, plain},
      {{"--policy", "speed", "--plain"}, {"--window", "8"}, plain},
      {{"--policy", "sfi", "--plain"}, {"--gamma1", "2"}, plain},
      {{"--policy", "sfi", "--plain"}, {"--gamma2", "2"}, plain},
      {{"--policy", "sfi", "--plain"}, {"--cost-ratio", "2"}, plain},
      {{"--policy", "sfi", "--plain"}, {"--draft-layers", "2"}, plain},
      {{"--policy", "sfi"},
       {"--cost-ratio", "2"},
       "without --gamma1 auto, --gamma2 auto or --branches auto"},
      {{"--policy", "sadas", "--draft", "none"},
       {"--gamma1", "2"},
       "without --draft ngram, self or small"},
      {{"--policy", "speed"}, {"--draft-layers", "2"}, "without --draft self"},
  };
  for (const auto& [policy, flag, why] : kCases) {
    Args args = {"generate", "-p", "x"};
    args.insert(args.end(), policy.begin(), policy.end());
    args.insert(args.end(), flag.begin(), flag.end());
    EXPECT_THAT(Refusal(args),
                HasSubstr(flag[0] + ": it has no effect " + why));
  }
  // `eval` has no --draft, so the message does not name it.
  EXPECT_THAT(
      Refusal({"eval", "-f", "x", "--window", "8"}),
      testing::EndsWith("without --policy triforce, sfi, sadas or speed"));
  for (const char* policy : {"triforce", "sfi", "sadas", "speed"}) {
    const Options options =
        Parse({"generate", "-p", "x", "--policy", policy, "--verify", "coupled",
               "--budget", "512", "--gamma1", "2", "--gamma2", "4"});
    EXPECT_EQ(options.sampling.verify, "coupled") << policy;
  }
}

TEST_F(ArgsTest, AQuestionIsNotBlank) {
  for (const char* blank : {"", "  ", "\t\n", "\u00A0\u3000", "\u200B"}) {
    EXPECT_THAT(Refusal({"ask", "x", "who?", blank, "-m", "x"}),
                HasSubstr("ask: QUESTION: got '"));
  }
  EXPECT_EQ(Parse({"ask", "x", "\u00A0?", "-m", "x"}).questions.size(), 1u);
}

}  // namespace
}  // namespace tiercel::cli

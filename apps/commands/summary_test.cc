#include "apps/commands/summary.h"

#include "apps/commands/requests.h"
#include "gtest/gtest.h"

namespace tiercel::cli {
namespace {

TEST(SummaryTest, SaysWhatTheReportKnows) {
  EXPECT_EQ(SummaryOf(Json{{"prompt_tokens", 12}}, {}),
            "prompt 12 tokens, seed 0\n");
  Json report = {{"prompt_tokens", 12},
                 {"cached_tokens", 5},
                 {"ttft_s", 1.5},
                 {"prefill_tok_s", 8.0},
                 {"decode_tok_s", 20.0},
                 {"tbt_ms", {{"p50", 50.0}}},
                 {"predicted", {{"ttft_s", 1.25}, {"tbt_ms", nullptr}}},
                 {"simulated", true}};
  SamplingOptions sampling;
  sampling.seed = 7;
  EXPECT_EQ(SummaryOf(report, sampling),
            "prompt 12 tokens, 5 cached, TTFT 1.50 s (predicted 1.25), prefill "
            "8.0 tok/s, TBT 50.0 ms, decode 20.0 tok/s, simulated, seed 7\n");
  report = {{"prompt_tokens", 12},
            {"tbt_ms", {{"p50", 50.0}}},
            {"predicted", {{"ttft_s", 1.25}, {"tbt_ms", 45.5}}}};
  EXPECT_EQ(SummaryOf(report, {}),
            "prompt 12 tokens, TBT 50.0 ms (predicted 45.5), seed 0\n");
  report = {{"prompt_tokens", 12},
            {"output", {{{"tokens", {1, 2, 3}}}}},
            {"baseline", {{"agree", true}, {"speedup", 2.314}}}};
  sampling.seeds = {{2, 9}};
  EXPECT_EQ(SummaryOf(report, sampling),
            "prompt 12 tokens, agrees with full, speed-up 2.31, seeds 2 to "
            "9\n");
}

// The sentence agrees with the promise of each form of a policy.
TEST(SummaryTest, AgreementIsWhatWasPromised) {
  const Json same = {{"agree", true}, {"speedup", 1.5}};
  const Json other = {
      {"agree", false}, {"first_difference", 3}, {"speedup", nullptr}};
  SamplingOptions sampling;
  for (const char* policy : {"triforce", "sfi", "sadas", "speed"}) {
    sampling = {};
    sampling.policy = policy;
    EXPECT_EQ(AgreementOf(same, 40, sampling),
              "agrees with full, speed-up 1.50");
    EXPECT_EQ(AgreementOf(other, 40, sampling), "differs from full at token 3");
    sampling.temperature = 0.6;
    EXPECT_EQ(AgreementOf(same, 40, sampling),
              "agrees with full, speed-up 1.50");
    EXPECT_EQ(AgreementOf(other, 40, sampling), "same distribution as full");
    sampling.verify = "coupled";
    EXPECT_EQ(AgreementOf(other, 40, sampling), "differs from full at token 3");
    sampling.verify = "";
    sampling.plain = true;
    for (const double temperature : {0.0, 0.6}) {
      sampling.temperature = temperature;
      EXPECT_EQ(AgreementOf(same, 40, sampling),
                "the same 40 tokens, speed-up 1.50");
      EXPECT_EQ(AgreementOf(same, 1, sampling),
                "the same 1 token, speed-up 1.50");
      EXPECT_EQ(AgreementOf(other, 40, sampling), "first differs at token 3");
    }
  }
}

TEST(SummaryTest, DraftsAndTheLinkHaveLinesOfTheirOwn) {
  Json report = {
      {"prompt_tokens", 12},
      {"speculation",
       {{"tokens_per_sweep", 6.5},
        {"levels",
         {{{"drafter", "ngram"}, {"checked", 0}, {"accepted", 0}},
          {{"drafter", "view"},
           {"checked", 330},
           {"accepted", 310},
           {"cost_ratio", 20.0}}}}}},
      {"ledger",
       {{"h2d_bytes", 0},
        {"d2h_bytes", 0},
        {"phases",
         {{"prefill", {{"seconds", 3.66}, {"link_busy_share", 0.041}}},
          {"refresh", {{"seconds", 0.0}, {"link_busy_share", 0.0}}},
          {"draft", {{"seconds", 1.2}, {"link_busy_share", 0.05}}},
          {"verify", {{"seconds", 2.0}, {"link_busy_share", 0.97}}}}}}}};
  const std::string drafts =
      "prompt 12 tokens, tokens a sweep 6.5, cost ratio of view 20.0, seed 0\n"
      "drafts that held: ngram 0 of 0, view 310 of 330 (94 %)\n";
  EXPECT_EQ(SummaryOf(report, {}),
            drafts + "time: prefill 3.66 s, draft 1.20 s, verify 2.00 s\n");
  report["ledger"]["h2d_bytes"] = 12300000000;
  report["ledger"]["d2h_bytes"] = 200000000;
  const std::string link = " (97 %); link 12.30 GB up, 0.20 GB down\n";
  EXPECT_EQ(SummaryOf(report, {}),
            drafts +
                "time: prefill 3.66 s (link busy 4 %), draft 1.20 s (5 %), "
                "verify 2.00 s" +
                link);
  report.erase("speculation");
  report["ledger"]["phases"].erase("draft");
  EXPECT_EQ(SummaryOf(report, {}),
            "prompt 12 tokens, seed 0\n"
            "time: prefill 3.66 s (link busy 4 %), decode 2.00 s" +
                link);
}

TEST(CutTest, SaysWhereAnAnswerWasCut) {
  SamplingOptions sampling;
  sampling.max_tokens = 3;
  Json output = {{"tokens", {5, 6, 7}}, {"finish_reason", "length"}};
  EXPECT_EQ(CutOf(output, sampling), "cut at -n 3 tokens; -n N for more\n");
  for (const int64_t most : {4, -1}) {
    sampling.max_tokens = most;
    EXPECT_EQ(CutOf(output, sampling), "");
  }
  output["finish_reason"] = "stop";
  EXPECT_EQ(CutOf(output, sampling), "");
}

TEST(CutTest, SaysWhereTheContextEnded) {
  Options options;
  options.sampling.max_tokens = 3;
  Json report = {{"context", 9}, {"prompt_tokens", 6}};
  Json& output = report["output"][0];
  output = {{"tokens", {5, 6, 7}}, {"finish_reason", "length"}};
  EXPECT_EQ(CutShortOf(report, options), "");
  for (const int64_t most : {4, -1}) {
    options.sampling.max_tokens = most;
    options.session.context = 0;
    EXPECT_EQ(CutShortOf(report, options),
              "cut after 3 tokens, where the context of 9 ends; a shorter text "
              "leaves room for more");
    options.session.context = 9;
    EXPECT_EQ(CutShortOf(report, options),
              "cut after 3 tokens, where the context of 9 ends; a larger -c "
              "has room for more");
  }
  // A text that has room left has ended by itself, within a thought.
  report["context"] = 10;
  EXPECT_EQ(CutShortOf(report, options),
            "ended within a thought after 3 tokens, without an answer; "
            "--think off may give one");
  output["finish_reason"] = "stop";
  EXPECT_EQ(CutShortOf(report, options), "");
}

TEST(SummaryTest, BothDevices) {
  Json report = {
      {"prompt_tokens", 12},
      {"output", {{{"tokens", {1, 2, 3}}}}},
      {"memory", {{"device_bytes", 3 << 20}}},
      {"ledger",
       {{"formula", {{"resident_pages", 2}}}, {"phases", Json::object()}}},
      {"baseline",
       {{"agree", true},
        {"speedup", nullptr},
        {"device_bytes", 5 << 19},
        {"resident_pages", 14}}}};
  EXPECT_EQ(SummaryOf(report, {}),
            "prompt 12 tokens, agrees with full, seed 0\n"
            "device: 3.00 MiB taken, 2 pages resident; full: 2.50 MiB, 14 "
            "resident\n");
  report["baseline"]["resident_pages"] = nullptr;
  EXPECT_EQ(SummaryOf(report, {}),
            "prompt 12 tokens, agrees with full, seed 0\n");
}

TEST(SummaryTest, AnAnswerOfANumberSaysSomething) {
  for (const char* answer : {"1912.", "42%", "$5", "No", "\u00a7 4"}) {
    EXPECT_FALSE(SaysNothing(answer)) << answer;
  }
  for (const char* answer : {"", "Nothing.", "\"nothing\"", " - "}) {
    EXPECT_TRUE(SaysNothing(answer)) << answer;
  }
}

}  // namespace
}  // namespace tiercel::cli

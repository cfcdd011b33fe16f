#include "apps/commands/total_cost.h"

#include <vector>

#include "gtest/gtest.h"

namespace tiercel::cli {
namespace {

// Makes a session's report of one prompt, with the fields that TotalCost reads.
Json ReportOf(int prompt, int cached, double prefill_s, double ttft_s,
              int accepted, int device_bytes) {
  return {
      {"prompt_tokens", prompt},
      {"cached_tokens", cached},
      {"ttft_s", ttft_s},
      {"speculation",
       {{"sweeps", 2},
        {"tokens_per_sweep", 7.5},
        {"levels",
         {{{"drafter", "ngram"},
           {"drafted", 8},
           {"accepted", accepted},
           {"cost_ratio", 8.0}}}}}},
      {"ledger",
       {{"h2d_bytes", 1'000'000'000'000},
        {"formula", {{"page_bytes", 128}}},
        {"phases",
         {{"prefill",
           {{"seconds", prefill_s},
            {"link_busy_s", 0.5},
            {"link_busy_share", 0.9}}}}}}},
      {"memory", {{"host_bytes", 5}, {"device_bytes", device_bytes}}},
      {"predicted",
       {{"ttft_s", 3.0}, {"host_bytes", 6}, {"device_bytes", device_bytes}}}};
}

TEST(SpentTest, SumsWhatCanBeSummed) {
  TotalCost spent;
  spent.Add(ReportOf(100, 10, 1.0, 1.5, 3, 70), {0.25, 0.010, 0.030});
  spent.Add(ReportOf(50, 20, 0.5, 0.75, 4, 60), {0.5, 0.020});
  EXPECT_EQ(spent.prompt_tokens(), 150);
  EXPECT_EQ(spent.cached_tokens(), 30);
  EXPECT_EQ(spent.output_tokens(), 5);
  // Two costs, joined, are the cost of both.
  TotalCost one;
  one.Add(ReportOf(100, 10, 1.0, 1.5, 3, 70), {0.25, 0.010, 0.030});
  TotalCost two;
  two.Add(ReportOf(50, 20, 0.5, 0.75, 4, 60), {0.5, 0.020});
  two.DecodedIn(0.020);
  TotalCost both;
  both.Add(TotalCost());
  both.Add(one);
  both.Add(two);
  EXPECT_EQ(both.output_tokens(), 5);
  const Json all = spent.ToJson();
  EXPECT_EQ(both.ToJson(), all);
  EXPECT_EQ(all["prompt_tokens"], 150);
  EXPECT_EQ(all["cached_tokens"], 30);
  EXPECT_EQ(all["ttft_s"], 2.25);
  EXPECT_EQ(all["prefill_tok_s"], 80);  // 120 tokens in 1.5 s
  EXPECT_DOUBLE_EQ(all["decode_tok_s"].get<double>(), 50);  // 3 in 60 ms
  // The first token of an answer has no gap before it.
  EXPECT_EQ(all["tbt_ms"],
            Json({{"p50", 20}, {"p90", 30}, {"p99", 30}, {"samples", 3}}));
  EXPECT_EQ(
      all["speculation"],
      Json({{"sweeps", 4},
            {"tokens_per_sweep", 0.75},
            {"levels",
             {{{"drafter", "ngram"}, {"drafted", 16}, {"accepted", 7}}}}}));
  const Json& ledger = all["ledger"];
  EXPECT_EQ(ledger["h2d_bytes"], 2'000'000'000'000);
  EXPECT_EQ(ledger["formula"], nullptr);
  EXPECT_EQ(ledger["phases"]["prefill"]["seconds"], 1.5);
  EXPECT_DOUBLE_EQ(ledger["phases"]["prefill"]["link_busy_share"].get<double>(),
                   1 / 1.5);
  EXPECT_EQ(all["memory"], Json({{"host_bytes", 5}, {"device_bytes", 70}}));
  EXPECT_EQ(spent.predicted_memory(),
            Json({{"host_bytes", 6}, {"device_bytes", 70}}));
}

TEST(SpentTest, AnswersAtOnceHaveTheSecondsOfAll) {
  TotalCost spent;
  spent.Add(ReportOf(100, 10, 1.0, 1.5, 3, 70), {0.25, 0.010, 0.030});
  spent.Add(ReportOf(50, 20, 0.5, 0.75, 4, 60), {0.5, 0.020});
  spent.DecodedIn(0.030);
  const Json all = spent.ToJson();
  EXPECT_DOUBLE_EQ(all["decode_tok_s"].get<double>(), 100);  // 3 in 30 ms
  EXPECT_EQ(all["tbt_ms"]["p99"], 30);
}

TEST(SpentTest, NothingIsNull) {
  const TotalCost spent;
  const Json all = spent.ToJson();
  EXPECT_EQ(all["prompt_tokens"], 0);
  for (const char* field : {"ttft_s", "prefill_tok_s", "decode_tok_s",
                            "speculation", "ledger", "memory"}) {
    EXPECT_EQ(all[field], nullptr) << field;
  }
  EXPECT_EQ(all["tbt_ms"]["p50"], nullptr);
  EXPECT_EQ(all["tbt_ms"]["samples"], 0);
  EXPECT_TRUE(spent.predicted_memory().empty());
}

}  // namespace
}  // namespace tiercel::cli

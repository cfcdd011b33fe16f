#include "apps/commands/bench_table.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "absl/strings/match.h"
#include "gtest/gtest.h"

namespace tiercel::cli {
namespace {

BenchRow Decode() {
  BenchRow row;
  row.n_gen = 32;
  row.n_depth = 2048;
  row.samples_ts = {90, 100, 110};
  row.samples_ttft_s = {0.25, 0.5, 0.75};
  for (int i = 100; i > 0; --i) row.gap_ms.push_back(i / 4.0);
  row.bytes_per_token = 200e6;
  row.peak_share = 0.5;
  return row;
}

BenchContext Context() {
  BenchContext context;
  context.model = "llama Q4_1";
  context.model_file = "a \"b\".gguf";
  context.model_bytes = 97 * 1024 * 1024;
  context.parameters = 134'515'008;
  context.threads = 2;
  context.backend = "cpu";
  context.build = "0.1.0 (commit 1a2b3c4)";
  context.machine = {{"cpu", "some, CPU"}, {"read_bytes_per_s", 4e10}};
  return context;
}

BenchRow Drafted() {
  BenchRow row = Decode();
  row.bytes_per_token.reset();
  row.peak_share.reset();
  row.tokens_per_sweep = 4.25;
  row.levels = {{{"drafter", "self"}, {"drafted", 90}, {"accepted", 60}},
                {{"drafter", "retrieval"}, {"drafted", 80}, {"accepted", 70}}};
  return row;
}

BenchContext DraftedContext() {
  BenchContext context = Context();
  context.policy = "triforce";
  context.draft = "self";
  return context;
}

TEST(BenchTableTest, MeanAndSampleDeviation) {
  EXPECT_EQ(Mean({90, 100, 110}), 100);
  EXPECT_EQ(SampleDeviation({90, 100, 110}), 10);  // over n - 1
  EXPECT_EQ(SampleDeviation({90}), std::nullopt);
  EXPECT_EQ(Mean({}), 0);
}

TEST(BenchTableTest, PercentilesAreSamples) {
  std::vector<double> samples;
  for (int i = 0; i < 200; ++i) samples.push_back((i * 77) % 200 + 1);
  EXPECT_EQ(Percentile(samples, 0.50), 100);  // 1 to 200, in some order
  EXPECT_EQ(Percentile(samples, 0.90), 180);
  EXPECT_EQ(Percentile(samples, 0.99), 198);
  EXPECT_EQ(Percentile({3, 1, 2}, 0.50), 2);
  EXPECT_EQ(Percentile({4, 1, 3, 2}, 0.50), 2);
  EXPECT_EQ(Percentile({7}, 0.99), 7);
  EXPECT_EQ(Percentile({}, 0.5), std::nullopt);
}

TEST(BenchTableTest, RepetitionsAreRatesAndTimes) {
  BenchRow row;
  row.n_gen = 4;
  AddRepetition({.seconds = 2, .token_seconds = {{0.5, 0.25, 0.5, 0.25}}},
                &row);
  AddRepetition({.seconds = 8, .token_seconds = {{1.5, 2, 2, 1}}}, &row);
  EXPECT_EQ(row.samples_ts, (std::vector<double>{2, 0.5}));
  EXPECT_EQ(row.samples_ttft_s, (std::vector<double>{0.5, 1.5}));
  EXPECT_EQ(row.gap_ms, (std::vector<double>{250, 500, 250, 2000, 2000, 1000}));
  AddRepetition(
      {.seconds = 8, .token_seconds = {{2, 3, 2, 1}}, .generated = true}, &row);
  EXPECT_EQ(row.samples_ts.back(), 0.5);  // three in six seconds
  EXPECT_EQ(row.samples_ttft_s.back(), 2);
  row.n_gen = 1;
  AddRepetition({.seconds = 8, .token_seconds = {{8}}, .generated = true},
                &row);
  EXPECT_EQ(row.samples_ts.back(), 0.125);
  BenchRow both;
  both.n_gen = 3;
  both.parallel = 2;
  AddRepetition({.seconds = 8,
                 .token_seconds = {{2, 1, 4}, {3, 2, 3}},
                 .generated = true},
                &both);
  EXPECT_EQ(both.samples_ts, std::vector<double>{0.8});  // four in five seconds
  EXPECT_EQ(both.samples_ttft_s, std::vector<double>{3});
  EXPECT_EQ(both.gap_ms, (std::vector<double>{1000, 4000, 2000, 3000}));
  BenchRow prompt;
  prompt.n_prompt = 512;
  AddRepetition({.seconds = 4, .token_seconds = {}}, &prompt);
  EXPECT_EQ(prompt.samples_ts, std::vector<double>{128});
  EXPECT_EQ(prompt.samples_ttft_s, std::vector<double>{4});
  EXPECT_TRUE(prompt.gap_ms.empty());
}

TEST(BenchTableTest, BytesAreThoseOfAMeanStep) {
  BenchContext context = Context();
  context.weight_bytes_per_token = 1e6;
  context.kv_bytes_per_position = 1000;
  BenchRow row = Decode();
  AddBytes(context, &row);
  // From 2,049 to 2,080 positions, a hundred times a second, of 40 GB/s.
  EXPECT_EQ(row.bytes_per_token, 1e6 + 1000 * 2064.5);
  EXPECT_DOUBLE_EQ(*row.peak_share, 100 * (1e6 + 2064500) / 4e10);
  row.peak_share.reset();
  context.machine["read_bytes_per_s"] = 0;
  AddBytes(context, &row);
  EXPECT_EQ(row.peak_share, std::nullopt);
}

TEST(BenchTableTest, AnUnsteadyPeakIsSaid) {
  EXPECT_TRUE(PeakWarnings({{"read_spread", 0.25}, {"steady", true}}).empty());
  BenchContext context = Context();
  context.warnings = PeakWarnings({{"read_spread", 0.4}, {"steady", false}});
  ASSERT_EQ(context.warnings.size(), 1u);
  EXPECT_TRUE(absl::StrContains(context.warnings[0], "took 40 % longer"));
  EXPECT_EQ(ToJson(Decode(), context)["warnings"], Json(context.warnings));
  BenchRow row = Decode();
  row.warnings = {"of its session"};
  EXPECT_EQ(ToJson(row, context)["warnings"],
            Json({context.warnings[0], "of its session"}));
  EXPECT_FALSE(absl::StrContains(CsvHeader(Decode(), context), "warnings"));
}

TEST(BenchTableTest, NamesAsLlamaBench) {
  BenchRow row;
  row.n_prompt = 512;
  EXPECT_EQ(TestName(row), "pp512");
  row.n_depth = 7;
  EXPECT_EQ(TestName(row), "pp512@d7");
  EXPECT_EQ(TestName(Decode()), "tg32@d2048");
}

TEST(BenchTableTest, JsonHasTheContractsFields) {
  const Json json = ToJson(Decode(), Context());
  EXPECT_EQ(json["test"], "tg32@d2048");
  EXPECT_EQ(json["n_prompt"], 0);
  EXPECT_EQ(json["n_gen"], 32);
  EXPECT_EQ(json["n_depth"], 2048);
  EXPECT_EQ(json["avg_ts"], 100.0);
  EXPECT_EQ(json["stddev_ts"], 10.0);
  EXPECT_EQ(json["samples_ts"], Json({90.0, 100.0, 110.0}));
  EXPECT_EQ(json["bytes_per_token"], 200e6);
  EXPECT_EQ(json["peak_share"], 0.5);
  EXPECT_EQ(json["ttft_s"], 0.5);
  EXPECT_EQ(
      json["tbt_ms"],
      Json({{"p50", 12.5}, {"p90", 22.5}, {"p99", 24.75}, {"samples", 100}}));
  EXPECT_EQ(json["machine"]["read_bytes_per_s"], 4e10);
  EXPECT_EQ(json["policy"], "full");
  EXPECT_EQ(json["draft"], "none");
  EXPECT_TRUE(json["tokens_per_sweep"].is_null());
  EXPECT_EQ(json["levels"], Json::array());
}

TEST(BenchTableTest, JsonSaysWhatWasDrafted) {
  const Json json = ToJson(Drafted(), DraftedContext());
  EXPECT_EQ(json["policy"], "triforce");
  EXPECT_EQ(json["draft"], "self");
  EXPECT_EQ(json["tokens_per_sweep"], 4.25);
  EXPECT_EQ(json["levels"].size(), 2u);
  EXPECT_EQ(json["levels"][0]["drafter"], "self");
  EXPECT_EQ(json["levels"][1]["accepted"], 70);
  EXPECT_TRUE(json["bytes_per_token"].is_null());
}

TEST(BenchTableTest, WhatAPrefillHasNoNumberForIsNull) {
  BenchRow row;
  row.n_prompt = 512;
  row.samples_ts = {1};
  const Json json = ToJson(row, Context());
  EXPECT_TRUE(json["bytes_per_token"].is_null());
  EXPECT_TRUE(json["peak_share"].is_null());
  EXPECT_EQ(json["tbt_ms"], Json({{"p50", nullptr},
                                  {"p90", nullptr},
                                  {"p99", nullptr},
                                  {"samples", 0}}));
}

TEST(BenchTableTest, MarkdownLineFitsItsHeader) {
  const std::string line = MarkdownLine(Decode(), Context());
  EXPECT_EQ(line,
            "| llama Q4_1 | 97.00 MiB | 134.52 M | cpu | 2 | tg32 @ d2048 | "
            "100.00 ± 10.00 | 200.0 | 50.0 | 0.500 | 12.50 / 22.50 / "
            "24.75 |\n");
  EXPECT_EQ(MarkdownHeader(Context()),
            "| model | size | params | backend | threads | test | t/s "
            "| MB/token | % of read peak | TTFT s | TBT ms: p50 / p90 / p99 |\n"
            "| --- | ---: | ---: | --- | ---: | ---: | ---: | ---: | ---: "
            "| ---: | ---: |\n");
}

TEST(BenchTableTest, OneRepetitionHasNoDeviation) {
  BenchRow row = Decode();
  row.samples_ts = {100};
  EXPECT_TRUE(ToJson(row, Context())["stddev_ts"].is_null());
  const std::string line = MarkdownLine(row, Context());
  EXPECT_NE(line.find("| 100.00 | 200.0 |"), std::string::npos) << line;
  const std::string csv = CsvLine(row, Context());
  EXPECT_NE(csv.find(",100.0,,200000000.0,"), std::string::npos) << csv;
}

TEST(BenchTableTest, MarkdownShowsDrafts) {
  const std::string line = MarkdownLine(Drafted(), DraftedContext());
  EXPECT_EQ(line,
            "| llama Q4_1 | 97.00 MiB | 134.52 M | cpu | 2 | triforce | self | "
            "tg32 @ d2048 | 100.00 ± 10.00 | - | - | 0.500 | 12.50 / 22.50 / "
            "24.75 | 4.2 |\n");
  // A prompt drafts nothing, and is a line of the same table.
  const std::string prompt = MarkdownLine(Decode(), DraftedContext());
  const std::string header = MarkdownHeader(DraftedContext());
  const size_t end = header.find('\n');
  for (const std::string& one :
       {prompt, header.substr(0, end), header.substr(end + 1)}) {
    EXPECT_EQ(std::count(one.begin(), one.end(), '|'),
              std::count(line.begin(), line.end(), '|'))
        << one;
  }
}

TEST(BenchTableTest, MarkdownShowsTheBaseline) {
  BenchContext context = DraftedContext();
  context.compared = true;
  BenchRow row = Drafted();
  const std::string prompt = MarkdownLine(Decode(), context);
  row.baseline = {{"agree", true},
                  {"first_difference", nullptr},
                  {"speedup", 1.5},
                  {"decode_tok_s", 60.0}};
  const std::string line = MarkdownLine(row, context);
  EXPECT_EQ(line.substr(line.size() - 21), "| 4.2 | 1.50 | yes |\n");
  const std::string header = MarkdownHeader(context);
  EXPECT_EQ(std::count(prompt.begin(), prompt.end(), '|'),
            std::count(line.begin(), line.end(), '|'));
  EXPECT_EQ(std::count(header.begin(), header.end(), '|'),
            2 * std::count(line.begin(), line.end(), '|'));
  row.baseline["agree"] = false;
  row.baseline["first_difference"] = 5;
  context.promise = Promise::kText;
  EXPECT_TRUE(absl::EndsWith(MarkdownLine(row, context), "| 1.50 | no |\n"));
  context.promise = Promise::kDistribution;
  EXPECT_TRUE(absl::EndsWith(MarkdownLine(row, context),
                             "| 1.50 | same distribution |\n"));
  context.promise = Promise::kNone;
  EXPECT_TRUE(absl::EndsWith(MarkdownLine(row, context),
                             "| 1.50 | differs at token 5 |\n"));
  row.baseline["agree"] = true;
  const std::string csv = CsvLine(row, context);
  EXPECT_NE(csv.find(",true,1.5,"), std::string::npos) << csv;
  EXPECT_EQ(CsvHeader(row, context), CsvHeader(Decode(), context));
}

TEST(BenchTableTest, CsvQuotesTextAndFitsItsHeader) {
  const std::string header = CsvHeader(Decode(), Context());
  const std::string line = CsvLine(Decode(), Context());
  EXPECT_NE(line.find("\"a \"\"b\"\".gguf\""), std::string::npos);
  EXPECT_NE(line.find("\"some, CPU\""), std::string::npos);
  EXPECT_EQ(header.substr(0, 18), "\"test\",\"n_prompt\",");
  EXPECT_EQ(line.substr(0, 21), "\"tg32@d2048\",0,32,204");
  // One comma is inside a quoted field.
  EXPECT_EQ(std::count(line.begin(), line.end(), ','),
            std::count(header.begin(), header.end(), ',') + 1);
  EXPECT_NE(line.find(",200000000.0,0.5,0.5,"), std::string::npos) << line;
  EXPECT_NE(header.find("\"tbt_ms_p50\",\"tbt_ms_p90\",\"tbt_ms_p99\""),
            std::string::npos);
  EXPECT_NE(line.find(",12.5,22.5,24.75,"), std::string::npos) << line;
  const std::string drafted = CsvLine(Drafted(), DraftedContext());
  EXPECT_NE(drafted.find(",\"triforce\",\"self\",4.25,"), std::string::npos);
  EXPECT_EQ(CsvHeader(Drafted(), DraftedContext()), header);
}

}  // namespace
}  // namespace tiercel::cli

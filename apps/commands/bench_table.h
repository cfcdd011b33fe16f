#ifndef TIERCEL_APPS_COMMANDS_BENCH_TABLE_H_
#define TIERCEL_APPS_COMMANDS_BENCH_TABLE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "apps/commands/sampling.h"
#include "apps/terminal/output.h"

namespace tiercel::cli {

// One test of `tiercel bench`, as llama-bench counts: `n_prompt` tokens
// prefilled, or `n_gen` tokens decoded, after `n_depth` tokens.
struct BenchRow {
  int64_t n_prompt = 0;
  int64_t n_gen = 0;
  int64_t n_depth = 0;
  // Each repetition's tokens per second, and seconds to the first token (of a
  // prompt, to its end).
  std::vector<double> samples_ts;
  std::vector<double> samples_ttft_s;
  std::vector<double> gap_ms;  // between tokens, of all repetitions
  // Bytes a decoded token reads: the weights, and the KV of the positions
  // before it (the mean over the test).
  std::optional<double> bytes_per_token;
  // avg_ts * bytes_per_token over the measured read bandwidth.
  std::optional<double> peak_share;
  // What a generation with drafts has besides: tokens that a sweep gave
  // (absent: none was needed), and [{"drafter", "drafted", "checked",
  // "accepted"}], the innermost first.
  std::optional<double> tokens_per_sweep;
  Json levels = Json::array();
  // Taken of the device: weights, workspace, staging, views, resident pages.
  int64_t device_bytes = 0;
  std::vector<std::string> warnings;  // of its session
  Json baseline;                      // with --verify-against: Compared
};

// What all rows share.
struct BenchContext {
  std::string model;       // "llama Q4_1"
  std::string model_file;  // as given
  int64_t model_bytes = 0;
  int64_t parameters = 0;
  int64_t threads = 0;
  std::string backend;  // "cpu", "ref"; "cpu simulated"
  bool simulated = false;
  bool warmed_up = true;  // a test ran once before it was timed
  bool filled = false;    // nobody computed the KV of depths
  std::string kv_type_k;
  std::string kv_type_v;
  std::string policy = "full";
  std::string draft = "none";
  bool compared = false;  // generations, with what they are without drafts
  Promise promise = Promise::kText;   // of those
  double weight_bytes_per_token = 0;  // that a decoded token reads
  double kv_bytes_per_position = 0;   // K and V, all layers
  std::string build;                  // tiercel_version()
  std::string date;                   // UTC, ISO 8601
  Json machine;                       // tiercel_machine
  std::vector<std::string> warnings;  // of the machine
};

// What a repetition took; of a decoding, each token, since the one before or
// the beginning.
struct Repetition {
  double seconds = 0;
  std::vector<double> token_seconds;
  // The first token follows from the prompt, whose last rows are read for it:
  // what is decoded comes after it.
  bool generated = false;
};
void AddRepetition(const Repetition& repetition, BenchRow* row);
// What there is to say of a `machine` that was measured beside other work.
std::vector<std::string> PeakWarnings(const Json& machine);
// What a token of a decoding reads, and what share of the peak that is.
void AddBytes(const BenchContext& context, BenchRow* row);

double Mean(const std::vector<double>& samples);
// Absent for one.
std::optional<double> SampleDeviation(const std::vector<double>& samples);
// The least sample that `share` (0 to 1) of them do not exceed; absent for
// none.
std::optional<double> Percentile(std::vector<double> samples, double share);

std::string TestName(const BenchRow& row);  // "tg32@d2048"
Json ToJson(const BenchRow& row, const BenchContext& context);

// Markdown and CSV: a header, then a line for each row. Markdown has columns of
// drafts where somebody drafts, and of the baseline where there is one.
std::string MarkdownHeader(const BenchContext& context);
std::string MarkdownLine(const BenchRow& row, const BenchContext& context);
std::string CsvHeader(const BenchRow& row, const BenchContext& context);
std::string CsvLine(const BenchRow& row, const BenchContext& context);

}  // namespace tiercel::cli

#endif  // TIERCEL_APPS_COMMANDS_BENCH_TABLE_H_

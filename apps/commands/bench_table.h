#ifndef TIERCEL_APPS_COMMANDS_BENCH_TABLE_H_
#define TIERCEL_APPS_COMMANDS_BENCH_TABLE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "apps/commands/sampling.h"
#include "apps/terminal/output.h"

namespace tiercel::cli {

// The result of one test of `tiercel bench`, shaped as llama-bench's:
// `n_prompt` tokens prefilled, or `n_gen` tokens decoded, after `n_depth`
// tokens; or `n_gen` tokens of each of several texts.
struct BenchRow {
  int64_t n_prompt = 0;
  int64_t n_gen = 0;
  int64_t n_depth = 0;
  int64_t parallel = 1;  // texts that are generated at once
  // Tokens per second of each repetition, and its seconds to the first token
  // (for a prompt, to its end).
  std::vector<double> samples_ts;
  std::vector<double> samples_ttft_s;
  std::vector<double> gap_ms;  // between tokens, of all repetitions
  // Bytes that a decoded token reads: the weights, and the KV of the positions
  // before it (the mean over the test).
  std::optional<double> bytes_per_token;
  // avg_ts * bytes_per_token over the measured read bandwidth.
  std::optional<double> peak_share;
  // For a generation with drafts: tokens per sweep (absent: no sweep was
  // needed), and [{"drafter", "drafted", "checked", "accepted"}], the innermost
  // first.
  std::optional<double> tokens_per_sweep;
  Json levels = Json::array();
  // Device memory taken: weights, workspace, staging, views, resident pages.
  int64_t device_bytes = 0;
  std::vector<std::string> warnings;  // the session's
  Json baseline;                      // with --verify-against: Compared
};

// Data that all rows share.
struct BenchContext {
  std::string model;       // "llama Q4_1"
  std::string model_file;  // as given
  int64_t model_bytes = 0;
  int64_t parameters = 0;
  int64_t threads = 0;
  std::string backend;  // "cpu", "ref"; "cpu simulated"
  bool simulated = false;
  bool warmed_up = true;  // a test ran once before it was timed
  bool filled = false;    // the KV of depths is random
  std::string kv_type_k;
  std::string kv_type_v;
  std::string policy = "full";
  std::string draft = "none";
  bool compared = false;  // generations are compared with their baseline
  Promise promise = Promise::kText;   // promised by that comparison
  double weight_bytes_per_token = 0;  // read to decode a token
  double kv_bytes_per_position = 0;   // K and V, all layers
  std::string build;                  // tiercel_version()
  std::string date;                   // UTC, ISO 8601
  Json machine;                       // tiercel_machine
  std::vector<std::string> warnings;  // the machine's
};

// Times of a repetition. A decoding has one for each token of each text, since
// the token before it or the beginning.
struct Repetition {
  double seconds = 0;
  std::vector<std::vector<double>> token_seconds;  // [text][token]
  // Texts were generated, whose first tokens come of reading the prompt;
  // decoding begins after the last of these.
  bool generated = false;
};
void AddRepetition(const Repetition& repetition, BenchRow* row);
// Warnings about a `machine` that was measured while other work ran.
std::vector<std::string> PeakWarnings(const Json& machine);
// Sets the bytes that a decoded token reads, and their share of the peak.
void AddBytes(const BenchContext& context, BenchRow* row);

double Mean(const std::vector<double>& samples);
// The standard deviation over n - 1; absent for fewer than two samples.
std::optional<double> SampleDeviation(const std::vector<double>& samples);
// The least sample that `share` (0 to 1) of them do not exceed; absent if there
// is no sample.
std::optional<double> Percentile(std::vector<double> samples, double share);

std::string TestName(const BenchRow& row);  // "tg32@d2048"
Json ToJson(const BenchRow& row, const BenchContext& context);

// Markdown and CSV have a header, then a line for each row. Markdown has
// columns for drafts if there are any, and for the baseline if there is one.
std::string MarkdownHeader(const BenchContext& context);
std::string MarkdownLine(const BenchRow& row, const BenchContext& context);
std::string CsvHeader(const BenchRow& row, const BenchContext& context);
std::string CsvLine(const BenchRow& row, const BenchContext& context);

}  // namespace tiercel::cli

#endif  // TIERCEL_APPS_COMMANDS_BENCH_TABLE_H_

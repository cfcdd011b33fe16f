#include "apps/commands/bench_table.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "apps/cli/numbers.h"

namespace tiercel::cli {
namespace {

Json OrNull(const std::optional<double>& value) {
  return value.has_value() ? Json(*value) : Json(nullptr);
}

bool ShowsDrafts(const BenchContext& context) {
  return context.policy != "full" || context.draft != "none";
}

// "101.25 ± 0.31"; of one repetition "101.25".
std::string RateOf(const BenchRow& row) {
  std::string rate = Fixed(Mean(row.samples_ts), 2);
  const std::optional<double> deviation = SampleDeviation(row.samples_ts);
  if (deviation.has_value()) {
    absl::StrAppend(&rate, " ± ", Fixed(*deviation, 2));
  }
  return rate;
}

// "9.84 / 10.21 / 14.03"
std::string GapsOf(const BenchRow& row) {
  if (row.gap_ms.empty()) return "-";
  std::vector<std::string> shown;
  for (const double share : {0.50, 0.90, 0.99}) {
    shown.push_back(Fixed(*Percentile(row.gap_ms, share), 2));
  }
  return absl::StrJoin(shown, " / ");
}

// Returns a CSV field: text is quoted, with its quotes doubled.
std::string CsvField(const Json& value) {
  if (value.is_null()) return "";
  if (!value.is_string()) return Dump(value);
  std::string quoted = "\"";
  for (char c : value.get<std::string>()) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + "\"";
}

// Returns the row without lists and objects, for which a CSV has no place.
Json FlatJson(const BenchRow& row, const BenchContext& context) {
  Json flat = ToJson(row, context);
  flat.erase("samples_ts");
  flat.erase("warnings");
  flat.erase("levels");
  flat.erase("baseline");
  for (const char* key : {"agree", "speedup"}) {
    flat[key] = row.baseline.is_null() ? Json() : row.baseline.at(key);
  }
  const Json tbt = flat["tbt_ms"];
  flat.erase("tbt_ms");
  for (const char* key : {"p50", "p90", "p99"}) {
    flat[absl::StrCat("tbt_ms_", key)] = tbt.at(key);
  }
  flat.erase("machine");
  for (const auto& [name, value] : context.machine.items()) {
    if (value.is_primitive()) flat["machine_" + name] = value;
  }
  return flat;
}

// The cell that says whether the texts agree.
std::string AgreementIn(const Json& baseline, Promise promise) {
  if (baseline.at("agree").get<bool>()) return "yes";
  switch (promise) {
    case Promise::kText:
      return "no";
    case Promise::kDistribution:
      return "same distribution";
    case Promise::kNone:
      break;
  }
  return absl::StrCat("differs at token ",
                      baseline.at("first_difference").get<int64_t>());
}

}  // namespace

double Mean(const std::vector<double>& samples) {
  double sum = 0;
  for (double sample : samples) sum += sample;
  return samples.empty() ? 0 : sum / static_cast<double>(samples.size());
}

std::optional<double> SampleDeviation(const std::vector<double>& samples) {
  if (samples.size() < 2) return std::nullopt;
  const double mean = Mean(samples);
  double sum = 0;
  for (double sample : samples) sum += (sample - mean) * (sample - mean);
  return std::sqrt(sum / static_cast<double>(samples.size() - 1));
}

std::optional<double> Percentile(std::vector<double> samples, double share) {
  if (samples.empty()) return std::nullopt;
  std::sort(samples.begin(), samples.end());
  const double rank = std::ceil(share * static_cast<double>(samples.size()));
  return samples[static_cast<size_t>(rank) - 1];
}

void AddRepetition(const Repetition& repetition, BenchRow* row) {
  auto tokens = static_cast<double>(row->n_prompt + row->parallel * row->n_gen);
  double seconds = repetition.seconds;
  std::optional<double> begun;  // when all texts had their first tokens
  for (const std::vector<double>& times : repetition.token_seconds) {
    if (times.empty()) continue;
    begun = std::max(begun.value_or(0), times.front());
    for (size_t i = 1; i < times.size(); ++i) {
      row->gap_ms.push_back(1e3 * times[i]);
    }
  }
  if (repetition.generated && row->n_gen > 1 && begun.has_value()) {
    tokens -= static_cast<double>(row->parallel);
    seconds -= *begun;
  }
  row->samples_ts.push_back(tokens / seconds);
  row->samples_ttft_s.push_back(begun.value_or(repetition.seconds));
}

std::vector<std::string> PeakWarnings(const Json& machine) {
  if (machine.at("steady").get<bool>()) return {};
  return {absl::StrCat(
      "read peak: other work kept the machine busy while it was measured (the "
      "middle run took ",
      Fixed(100 * machine.at("read_spread").get<double>(), 0),
      " % longer than the quickest): shares of it may be off")};
}

// The first step attends to depth + 1 positions, the last to depth + n_gen.
void AddBytes(const BenchContext& context, BenchRow* row) {
  const double mean_positions = static_cast<double>(row->n_depth) +
                                static_cast<double>(row->n_gen + 1) / 2;
  row->bytes_per_token = context.weight_bytes_per_token +
                         context.kv_bytes_per_position * mean_positions;
  const double peak = context.machine.value("read_bytes_per_s", 0.0);
  if (peak > 0) {
    row->peak_share = Mean(row->samples_ts) * *row->bytes_per_token / peak;
  }
}

std::string TestName(const BenchRow& row) {
  std::string name = row.n_prompt > 0 ? absl::StrCat("pp", row.n_prompt)
                                      : absl::StrCat("tg", row.n_gen);
  if (row.n_depth > 0) absl::StrAppend(&name, "@d", row.n_depth);
  if (row.parallel > 1) absl::StrAppend(&name, " x", row.parallel);
  return name;
}

Json ToJson(const BenchRow& row, const BenchContext& context) {
  std::vector<std::string> warnings = context.warnings;
  warnings.insert(warnings.end(), row.warnings.begin(), row.warnings.end());
  return {{"test", TestName(row)},
          {"n_prompt", row.n_prompt},
          {"n_gen", row.n_gen},
          {"n_depth", row.n_depth},
          {"parallel", row.parallel},
          {"avg_ts", Mean(row.samples_ts)},
          {"stddev_ts", OrNull(SampleDeviation(row.samples_ts))},
          {"samples_ts", row.samples_ts},
          {"bytes_per_token", OrNull(row.bytes_per_token)},
          {"peak_share", OrNull(row.peak_share)},
          {"ttft_s", Mean(row.samples_ttft_s)},
          {"tbt_ms",
           {{"p50", OrNull(Percentile(row.gap_ms, 0.50))},
            {"p90", OrNull(Percentile(row.gap_ms, 0.90))},
            {"p99", OrNull(Percentile(row.gap_ms, 0.99))},
            {"samples", row.gap_ms.size()}}},
          {"policy", context.policy},
          {"draft", context.draft},
          {"tokens_per_sweep", OrNull(row.tokens_per_sweep)},
          {"levels", row.levels},
          {"device_bytes", row.device_bytes},
          {"baseline", row.baseline},
          {"model_filename", context.model_file},
          {"model_type", context.model},
          {"model_size", context.model_bytes},
          {"model_n_params", context.parameters},
          {"n_threads", context.threads},
          {"backend", context.backend},
          {"simulated", context.simulated},
          {"warmed_up", context.warmed_up},
          {"filled", context.filled},
          {"type_k", context.kv_type_k},
          {"type_v", context.kv_type_v},
          {"build", context.build},
          {"test_time", context.date},
          {"machine", context.machine},
          {"warnings", warnings}};
}

std::string MarkdownHeader(const BenchContext& context) {
  const bool drafts = ShowsDrafts(context);
  return absl::StrCat(
      "| model | size | params | backend | threads | ",
      drafts ? "policy | draft | " : "", "test | t/s | MB/token ",
      "| % of read peak | TTFT s | TBT ms: p50 / p90 / p99 |",
      drafts ? " tokens/sweep |" : "",
      context.compared ? " speed-up | agrees with full |" : "",
      "\n| --- | ---: | ---: | --- | ---: | ", drafts ? "--- | --- | " : "",
      "---: | ---: | ---: | ---: | ---: | ---: |", drafts ? " ---: |" : "",
      context.compared ? " ---: | --- |" : "", "\n");
}

std::string MarkdownLine(const BenchRow& row, const BenchContext& context) {
  std::string test = TestName(row);
  if (const size_t at = test.find('@'); at != std::string::npos) {
    test.replace(at, 1, " @ ");
  }
  const auto shown = [](const std::optional<double>& value, double scale) {
    return value.has_value() ? Fixed(*value * scale, 1) : std::string("-");
  };
  std::vector<std::string> cells = {
      context.model, Bytes(static_cast<double>(context.model_bytes)),
      Fixed(static_cast<double>(context.parameters) / 1e6, 2) + " M",
      context.backend, absl::StrCat(context.threads)};
  if (ShowsDrafts(context)) {
    cells.insert(cells.end(), {context.policy, context.draft});
  }
  cells.insert(cells.end(),
               {test, RateOf(row), shown(row.bytes_per_token, 1e-6),
                shown(row.peak_share, 100), Fixed(Mean(row.samples_ttft_s), 3),
                GapsOf(row)});
  if (ShowsDrafts(context)) cells.push_back(shown(row.tokens_per_sweep, 1));
  if (context.compared && row.baseline.is_null()) {
    cells.insert(cells.end(), {"-", "-"});
  } else if (context.compared) {
    const Json& speedup = row.baseline.at("speedup");
    cells.push_back(speedup.is_null() ? "-" : Fixed(speedup.get<double>(), 2));
    cells.push_back(AgreementIn(row.baseline, context.promise));
  }
  return absl::StrCat("| ", absl::StrJoin(cells, " | "), " |\n");
}

std::string CsvHeader(const BenchRow& row, const BenchContext& context) {
  std::vector<std::string> names;
  const Json flat = FlatJson(row, context);
  for (const auto& [name, value] : flat.items()) {
    names.push_back(CsvField(name));
  }
  return absl::StrJoin(names, ",") + "\n";
}

std::string CsvLine(const BenchRow& row, const BenchContext& context) {
  std::vector<std::string> fields;
  const Json flat = FlatJson(row, context);
  for (const auto& [name, value] : flat.items()) {
    fields.push_back(CsvField(value));
  }
  return absl::StrJoin(fields, ",") + "\n";
}

}  // namespace tiercel::cli

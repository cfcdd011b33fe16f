#include "runtime/report.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace tiercel {
namespace {

// The least sample that at least `share` of all samples do not exceed.
double Percentile(std::vector<double> samples, double share) {
  if (samples.empty()) return 0;
  const auto rank = static_cast<std::ptrdiff_t>(
      std::ceil(share * static_cast<double>(samples.size())));
  const auto nth = samples.begin() + std::max<std::ptrdiff_t>(rank - 1, 0);
  std::nth_element(samples.begin(), nth, samples.end());
  return *nth;
}

double Rate(int64_t count, double seconds) {
  return seconds > 0 ? static_cast<double>(count) / seconds : 0;
}

}  // namespace

nlohmann::json Report::ToJson() const {
  const double decode_seconds =
      std::accumulate(gap_seconds.begin(), gap_seconds.end(), 0.0);
  const auto gaps = static_cast<int64_t>(gap_seconds.size());
  const auto milliseconds = [&](double share) {
    return 1e3 * Percentile(gap_seconds, share);
  };
  const auto station = [](double seconds) {
    return nlohmann::json{{"seconds", seconds}};
  };
  return {
      {"prompt_tokens", prompt_tokens},
      {"cached_tokens", cached_tokens},
      {"output", nlohmann::json::array({{{"text", text},
                                         {"tokens", tokens},
                                         {"finish_reason", finish_reason}}})},
      {"ttft_s", ttft_seconds},
      {"prefill_tok_s", Rate(prefilled_tokens, prefill_seconds)},
      {"decode_tok_s", Rate(gaps, decode_seconds)},
      {"tbt_ms",
       {{"p50", milliseconds(0.50)},
        {"p90", milliseconds(0.90)},
        {"p99", milliseconds(0.99)},
        {"samples", gaps}}},
      {"speculation",
       {{"sweeps", sweeps},
        {"tokens_per_sweep", sweeps > 0 ? Rate(gaps, double(sweeps)) : 0.0},
        {"levels", nlohmann::json::array()}}},
      // Everything is computed where it lives: nothing crosses a link.
      {"ledger",
       {{"h2d_bytes", 0},
        {"d2h_bytes", 0},
        {"disk_read_bytes", 0},
        {"formula", nlohmann::json::object()},
        {"stations",
         {{"prefill", station(prefill_seconds)},
          {"refresh", station(0)},
          {"draft", station(0)},
          {"verify", station(verify_seconds)}}}}},
      {"simulated", false},
  };
}

}  // namespace tiercel

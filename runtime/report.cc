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

// The variables of offload/KV_FORMAT.md.
nlohmann::json Formula(const TierPlan& plan, const KvMoves& moves) {
  return {{"page_bytes", plan.shape.layout.PageBytes()},
          {"page_tokens", kPageTokens},
          {"layers", plan.shape.layers},
          {"resident_pages", plan.shape.resident_pages},
          {"swept_pages", moves.swept_pages},
          {"ahead_pages", moves.ahead_pages},
          {"reopened_pages", moves.reopened_pages},
          {"gathered_bytes", moves.gathered_bytes},
          {"resumed_pages", moves.resumed_pages},
          {"resumed_bytes", moves.resumed_bytes},
          {"closed_pages", moves.closed_pages},
          {"parked_pages", moves.parked_pages},
          {"parked_bytes", moves.parked_bytes}};
}

}  // namespace

nlohmann::json Report::ToJson() const {
  const double decode_seconds =
      std::accumulate(gap_seconds.begin(), gap_seconds.end(), 0.0);
  const auto gaps = static_cast<int64_t>(gap_seconds.size());
  const auto milliseconds = [&](double share) {
    return 1e3 * Percentile(gap_seconds, share);
  };
  Traffic traffic = prefill_traffic;
  traffic += decode_traffic;
  // Bytes are of the station that asked for them, the link's time of the one in
  // whose time they moved.
  const auto station = [&](Station name, const TimeSpent& spent) {
    const LinkUse& use = traffic.link[static_cast<size_t>(name)];
    return nlohmann::json{
        {"seconds", spent.seconds},
        {"h2d_bytes", use.h2d_bytes},
        {"d2h_bytes", use.d2h_bytes},
        {"link_busy_s", spent.link_seconds},
        {"link_busy_share",
         spent.seconds > 0 ? spent.link_seconds / spent.seconds : 0.0}};
  };
  nlohmann::json level_list = nlohmann::json::array();
  for (const DraftLevel& level : levels) {
    level_list.push_back({{"drafter", level.drafter},
                          {"drafted", level.drafted},
                          {"checked", level.checked},
                          {"accepted", level.accepted}});
    if (level.cost_ratio > 0) {
      level_list.back()["cost_ratio"] = level.cost_ratio;
    }
  }
  const auto sum = [&](uint64_t LinkUse::*bytes) {
    uint64_t total = 0;
    for (const LinkUse& use : traffic.link) total += use.*bytes;
    return total;
  };
  nlohmann::json document = {
      {"prompt_tokens", prompt_tokens},
      {"cached_tokens", cached_tokens},
      {"output", nlohmann::json::array({{{"text", text},
                                         {"tokens", tokens},
                                         {"finish_reason", finish_reason}}})},
      {"ttft_s", ttft_seconds},
      {"prefill_tok_s", Rate(prefilled_tokens, prefill.seconds)},
      {"decode_tok_s", Rate(gaps, decode_seconds)},
      {"tbt_ms",
       {{"p50", milliseconds(0.50)},
        {"p90", milliseconds(0.90)},
        {"p99", milliseconds(0.99)},
        {"samples", gaps}}},
      {"speculation",
       {{"sweeps", sweeps},
        {"tokens_per_sweep", sweeps > 0 ? Rate(gaps, double(sweeps)) : 0.0},
        {"levels", std::move(level_list)}}},
      {"ledger",
       {{"h2d_bytes", sum(&LinkUse::h2d_bytes)},
        {"d2h_bytes", sum(&LinkUse::d2h_bytes)},
        {"disk_read_bytes", 0},
        {"formula", plan.in_place ? nlohmann::json::object()
                                  : Formula(plan, traffic.moves)},
        {"stations",
         {{"prefill", station(Station::kPrefill, prefill)},
          {"refresh", station(Station::kRefresh, refresh)},
          {"draft", station(Station::kDraft, draft)},
          {"verify", station(Station::kVerify, verify)}}}}},
      {"memory",
       {{"host_bytes", memory.host}, {"device_bytes", memory.device}}},
      {"simulated", simulated},
  };
  if (predicted.has_value()) {
    document["predicted"] = {
        {"ttft_s", predicted->ttft_s},
        {"tbt_ms", levels.empty() ? nlohmann::json(1e3 * predicted->tbt_s)
                                  : nlohmann::json(nullptr)},
        {"host_bytes", predicted->memory.host},
        {"device_bytes", predicted->memory.device}};
  }
  if (simulated || !warnings.empty()) document["warnings"] = warnings;
  return document;
}

}  // namespace tiercel

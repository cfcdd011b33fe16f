#include "runtime/generate/report.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/session/predicted.h"

namespace tiercel {
namespace {

// The least sample that at least `share` of all samples do not exceed.
nlohmann::json Percentile(std::vector<double> samples, double share) {
  if (samples.empty()) return nullptr;
  const auto rank = static_cast<std::ptrdiff_t>(
      std::ceil(share * static_cast<double>(samples.size())));
  const auto nth = samples.begin() + rank - 1;
  std::nth_element(samples.begin(), nth, samples.end());
  return *nth;
}

// Null if there is nothing to divide by.
nlohmann::json Ratio(double count, double of) {
  return of > 0 ? nlohmann::json(count / of) : nlohmann::json(nullptr);
}

// The variables of offload/KV_FORMAT.md that mean anything here.
nlohmann::json Formula(const TierPlan& plan, const KvMoves& moves,
                       const DiskUse& disk) {
  const bool moves_none = plan.in_place && plan.host_weights == 0;
  if (moves_none && disk.read_pages == 0) return nlohmann::json::object();
  nlohmann::json formula = {{"page_bytes", plan.shape.layout.PageBytes()},
                            {"opened_pages", disk.read_pages}};
  if (disk.state_bytes > 0) formula["opened_bytes"] = disk.state_bytes;
  if (plan.host_weights > 0) formula["weight_bytes"] = moves.weight_bytes;
  if (plan.in_place) return formula;
  if (plan.shape.host.host_s > 0) formula["host_pages"] = moves.host_pages;
  if (plan.shape.disk_pages > 0) {
    formula["disk_pages"] = moves.disk_pages;
    formula["spilled_pages"] = moves.spilled_pages;
  }
  formula.update(
      nlohmann::json{{"page_tokens", kPageTokens},
                     {"layers", plan.shape.layers},
                     {"resident_pages", plan.shape.resident_pages},
                     {"newest_pages", plan.shape.newest_pages},
                     {"swept_pages", moves.swept_pages},
                     {"ahead_pages", moves.ahead_pages},
                     {"reopened_pages", moves.reopened_pages},
                     {"gathered_bytes", moves.gathered_bytes},
                     {"resumed_pages", moves.resumed_pages},
                     {"resumed_bytes", moves.resumed_bytes},
                     {"closed_pages", moves.closed_pages},
                     {"parked_pages", moves.parked_pages},
                     {"parked_bytes", moves.parked_bytes},
                     {"states_up_bytes", moves.states_up_bytes},
                     {"states_down_bytes", moves.states_down_bytes}});
  return formula;
}

// The memory and bytes of each rank. With several ranks each has a formula of
// its own, as their pages differ.
nlohmann::json RanksJson(const std::vector<Report::RankUse>& ranks,
                         const Traffic& all) {
  nlohmann::json list = nlohmann::json::array();
  for (size_t i = 0; i < ranks.size(); ++i) {
    const RankTraffic traffic =
        i < all.ranks.size() ? all.ranks[i] : RankTraffic();
    list.push_back({{"device_bytes", ranks[i].device_bytes},
                    {"h2d_bytes", traffic.h2d_bytes},
                    {"d2h_bytes", traffic.d2h_bytes},
                    {"gathered_bytes", traffic.gathered_bytes}});
    if (ranks.size() == 1) continue;
    list.back()["formula"] = Formula(ranks[i].plan, traffic.moves, all.disk);
  }
  return list;
}

nlohmann::json ToJson(const ScheduleReport& schedule) {
  const auto steps = [](const ScheduleReport::Steps& of) {
    return nlohmann::json{{"steps", of.steps}, {"seconds", of.seconds}};
  };
  nlohmann::json reasons = nlohmann::json::object();
  for (const std::string_view reason : schedule.reason_at) {
    nlohmann::json& count = reasons[std::string(reason)];
    count = count.is_null() ? 1 : count.get<int64_t>() + 1;
  }
  nlohmann::json segments = nlohmann::json::array();
  for (const ScheduleReport::Segment& segment : schedule.segments) {
    segments.push_back({{"mode", segment.mode},
                        {"begin", segment.begin},
                        {"end", segment.end}});
  }
  const auto known = [](const auto& value) {
    return value.has_value() ? nlohmann::json(*value) : nlohmann::json(nullptr);
  };
  nlohmann::json coverage_at = nlohmann::json::array();
  double sum = 0;
  int measured = 0;
  for (const std::optional<double>& share : schedule.coverage_at) {
    coverage_at.push_back(known(share));
    sum += share.value_or(0);
    measured += share.has_value() ? 1 : 0;
  }
  return {{"form", schedule.plain ? "plain" : "verified"},
          {"fast", steps(schedule.fast())},
          {"slow", steps(schedule.slow())},
          {"reasons", std::move(reasons)},
          {"slow_at", schedule.slow_at},
          {"segments", std::move(segments)},
          {"selected", known(schedule.selected)},
          {"coverage", measured > 0 ? nlohmann::json(sum / measured)
                                    : nlohmann::json(nullptr)},
          {"coverage_at", std::move(coverage_at)}};
}

}  // namespace

Report NewReport(const Session& session, const PrefillReport& prefill) {
  Report report;
  report.prefill = prefill;
  report.plan = session.kv().plan();
  for (const auto& rank : session.kv().ranks()) {
    report.ranks.push_back({.plan = rank->plan});
  }
  report.NoteMemory(session);
  report.simulated = session.model().machine->device().simulated();
  report.warnings = session.warnings();
  report.NoteKv(session);
  return report;
}

void Report::NoteMemory(const Session& session) {
  memory = session.kv().memory();
  for (size_t i = 0; i < ranks.size(); ++i) {
    ranks[i].device_bytes = session.kv().ranks()[i]->machine().memory().used();
  }
}

void Report::NoteKv(const Session& session) {
  kv_entries = KvEntries(session);
  kv_bytes = kv_entries * session.kv().RowBytes();
}

namespace {

// The fast steps of a plain form's generation that has ended.
FastSteps FastOf(const std::optional<ScheduleReport>& schedule) {
  if (!schedule.has_value() || !schedule->plain) return {};
  const auto fast = static_cast<double>(schedule->fast().steps);
  const auto all = fast + static_cast<double>(schedule->slow().steps);
  return {schedule->fast_positions, all > 0 ? fast / all : 0};
}

}  // namespace

void AddPrediction(const Session& session, const Rates& rates, Report* report) {
  report->predicted = PredictedBy(session, rates,
                                  {.cached = report->prefill.cached_tokens,
                                   .prompt = report->prefill.prompt_tokens,
                                   .generated = std::ssize(report->tokens),
                                   .fast = FastOf(report->rounds.schedule)});
}

nlohmann::json Report::ToJson() const {
  std::vector<double> gap_ms;
  double decode_seconds = 0;
  for (size_t i = 1; i < token_seconds.size(); ++i) {
    gap_ms.push_back(1e3 * token_seconds[i]);
    decode_seconds += token_seconds[i];
  }
  const auto gaps = static_cast<double>(gap_ms.size());
  const double prefill_s = prefill.spent.seconds;
  const auto computed = static_cast<double>(prefill.computed_tokens());
  Traffic all = prefill.traffic;
  all += traffic;
  // Bytes belong to the phase that asked for them; the link's time belongs to
  // the phase during which they moved.
  const auto phase = [&](Phase name, const TimeSpent& spent) {
    const LinkUse& use = all.link[static_cast<size_t>(name)];
    return nlohmann::json{
        {"seconds", spent.seconds},
        {"h2d_bytes", use.h2d_bytes},
        {"d2h_bytes", use.d2h_bytes},
        {"link_busy_s", spent.link_seconds},
        {"link_busy_share", Ratio(spent.link_seconds, spent.seconds)}};
  };
  nlohmann::json level_list = nlohmann::json::array();
  for (const DraftLevel& level : rounds.levels) {
    level_list.push_back({{"drafter", level.drafter},
                          {"drafted", level.drafted},
                          {"checked", level.checked},
                          {"branches", level.branches},
                          {"branch_accepted", level.branch_accepted},
                          {"ahead", level.ahead},
                          {"accepted", level.accepted}});
    if (level.cost_ratio > 0) {
      level_list.back()["cost_ratio"] = level.cost_ratio;
    }
  }
  const auto sum = [&](uint64_t LinkUse::*bytes) {
    uint64_t total = 0;
    for (const LinkUse& use : all.link) total += use.*bytes;
    return total;
  };
  nlohmann::json output = {
      {"text", text}, {"tokens", tokens}, {"finish_reason", finish_reason}};
  if (thought.has_value()) output["reasoning"] = *thought;
  nlohmann::json document = {
      {"context", plan.context},
      {"prompt_tokens", prefill.prompt_tokens},
      {"cached_tokens", prefill.cached_tokens},
      {"resumed", {{"layers", prefill.resumed_layers}}},
      {"output", nlohmann::json::array({std::move(output)})},
      {"ttft_s", token_seconds.empty()
                     ? nlohmann::json(nullptr)
                     : nlohmann::json(prefill_s + token_seconds[0])},
      {"prefill_tok_s", computed > 0 && prefill.traffic.disk.read_pages == 0
                            ? Ratio(computed, prefill_s)
                            : nlohmann::json(nullptr)},
      {"decode_tok_s", Ratio(gaps, decode_seconds)},
      {"tbt_ms",
       {{"p50", Percentile(gap_ms, 0.50)},
        {"p90", Percentile(gap_ms, 0.90)},
        {"p99", Percentile(gap_ms, 0.99)},
        {"samples", gap_ms.size()}}},
      {"speculation",
       {{"sweeps", sweeps},
        {"tokens_per_sweep", Ratio(gaps, static_cast<double>(sweeps))},
        {"levels", std::move(level_list)}}},
      {"ledger",
       {{"h2d_bytes", sum(&LinkUse::h2d_bytes)},
        {"d2h_bytes", sum(&LinkUse::d2h_bytes)},
        {"disk_read_bytes", all.disk.read_bytes},
        {"opened_s", all.disk.opening_seconds},
        {"disk_written_bytes", all.disk.written_bytes},
        {"formula", ranks.size() > 1 ? nlohmann::json::object()
                                     : Formula(plan, all.moves, all.disk)},
        {"phases",
         {{"prefill", phase(Phase::kPrefill, prefill.spent)},
          {"refresh", phase(Phase::kRefresh, rounds.refresh)},
          {"draft", phase(Phase::kDraft, rounds.draft)},
          {"fast", phase(Phase::kFast, rounds.fast)},
          {"verify", phase(Phase::kVerify, rounds.verify)}}}}},
      {"memory",
       {{"host_bytes", memory.host}, {"device_bytes", memory.device}}},
      {"ranks", RanksJson(ranks, all)},
      {"kv", {{"entries", kv_entries}, {"bytes", kv_bytes}}},
      {"warnings", warnings},
      {"simulated", simulated},
  };
  if (rounds.schedule.has_value()) {
    document["schedule"] = tiercel::ToJson(*rounds.schedule);
  }
  if (predicted.has_value()) {
    document["predicted"] = {
        {"ttft_s", predicted->ttft_s},
        {"tbt_ms", rounds.levels.empty()
                       ? nlohmann::json(1e3 * predicted->tbt_s)
                       : nlohmann::json(nullptr)},
        {"host_bytes", predicted->memory.host},
        {"device_bytes", predicted->memory.device}};
  }
  return document;
}

}  // namespace tiercel

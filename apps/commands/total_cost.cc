#include "apps/commands/total_cost.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <string>
#include <utility>

#include "apps/commands/bench_table.h"

namespace tiercel::cli {
namespace {

Json Ratio(double count, double of) {
  return of > 0 ? Json(count / of) : Json(nullptr);
}

// Adds the numbers of `from` to those in the same places of `to`, which has all
// of these places.
void AddNumbers(const Json& from, Json* to) {
  if (from.is_structured()) {
    for (const auto& [key, value] : from.items()) {
      AddNumbers(value,
                 from.is_array() ? &to->at(std::stoul(key)) : &to->at(key));
    }
  } else if (from.is_number_float() && to->is_number()) {
    *to = to->get<double>() + from.get<double>();
  } else if (from.is_number() && to->is_number()) {
    *to = to->get<int64_t>() + from.get<int64_t>();
  }
}

// Raises the numbers of `to` to those of `from`.
void TakeMost(const Json& from, Json* to) {
  if (!to->is_object()) *to = Json::object();
  for (const char* field : {"host_bytes", "device_bytes"}) {
    const auto bytes = from.at(field).get<int64_t>();
    (*to)[field] = std::max(to->value(field, int64_t{0}), bytes);
  }
}

// The parts of a report that can be summed. Ratios cannot, and are made of the
// sums later.
Json SumsOf(const Json& report) {
  Json speculation = report.at("speculation");
  speculation["tokens_per_sweep"] = nullptr;
  for (Json& level : speculation.at("levels")) level.erase("cost_ratio");
  Json ledger = report.at("ledger");
  ledger["formula"] = nullptr;  // holds for one generation alone
  for (auto& [name, phase] : ledger.at("phases").items()) {
    phase["link_busy_share"] = nullptr;
  }
  return {{"speculation", std::move(speculation)},
          {"ledger", std::move(ledger)}};
}

}  // namespace

void TotalCost::Add(const Json& report,
                    const std::vector<double>& token_seconds) {
  const auto prompt = report.at("prompt_tokens").get<int64_t>();
  const auto cached = report.at("cached_tokens").get<int64_t>();
  prompt_tokens_ += prompt;
  cached_tokens_ += cached;
  output_tokens_ += static_cast<int64_t>(token_seconds.size());
  const Json& phases = report.at("ledger").at("phases");
  prefill_s_ += phases.at("prefill").at("seconds").get<double>();
  if (report.at("ttft_s").is_number()) {
    ttft_s_ += report.at("ttft_s").get<double>();
  }
  for (size_t i = 1; i < token_seconds.size(); ++i) {
    gap_ms_.push_back(1e3 * token_seconds[i]);
  }
  Json sums = SumsOf(report);
  if (sums_.is_null()) {
    sums_ = std::move(sums);
  } else {
    AddNumbers(sums, &sums_);
  }
  TakeMost(report.at("memory"), &memory_);
  if (report.contains("predicted")) {
    TakeMost(report.at("predicted"), &predicted_memory_);
  }
}

void TotalCost::Add(const TotalCost& other) {
  if (other.sums_.is_null()) return;
  const double decode_s = DecodeSeconds() + other.DecodeSeconds();
  if (decode_s_.has_value() || other.decode_s_.has_value()) {
    decode_s_ = decode_s;
  }
  prompt_tokens_ += other.prompt_tokens_;
  cached_tokens_ += other.cached_tokens_;
  output_tokens_ += other.output_tokens_;
  prefill_s_ += other.prefill_s_;
  ttft_s_ += other.ttft_s_;
  gap_ms_.insert(gap_ms_.end(), other.gap_ms_.begin(), other.gap_ms_.end());
  if (sums_.is_null()) {
    sums_ = other.sums_;
  } else {
    AddNumbers(other.sums_, &sums_);
  }
  TakeMost(other.memory_, &memory_);
  if (!other.predicted_memory_.empty()) {
    TakeMost(other.predicted_memory_, &predicted_memory_);
  }
}

double TotalCost::DecodeSeconds() const {
  return decode_s_.value_or(
      1e-3 * std::accumulate(gap_ms_.begin(), gap_ms_.end(), 0.0));
}

Json TotalCost::ToJson() const {
  const bool any = !sums_.is_null();
  const auto gaps = static_cast<double>(gap_ms_.size());
  const double decode_s = DecodeSeconds();
  const auto percentile = [&](double share) {
    const std::optional<double> sample = Percentile(gap_ms_, share);
    return sample.has_value() ? Json(*sample) : Json(nullptr);
  };
  Json speculation;
  Json ledger;
  if (any) {
    speculation = sums_.at("speculation");
    speculation["tokens_per_sweep"] =
        Ratio(gaps, speculation.at("sweeps").get<double>());
    ledger = sums_.at("ledger");
    for (auto& [name, phase] : ledger.at("phases").items()) {
      phase["link_busy_share"] = Ratio(phase.at("link_busy_s").get<double>(),
                                       phase.at("seconds").get<double>());
    }
  }
  return {
      {"prompt_tokens", prompt_tokens_},
      {"cached_tokens", cached_tokens_},
      {"ttft_s", any ? Json(ttft_s_) : Json(nullptr)},
      {"prefill_tok_s",
       Ratio(static_cast<double>(prompt_tokens_ - cached_tokens_), prefill_s_)},
      {"decode_tok_s", Ratio(gaps, decode_s)},
      {"tbt_ms",
       {{"p50", percentile(0.50)},
        {"p90", percentile(0.90)},
        {"p99", percentile(0.99)},
        {"samples", gap_ms_.size()}}},
      {"speculation", std::move(speculation)},
      {"ledger", std::move(ledger)},
      {"memory", memory_}};
}

}  // namespace tiercel::cli

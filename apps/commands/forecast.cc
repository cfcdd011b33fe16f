#include "apps/commands/forecast.h"

#include <algorithm>

#include "apps/commands/command.h"

namespace tiercel::cli {

std::optional<Forecast::Times> Forecast::Of(size_t prompt, size_t answer) {
  const std::optional<Rates>& rates = At(prompt + answer);
  if (!rates.has_value()) return std::nullopt;
  const double share =
      static_cast<double>(prompt) / static_cast<double>(prompt + answer);
  const auto tokens = static_cast<double>(answer);
  const double write_s = tokens * rates->step_s;
  return Times{share * rates->full_s, write_s, write_s, tokens};
}

// Rounds the length up to a multiple of kStep, so that few plans are made.
const std::optional<Forecast::Rates>& Forecast::At(size_t length) {
  constexpr size_t kStep = 256;
  const auto context = static_cast<int64_t>((length / kStep + 1) * kStep);
  const auto [at, is_new] = rates_.try_emplace(context);
  if (!is_new) return at->second;
  Options options = options_;
  options.session.context = std::min(context, ContextOf(options_, model_));
  const absl::StatusOr<Json> plan =
      model_.Plan(SessionParams(options, model_.draft()).session);
  if (plan.ok() && plan->at("ttft_s").is_number()) {
    at->second = Rates{plan->at("ttft_s").get<double>(),
                       plan->at("tbt_ms").get<double>() / 1000};
  }
  return at->second;
}

}  // namespace tiercel::cli

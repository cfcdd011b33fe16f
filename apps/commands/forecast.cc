#include "apps/commands/forecast.h"

#include <algorithm>

#include "apps/commands/command.h"

namespace tiercel::cli {

std::optional<double> Forecast::Seconds(size_t prompt, size_t answer) {
  const std::optional<Times>& times = At(prompt + answer);
  if (!times.has_value()) return std::nullopt;
  const double share =
      static_cast<double>(prompt) / static_cast<double>(prompt + answer);
  return share * times->full_s + static_cast<double>(answer) * times->step_s;
}

// Plans are made for a few lengths alone.
const std::optional<Forecast::Times>& Forecast::At(size_t length) {
  constexpr size_t kStep = 256;
  const auto context = static_cast<int64_t>((length / kStep + 1) * kStep);
  const auto [at, is_new] = times_.try_emplace(context);
  if (!is_new) return at->second;
  Options options = options_;
  options.session.context = std::min(context, ContextOf(options_, model_));
  const absl::StatusOr<Json> plan =
      model_.Plan(SessionParams(options, model_.draft()).session);
  if (plan.ok() && plan->at("ttft_s").is_number()) {
    at->second = Times{plan->at("ttft_s").get<double>(),
                       plan->at("tbt_ms").get<double>() / 1000};
  }
  return at->second;
}

}  // namespace tiercel::cli

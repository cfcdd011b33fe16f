#include "apps/commands/forecast.h"

#include <algorithm>

#include "apps/commands/command.h"

namespace tiercel::cli {

std::optional<Forecast::Times> Forecast::Of(const Prompt& prompt,
                                            size_t answer) {
  const size_t length = prompt.tokens + answer;
  const std::optional<Rates> rates = At(length);
  if (!rates.has_value()) return std::nullopt;
  double read_s = rates->full_s * static_cast<double>(prompt.tokens) /
                  static_cast<double>(length);
  if (prompt.found > 0) {
    const std::optional<double> last_s = LastTokenSeconds(length);
    if (!last_s.has_value()) return std::nullopt;
    read_s = std::min(
        read_s, *last_s * static_cast<double>(prompt.tokens - prompt.found));
  }
  const auto tokens = static_cast<double>(answer);
  const double write_s = tokens * rates->step_s;
  return Times{read_s, write_s, write_s, tokens};
}

std::optional<Forecast::Times> Forecast::OfAll(
    const std::vector<Prompt>& prompts, size_t answer, size_t at_once) {
  Times all;
  if (prompts.empty()) return all;
  for (const Prompt& prompt : prompts) {
    const std::optional<Times> times = Of(prompt, answer);
    if (!times.has_value()) return times;
    all.Add(*times);
  }
  const size_t rounds = (prompts.size() + at_once - 1) / at_once;
  all.write_s *=
      static_cast<double>(rounds) / static_cast<double>(prompts.size());
  return all;
}

// A prompt takes a share of its length and one of its square: two lengths tell
// both.
std::optional<double> Forecast::LastTokenSeconds(size_t length) {
  const std::optional<Rates> whole = At(length);
  const std::optional<Rates> half = At(length / 2);
  if (!whole.has_value() || !half.has_value()) return std::nullopt;
  const double token_s = whole->full_s / whole->context;
  if (whole->context == half->context) return token_s;
  const double square_s = (token_s - half->full_s / half->context) /
                          (whole->context - half->context);
  return token_s + square_s * whole->context;
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
    at->second = Rates{static_cast<double>(options.session.context),
                       plan->at("ttft_s").get<double>(),
                       plan->at("tbt_ms").get<double>() / 1000};
  }
  return at->second;
}

}  // namespace tiercel::cli

#include "apps/text_length.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "absl/strings/str_cat.h"
#include "apps/command.h"
#include "apps/error.h"
#include "apps/numbers.h"

namespace tiercel::cli {
namespace {

// So many tokens beyond the context are counted, which takes a moment: of a
// book that is too long by less, the sentence says how long it is.
constexpr int64_t kCountedBeyond = int64_t{1} << 17;

// Most tokens that a prompt of `options` may have: of a session without -c as
// many as memory has room for.
absl::StatusOr<int64_t> MostTokens(const Options& options, const Model& model) {
  tiercel_session_params params = SessionParams(options);
  params.cache_dir = nullptr;  // no times are asked for
  const absl::StatusOr<Json> plan = model.Plan(params);
  if (!plan.ok()) return plan.status();
  if (options.session.context > 0 || plan->at("fits").get<bool>()) {
    return ContextOf(options, model);
  }
  return plan->at("max_context").get<int64_t>();
}

// What can be done about a text of so many tokens, or a few more.
std::string Advice(const Options& options, const Model& model, int64_t most,
                   double tokens) {
  if (tokens > static_cast<double>(model.info().context)) {
    return absl::StrCat("; give a shorter text, or ",
                        StretchAdvice(options, model, tokens),
                        options.session.context > 0 ? ", and a larger -c" : "");
  }
  if (options.session.context > 0) {
    return absl::StrCat("; give a larger -c (the model was made for ",
                        model.info().context, ") or a shorter text");
  }
  return absl::StrCat("; more do not fit in memory (-c ", most,
                      "): give a shorter text or -ctk q8_0 -ctv q8_0");
}

absl::Status TooLong(const Options& options, const Model& model, int64_t most,
                     const std::string& count, double tokens) {
  return Error(
      Exit::kInput, "context_length_exceeded",
      absl::StrCat("the text has ", count, " tokens, the context holds ", most,
                   Advice(options, model, most, tokens)));
}

absl::Status CheckLength(const Options& options, const Model& model,
                         int64_t most, size_t tokens) {
  if (static_cast<int64_t>(tokens) <= most) return absl::OkStatus();
  return TooLong(options, model, most, absl::StrCat(tokens),
                 static_cast<double>(tokens));
}

// For the first token of an answer; the text is no longer than `most`.
absl::Status CheckRoom(const Options& options, const Model& model, int64_t most,
                       size_t tokens) {
  if (static_cast<int64_t>(tokens) < most) return absl::OkStatus();
  return Error(
      Exit::kInput, "context_length_exceeded",
      absl::StrCat(
          "the text has ", tokens, " tokens, the context holds ", most,
          " and leaves no room for an answer",
          Advice(options, model, most, static_cast<double>(tokens + 1))));
}

}  // namespace

std::string StretchAdvice(const Options& options, const Model& model,
                          double tokens) {
  const double original = static_cast<double>(model.info().context) /
                          std::max(1.0, options.model.rope_scale);
  return absl::StrCat(
      "stretch the model beyond what it was made for: --rope-scaling yarn "
      "--rope-scale ",
      Fixed(std::ceil(tokens / original), 0));
}

absl::Status CheckLength(const Options& options, const Model& model,
                         size_t tokens) {
  return CheckLength(options, model, ContextOf(options, model), tokens);
}

absl::StatusOr<std::vector<int32_t>> WithinContext(const Options& options,
                                                   const Model& model,
                                                   Answer answer,
                                                   EncodeFn encode) {
  const absl::StatusOr<int64_t> planned = MostTokens(options, model);
  if (!planned.ok()) return planned.status();
  const int64_t most = *planned;
  const int64_t counted = most + kCountedBeyond;
  double share = 0;  // of the text, when counting ended
  Model::TextLimits limits;
  limits.most_tokens = static_cast<size_t>(counted);
  limits.progress = [&share](uint64_t done, uint64_t total) {
    share = static_cast<double>(done) / static_cast<double>(total);
  };
  absl::StatusOr<std::vector<int32_t>> ids = encode(limits);
  if (ids.ok()) {
    absl::Status s = CheckLength(options, model, most, ids->size());
    if (s.ok() && answer == Answer::kWanted) {
      s = CheckRoom(options, model, most, ids->size());
    }
    if (!s.ok()) return s;
    return ids;
  }
  if (IsInterrupted(ids.status()) || CodeOf(ids.status()) != "too_long") {
    return ids;
  }
  const double estimate = static_cast<double>(counted) / share;
  return TooLong(options, model, most,
                 absl::StrCat("more than ", counted,
                              " (an estimate: ", Fixed(estimate, 0), ")"),
                 estimate);
}

absl::Status CheckTextAlone(const Options& options, const Model& model,
                            std::string_view text) {
  return WithinContext(options, model, Answer::kWanted,
                       [&](const Model::TextLimits& limits) {
                         return model.Tokenize(text, /*flags=*/0, limits);
                       })
      .status();
}

}  // namespace tiercel::cli

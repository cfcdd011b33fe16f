#include "apps/commands/part_prompts.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "apps/cli/error.h"
#include "apps/commands/command.h"
#include "apps/commands/text_length.h"
#include "lib/status/status_macros.h"

namespace tiercel::cli {
namespace {

// Returns true if the prompts of parts are kept once they are read.
bool KeepsPrompts(const Options& options) {
  return !options.session.prompt_cache_dir.empty() &&
         !options.session.keeps_prompts_alone;
}

}  // namespace

absl::StatusOr<std::optional<PartPrompt>> PartPromptOf(const TalkFn& talk,
                                                       std::string_view text,
                                                       int64_t most_tokens,
                                                       const Model& model) {
  const absl::string_view content =
      absl::StripAsciiWhitespace(absl::string_view(text.data(), text.size()));
  if (content.empty()) return std::nullopt;
  PartPrompt prompt;
  ASSIGN_OR_RETURN(prompt.tokens, talk(std::string(content)).Tokens(model));
  std::vector<int32_t> what = prompt.tokens;
  what.push_back(static_cast<int32_t>(most_tokens));
  prompt.fingerprint =
      reader::Fingerprint({reinterpret_cast<const char*>(what.data()),
                           what.size() * sizeof(int32_t)});
  return prompt;
}

absl::StatusOr<PartsLeft> FindPartsLeft(
    const Options& options, const Model& model, const reader::Journal& journal,
    const TalkFn& talk, const std::vector<std::string_view>& texts,
    const std::vector<Forecast::Prompt>& whole) {
  PartsLeft left;
  const SessionParams params(options, model.draft());
  const bool may_find = KeepsPrompts(options);
  size_t read = 0;
  for (size_t i = 0; i < texts.size(); ++i) {
    if (texts[i].empty()) continue;
    Forecast::Prompt prompt = whole[read++];
    if (may_find || journal.size() > 0) {
      ASSIGN_OR_RETURN(
          const std::optional<PartPrompt> made,
          PartPromptOf(talk, texts[i], options.sampling.max_tokens, model));
      if (!made.has_value() ||
          journal.Find(/*level=*/0, i, made->fingerprint) != nullptr) {
        continue;
      }
      // A prediction is no reason to end; the session says what is wrong.
      if (may_find) {
        const absl::StatusOr<int64_t> found =
            model.CachedTokens(params.session, made->tokens);
        if (IsInterrupted(found.status())) return found.status();
        prompt.found = static_cast<size_t>(found.value_or(0));
      }
      left.found += prompt.found > 0;
    }
    left.prompts.push_back(prompt);
  }
  return left;
}

std::string CacheSizeAdvice(const Options& options, const Model& model,
                            const std::vector<Forecast::Prompt>& whole) {
  if (!KeepsPrompts(options)) return "";
  const absl::StatusOr<Json> plan =
      model.Plan(SessionParams(options, model.draft()).session);
  if (!plan.ok()) return "";
  const Json& tiers = plan->at("tiers");
  const auto kv = std::max(tiers.at("host").at("kv").get<double>(),
                           tiers.at("device").at("resident").get<double>());
  const double of_token = kv / plan->at("context").get<double>();
  const uint64_t given = options.session.prompt_cache_bytes;
  const auto most = static_cast<double>(given > 0 ? given : kUsualCacheBytes);
  // A file has whole pages, the ids, and a front.
  constexpr double kPage = 128;
  constexpr double kFront = 1 << 13;
  double bytes = 0;
  size_t kept = 0;
  for (const Forecast::Prompt& prompt : whole) {
    const auto tokens = static_cast<double>(prompt.tokens);
    bytes += of_token * std::ceil(tokens / kPage) * kPage +
             sizeof(int32_t) * tokens + kFront;
    kept += bytes <= most;
  }
  if (kept == whole.size()) return "";
  constexpr double kUnit = 1 << 20;
  const auto needed = static_cast<int64_t>(bytes / kUnit) + 1;
  return absl::StrCat("of these parts ", kept,
                      " have room on disk, the next question reads the others "
                      "again; for all: --cache-size ",
                      needed, "MiB");
}

std::string AdviceForWhole(const Options& options, const Model& model,
                           size_t prompt, bool sections) {
  const int64_t made_for = model.info().context;
  const auto tokens = static_cast<int64_t>(prompt);
  if (tokens >= made_for) return "";
  if (sections) return absl::StrCat("-c ", made_for);
  const int64_t answer = std::max<int64_t>(options.sampling.max_tokens, 1);
  const int64_t needed = std::min(tokens + answer, made_for);
  if (ContextOf(options, model) >= needed) return "";
  return RoomAdvice(options, model, needed);
}

}  // namespace tiercel::cli

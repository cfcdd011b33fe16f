#include "apps/commands/sampling.h"

#include <algorithm>
#include <cfloat>
#include <string>
#include <string_view>

namespace tiercel::cli {
namespace {

std::vector<const char*> Pointers(const std::vector<std::string>& texts) {
  std::vector<const char*> pointers;
  pointers.reserve(texts.size());
  for (const std::string& text : texts) pointers.push_back(text.c_str());
  return pointers;
}

// The mask callback of a GrammarMask.
int AskMask(void* mask, const int32_t* output, size_t count, uint32_t* allowed,
            size_t words) {
  const absl::Status asked =
      static_cast<GrammarMask*>(mask)->Ask({output, count}, {allowed, words});
  // A grammar that fails allows nothing, which ends the generation.
  if (!asked.ok()) std::fill(allowed, allowed + words, 0);
  return 0;
}

}  // namespace

Options BaselineOf(const Options& options, const Json& report) {
  Options full = options;
  full.session.context = report.at("context").get<int64_t>();
  // A policy that forces tokens forces them in its baseline, too.
  full.sampling.plain = false;
  if (full.sampling.policy == "sadas") {
    full.sampling.baseline = true;
  } else {
    full.sampling.policy = "full";
    full.sampling.settings.clear();
  }
  full.sampling.draft = "none";
  full.sampling.draft_path.clear();
  full.sampling.draft_layers = 0;
  full.sampling.branches = 0;
  full.sampling.draft_ahead = false;
  full.session.cache_dir.clear();         // no predictions are needed
  full.session.prompt_cache_dir.clear();  // it reads the prompt itself
  return full;
}

Promise PromiseOf(const SamplingOptions& from) {
  if (from.plain) return Promise::kNone;
  return std::string_view(from.Verify()) == "coupled" || from.temperature == 0
             ? Promise::kText
             : Promise::kDistribution;
}

Json Compared(const Json& report, double rate, const Json& baseline,
              double baseline_rate) {
  const auto tokens = [](const Json& of) {
    return of.at("output").at(0).at("tokens").get<std::vector<int32_t>>();
  };
  const std::vector<int32_t> ours = tokens(report);
  const std::vector<int32_t> theirs = tokens(baseline);
  const auto differs =
      std::mismatch(ours.begin(), ours.end(), theirs.begin(), theirs.end());
  const bool agree = ours == theirs;
  const bool timed = rate > 0 && baseline_rate > 0;
  return {
      {"agree", agree},
      {"first_difference",
       agree ? Json(nullptr) : Json(differs.first - ours.begin())},
      {"speedup", timed ? Json(rate / baseline_rate) : Json(nullptr)},
      {"decode_tok_s", baseline_rate > 0 ? Json(baseline_rate) : Json(nullptr)},
      {"device_bytes", baseline.at("memory").at("device_bytes")},
      {"resident_pages",
       baseline.at("ledger").at("formula").value("resident_pages", Json())}};
}

tiercel_sampling ToApi(const SamplingOptions& from, uint64_t seed,
                       ApiTexts* texts) {
  texts->stops = Pointers(from.stops);
  auto sampling = defaults<tiercel_sampling>();
  sampling.max_tokens = std::max<int64_t>(from.max_tokens, 0);  // 0: no limit
  sampling.seed = seed;
  sampling.temperature = static_cast<float>(from.temperature);
  sampling.top_k = from.top_k;
  // A value too small for a float must not become 0, which means off.
  sampling.top_p = std::max(static_cast<float>(from.top_p), FLT_MIN);
  sampling.min_p = static_cast<float>(from.min_p);
  sampling.repeat_penalty =
      std::max(static_cast<float>(from.repeat_penalty), FLT_MIN);
  sampling.ignore_eos = from.ignore_eos;
  sampling.split_thought = from.split_thought ? 1 : 0;
  sampling.log_probs = from.top_log_probs.has_value() ? 1 : 0;
  sampling.top_log_probs = from.top_log_probs.value_or(0);
  sampling.stops = texts->stops.data();
  sampling.num_stops = texts->stops.size();
  sampling.stop_ids = from.stop_ids.data();
  sampling.num_stop_ids = from.stop_ids.size();
  if (from.grammar != nullptr) {
    texts->mask = GrammarMask::Create(from.grammar);
    sampling.mask = AskMask;
    sampling.mask_user_data = texts->mask.get();
  }
  sampling.dry_multiplier = static_cast<float>(from.dry_multiplier);
  sampling.dry_base = static_cast<float>(from.dry_base.value_or(0));
  sampling.dry_allowed_length = from.dry_allowed_length.value_or(0);
  if (!from.dry_breakers.has_value()) return sampling;
  texts->dry_breakers = Pointers(*from.dry_breakers);
  sampling.dry_no_breakers = from.dry_breakers->empty() ? 1 : 0;
  sampling.dry_breakers = texts->dry_breakers.data();
  sampling.num_dry_breakers = texts->dry_breakers.size();
  return sampling;
}

}  // namespace tiercel::cli

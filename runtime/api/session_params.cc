#include "runtime/api/session_params.h"

#include <algorithm>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kernels/kv/kv_row.h"
#include "lib/status/error.h"
#include "lib/status/status_macros.h"
#include "runtime/api/boundary.h"
#include "runtime/api/build_identity.h"
#include "runtime/policies/policy.h"
#include "runtime/policies/policy_kind.h"

namespace tiercel {
namespace {

constexpr size_t kMostStops = 64;  // each is looked for at every token
constexpr size_t kMostBreakers = 64;
constexpr size_t kMostBreakerBytes = 40;  // llama.cpp's limit

absl::StatusOr<DType> ParseKvType(const char* name) {
  if (name == nullptr) return DType::kF16;
  const std::optional<DType> type = ParseDType(name);
  if (type.has_value()) return *type;
  return UsageError("invalid_kv_type", absl::StrCat("KV type: got \"", name,
                                                    "\", need ", kKvTypeNames));
}

// Parses one of `names`; NULL is the first.
template <typename T>
absl::StatusOr<T> ParseName(
    const char* what, const char* name,
    std::initializer_list<std::pair<const char*, T>> names) {
  if (name == nullptr) return names.begin()->second;
  std::string known;
  for (const auto& [one, value] : names) {
    if (std::string_view(name) == one) return value;
    absl::StrAppend(&known, known.empty() ? "" : ", ", one);
  }
  return UsageError("invalid_argument",
                    absl::StrCat(what, ": got \"", name, "\", need ", known));
}

// Parses the number of tokens that are drafted at a time; 0: absent.
// `cost_ratio` is that of an adaptive one; 0: none is given.
absl::StatusOr<std::optional<DraftLength>> ParseLength(const char* what,
                                                       int32_t tokens,
                                                       double cost_ratio) {
  if (tokens == 0) return std::nullopt;
  if (tokens == TIERCEL_ADAPTIVE) {
    return cost_ratio > 0 ? DraftLength::Adaptive(cost_ratio)
                          : DraftLength::Adaptive();
  }
  if (tokens >= 1 && tokens <= DraftLength::kMost) {
    return DraftLength::Fixed(tokens);
  }
  return UsageError("invalid_argument",
                    absl::StrCat(what, ": got ", tokens, ", need 0 to ",
                                 DraftLength::kMost, ", or TIERCEL_ADAPTIVE"));
}

// The policy of that name; NULL: full.
absl::StatusOr<const PolicyKind*> ParsePolicy(const char* name) {
  const std::string_view wanted = name != nullptr ? name : "full";
  if (const PolicyKind* kind = PolicyNamed(wanted)) return kind;
  const auto names = [](std::string* out, const PolicyKind* kind) {
    absl::StrAppend(out, std::string(kind->name()));
  };
  return UsageError(
      "invalid_argument",
      absl::StrCat("policy: got \"", std::string(wanted), "\", need ",
                   absl::StrJoin(Policies(), ", ", names)));
}

absl::StatusOr<PolicyParams> ReadPolicy(
    const tiercel_policy* in, std::shared_ptr<const Model>* draft_model) {
  tiercel_policy p;
  RETURN_IF_ERROR(ReadStruct("policy", in, &p));
  ASSIGN_OR_RETURN(const PolicyKind* policy, ParsePolicy(p.name));
  ASSIGN_OR_RETURN(const Proposer proposer,
                   ParseName<Proposer>("draft", p.draft,
                                       {{"none", Proposer::kNone},
                                        {"ngram", Proposer::kNgram},
                                        {"self", Proposer::kSelf},
                                        {"small", Proposer::kSmall}}));
  if (proposer == Proposer::kSmall) {
    RETURN_IF_ERROR(NeedArgument("draft_model", p.draft_model));
    *draft_model = p.draft_model->model;
  }
  ASSIGN_OR_RETURN(const VerifyMode verify,
                   ParseName<VerifyMode>("verify", p.verify,
                                         {{"residual", VerifyMode::kResidual},
                                          {"coupled", VerifyMode::kCoupled}}));
  if (!(p.cost_ratio >= 0) || p.cost_ratio > 1e6) {
    return UsageError(
        "invalid_argument",
        absl::StrCat("cost_ratio: got ", p.cost_ratio, ", need 0 to 1000000"));
  }
  static_assert(TIERCEL_ADAPTIVE == PolicyParams::kAdaptive);
  if (p.branches < TIERCEL_ADAPTIVE ||
      p.branches > PolicyParams::kMostBranches) {
    return UsageError(
        "invalid_argument",
        absl::StrCat("branches: got ", p.branches, ", need 0 to ",
                     PolicyParams::kMostBranches, ", or TIERCEL_ADAPTIVE"));
  }
  ASSIGN_OR_RETURN(const std::optional<DraftLength> gamma1,
                   ParseLength("gamma1", p.gamma1, p.cost_ratio));
  ASSIGN_OR_RETURN(const std::optional<DraftLength> gamma2,
                   ParseLength("gamma2", p.gamma2, p.cost_ratio));
  ASSIGN_OR_RETURN(
      const PolicyForm form,
      ParseName<PolicyForm>("form", p.form,
                            {{"verified", PolicyForm::kVerified},
                             {"plain", PolicyForm::kPlain},
                             {"baseline", PolicyForm::kBaseline}}));
  PolicyParams params = {.policy = policy,
                         .form = form,
                         .proposer = proposer,
                         .verify = verify,
                         .gamma1 = gamma1,
                         .gamma2 = gamma2,
                         .branches = static_cast<int>(p.branches),
                         .cost_ratio = p.cost_ratio > 0
                                           ? std::optional(p.cost_ratio)
                                           : std::nullopt,
                         .draft_ahead = p.draft_ahead != 0,
                         .draft_model = draft_model->get(),
                         .draft_layers = p.draft_layers};
  RETURN_IF_ERROR(
      policy->Read({.budget = p.budget,
                    .chunk = p.chunk,
                    .sink = p.sink,
                    .window = p.window,
                    .settings = p.settings != nullptr ? p.settings : ""},
                   &params));
  return params;
}

// Reads the texts that end a repetition, for DRY.
absl::StatusOr<std::vector<std::string>> ReadBreakers(
    const tiercel_sampling& s) {
  if (s.num_dry_breakers > kMostBreakers) {
    return UsageError("invalid_sampling",
                      absl::StrCat("dry_breakers: got ", s.num_dry_breakers,
                                   ", at most ", kMostBreakers));
  }
  std::vector<std::string> texts;
  if (s.num_dry_breakers == 0 && s.dry_no_breakers == 0) {
    texts.assign(std::begin(kUsualBreakers), std::end(kUsualBreakers));
  }
  for (size_t i = 0; i < s.num_dry_breakers; ++i) {
    if (s.dry_breakers == nullptr || s.dry_breakers[i] == nullptr) {
      return UsageError("null_argument",
                        absl::StrCat("dry_breakers ", i, ": got NULL"));
    }
    texts.emplace_back(s.dry_breakers[i]);
    if (texts.back().empty() || texts.back().size() > kMostBreakerBytes) {
      return UsageError(
          "invalid_sampling",
          absl::StrCat("dry_breakers ", i, ": got ", texts.back().size(),
                       " bytes, need 1 to ", kMostBreakerBytes));
    }
  }
  return texts;
}

}  // namespace

absl::StatusOr<SessionRequest> ReadSessionParams(
    const Model& model, const tiercel_session_params* params) {
  tiercel_session_params p;
  RETURN_IF_ERROR(ReadStruct("params", params, &p));
  SessionRequest request;
  Session::Options& options = request.options;
  options.context = p.context;
  options.forks = p.forks;
  options.fork_tokens = p.fork_tokens;
  ASSIGN_OR_RETURN(options.type_k, ParseKvType(p.kv_type_k));
  ASSIGN_OR_RETURN(options.type_v, ParseKvType(p.kv_type_v));
  if (p.cache_dir != nullptr) request.rates_folder = p.cache_dir;
  if (p.prompt_cache_dir != nullptr) {
    if (*p.prompt_cache_dir == '\0') {
      return UsageError("invalid_argument", "prompt_cache_dir: got \"\"");
    }
    PromptCacheFolder& texts = options.texts.emplace();
    texts.path = p.prompt_cache_dir;
    texts.build = BuildIdentity();
    if (p.prompt_cache_bytes != 0) texts.most_bytes = p.prompt_cache_bytes;
    if (p.prompt_cache_name != nullptr) texts.name = p.prompt_cache_name;
    texts.since_ns = KvFolder::NowNs();
    texts.begins_anew =
        (p.prompt_cache_flags & TIERCEL_PROMPT_CACHE_BEGIN_ANEW) != 0;
    texts.unfinished_alone =
        (p.prompt_cache_flags & TIERCEL_PROMPT_CACHE_UNFINISHED_ALONE) != 0;
  } else if (p.prompt_cache_bytes != 0 || p.prompt_cache_flags != 0) {
    return UsageError(
        "invalid_argument",
        absl::StrCat(p.prompt_cache_bytes != 0 ? "prompt_cache_bytes"
                                               : "prompt_cache_flags",
                     ": it is set, and no prompt_cache_dir"));
  }
  constexpr uint64_t kFlags =
      TIERCEL_PROMPT_CACHE_BEGIN_ANEW | TIERCEL_PROMPT_CACHE_UNFINISHED_ALONE;
  if ((p.prompt_cache_flags & ~kFlags) != 0) {
    return UsageError(
        "invalid_argument",
        absl::StrCat("prompt_cache_flags: got ", p.prompt_cache_flags,
                     ", need TIERCEL_PROMPT_CACHE_BEGIN_ANEW, 1, "
                     "TIERCEL_PROMPT_CACHE_UNFINISHED_ALONE, 2, both, or 0"));
  }
  if (p.policy != nullptr) {
    ASSIGN_OR_RETURN(request.policy,
                     ReadPolicy(p.policy, &request.draft_model));
  }
  options = request.policy.OptionsFor(model, options);
  return request;
}

absl::StatusOr<SamplingRequest> ReadSampling(const tiercel_sampling* sampling,
                                             const Tokenizer* tokenizer,
                                             KnownBreakers* breakers) {
  tiercel_sampling s;
  RETURN_IF_ERROR(ReadStruct("sampling", sampling, &s));
  SamplingRequest request = {
      .params = {}, .mask = s.mask, .mask_user_data = s.mask_user_data};
  GenerateParams& params = request.params;
  params.max_tokens = s.max_tokens;
  params.seed = s.seed;
  params.distribution = {
      .temperature = s.temperature,
      .top_k = s.top_k,
      .top_p = s.top_p == 0.0f ? 1.0f : s.top_p,
      .min_p = s.min_p,
      .repeat_penalty = s.repeat_penalty == 0.0f ? 1.0f : s.repeat_penalty};
  DryParams& dry = params.distribution.dry;
  dry.multiplier = s.dry_multiplier;
  if (s.dry_base != 0.0f) dry.base = s.dry_base;
  if (s.dry_allowed_length != 0) dry.allowed_length = s.dry_allowed_length;
  ASSIGN_OR_RETURN(const std::vector<std::string> texts, ReadBreakers(s));
  if (dry.multiplier > 0.0f) dry.breakers = breakers->Of(tokenizer, texts);
  if (s.log_probs != 0) params.top_log_probs = s.top_log_probs;
  if (s.log_probs == 0 && s.top_log_probs != 0) {
    return UsageError("invalid_sampling",
                      absl::StrCat("top_log_probs: got ", s.top_log_probs,
                                   ", need 0 unless log_probs is set"));
  }
  params.ignore_eos = s.ignore_eos != 0;
  params.split_thought = s.split_thought != 0;
  if (s.num_stops > kMostStops) {
    return UsageError("invalid_stop",
                      absl::StrCat("stop texts: got ", s.num_stops,
                                   ", at most ", kMostStops));
  }
  for (size_t i = 0; i < s.num_stops; ++i) {
    if (s.stops == nullptr || s.stops[i] == nullptr) {
      return UsageError("null_argument",
                        absl::StrCat("stop text ", i, ": got NULL"));
    }
    params.stops.emplace_back(s.stops[i]);
  }
  if (s.num_stop_ids > kMostStops) {
    return UsageError("invalid_stop",
                      absl::StrCat("stop ids: got ", s.num_stop_ids,
                                   ", at most ", kMostStops));
  }
  if (s.num_stop_ids > 0) {
    RETURN_IF_ERROR(NeedArgument("stop_ids", s.stop_ids));
    params.stop_ids.assign(s.stop_ids, s.stop_ids + s.num_stop_ids);
  }
  return request;
}

}  // namespace tiercel

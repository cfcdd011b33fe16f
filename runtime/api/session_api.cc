// Sessions: the part of tiercel.h that computes.

#include <utility>
#include <vector>

#include "runtime/api/boundary.h"
#include "runtime/generate/generate.h"
#include "runtime/model/draft_model.h"
#include "runtime/policy/policy.h"
#include "runtime/predict/known_rates.h"
#include "runtime/predict/plan.h"

namespace tiercel {
namespace {

absl::StatusOr<DType> ParseKvType(const char* name) {
  if (name == nullptr) return DType::kF16;
  const std::optional<DType> type = ParseDType(name);
  if (type.has_value()) return *type;
  return UsageError(
      "invalid_kv_type",
      absl::StrCat("KV type: got \"", name, "\", need f32, f16, bf16 or q8_0"));
}

absl::StatusOr<Session::Options> ReadSessionOptions(
    const tiercel_session_params* params) {
  tiercel_session_params p;
  if (absl::Status s = ReadStruct("params", params, &p); !s.ok()) return s;
  Session::Options options;
  options.context = p.context;
  options.first_position = p.first_position;
  const absl::StatusOr<DType> type_k = ParseKvType(p.kv_type_k);
  if (!type_k.ok()) return type_k.status();
  const absl::StatusOr<DType> type_v = ParseKvType(p.kv_type_v);
  if (!type_v.ok()) return type_v.status();
  options.type_k = *type_k;
  options.type_v = *type_v;
  if (p.cache_dir != nullptr) options.rates_folder = p.cache_dir;
  if (p.view_budget != 0) {
    RetrievalSize size;
    if (p.view_chunk != 0) size.chunk = p.view_chunk;
    if (p.view_sink != 0) size.sink = p.view_sink;
    if (p.view_window != 0) size.window = p.view_window;
    size.budget = p.view_budget;
    options.retrieval = size;
  }
  return options;
}

bool IsForked(const tiercel_session* session) {
  return session->process != getpid();
}

absl::Status NeedSession(const tiercel_session* session) {
  if (absl::Status s = NeedArgument("session", session); !s.ok()) return s;
  if (!IsForked(session)) return absl::OkStatus();
  return UsageError(
      "forked",
      absl::StrCat("session: made in process ", session->process, ", used in ",
                   getpid(), "; after fork() make one of this process"));
}

// One of `names`; NULL is the first.
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

absl::StatusOr<int64_t> ParseDraftTokens(const char* what, int32_t tokens) {
  if (tokens == TIERCEL_ADAPTIVE) return PolicyParams::kAdaptive;
  if (tokens >= 0 && tokens <= DraftLength::kMost) return tokens;
  return UsageError("invalid_argument",
                    absl::StrCat(what, ": got ", tokens, ", need 0 to ",
                                 DraftLength::kMost, ", or TIERCEL_ADAPTIVE"));
}

absl::StatusOr<PolicyParams> ReadPolicy(const tiercel_sampling& s) {
  const absl::StatusOr<PolicyName> policy = ParseName<PolicyName>(
      "policy", s.policy,
      {{"full", PolicyName::kFull}, {"triforce", PolicyName::kTriForce}});
  if (!policy.ok()) return policy.status();
  const absl::StatusOr<Proposer> proposer =
      ParseName<Proposer>("draft", s.draft,
                          {{"none", Proposer::kNone},
                           {"ngram", Proposer::kNgram},
                           {"self", Proposer::kSelf},
                           {"small", Proposer::kSmall}});
  if (!proposer.ok()) return proposer.status();
  if (*proposer == Proposer::kSmall) {
    if (absl::Status status = NeedArgument("draft_model", s.draft_model);
        !status.ok()) {
      return status;
    }
  }
  const absl::StatusOr<VerifyMode> verify = ParseName<VerifyMode>(
      "verify", s.verify,
      {{"residual", VerifyMode::kResidual}, {"coupled", VerifyMode::kCoupled}});
  if (!verify.ok()) return verify.status();
  const absl::StatusOr<int64_t> gamma1 =
      ParseDraftTokens("draft_tokens", s.draft_tokens);
  if (!gamma1.ok()) return gamma1.status();
  const absl::StatusOr<int64_t> gamma2 =
      ParseDraftTokens("block_tokens", s.block_tokens);
  if (!gamma2.ok()) return gamma2.status();
  if (!(s.cost_ratio >= 0) || s.cost_ratio > 1e6) {
    return UsageError(
        "invalid_argument",
        absl::StrCat("cost_ratio: got ", s.cost_ratio, ", need 0 to 1000000"));
  }
  return PolicyParams{.policy = *policy,
                      .proposer = *proposer,
                      .verify = *verify,
                      .gamma1 = *gamma1,
                      .gamma2 = *gamma2,
                      .cost_ratio = s.cost_ratio,
                      .draft_model = *proposer == Proposer::kSmall
                                         ? s.draft_model->model.get()
                                         : nullptr,
                      .draft_layers = s.draft_layers};
}

absl::StatusOr<GenerateParams> ReadSampling(const tiercel_sampling& s) {
  GenerateParams params;
  params.max_tokens = s.max_tokens;
  params.seed = s.seed;
  params.law = {
      .temperature = s.temperature,
      .top_k = s.top_k,
      .top_p = s.top_p == 0.0f ? 1.0f : s.top_p,
      .min_p = s.min_p,
      .repeat_penalty = s.repeat_penalty == 0.0f ? 1.0f : s.repeat_penalty};
  params.ignore_eos = s.ignore_eos != 0;
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
  return params;
}

}  // namespace
}  // namespace tiercel

extern "C" {

tiercel_status tiercel_measure(const tiercel_model* model,
                               const tiercel_session_params* params,
                               tiercel_progress progress, void* user_data,
                               tiercel_measurement* measurement,
                               tiercel_error* error) {
  return tiercel::AtBoundary(error, [&]() -> absl::Status {
    if (absl::Status s = tiercel::NeedArgument("model", model); !s.ok()) {
      return s;
    }
    tiercel_measurement out = {};
    if (measurement != nullptr) {
      if (absl::Status s =
              tiercel::ReadStruct("measurement", measurement, &out);
          !s.ok()) {
        return s;
      }
    }
    const absl::StatusOr<tiercel::Session::Options> options =
        tiercel::ReadSessionOptions(params);
    if (!options.ok()) return options.status();
    if (!options->rates_folder.has_value()) {
      return tiercel::UsageError("null_argument", "cache_dir: got NULL");
    }
    const tiercel::Model& m = *model->model;
    if (absl::Status s = tiercel::CheckSessionOptions(m.config, *options);
        !s.ok()) {
      return s;
    }
    out.measured = 0;
    const absl::StatusOr<tiercel::KeptRates> rates = tiercel::MeasureKnownRates(
        m, options->Layout(m.config), *options->rates_folder,
        [&](uint64_t done, uint64_t total) {
          out.measured = 1;
          return progress == nullptr || progress(user_data, done, total) == 0;
        });
    if (!rates.ok()) return rates.status();
    out.steady = rates->best.steady();
    out.spread = rates->best.spread;
    if (measurement != nullptr) {
      std::memcpy(measurement, &out, std::min(out.struct_size, sizeof(out)));
    }
    return absl::OkStatus();
  });
}

tiercel_status tiercel_cache_list(const char* cache_dir, char* json,
                                  size_t* size, tiercel_error* error) {
  return tiercel::AtBoundary(error, [&]() -> absl::Status {
    for (const void* argument : {static_cast<const void*>(cache_dir),
                                 static_cast<const void*>(size)}) {
      if (absl::Status s = tiercel::NeedArgument("cache_dir or size", argument);
          !s.ok()) {
        return s;
      }
    }
    const absl::StatusOr<nlohmann::json> files =
        tiercel::RatesCache(cache_dir).List();
    if (!files.ok()) return files.status();
    return tiercel::FillJson({{"files", *files}}, json, size);
  });
}

tiercel_status tiercel_cache_clear(const char* cache_dir, size_t* removed,
                                   tiercel_error* error) {
  return tiercel::AtBoundary(error, [&]() -> absl::Status {
    if (absl::Status s = tiercel::NeedArgument("cache_dir", cache_dir);
        !s.ok()) {
      return s;
    }
    const absl::StatusOr<int64_t> count =
        tiercel::RatesCache(cache_dir).Clear();
    if (!count.ok()) return count.status();
    if (removed != nullptr) *removed = static_cast<size_t>(*count);
    return absl::OkStatus();
  });
}

tiercel_status tiercel_plan(const tiercel_model* model,
                            const tiercel_session_params* params, char* json,
                            size_t* size, tiercel_error* error) {
  return tiercel::AtBoundary(error, [&]() -> absl::Status {
    if (absl::Status s = tiercel::NeedArgument("model", model); !s.ok()) {
      return s;
    }
    if (absl::Status s = tiercel::NeedArgument("size", size); !s.ok()) {
      return s;
    }
    const absl::StatusOr<tiercel::Session::Options> options =
        tiercel::ReadSessionOptions(params);
    if (!options.ok()) return options.status();
    const absl::StatusOr<nlohmann::json> plan =
        tiercel::DescribePlan(*model->model, *options);
    if (!plan.ok()) return plan.status();
    return tiercel::FillJson(*plan, json, size);
  });
}

tiercel_status tiercel_session_create(tiercel_model* model,
                                      const tiercel_session_params* params,
                                      tiercel_session** session,
                                      tiercel_error* error) {
  return tiercel::AtBoundary(error, [&]() -> absl::Status {
    if (absl::Status s = tiercel::NeedArgument("model", model); !s.ok()) {
      return s;
    }
    if (absl::Status s = tiercel::NeedArgument("session", session); !s.ok()) {
      return s;
    }
    *session = nullptr;
    const absl::StatusOr<tiercel::Session::Options> options =
        tiercel::ReadSessionOptions(params);
    if (!options.ok()) return options.status();
    absl::StatusOr<std::unique_ptr<tiercel::Session>> created =
        tiercel::Session::Create(*model->model, *options);
    if (!created.ok()) return created.status();
    tiercel::Report report = tiercel::NewReport(**created, {});
    *session =
        new tiercel_session{model, *std::move(created), std::move(report)};
    return absl::OkStatus();
  });
}

void tiercel_session_free(tiercel_session* session) {
  // In a forked process there is no thread to end.
  if (session != nullptr && !tiercel::IsForked(session)) delete session;
}

tiercel_status tiercel_prefill(tiercel_session* session, const int32_t* ids,
                               size_t count, tiercel_progress progress,
                               void* user_data, tiercel_error* error) {
  return tiercel::AtBoundary(error, [&]() -> absl::Status {
    if (absl::Status s = tiercel::NeedSession(session); !s.ok()) return s;
    if (count > 0) {
      if (absl::Status s = tiercel::NeedArgument("ids", ids); !s.ok()) {
        return s;
      }
    }
    session->session->ClearCancel();
    const absl::StatusOr<tiercel::PrefillReport> prefill = tiercel::Prefill(
        *session->session, ids, count, [&](uint64_t done, uint64_t total) {
          return progress == nullptr || progress(user_data, done, total) == 0;
        });
    if (!prefill.ok()) return prefill.status();
    session->report = tiercel::NewReport(*session->session, *prefill);
    return absl::OkStatus();
  });
}

size_t tiercel_session_length(const tiercel_session* session) {
  return session == nullptr ? 0 : session->session->tokens().size();
}

tiercel_status tiercel_session_truncate(tiercel_session* session, size_t length,
                                        tiercel_error* error) {
  return tiercel::AtBoundary(error, [&]() -> absl::Status {
    if (absl::Status s = tiercel::NeedSession(session); !s.ok()) return s;
    const size_t held = session->session->tokens().size();
    if (length > held) {
      return tiercel::UsageError(
          "invalid_argument",
          absl::StrCat("length: got ", length, ", the session holds ", held));
    }
    session->session->Truncate(length);
    return absl::OkStatus();
  });
}

tiercel_status tiercel_session_fork(const tiercel_session* session,
                                    tiercel_session** copy,
                                    tiercel_error* error) {
  return tiercel::AtBoundary(error, [&]() -> absl::Status {
    if (absl::Status s = tiercel::NeedSession(session); !s.ok()) return s;
    if (absl::Status s = tiercel::NeedArgument("copy", copy); !s.ok()) {
      return s;
    }
    *copy = nullptr;
    absl::StatusOr<std::unique_ptr<tiercel::Session>> fork =
        session->session->Fork();
    if (!fork.ok()) return fork.status();
    tiercel::Report report = tiercel::NewReport(**fork, {});
    *copy = new tiercel_session{session->owner, *std::move(fork),
                                std::move(report)};
    return absl::OkStatus();
  });
}

tiercel_status tiercel_check_draft(const tiercel_model* model,
                                   const tiercel_model* draft,
                                   tiercel_error* error) {
  return tiercel::AtBoundary(error, [&]() -> absl::Status {
    if (absl::Status s = tiercel::NeedArgument("model", model); !s.ok()) {
      return s;
    }
    if (absl::Status s = tiercel::NeedArgument("draft", draft); !s.ok()) {
      return s;
    }
    if (absl::Status s = tiercel::CheckDraftModel(*model->model, *draft->model);
        !s.ok()) {
      return s;
    }
    return tiercel::DraftWindow().Within(draft->model->config.context).status();
  });
}

tiercel_status tiercel_generate(tiercel_session* session,
                                const tiercel_sampling* sampling,
                                tiercel_on_token on_token, void* user_data,
                                tiercel_error* error) {
  return tiercel::AtBoundary(error, [&]() -> absl::Status {
    if (absl::Status s = tiercel::NeedSession(session); !s.ok()) return s;
    tiercel_sampling in;
    if (absl::Status s = tiercel::ReadStruct("sampling", sampling, &in);
        !s.ok()) {
      return s;
    }
    absl::StatusOr<tiercel::GenerateParams> params = tiercel::ReadSampling(in);
    if (!params.ok()) return params.status();
    const absl::StatusOr<tiercel::PolicyParams> policy_params =
        tiercel::ReadPolicy(in);
    if (!policy_params.ok()) return policy_params.status();
    session->session->ClearCancel();
    const absl::StatusOr<std::unique_ptr<tiercel::Policy>> policy =
        tiercel::Policy::Create(*session->session, *policy_params);
    if (!policy.ok()) return policy.status();
    tiercel::Report report = tiercel::Generate(
        *session->session, **policy, session->report.prefill, *params,
        [&](int32_t id, std::string_view text) {
          const tiercel_token token = {id, text.data(), text.size()};
          return on_token == nullptr || on_token(user_data, &token) == 0;
        });
    const absl::Status status = report.status;
    // What was asked for wrongly was not begun.
    if (tiercel::ClassOf(status) != tiercel::ErrorClass::kUsage) {
      session->report = std::move(report);
    }
    return status;
  });
}

tiercel_status tiercel_score(tiercel_session* session, const int32_t* ids,
                             size_t count, size_t rows_per_step,
                             tiercel_on_row on_row, void* user_data,
                             tiercel_error* error) {
  return tiercel::AtBoundary(error, [&]() -> absl::Status {
    if (absl::Status s = tiercel::NeedSession(session); !s.ok()) return s;
    if (count > 0) {
      if (absl::Status s = tiercel::NeedArgument("ids", ids); !s.ok()) {
        return s;
      }
    }
    session->session->ClearCancel();
    return tiercel::Score(*session->session, ids, count, rows_per_step,
                          [&](size_t index, const float* logits) {
                            return on_row == nullptr ||
                                   on_row(user_data, index, logits) == 0;
                          });
  });
}

tiercel_status tiercel_report(const tiercel_session* session, char* json,
                              size_t* size, tiercel_error* error) {
  return tiercel::AtBoundary(error, [&]() -> absl::Status {
    if (absl::Status s = tiercel::NeedSession(session); !s.ok()) return s;
    if (absl::Status s = tiercel::NeedArgument("size", size); !s.ok()) {
      return s;
    }
    tiercel::Report report = session->report;
    report.memory = session->session->memory();
    return tiercel::FillJson(report.ToJson(), json, size);
  });
}

tiercel_status tiercel_token_seconds(const tiercel_session* session,
                                     double* seconds, size_t* size,
                                     tiercel_error* error) {
  return tiercel::AtBoundary(error, [&]() -> absl::Status {
    if (absl::Status s = tiercel::NeedSession(session); !s.ok()) return s;
    if (absl::Status s = tiercel::NeedArgument("size", size); !s.ok()) {
      return s;
    }
    const std::vector<double>& all = session->report.token_seconds;
    return tiercel::Fill(all.data(), all.size(), seconds, size);
  });
}

void tiercel_cancel(tiercel_session* session) {
  if (session != nullptr) session->session->Cancel();
}

}  // extern "C"

// Sessions: the part of tiercel.h that computes.

#include <utility>
#include <vector>

#include "runtime/api/boundary.h"
#include "runtime/api/session_params.h"
#include "runtime/generate/generate.h"
#include "runtime/model/draft_model.h"
#include "runtime/policy/policy.h"
#include "runtime/predict/known_rates.h"
#include "runtime/predict/plan.h"

namespace tiercel {
namespace {

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

// Gives the caller `session` with its policy.
absl::Status Hand(const tiercel_model* owner, std::unique_ptr<Session> session,
                  const PolicyParams& params, tiercel_session** handle) {
  absl::StatusOr<std::unique_ptr<Policy>> policy =
      Policy::Create(*session, params);
  if (!policy.ok()) return policy.status();
  Report report = NewReport(*session, {});
  *handle = new tiercel_session{owner, std::move(session), params,
                                *std::move(policy), std::move(report)};
  return absl::OkStatus();
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
    const absl::StatusOr<tiercel::SessionRequest> request =
        tiercel::ReadSessionParams(params);
    if (!request.ok()) return request.status();
    const tiercel::Session::Options& options = request->options;
    if (!options.rates_folder.has_value()) {
      return tiercel::UsageError("null_argument", "cache_dir: got NULL");
    }
    const tiercel::Model& m = *model->model;
    if (absl::Status s = tiercel::CheckSessionOptions(m.config, options);
        !s.ok()) {
      return s;
    }
    out.measured = 0;
    const absl::StatusOr<tiercel::KeptRates> rates = tiercel::MeasureKnownRates(
        m, options.Layout(m.config), *options.rates_folder,
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
    const absl::StatusOr<tiercel::SessionRequest> request =
        tiercel::ReadSessionParams(params);
    if (!request.ok()) return request.status();
    const tiercel::Session::Options& options = request->options;
    if (absl::Status s =
            tiercel::CheckPolicy(model->model->config, request->policy);
        !s.ok()) {
      return s;
    }
    const absl::StatusOr<nlohmann::json> plan =
        tiercel::DescribePlan(*model->model, options);
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
    const absl::StatusOr<tiercel::SessionRequest> request =
        tiercel::ReadSessionParams(params);
    if (!request.ok()) return request.status();
    const tiercel::Session::Options& options = request->options;
    absl::StatusOr<std::unique_ptr<tiercel::Session>> created =
        tiercel::Session::Create(*model->model, options);
    if (!created.ok()) return created.status();
    return tiercel::Hand(model, *std::move(created), request->policy, session);
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
    return tiercel::Hand(session->owner, *std::move(fork),
                         session->policy_params, copy);
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
    const absl::StatusOr<tiercel::GenerateParams> params =
        tiercel::ReadSampling(sampling);
    if (!params.ok()) return params.status();
    session->session->ClearCancel();
    tiercel::Report report = tiercel::Generate(
        *session->session, *session->policy, session->report.prefill, *params,
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

// Sessions: the part of tiercel.h that computes.

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "include/tiercel_lab.h"
#include "lib/status/status_macros.h"
#include "runtime/api/boundary.h"
#include "runtime/api/session_calls.h"
#include "runtime/api/session_params.h"
#include "runtime/generate/generate.h"
#include "runtime/model/draft_model.h"
#include "runtime/plan/known_rates.h"
#include "runtime/plan/plan.h"
#include "runtime/policies/policy.h"
#include "runtime/policies/policy_kind.h"
#include "runtime/policies/policy_times.h"
#include "runtime/session/prompt_cache.h"

namespace tiercel {
namespace {

// The known rates of the machine for sessions of `request`. `on_disk`: they
// have pages on disk.
std::optional<KeptRates> RatesOf(const Model& model,
                                 const SessionRequest& request, bool on_disk) {
  if (!request.rates_folder.has_value()) return std::nullopt;
  return KnownRates(model, request.options.Layout(model.config),
                    *request.rates_folder,
                    on_disk ? &*request.options.texts : nullptr);
}

// One budget must hold a model and its draft model.
absl::Status NeedBeside(const Model& model, const Model& draft) {
  if (draft.machine == model.machine) return absl::OkStatus();
  return UsageError("draft_machine",
                    "the draft model was opened on a machine of its own; open "
                    "it beside the session's model");
}

absl::Status CheckRequest(const Model& model, const SessionRequest& request) {
  RETURN_IF_ERROR(CheckPolicy(model, request.policy));
  const Model* const draft = request.policy.draft_model;
  return draft != nullptr ? NeedBeside(model, *draft) : absl::OkStatus();
}

// The draft model of `request` with its session options; none if no model
// drafts.
absl::StatusOr<std::optional<DraftPart>> DraftOf(
    const SessionRequest& request) {
  std::optional<DraftPart> draft;
  if (request.policy.draft_model == nullptr) return draft;
  ASSIGN_OR_RETURN(const DraftWindow window, DraftWindowOf(request.policy));
  draft.emplace(
      DraftPart{*request.policy.draft_model, DraftSessionOptions(window)});
  return draft;
}

// The document of tiercel_plan.
absl::StatusOr<nlohmann::json> PlanDocument(const Model& model,
                                            const SessionRequest& request) {
  ASSIGN_OR_RETURN(const std::optional<DraftPart> draft, DraftOf(request));
  const std::optional<KeptRates> rates =
      RatesOf(model, request, GoesToDisk(model, request.options));
  absl::StatusOr<nlohmann::json> plan = DescribePlan(
      model, request.options, rates, draft, request.policy.PlannedSteps());
  if (!plan.ok()) return plan;
  for (const std::string& warning : PolicyWarnings(model, request.policy)) {
    plan->at("warnings").push_back(warning);
  }
  if (!rates.has_value() || !plan->at("fits").get<bool>()) return plan;
  ASSIGN_OR_RETURN(const PlannedRanks ranks,
                   PlanOfRanks(model, request.options, draft));
  const auto context = plan->at("context").get<int64_t>();
  const std::string slower = SlowerThanFull(
      request.policy, TimesOf(request.policy, ranks.sites, ranks.plans,
                              model.machine->device().link(), rates->best.rates,
                              std::max<int64_t>(1, context - 1)));
  if (!slower.empty()) plan->at("warnings").push_back(slower);
  return plan;
}

// Returns a handle of `session` with its policy, whose costs are those of
// `rates`.
absl::StatusOr<std::unique_ptr<tiercel_session>> NewHandle(
    std::shared_ptr<const Model> model,
    std::shared_ptr<const Model> draft_model, std::shared_ptr<Log> log,
    std::shared_ptr<Turns> turns, std::unique_ptr<Session> session,
    PolicyParams params, std::unique_ptr<Session> draft_session,
    const std::optional<KeptRates>& rates) {
  if (rates.has_value()) params.costs = rates->costs;
  ASSIGN_OR_RETURN(std::unique_ptr<Policy> policy,
                   Policy::Create(*session, params, std::move(draft_session)));
  Report report = NewReport(*session, {});
  std::unique_ptr<tiercel_session> made(
      new tiercel_session{std::move(model), std::move(draft_model),
                          std::move(log), std::move(turns), std::move(session),
                          params, std::move(policy), rates, /*report=*/{}});
  Keep(std::move(report), made.get());
  return made;
}

absl::StatusOr<Reading> ReadingOf(const tiercel_reading& in) {
  RETURN_IF_ERROR(NeedArray("others", in.others, in.num_others));
  RETURN_IF_ERROR(NeedArray("other_sizes", in.other_sizes, in.num_others));
  Reading read = {in.begin, in.end, in.asked, in.answer};
  for (size_t i = 0; i < in.num_others; ++i) {
    const int32_t* const ids = in.others[i];
    RETURN_IF_ERROR(NeedArray("others", ids, in.other_sizes[i]));
    read.others.emplace_back(ids, ids + in.other_sizes[i]);
  }
  return read;
}

}  // namespace
}  // namespace tiercel

extern "C" {

tiercel_status tiercel_measure(const tiercel_model* model,
                               const tiercel_session_params* params,
                               tiercel_progress progress, void* user_data,
                               tiercel_measurement* measurement,
                               tiercel_error* error) {
  return tiercel::AtBoundary(error, [&](auto& thread) -> absl::Status {
    RETURN_IF_ERROR(tiercel::NeedArgument("model", model));
    tiercel_measurement out = {};
    if (measurement != nullptr) {
      RETURN_IF_ERROR(tiercel::ReadStruct("measurement", measurement, &out));
    }
    ASSIGN_OR_RETURN(const tiercel::SessionRequest request,
                     tiercel::ReadSessionParams(*model->model, params));
    const tiercel::Session::Options& options = request.options;
    if (!request.rates_folder.has_value()) {
      return tiercel::UsageError("null_argument", "cache_dir: got NULL");
    }
    const std::shared_ptr<const tiercel::Model> held = model->model;
    const tiercel::Model& m = *held;
    RETURN_IF_ERROR(tiercel::CheckRequest(m, request));
    RETURN_IF_ERROR(tiercel::CheckSessionOptions(m.config, options));
    out.measured = 0;
    const double again_s = out.again_seconds == 0
                               ? tiercel::MeasuringAgain::kUsualSeconds
                               : out.again_seconds;
    ASSIGN_OR_RETURN(
        const tiercel::KeptRates rates,
        tiercel::MeasureKnownRates(
            m, options.Layout(m.config), *request.rates_folder, again_s,
            [&](uint64_t done, uint64_t total) {
              out.measured = 1;
              return thread.GoesOn(progress, user_data, done, total);
            },
            tiercel::GoesToDisk(m, options) ? &*options.texts : nullptr));
    out.steady = rates.best.steady();
    out.spread = rates.best.spread;
    if (measurement != nullptr) tiercel::WriteStruct(out, measurement);
    return absl::OkStatus();
  });
}

tiercel_status tiercel_policies(char* json, size_t* size,
                                tiercel_error* error) {
  return tiercel::AtBoundary(error, [&]() -> absl::Status {
    RETURN_IF_ERROR(tiercel::NeedPlace("json", json, size));
    auto policies = nlohmann::json::array();
    for (const tiercel::PolicyKind* kind : tiercel::Policies()) {
      auto settings = nlohmann::json::array();
      for (const tiercel::PolicyKey& key : kind->keys()) {
        settings.push_back(
            {{"key", key.key}, {"default", key.value}, {"help", key.help}});
      }
      auto sizes = nlohmann::json::array();
      for (const std::string_view one : kind->plain_sizes()) {
        sizes.push_back(std::string(one));
      }
      policies.push_back({{"name", std::string(kind->name())},
                          {"help", std::string(kind->help())},
                          {"plain", kind->has_plain()},
                          {"plain_sizes", std::move(sizes)},
                          {"settings", std::move(settings)}});
    }
    return tiercel::FillJson(policies, json, size);
  });
}

tiercel_status tiercel_cache_list(const char* cache_dir, char* json,
                                  size_t* size, tiercel_error* error) {
  return tiercel::AtBoundary(error, [&]() -> absl::Status {
    RETURN_IF_ERROR(tiercel::NeedArgument("cache_dir", cache_dir));
    RETURN_IF_ERROR(tiercel::NeedPlace("json", json, size));
    ASSIGN_OR_RETURN(const nlohmann::json files,
                     tiercel::RatesCache(cache_dir).List());
    ASSIGN_OR_RETURN(const nlohmann::json texts,
                     tiercel::ListPromptCache(cache_dir));
    return tiercel::FillJson({{"files", files}, {"prompt_cache", texts}}, json,
                             size);
  });
}

tiercel_status tiercel_cache_clear(const char* cache_dir, size_t* removed,
                                   tiercel_error* error) {
  return tiercel::AtBoundary(error, [&]() -> absl::Status {
    RETURN_IF_ERROR(tiercel::NeedArgument("cache_dir", cache_dir));
    ASSIGN_OR_RETURN(const int64_t files,
                     tiercel::RatesCache(cache_dir).Clear());
    ASSIGN_OR_RETURN(const int64_t texts, tiercel::ClearPromptCache(cache_dir));
    if (removed != nullptr) *removed = static_cast<size_t>(files + texts);
    return absl::OkStatus();
  });
}

tiercel_status tiercel_plan(const tiercel_model* model,
                            const tiercel_session_params* params, char* json,
                            size_t* size, tiercel_error* error) {
  return tiercel::AtBoundary(error, [&]() -> absl::Status {
    RETURN_IF_ERROR(tiercel::NeedArgument("model", model));
    RETURN_IF_ERROR(tiercel::NeedPlace("json", json, size));
    ASSIGN_OR_RETURN(const tiercel::SessionRequest request,
                     tiercel::ReadSessionParams(*model->model, params));
    const tiercel::Model& m = *model->model;
    RETURN_IF_ERROR(tiercel::CheckRequest(m, request));
    ASSIGN_OR_RETURN(const nlohmann::json plan,
                     tiercel::PlanDocument(m, request));
    return tiercel::FillJson(plan, json, size);
  });
}

tiercel_status tiercel_cached_tokens(const tiercel_model* model,
                                     const tiercel_session_params* params,
                                     const int32_t* ids, size_t count,
                                     tiercel_progress progress, void* user_data,
                                     int64_t* tokens, tiercel_error* error) {
  return tiercel::AtBoundary(error, [&](auto& thread) -> absl::Status {
    RETURN_IF_ERROR(tiercel::NeedArgument("model", model));
    RETURN_IF_ERROR(tiercel::NeedArray("ids", ids, count));
    RETURN_IF_ERROR(tiercel::NeedArgument("tokens", tokens));
    ASSIGN_OR_RETURN(const tiercel::SessionRequest request,
                     tiercel::ReadSessionParams(*model->model, params));
    const tiercel::Model& m = *model->model;
    RETURN_IF_ERROR(tiercel::CheckRequest(m, request));
    ASSIGN_OR_RETURN(
        *tokens, tiercel::CachedTokens(m, request.options, {ids, count}, [&] {
          return !thread.GoesOn(progress, user_data, 0, 0);
        }));
    return absl::OkStatus();
  });
}

tiercel_status tiercel_choose_ranks(const tiercel_model* model,
                                    const tiercel_session_params* params,
                                    int64_t* ranks, tiercel_error* error) {
  return tiercel::AtBoundary(error, [&]() -> absl::Status {
    RETURN_IF_ERROR(tiercel::NeedArgument("model", model));
    RETURN_IF_ERROR(tiercel::NeedArgument("ranks", ranks));
    ASSIGN_OR_RETURN(const tiercel::SessionRequest request,
                     tiercel::ReadSessionParams(*model->model, params));
    const tiercel::Model& m = *model->model;
    if (m.weights != nullptr) {
      return tiercel::UsageError(
          "invalid_argument",
          "model: got one with weights, need one with its header alone");
    }
    const tiercel::Model* const small = request.policy.draft_model;
    if (small != nullptr && small->weights != nullptr) {
      return tiercel::UsageError(
          "invalid_argument",
          "draft: got a model with weights, need one with its header alone");
    }
    RETURN_IF_ERROR(tiercel::CheckRequest(m, request));
    ASSIGN_OR_RETURN(const std::optional<tiercel::DraftPart> draft,
                     tiercel::DraftOf(request));
    ASSIGN_OR_RETURN(*ranks,
                     tiercel::ChooseRanks(m, request.options, draft,
                                          request.policy.PlannedSteps()));
    return absl::OkStatus();
  });
}

tiercel_status tiercel_session_create(tiercel_model* model,
                                      const tiercel_session_params* params,
                                      tiercel_session** session,
                                      tiercel_error* error) {
  return tiercel::AtBoundary(error, [&](auto& thread) -> absl::Status {
    RETURN_IF_ERROR(tiercel::NeedArgument("model", model));
    RETURN_IF_ERROR(tiercel::NeedArgument("session", session));
    *session = nullptr;
    ASSIGN_OR_RETURN(const tiercel::SessionRequest request,
                     tiercel::ReadSessionParams(*model->model, params));
    const tiercel::Model& m = *model->model;
    RETURN_IF_ERROR(tiercel::CheckRequest(m, request));
    ASSIGN_OR_RETURN(std::unique_ptr<tiercel::Session> draft,
                     tiercel::NewDraftSession(request.policy));
    ASSIGN_OR_RETURN(std::unique_ptr<tiercel::Session> created,
                     tiercel::Session::Create(m, request.options));
    const bool on_disk = created->kv().plan().shape.disk_pages > 0;
    ASSIGN_OR_RETURN(
        std::unique_ptr<tiercel_session> made,
        tiercel::NewHandle(model->model, request.draft_model, model->log,
                           std::make_shared<tiercel::Turns>(),
                           std::move(created), request.policy, std::move(draft),
                           tiercel::RatesOf(m, request, on_disk)));
    *session = made.release();
    return tiercel::Told(model->log, thread, absl::OkStatus());
  });
}

void tiercel_session_free(tiercel_session* session) {
  const tiercel::CallersThread thread;
  // A forked process has no thread to end.
  if (session == nullptr || tiercel::IsForked(session)) return;
  const std::shared_ptr<tiercel::Turns> turns = session->turns;
  turns->Free(session);
}

tiercel_status tiercel_session_prefill(tiercel_session* session,
                                       const int32_t* ids, size_t count,
                                       tiercel_progress progress,
                                       void* user_data, tiercel_error* error) {
  return tiercel::AtBoundary(error, [&](auto& thread) -> absl::Status {
    ASSIGN_OR_RETURN(const auto turn, tiercel::TurnAt(session));
    RETURN_IF_ERROR(tiercel::NeedArray("ids", ids, count));
    return tiercel::Stoppable(session, thread, [&] {
      return tiercel::PrefillInto(
          session, ids, count, [&](uint64_t done, uint64_t total) {
            return thread.GoesOn(progress, user_data, done, total);
          });
    });
  });
}

tiercel_status tiercel_session_fill(tiercel_session* session,
                                    const int32_t* ids, size_t count,
                                    uint64_t seed, tiercel_progress progress,
                                    void* user_data, tiercel_error* error) {
  return tiercel::AtBoundary(error, [&](auto& thread) -> absl::Status {
    ASSIGN_OR_RETURN(const auto turn, tiercel::TurnAt(session));
    RETURN_IF_ERROR(tiercel::NeedArray("ids", ids, count));
    return tiercel::Stoppable(session, thread, [&] {
      return tiercel::AddInto(session, count, [&](tiercel::Session& own) {
        return tiercel::FillPrompt(
            own, ids, count, seed, [&](uint64_t done, uint64_t total) {
              return thread.GoesOn(progress, user_data, done, total);
            });
      });
    });
  });
}

tiercel_status tiercel_session_read(tiercel_session* session,
                                    const int32_t* ids, size_t count,
                                    tiercel_progress progress, void* user_data,
                                    tiercel_error* error) {
  return tiercel::AtBoundary(error, [&](auto& thread) -> absl::Status {
    ASSIGN_OR_RETURN(const auto turn, tiercel::TurnAt(session));
    RETURN_IF_ERROR(tiercel::NeedArray("ids", ids, count));
    return tiercel::Stoppable(session, thread, [&] {
      return tiercel::ReadInto(
          session, ids, count, [&](uint64_t done, uint64_t total) {
            return thread.GoesOn(progress, user_data, done, total);
          });
    });
  });
}

tiercel_status tiercel_session_ids(const tiercel_session* session, int32_t* ids,
                                   size_t* size, tiercel_error* error) {
  return tiercel::AtBoundary(error, [&]() -> absl::Status {
    ASSIGN_OR_RETURN(const auto turn, tiercel::TurnAt(session));
    RETURN_IF_ERROR(tiercel::NeedPlace("ids", ids, size));
    const std::vector<int32_t>& held = session->session->sequence().tokens();
    return tiercel::Fill(held.data(), held.size(), ids, size);
  });
}

size_t tiercel_session_length(const tiercel_session* session) {
  return session == nullptr ? 0 : session->length.load();
}

int32_t tiercel_session_resumed(const tiercel_session* session) {
  return session == nullptr ? 0 : session->session->sequence().resumed_layers();
}

int32_t tiercel_session_kept(const tiercel_session* session) {
  if (session == nullptr) return 0;
  const tiercel::SessionPromptCache* const cache =
      session->session->prompt_cache();
  return cache != nullptr ? cache->kept_layers() : 0;
}

tiercel_status tiercel_session_truncate(tiercel_session* session, size_t length,
                                        tiercel_error* error) {
  return tiercel::AtBoundary(error, [&]() -> absl::Status {
    ASSIGN_OR_RETURN(const auto turn, tiercel::TurnAt(session));
    const size_t held = session->session->sequence().tokens().size();
    if (length > held) {
      return tiercel::UsageError(
          "invalid_argument",
          absl::StrCat("length: got ", length, ", the session holds ", held));
    }
    tiercel::TruncateTo(length, session);
    return absl::OkStatus();
  });
}

tiercel_status tiercel_session_trim(tiercel_session* session,
                                    tiercel_error* error) {
  return tiercel::AtBoundary(error, [&]() -> absl::Status {
    ASSIGN_OR_RETURN(const auto turn, tiercel::TurnAt(session));
    tiercel::Trim(session->session->kv());
    return absl::OkStatus();
  });
}

tiercel_status tiercel_session_fork(const tiercel_session* session,
                                    tiercel_session** copy,
                                    tiercel_error* error) {
  return tiercel::AtBoundary(error, [&]() -> absl::Status {
    ASSIGN_OR_RETURN(const auto turn, tiercel::TurnAt(session));
    RETURN_IF_ERROR(tiercel::NeedArgument("copy", copy));
    *copy = nullptr;
    ASSIGN_OR_RETURN(std::unique_ptr<tiercel::Session> fork,
                     session->session->Fork());
    ASSIGN_OR_RETURN(std::unique_ptr<tiercel::Session> draft,
                     tiercel::NewDraftSession(session->policy_params));
    ASSIGN_OR_RETURN(std::unique_ptr<tiercel_session> made,
                     tiercel::NewHandle(session->model, session->draft_model,
                                        session->log, session->turns,
                                        std::move(fork), session->policy_params,
                                        std::move(draft), session->rates));
    made->text_begin = session->text_begin;
    made->length = session->session->sequence().tokens().size();
    *copy = made.release();
    return absl::OkStatus();
  });
}

tiercel_status tiercel_check_draft(const tiercel_model* model,
                                   const tiercel_model* draft,
                                   tiercel_error* error) {
  return tiercel::AtBoundary(error, [&]() -> absl::Status {
    RETURN_IF_ERROR(tiercel::NeedArgument("model", model));
    RETURN_IF_ERROR(tiercel::NeedArgument("draft", draft));
    const tiercel::Model& m = *model->model;
    const tiercel::Model& d = *draft->model;
    RETURN_IF_ERROR(tiercel::NeedBeside(m, d));
    RETURN_IF_ERROR(tiercel::CheckDraftModel(m, d).status());
    return tiercel::DraftWindow().Within(d.config.context).status();
  });
}

tiercel_status tiercel_session_report(const tiercel_session* session,
                                      char* json, size_t* size,
                                      tiercel_error* error) {
  return tiercel::AtBoundary(error, [&]() -> absl::Status {
    ASSIGN_OR_RETURN(const auto turn, tiercel::TurnAt(session));
    RETURN_IF_ERROR(tiercel::NeedPlace("json", json, size));
    tiercel::Report report = session->report;
    report.NoteMemory(*session->session);
    // These warnings came since, while a text was saved beside the caller's
    // work.
    for (std::string& warning : session->session->warnings()) {
      if (std::find(report.warnings.begin(), report.warnings.end(), warning) ==
          report.warnings.end()) {
        report.warnings.push_back(std::move(warning));
      }
    }
    return tiercel::FillJson(report.ToJson(), json, size);
  });
}

tiercel_status tiercel_session_attended_beside(tiercel_session* session,
                                               const tiercel_reading* reading,
                                               tiercel_progress progress,
                                               void* user_data, float* shares,
                                               size_t* size,
                                               tiercel_error* error) {
  return tiercel::AtBoundary(error, [&](auto& thread) -> absl::Status {
    ASSIGN_OR_RETURN(const auto turn, tiercel::TurnAt(session));
    RETURN_IF_ERROR(tiercel::NeedPlace("shares", shares, size));
    tiercel_reading in;
    RETURN_IF_ERROR(tiercel::ReadStruct("reading", reading, &in));
    ASSIGN_OR_RETURN(const tiercel::Reading read, tiercel::ReadingOf(in));
    if (session->policy_params.form == tiercel::PolicyForm::kPlain) {
      return tiercel::UsageError(
          "invalid_argument",
          "a session under a policy's plain form does not say where it looked");
    }
    ASSIGN_OR_RETURN(const tiercel::PositionRange runs,
                     tiercel::RunsOf(session->session->sequence(), read));
    const auto count = static_cast<size_t>(runs.end - runs.begin);
    if (*size < count) {  // known before the work
      return tiercel::BufferTooSmall(std::exchange(*size, count), count);
    }
    return tiercel::Stoppable(session, thread, [&]() -> absl::Status {
      ASSIGN_OR_RETURN(
          const tiercel::AttentionShares::Found found,
          session->session->Attended(read, [&](uint64_t done, uint64_t total) {
            return thread.GoesOn(progress, user_data, done, total);
          }));
      const std::vector<float> rounded(found.shares.begin(),
                                       found.shares.end());
      if (in.excess != nullptr) *in.excess = found.excess;
      return tiercel::Fill(rounded.data(), rounded.size(), shares, size);
    });
  });
}

tiercel_status tiercel_session_attended(tiercel_session* session, size_t begin,
                                        size_t end, size_t asked, size_t answer,
                                        tiercel_progress progress,
                                        void* user_data, float* shares,
                                        size_t* size, tiercel_error* error) {
  tiercel_reading reading = {};
  reading.struct_size = sizeof(reading);
  reading.begin = begin;
  reading.end = end;
  reading.asked = asked;
  reading.answer = answer;
  return tiercel_session_attended_beside(session, &reading, progress, user_data,
                                         shares, size, error);
}

void tiercel_session_cancel(tiercel_session* session) {
  if (session != nullptr) session->session->cancellation().Cancel();
}

void tiercel_session_clear_cancel(tiercel_session* session) {
  if (session != nullptr) session->session->cancellation().Clear();
}

}  // extern "C"

// Generations: tokens that sessions make, alone or in a batch, and scores of
// known ones.

#include <algorithm>
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "lib/status/status_macros.h"
#include "runtime/api/batch_entry.h"
#include "runtime/api/boundary.h"
#include "runtime/api/session_calls.h"
#include "runtime/api/session_params.h"
#include "runtime/generate/generate.h"
#include "runtime/policies/policy.h"
#include "runtime/session/batch.h"

namespace tiercel {
namespace {

tiercel_finish FinishOf(const std::string& reason) {
  if (reason == "stop") return TIERCEL_FINISH_STOP;
  if (reason == "length") return TIERCEL_FINISH_LENGTH;
  if (reason == "cancelled") return TIERCEL_FINISH_CANCELLED;
  return TIERCEL_FINISH_NONE;
}

// The most generations of a batch: each is a thread, and a row of a pass.
constexpr size_t kMostEntries = kMaxStepRows;

// Takes the turns that the entries need, in one order for all threads; the
// rest if one cannot be had.
void TakeInOrder(const tiercel_batch_entry* const* entries, size_t count,
                 std::vector<Turn>* turns, std::vector<const Turns*>* taken) {
  std::map<const Turns*, const tiercel_session*> sessions;
  for (size_t i = 0; i < count; ++i) {
    tiercel_batch_entry entry;
    if (!ReadStruct("entry", entries[i], &entry).ok()) continue;
    if (entry.session == nullptr) continue;
    sessions.emplace(entry.session->turns.get(), entry.session);
  }
  const Turns::InOrder ordered;
  for (const auto& [own, session] : sessions) {
    absl::StatusOr<Turn> turn = TurnAt(session);
    if (!turn.ok()) return;
    turns->push_back(*std::move(turn));
    taken->push_back(own);
  }
}

// Reads the entries, and takes a turn at each session and its forks. Errors:
// those of ReadStruct and TurnAt; invalid_argument.
absl::Status ReadEntries(const tiercel_batch_entry* const* entries,
                         size_t count, std::vector<BatchEntry>* read,
                         std::vector<Turn>* turns) {
  if (count == 0 || count > kMostEntries) {
    return UsageError(
        "invalid_argument",
        absl::StrCat("count: got ", count, ", need 1 to ", kMostEntries));
  }
  RETURN_IF_ERROR(NeedArray("entries", entries, count));
  std::vector<const Turns*> taken;
  TakeInOrder(entries, count, turns, &taken);
  for (size_t i = 0; i < count; ++i) {
    const std::string name = absl::StrCat("entries ", i);
    const auto take =
        [&](tiercel_session* session) -> absl::StatusOr<KnownBreakers*> {
      const auto holds = [&](const BatchEntry& other) {
        return other.session() == session;
      };
      if (std::any_of(read->begin(), read->end(), holds)) {
        return UsageError(
            "invalid_argument",
            absl::StrCat(name, ": its session is in the batch twice"));
      }
      if (!read->empty() && session->model != read->front().session()->model) {
        return UsageError("invalid_argument",
                          absl::StrCat(name,
                                       ": its session is of another model "
                                       "than the first"));
      }
      const Turns* const own = session->turns.get();
      if (std::find(taken.begin(), taken.end(), own) != taken.end()) {
        RETURN_IF_ERROR(Turn::Check(*session));
        return &session->breakers;
      }
      ASSIGN_OR_RETURN(Turn turn, TurnAt(session));
      turns->push_back(std::move(turn));
      taken.push_back(own);
      return &session->breakers;
    };
    ASSIGN_OR_RETURN(BatchEntry entry,
                     BatchEntry::Read(name, entries[i], take));
    read->push_back(std::move(entry));
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace tiercel

extern "C" {

tiercel_status tiercel_session_generate(tiercel_session* session,
                                        const tiercel_sampling* sampling,
                                        tiercel_on_token on_token,
                                        void* user_data, tiercel_error* error) {
  return tiercel::AtBoundary(error, [&](auto& thread) -> absl::Status {
    ASSIGN_OR_RETURN(const auto turn, tiercel::TurnAt(session));
    ASSIGN_OR_RETURN(
        tiercel::SamplingRequest request,
        tiercel::ReadSampling(sampling, session->model->tokenizer.get(),
                              &session->breakers));
    const auto call_out = [](absl::FunctionRef<bool()> callback) {
      return callback();
    };
    return tiercel::Told(
        session->log, thread,
        tiercel::GenerateIn(session, std::move(request), on_token, user_data,
                            thread, call_out));
  });
}

tiercel_status tiercel_generate_batch(const tiercel_batch_entry* const* entries,
                                      size_t count, tiercel_error* error) {
  return tiercel::AtBoundary(error, [&](auto& thread) -> absl::Status {
    std::vector<tiercel::BatchEntry> all;
    std::vector<tiercel::Turn> turns;
    RETURN_IF_ERROR(tiercel::ReadEntries(entries, count, &all, &turns));
    const absl::Cleanup note_lengths = [&] {
      for (const tiercel::BatchEntry& entry : all) {
        tiercel_session& session = *entry.session();
        session.length = session.session->sequence().tokens().size();
      }
    };
    ASSIGN_OR_RETURN(const std::unique_ptr<tiercel::Batch> batch,
                     tiercel::Batch::Create(*all.front().session()->session));
    // The program's callbacks run on its own thread.
    const auto call_out = [&](absl::FunctionRef<bool()> callback) {
      bool more = false;
      const auto call = [&] { more = callback(); };
      return batch->OnCaller(call) && more;
    };
    std::vector<absl::Status> ends(count);
    std::vector<tiercel::Batch::Call> calls;
    for (size_t i = 0; i < count; ++i) {
      calls.push_back({*all[i].session()->session, [&, i] {
                         ends[i] = all[i].Make(thread, call_out);
                         all[i].Report(ends[i]);
                       }});
    }
    const std::shared_ptr<tiercel::Log> log = all.front().session()->log;
    RETURN_IF_ERROR(tiercel::Told(log, thread, batch->Run(std::move(calls))));
    absl::Status first;
    for (size_t i = 0; i < count; ++i) {
      (void)tiercel::Told(log, thread, ends[i]);
      first.Update(tiercel::Annotate(ends[i], absl::StrCat("entries ", i)));
    }
    return first;
  });
}

tiercel_status tiercel_session_score(tiercel_session* session,
                                     const int32_t* ids, size_t count,
                                     size_t rows_per_step,
                                     tiercel_on_row on_row, void* user_data,
                                     tiercel_error* error) {
  return tiercel::AtBoundary(error, [&](auto& thread) -> absl::Status {
    ASSIGN_OR_RETURN(const auto turn, tiercel::TurnAt(session));
    RETURN_IF_ERROR(tiercel::NeedArray("ids", ids, count));
    const bool plain =
        session->policy_params.form == tiercel::PolicyForm::kPlain;
    if (plain && rows_per_step > 1) {
      return tiercel::UsageError(
          "invalid_argument",
          absl::StrCat("rows_per_step: got ", rows_per_step,
                       ", a policy in its plain form takes one at a time"));
    }
    const auto give = [&](size_t index, const float* logits) {
      return thread.GoesOn(on_row, user_data, index, logits);
    };
    return tiercel::Stoppable(session, thread, [&] {
      absl::Status scored =
          plain ? tiercel::ScoreSteps(*session->session, *session->policy, ids,
                                      count, give)
                : tiercel::Score(*session->session, ids, count, rows_per_step,
                                 give);
      if (scored.ok()) tiercel::BeginText(count, session);
      return scored;
    });
  });
}

tiercel_status tiercel_session_get_generation(const tiercel_session* session,
                                              tiercel_generation* generation,
                                              tiercel_error* error) {
  return tiercel::AtBoundary(error, [&]() -> absl::Status {
    ASSIGN_OR_RETURN(const auto turn, tiercel::TurnAt(session));
    tiercel_generation out;
    RETURN_IF_ERROR(tiercel::ReadStruct("generation", generation, &out));
    const tiercel::Report& report = session->report;
    out.prompt_tokens = report.prefill.prompt_tokens;
    out.cached_tokens = report.prefill.cached_tokens;
    out.output_tokens = std::ssize(report.tokens);
    out.prefill_seconds = report.prefill.spent.seconds;
    const std::vector<double>& seconds = report.token_seconds;
    out.ttft_seconds =
        seconds.empty() ? 0 : report.prefill.spent.seconds + seconds.front();
    out.decode_seconds = seconds.empty() ? 0
                                         : std::accumulate(seconds.begin() + 1,
                                                           seconds.end(), 0.0);
    out.finish = tiercel::FinishOf(report.finish_reason);
    out.simulated = report.simulated ? 1 : 0;
    tiercel::WriteStruct(out, generation);
    return absl::OkStatus();
  });
}

tiercel_status tiercel_session_token_seconds(const tiercel_session* session,
                                             double* seconds, size_t* size,
                                             tiercel_error* error) {
  return tiercel::AtBoundary(error, [&]() -> absl::Status {
    ASSIGN_OR_RETURN(const auto turn, tiercel::TurnAt(session));
    RETURN_IF_ERROR(tiercel::NeedPlace("seconds", seconds, size));
    const std::vector<double>& all = session->report.token_seconds;
    return tiercel::Fill(all.data(), all.size(), seconds, size);
  });
}

}  // extern "C"

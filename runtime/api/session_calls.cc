#include "runtime/api/session_calls.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_format.h"
#include "lib/status/status_macros.h"
#include "runtime/generate/generate.h"
#include "runtime/policies/policy.h"
#include "runtime/policies/policy_times.h"

namespace tiercel {
namespace {

// Returns the plan's warning that the policy is slower behind the session's
// prompt; or "".
std::string SlowerHere(const tiercel_session& session, const Report& report) {
  if (!session.rates.has_value() || report.prefill.prompt_tokens == 0) {
    return "";
  }
  const PolicyParams& params = session.policy_params;
  const SequenceKv& kv = session.session->kv();
  return SlowerThanFull(
      params, TimesOf(params, kv.sites(), kv.plans(),
                      session.session->model().machine->device().link(),
                      session.rates->best.rates, report.prefill.prompt_tokens));
}

}  // namespace

bool IsForked(const tiercel_session* session) {
  return session->process != getpid();
}

absl::StatusOr<Turn> TurnAt(const tiercel_session* session) {
  RETURN_IF_ERROR(NeedArgument("session", session));
  if (!IsForked(session)) return Turn::At(*session);
  return UsageError(
      "forked",
      absl::StrCat("session: made in process ", session->process, ", used in ",
                   getpid(), "; after fork() make one of this process"));
}

void Keep(Report report, tiercel_session* session) {
  std::vector<std::string>& warnings = report.warnings;
  for (std::string& warning :
       PolicyWarnings(*session->model, session->policy_params)) {
    warnings.push_back(std::move(warning));
  }
  const std::optional<KeptRates>& rates = session->rates;
  for (const std::string& warning :
       {SlowerHere(*session, report),
        rates.has_value() ? rates->Warning() : std::string()}) {
    if (!warning.empty()) warnings.push_back(warning);
  }
  if (session->log != nullptr) session->log->NoteWarnings(warnings);
  session->report = std::move(report);
}

void NoteRead(const tiercel_session& session) {
  if (session.log == nullptr) return;
  const PrefillReport& read = session.report.prefill;
  session.log->Note(
      TIERCEL_LOG_INFO,
      absl::StrFormat("read %d tokens, %d of which were there, in %.3f s",
                      read.prompt_tokens, read.cached_tokens,
                      read.spent.seconds));
}

void NoteGenerated(const tiercel_session& session) {
  if (session.log == nullptr) return;
  const Report& report = session.report;
  const double seconds = std::accumulate(report.token_seconds.begin(),
                                         report.token_seconds.end(), 0.0);
  session.log->Note(
      TIERCEL_LOG_INFO,
      absl::StrFormat("generated %d tokens in %.3f s (%s)",
                      report.tokens.size(), seconds, report.finish_reason));
}

void TruncateTo(size_t length, tiercel_session* session) {
  session->session->Truncate(length);
  session->text_begin = std::min(session->text_begin, length);
}

absl::Status AddInto(
    tiercel_session* session, size_t count,
    absl::FunctionRef<absl::StatusOr<PrefillReport>(Session&)> add) {
  Session& own = *session->session;
  const size_t before = own.sequence().tokens().size();
  ASSIGN_OR_RETURN(const PrefillReport added, add(own));
  // It throws if there is no memory for the report.
  absl::Cleanup forget = [&] { own.Truncate(before); };
  Keep(NewReport(own, added), session);
  NoteRead(*session);
  BeginText(count, session);
  std::move(forget).Cancel();
  return absl::OkStatus();
}

absl::Status PrefillInto(tiercel_session* session, const int32_t* ids,
                         size_t count, Session::Progress progress) {
  return AddInto(session, count, [&](Session& own) {
    return Prefill(own, ids, count, progress);
  });
}

absl::Status ReadInto(tiercel_session* session, const int32_t* ids,
                      size_t count, Session::Progress progress) {
  const std::vector<int32_t>& held = session->session->sequence().tokens();
  const auto known = static_cast<size_t>(
      std::mismatch(held.begin(), held.end(), ids, ids + count).first -
      held.begin());
  if (known < held.size()) {
    TruncateTo(known, session);
    // The report of tokens that are gone does not belong to this text, however
    // the rest ends.
    const auto kept = static_cast<int64_t>(known);
    Keep(NewReport(*session->session,
                   {.prompt_tokens = kept, .cached_tokens = kept}),
         session);
  }
  return PrefillInto(session, ids + known, count - known, progress);
}

void BeginText(size_t added, tiercel_session* session) {
  if (added > 0)
    session->text_begin = session->session->sequence().tokens().size();
}

}  // namespace tiercel

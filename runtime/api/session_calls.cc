#include "runtime/api/session_calls.h"

#include <string>
#include <utility>
#include <vector>

#include "lib/status/status_macros.h"
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
  session->report = std::move(report);
}

void BeginText(size_t added, tiercel_session* session) {
  if (added > 0)
    session->text_begin = session->session->sequence().tokens().size();
}

}  // namespace tiercel

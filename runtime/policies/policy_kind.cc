#include "runtime/policies/policy_kind.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "drafts/verifying_drafter.h"
#include "lib/status/error.h"
#include "runtime/policies/settings.h"

namespace tiercel {
namespace {

// The most tokens of a block's branches.
int64_t BranchTokens(const PolicyParams& params) {
  return params.MostBranches() * VerifyingDrafter::kBranchTokens;
}

}  // namespace

void ReadView(const PolicyRequest& request, RetrievalSize* view) {
  if (request.chunk != 0) view->chunk = request.chunk;
  if (request.budget != 0) view->budget = request.budget;
  if (request.window != 0) view->window = request.window;
  if (request.sink != 0) {
    view->sink = request.sink;
    return;
  }
  view->sink = std::max<int64_t>(1, std::min(view->sink, view->budget));
}

absl::Status ReadSizes(
    std::initializer_list<std::tuple<const char*, int64_t, int64_t*>> sizes) {
  constexpr int64_t kMost = int64_t{1} << 40;
  for (const auto& [what, tokens, value] : sizes) {
    if (tokens == 0) continue;
    if (tokens < 1 || tokens > kMost) {
      return UsageError(
          "invalid_argument",
          absl::StrCat(what, ": got ", tokens, ", need 1 to ", kMost));
    }
    *value = tokens;
  }
  return absl::OkStatus();
}

int64_t MostTokens(const std::optional<DraftLength>& asked, int64_t ours) {
  return asked.has_value() ? asked->Most() : ours;
}

int64_t DraftBlockTokens(const PolicyParams& params) {
  const bool fixed = params.gamma2.has_value() && !params.gamma2->adaptive();
  return fixed ? params.gamma2->Next() : PolicyParams::kGamma2;
}

int64_t DraftPositions(const PolicyParams& params, int64_t length) {
  const RetrievalSize view = *params.RetrievalView();
  return std::min(length, view.budget + view.window + DraftBlockTokens(params));
}

absl::Status PolicyKind::Read(const PolicyRequest& request,
                              PolicyParams* params) const {
  ReadView(request, &params->view);
  return Settings(name(), request.settings).Finish();
}

std::optional<RetrievalSize> PolicyKind::RetrievalView(
    const PolicyParams& params) const {
  if (params.form != PolicyForm::kVerified) return std::nullopt;
  RetrievalSize view = params.view;
  view.branch_rows = BranchTokens(params);
  return view;
}

BlockDistributions PolicyKind::Distributions(const PolicyParams& params) const {
  if (params.form != PolicyForm::kVerified) return {};
  const int64_t block = MostTokens(params.gamma2, PolicyParams::kGamma2);
  const int64_t in_branches = BranchTokens(params);
  return {.rows = 1 + block + in_branches,
          .drafted = block + in_branches,
          .draft_rows = 1 + MostTokens(params.gamma1, PolicyParams::kGamma1)};
}

double PolicyKind::DraftSeconds(const PolicyParams& params,
                                const SessionSite& site, const Rates& rates,
                                int64_t length) const {
  return rates.StepSeconds(site.config.layers, DraftPositions(params, length));
}

}  // namespace tiercel

#ifndef TIERCEL_RUNTIME_DRAFTING_DRAFT_COSTS_H_
#define TIERCEL_RUNTIME_DRAFTING_DRAFT_COSTS_H_

#include <cstdint>

#include "runtime/drafting/proposer.h"
#include "runtime/plan/rates.h"
#include "runtime/session/session.h"

namespace tiercel {

// The costs of checks in drafted tokens, at the end of a session's text: the
// ratios that adaptive lengths count with (DraftLength::Adaptive). They follow
// from rates alone, never from clocks, so that the same rates give the same
// lengths.
class DraftCosts {
 public:
  // All arguments outlive it.
  DraftCosts(const Session& session, const ProposerParams& proposer,
             const Rates& rates)
      : session_(session), proposer_(proposer), rates_(rates) {}

  // The cost of a sweep in proposed tokens.
  double SweepInProposals() const;
  // The cost of a pass of the target over its retrieval view in proposed
  // tokens, and of a sweep in such passes. The session keeps a view.
  double ViewPassInProposals() const;
  double SweepInViewPasses() const;
  // The cost of a pass of the target over its newest `window` positions in
  // proposed tokens, and of a sweep in such passes.
  double WindowPassInProposals(int64_t window) const;
  double SweepInWindowPasses(int64_t window) const;

 private:
  // A pass of one row of the session's own model over a view.
  struct ViewPass {
    int layers = 0;
    int64_t positions = 0;  // most positions that it attends to
  };
  ViewPass WholeView() const;
  ViewPass WholeWindow(int64_t window) const;
  ViewPass WindowOfView() const;  // through the layers that propose

  double InProposals(const ViewPass& pass) const;
  double Seconds(const ViewPass& pass) const;
  double SweepSeconds(int64_t length) const;
  double RowsOfAPass() const;
  double SmallPassesOfAPass() const;
  int64_t Length() const;

  const Session& session_;
  const ProposerParams& proposer_;
  const Rates& rates_;
};

}  // namespace tiercel

#endif  // TIERCEL_RUNTIME_DRAFTING_DRAFT_COSTS_H_

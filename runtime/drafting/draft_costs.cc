#include "runtime/drafting/draft_costs.h"

#include <algorithm>
#include <iterator>

#include "runtime/session/predicted.h"

namespace tiercel {

double DraftCosts::SweepInProposals() const {
  switch (proposer_.kind) {
    case Proposer::kSelf:
      return SweepSeconds(Length()) / Seconds(WindowOfView());
    case Proposer::kSmall:
      return SmallPassesOfAPass() * SweepSeconds(Length()) / SweepSeconds(1);
    case Proposer::kNone:
    case Proposer::kNgram:
      break;
  }
  return RowsOfAPass();
}

double DraftCosts::ViewPassInProposals() const {
  return InProposals(WholeView());
}

double DraftCosts::WindowPassInProposals(int64_t window) const {
  return InProposals(WholeWindow(window));
}

double DraftCosts::InProposals(const ViewPass& pass) const {
  switch (proposer_.kind) {
    case Proposer::kSelf:
      return Seconds(pass) / Seconds(WindowOfView());
    case Proposer::kSmall:
      return SmallPassesOfAPass();
    case Proposer::kNone:
    case Proposer::kNgram:
      break;
  }
  return RowsOfAPass();
}

double DraftCosts::SweepInViewPasses() const {
  return SweepSeconds(Length()) / Seconds(WholeView());
}

double DraftCosts::SweepInWindowPasses(int64_t window) const {
  return SweepSeconds(Length()) / Seconds(WholeWindow(window));
}

DraftCosts::ViewPass DraftCosts::WholeView() const {
  const RetrievalSize& view = session_.kv().first().retrieval->size();
  return {session_.model().config.layers,
          view.budget + view.window + view.chunk};
}

DraftCosts::ViewPass DraftCosts::WholeWindow(int64_t window) const {
  return {session_.model().config.layers, window};
}

DraftCosts::ViewPass DraftCosts::WindowOfView() const {
  const RetrievalSize& view = session_.kv().first().retrieval->size();
  return {proposer_.draft_layers > 0 ? proposer_.draft_layers
                                     : session_.model().config.layers,
          view.sink + view.window + view.chunk};
}

double DraftCosts::Seconds(const ViewPass& pass) const {
  return rates_.StepSeconds(pass.layers, std::min(Length(), pass.positions));
}

double DraftCosts::SweepSeconds(int64_t length) const {
  return PredictedBy(session_, rates_, {.cached = length, .prompt = length})
      .tbt_s;
}

// A proposal that takes no pass of its own costs one more row of the pass that
// checks it, which reads experts of its own.
double DraftCosts::RowsOfAPass() const {
  return rates_.step_s /
         std::max(rates_.prompt_row_s,
                  rates_.step_s * (session_.model().MoreOfRows(2) - 1));
}

// Over little context the time of a pass is that of reading the weights.
double DraftCosts::SmallPassesOfAPass() const {
  const Model& small = proposer_.draft_session->model();
  return static_cast<double>(session_.model().BytesPerToken()) /
         static_cast<double>(small.BytesPerToken());
}

int64_t DraftCosts::Length() const {
  return std::ssize(session_.sequence().tokens());
}

}  // namespace tiercel

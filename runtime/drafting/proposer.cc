#include "runtime/drafting/proposer.h"

#include <algorithm>

#include "drafts/ngram.h"
#include "runtime/drafting/model_target.h"
#include "runtime/drafting/retrieval_kv.h"

namespace tiercel {

DistributionParams DraftDistribution(DistributionParams distribution) {
  distribution.min_p = std::max(distribution.min_p, 1e-8f);
  return distribution;
}

InnermostDrafter::InnermostDrafter(Session& session,
                                   const DistributionParams& distribution,
                                   const ProposerParams& params)
    : shared_(params.shared) {
  const DistributionParams drafts = DraftDistribution(distribution);
  const char* name = "";
  switch (params.kind) {
    case Proposer::kNone:
      return;
    case Proposer::kNgram:
      drafter_ = std::make_unique<NgramDrafter>();
      return;
    case Proposer::kSelf:
      name = "self";
      target_ = std::make_unique<ModelTarget>(
          session, drafts,
          std::make_unique<RetrievalKv>(
              session, RetrievalKv::Options{
                           .layers = params.draft_layers,
                           .window = session.draft_view().size().window}));
      break;
    case Proposer::kSmall:
      name = "small";
      target_ = std::make_unique<ModelTarget>(
          *params.draft_session, drafts,
          std::make_unique<DraftWindowKv>(*params.draft_session,
                                          params.draft_window, *shared_,
                                          session.sequence().answer_begin()),
          &shared_->never());
      break;
  }
  drafter_ = std::make_unique<VerifyingDrafter>(
      *target_, VerifyingDrafter::Options{.name = name, .mode = params.verify});
}

}  // namespace tiercel

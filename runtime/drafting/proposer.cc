#include "runtime/drafting/proposer.h"

#include <algorithm>

#include "drafts/ngram.h"
#include "runtime/drafting/retrieval_target.h"

namespace tiercel {

LawParams DraftLaw(LawParams law) {
  law.min_p = std::max(law.min_p, 1e-8f);
  return law;
}

InnermostDrafter::InnermostDrafter(Session& session, const LawParams& law,
                                   const ProposerParams& params) {
  const char* name = "";
  switch (params.kind) {
    case Proposer::kNone:
      return;
    case Proposer::kNgram:
      drafter_ = std::make_unique<NgramDrafter>();
      return;
    case Proposer::kSelf:
      name = "self";
      target_ = std::make_unique<RetrievalTarget>(
          session, RetrievalTarget::Options{
                       .law = DraftLaw(law),
                       .layers = params.draft_layers,
                       .window = session.retrieval()->size().window});
      break;
    case Proposer::kSmall:
      name = "small";
      target_ = std::make_unique<SmallTarget>(
          *params.draft_session, DraftLaw(law), params.draft_window,
          session.answer_begin());
      break;
  }
  drafter_ = std::make_unique<VerifyingDrafter>(
      *target_, VerifyingDrafter::Options{.name = name, .mode = params.verify});
}

}  // namespace tiercel

#ifndef TIERCEL_RUNTIME_DRAFTING_PROPOSER_H_
#define TIERCEL_RUNTIME_DRAFTING_PROPOSER_H_

#include <memory>

#include "drafts/drafter.h"
#include "drafts/verify.h"
#include "drafts/verifying_drafter.h"
#include "kernels/token/distribution.h"
#include "runtime/drafting/draft_window.h"
#include "runtime/model/draft_model.h"
#include "runtime/session/session.h"

namespace tiercel {

// The source of the first proposals, which no level has checked yet.
enum class Proposer {
  kNone,
  kNgram,  // the text itself, if it repeats
  kSelf,   // the target or its first layers, over the first and the newest
           // positions of a view
  kSmall,  // another model, over the first and the newest tokens
};

struct ProposerParams {
  Proposer kind = Proposer::kNone;
  VerifyMode verify = VerifyMode::kResidual;
  int draft_layers = 0;  // for kSelf: it runs the first so many; 0: all
  Session* draft_session = nullptr;  // for kSmall; holds at most draft_window
  DraftWindow draft_window = {};     // the part of a text that kSmall sees
  // The tokens that kSmall may propose, and its target has; it needs them.
  std::shared_ptr<const SharedTokens> shared = nullptr;
};

// The sampler of a draft, if `distribution` is the target's. It need not be the
// same: it leaves out the tokens that are hardly ever drawn, so that most of a
// vocabulary costs nothing to weigh, to draw from and to check against.
DistributionParams DraftDistribution(DistributionParams distribution);

// The innermost drafter of one generation, and the model that it runs. The
// arguments outlive it; for kSelf the session keeps a retrieval view.
class InnermostDrafter {
 public:
  InnermostDrafter(Session& session, const DistributionParams& distribution,
                   const ProposerParams& params);

  Drafter* drafter() const { return drafter_.get(); }  // null for kNone

 private:
  std::shared_ptr<const SharedTokens> shared_;
  std::unique_ptr<DraftTarget> target_;
  std::unique_ptr<Drafter> unmasked_;  // null unless a mask cuts its blocks
  std::unique_ptr<Drafter> drafter_;
};

}  // namespace tiercel

#endif  // TIERCEL_RUNTIME_DRAFTING_PROPOSER_H_

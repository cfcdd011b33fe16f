#ifndef TIERCEL_RUNTIME_DRAFTING_PROPOSER_H_
#define TIERCEL_RUNTIME_DRAFTING_PROPOSER_H_

#include <memory>

#include "drafts/drafter.h"
#include "drafts/verify.h"
#include "drafts/verifying_drafter.h"
#include "kernels/token/law.h"
#include "runtime/drafting/small_target.h"
#include "runtime/sequence/session.h"

namespace tiercel {

// Who proposes the tokens that nobody has checked yet.
enum class Proposer {
  kNone,
  kNgram,  // the text itself, where it repeats
  kSelf,   // the target or its first layers, over the first and the newest
           // positions of a view
  kSmall,  // another model, over the first and the newest tokens
};

struct ProposerParams {
  Proposer kind = Proposer::kNone;
  VerifyMode verify = VerifyMode::kResidual;
  int draft_layers = 0;              // of kSelf: the first so many; 0: all
  Session* draft_session = nullptr;  // of kSmall; holds at most draft_window
  DraftWindow draft_window = {};     // what the draft model sees of a text
};

// The law of a draft, where `law` is promised. It need not be the same: without
// the tokens that are hardly ever drawn, together as good as never, most of a
// vocabulary costs nothing to weigh, to draw from and to judge by.
LawParams DraftLaw(LawParams law);

// The innermost drafter of one generation, and the model that it asks. What it
// is made of outlives it; of kSelf the session keeps a retrieval view.
class InnermostDrafter {
 public:
  InnermostDrafter(Session& session, const LawParams& law,
                   const ProposerParams& params);

  Drafter* drafter() const { return drafter_.get(); }  // null: of kNone

 private:
  std::unique_ptr<DraftTarget> target_;
  std::unique_ptr<Drafter> drafter_;
};

}  // namespace tiercel

#endif  // TIERCEL_RUNTIME_DRAFTING_PROPOSER_H_

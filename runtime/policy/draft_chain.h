#ifndef TIERCEL_RUNTIME_POLICY_DRAFT_CHAIN_H_
#define TIERCEL_RUNTIME_POLICY_DRAFT_CHAIN_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "drafts/verifying_drafter.h"
#include "kernels/token/law.h"
#include "runtime/drafting/small_target.h"
#include "runtime/generate/generate.h"
#include "runtime/sequence/session.h"

namespace tiercel {

// What checks the innermost proposals: with kFull the target itself, with
// kTriForce (arXiv 2404.11912) the target over its retrieval view, whose tokens
// the target checks.
enum class Policy { kFull, kTriForce };

// Who proposes innermost.
enum class Proposer {
  kNone,   // full: no speculation; triforce: the retrieval level alone
  kNgram,  // the text itself, where it repeats
  kSelf,   // the target or its first layers, over the first and the newest
           // positions of a view
  kSmall,  // another model, over the first and the newest tokens
};

struct DraftChoice {
  Policy policy = Policy::kFull;
  Proposer proposer = Proposer::kNone;
  VerifyMode verify = VerifyMode::kResidual;
  // Tokens at a time: the proposer's (gamma1) and, with triforce, those that
  // the target checks (gamma2). 0: our choice; kAdaptive: by the acceptance.
  static constexpr int64_t kAdaptive = -1;
  int64_t inner_tokens = 0;
  int64_t outer_tokens = 0;
  // A sweep in draft steps, for adaptive lengths; 0: what KeptRates::costs say,
  // which are the same in every run; 8 without them.
  double cost_ratio = 0;
  const Model* draft_model = nullptr;  // of kSmall
  DraftWindow draft_window = {};  // ... what it sees, if it has the context
  int self_layers = 0;  // of kSelf: the first so many layers draft; 0: all
};

// The drafters of one generation, each within the next.
class DraftChain {
 public:
  // For tokens with the law that `law` makes. The session and the draft model
  // outlive the chain; of the draft model it has a session of its own.
  // Errors: no_retrieval_view, where the choice needs a session that keeps one;
  // invalid_argument, for more layers than the model has; no_draft_model; those
  // of CheckDraftModel; draft_context; of that session.
  static absl::StatusOr<std::unique_ptr<DraftChain>> Create(
      Session& session, const LawParams& law, const DraftChoice& choice);

  // What the target checks; null: nobody drafts.
  Drafter* outermost() const { return outermost_; }
  // Has a generation in that session draft so. The chain must outlive it.
  void ApplyTo(GenerateParams* params) const;

 private:
  DraftChain() = default;

  std::vector<std::unique_ptr<DraftTarget>> targets_;
  std::vector<std::unique_ptr<Drafter>> drafters_;
  Drafter* outermost_ = nullptr;
  DraftLength draft_length_ = DraftLength::Fixed(1);
  VerifyMode verify_ = VerifyMode::kResidual;
  bool uses_view_ = false;
};

}  // namespace tiercel

#endif  // TIERCEL_RUNTIME_POLICY_DRAFT_CHAIN_H_

#ifndef TIERCEL_RUNTIME_SESSION_SHARED_PASSES_H_
#define TIERCEL_RUNTIME_SESSION_SHARED_PASSES_H_

#include <cstdint>
#include <functional>
#include <optional>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "offload/kv/view.h"
#include "offload/retrieval/branch_kv.h"
#include "offload/tier/ledger.h"
#include "runtime/pass/pass.h"
#include "runtime/session/sequence_kv.h"

namespace tiercel {

// Rows that follow what one sequence's KV holds.
struct SequenceRows {
  SequenceKv& kv;
  const int32_t* ids;  // [count]
  int64_t count;
  const View& view;  // the positions that they read
};

// The kind of a step.
struct StepKind {
  // The KV that its rows read and write.
  enum class Over {
    kPages,  // the sequence's own
    kView,   // its retrieval view
    kBoth,   // they read the view, and are written to both
  };
  Phase phase = Phase::kVerify;
  Over over = Over::kPages;
  int layers = Pass::kAllLayers;  // the first layers, that they go through
  // The branch of a draft over the view that the rows are in; absent: none.
  std::optional<BranchPlace> branch = {};

  bool IsDraft() const { return over == Over::kView; }
  bool IsPrompt() const { return phase == Phase::kPrefill; }
};

// A step of one of several sequences that are passed together.
struct JointStep {
  SequenceRows rows;
  StepKind kind;
  bool certain;  // all rows will be kept
  // It is passed only if the step so many before it is; 0: it depends on none.
  int64_t beside = 0;
  // Called by each rank when a layer is about to begin; null: nothing is.
  std::function<absl::Status(int layer)> before_layer = nullptr;

  absl::Status status = {};  // an error of this sequence alone
  // The place of its last row among those of the pass, behind those of its
  // other rows unless it is a prompt; -1: it was not passed.
  int64_t last_row = -1;
  bool waits = false;  // memory had no room for it beside the others
};

// Passes steps of several runners together: the rows of each, few as they are,
// share the weights that a pass reads. A runner calls it in place of passing
// its own rows, and gets the same bits.
class SharedPasses {
 public:
  using Cancelled = SequenceKv::Cancelled;
  virtual ~SharedPasses() = default;

  // Passes the steps, each of at most kMaxStepRows rows, with those of other
  // runners, for which it waits. The first does not wait for room; the others
  // are beside it. Places of rows are those among these steps'. Errors: those
  // of Runner::PassTogether.
  virtual absl::Status Pass(absl::Span<JointStep> steps,
                            Cancelled cancelled) = 0;
  // Returns true if others would wait for a prompt that the calling runner
  // passes whole.
  virtual bool OthersWait() const = 0;
  // Returns true if others may come that would wait, though there are none.
  virtual bool OthersMayCome() const = 0;
  // Lets the others go on before a step that the calling runner passes itself,
  // with no workspace. Errors: cancelled.
  virtual absl::Status LetOthers() = 0;
  // The logits of rows of the calling runner's last Pass, of a prompt's the
  // last row alone: [count, vocab], valid until its next.
  virtual absl::StatusOr<const float*> RowLogits(int64_t first,
                                                 int64_t count) = 0;
};

}  // namespace tiercel

#endif  // TIERCEL_RUNTIME_SESSION_SHARED_PASSES_H_

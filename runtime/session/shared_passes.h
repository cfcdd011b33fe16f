#ifndef TIERCEL_RUNTIME_SESSION_SHARED_PASSES_H_
#define TIERCEL_RUNTIME_SESSION_SHARED_PASSES_H_

#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "offload/kv/view.h"
#include "offload/tier/ledger.h"
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
  Phase phase = Phase::kVerify;
  int view_layers = 0;  // the first layers, over retrieval views; 0: a sweep

  bool IsSweep() const { return view_layers == 0; }
  bool IsPrompt() const { return phase == Phase::kPrefill; }
  // Returns true if both can be passed together: sweeps, prompts among them, or
  // drafts of the same layers.
  bool GoesWith(const StepKind& other) const {
    return view_layers == other.view_layers;
  }
};

// Passes steps of several runners together: the rows of each, few as they are,
// share the weights that a pass reads. A runner calls it in place of passing
// its own rows, and gets the same bits.
class SharedPasses {
 public:
  using Cancelled = SequenceKv::Cancelled;
  virtual ~SharedPasses() = default;

  // Passes the rows, at most kMaxStepRows, with those of other runners, for
  // which it waits. `certain`: all of them will be kept. Errors: those of
  // RunnerRank::PassTogether, and of this sequence's step.
  virtual absl::Status Pass(const SequenceRows& rows, const StepKind& kind,
                            bool certain, Cancelled cancelled) = 0;
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

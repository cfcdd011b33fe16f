#ifndef TIERCEL_RUNTIME_SESSION_INTERRUPTED_PREFILL_H_
#define TIERCEL_RUNTIME_SESSION_INTERRUPTED_PREFILL_H_

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "offload/kv/layered_kv.h"
#include "offload/kv/view.h"
#include "runtime/pass/pass.h"

namespace tiercel {

// A prompt that was stopped on its way through the layers: the call that must
// be repeated to go on with it, and the point at which it goes on. Its pages
// and hidden states are kept beside the sequence (SequenceKv).
//
//   1. Only rows that are all kept can be gone on with: those of a prompt.
//   2. Only the same rows of the same tokens under the same view go on.
//   3. A call that goes on takes the prompt out first, so that nothing, not
//      even a callback that throws, lets it be gone on with twice. It puts it
//      back if it was cancelled before anything had changed.
//   4. Any other step of the sequence, and any change of its KV, drops it.
class InterruptedPrefill {
 public:
  struct Stopped {
    std::vector<int32_t> tokens;  // the whole sequence, with the prompt
    int64_t rows = 0;             // the prompt's
    View view;
    PassPoint point;
  };

  // Returns true if a pass of `rows` rows is a prompt's, which can be kept.
  static bool MayKeep(int64_t rows) { return rows > kMaxStepRows; }

  bool exists() const { return stopped_.has_value(); }
  // The point at which a pass of the last `rows` of `tokens` would go on;
  // absent: it begins anew.
  std::optional<PassPoint> PointOf(const std::vector<int32_t>& tokens,
                                   int64_t rows, const View& view) const {
    const bool same = exists() && stopped_->rows == rows &&
                      stopped_->tokens == tokens && stopped_->view == view;
    return same ? std::optional(stopped_->point) : std::nullopt;
  }

  void Keep(Stopped stopped) { stopped_ = std::move(stopped); }
  std::optional<Stopped> Take() {
    return std::exchange(stopped_, std::nullopt);
  }

 private:
  std::optional<Stopped> stopped_;
};

}  // namespace tiercel

#endif  // TIERCEL_RUNTIME_SESSION_INTERRUPTED_PREFILL_H_

#ifndef TIERCEL_RUNTIME_SEQUENCE_DEEP_SPANS_H_
#define TIERCEL_RUNTIME_SEQUENCE_DEEP_SPANS_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "models/decoder/prompt_depth.h"
#include "offload/kv/view.h"

namespace tiercel {

// Which positions of a sequence, in absolute numbers, are visible above the
// cut: the layer below which the rows of a prompt end (PromptDepth).
class DeepSpans {
 public:
  // `header`: the ids that the chat template ends a prompt with, or none. The
  // sequence begins at `begin`.
  DeepSpans(const PromptDepth& depth, std::vector<int32_t> header,
            int64_t begin)
      : depth_(depth),
        header_(std::move(header)),
        begin_(begin),
        answer_begin_(begin) {}

  const PromptDepth& depth() const { return depth_; }
  int64_t answer_begin() const { return answer_begin_; }
  // A text that ends at `end` has an answer, or the tail before one.
  bool HasAnswer(int64_t end) const { return answer_begin_ < end; }

  // A prompt that makes the text `tokens` has ended; the one before, with its
  // answer, at `end`. Errors: invalid_argument, for a tail that is longer.
  absl::Status BeginAnswer(const std::vector<int32_t>& tokens, int64_t end);
  // The text ends at `end` from now on.
  void Truncate(int64_t end);

  // What rows read, and how deep they go.
  View Reads() const;
  // Pairs of layer and position that exist, of a text that ends at `end`.
  int64_t Entries(int layers, int64_t end) const;

 private:
  PromptDepth depth_;
  std::vector<int32_t> header_;
  int64_t begin_;
  std::vector<PositionRange> past_;  // earlier answers that stay visible
  int64_t answer_begin_;
};

}  // namespace tiercel

#endif  // TIERCEL_RUNTIME_SEQUENCE_DEEP_SPANS_H_

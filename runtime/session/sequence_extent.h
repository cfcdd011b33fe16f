#ifndef TIERCEL_RUNTIME_SESSION_SEQUENCE_EXTENT_H_
#define TIERCEL_RUNTIME_SESSION_SEQUENCE_EXTENT_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "offload/kv/kv_extent.h"
#include "offload/kv/view.h"

namespace tiercel {

// The extent of one sequence's KV by layer (KvExtent) as prompts and answers
// follow each other: the positions, in absolute numbers, that exist in all
// layers. The other rows of prompts end below.
class SequenceExtent {
 public:
  // `header`: the ids that the chat template ends a prompt with; may be empty.
  // The sequence begins at `begin`.
  SequenceExtent(KvExtent extent, std::vector<int32_t> header, int64_t begin)
      : extent_(std::move(extent)),
        header_(std::move(header)),
        begin_(begin),
        answer_begin_(begin) {}

  const KvExtent& by_layer() const { return extent_; }
  int64_t answer_begin() const { return answer_begin_; }
  // Returns true if a sequence that ends at `end` has an answer, or the tail
  // before one.
  bool HasAnswer(int64_t end) const { return answer_begin_ < end; }

  // Notes that a prompt has ended, with which the sequence is `tokens`; the
  // previous prompt and its answer ended at `end`. Errors: invalid_argument, if
  // the prompt is shorter than its tail.
  absl::Status BeginAnswer(const std::vector<int32_t>& tokens, int64_t end);
  // Cuts the sequence at `end`.
  void Truncate(int64_t end);

  // The positions that rows read, and the layers that they go through.
  View Reads() const;
  // The number of pairs of layer and position that exist in a sequence that
  // ends at `end`.
  int64_t Entries(int layers, int64_t end) const;

 private:
  KvExtent extent_;
  std::vector<int32_t> header_;
  int64_t begin_;
  std::vector<PositionRange> past_;  // earlier answers that stay visible
  int64_t answer_begin_;
};

}  // namespace tiercel

#endif  // TIERCEL_RUNTIME_SESSION_SEQUENCE_EXTENT_H_

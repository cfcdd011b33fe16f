#ifndef TIERCEL_RUNTIME_MODEL_WORKSPACE_POOL_H_
#define TIERCEL_RUNTIME_MODEL_WORKSPACE_POOL_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "kernels/device/device_memory.h"
#include "models/decoder/decoder.h"
#include "offload/tier/memory_promise.h"

namespace tiercel {

// The memory that one call computes in; its contents are worthless once the
// call has ended.
struct Workspace {
  // The part of a workspace that lies on one rank.
  struct Rank {
    DeviceArray<std::byte> scratch;  // for ops
    DecoderWorkspace decoder;
    DeviceArray<float> hidden;  // [rows of a step, or of tiles, hidden]
    DeviceArray<float> logits;  // [LogitRows(), vocab]

    int64_t Bytes() const {
      return scratch.bytes() + decoder.Bytes() + hidden.bytes() +
             logits.bytes();
    }
  };
  std::vector<Rank> ranks;
  int64_t Bytes() const;
  // A copy of rank 0's logits; empty where the device computes in place.
  std::vector<float> host_logits;
};

// The size of a workspace on one rank, in bytes.
struct WorkspaceSize {
  int64_t scratch = 0;
  int64_t activations = 0;
  int64_t angles = 0;
  int64_t hidden = 0;
  int64_t logits = 0;
  // Bytes of the host's memory for temporary distributions.
  int64_t distributions = 0;

  int64_t DeviceBytes() const {
    return scratch + activations + angles + hidden + logits;
  }
  // Returns the larger of the two sizes, part by part.
  WorkspaceSize Or(const WorkspaceSize& other) const {
    return {.scratch = std::max(scratch, other.scratch),
            .activations = std::max(activations, other.activations),
            .angles = std::max(angles, other.angles),
            .hidden = std::max(hidden, other.hidden),
            .logits = std::max(logits, other.logits),
            .distributions = std::max(distributions, other.distributions)};
  }
};

// The workspaces of a model's sessions. All sessions share one, which the
// session that computes holds until its call has ended. Sessions that compute
// at the same time, in several threads or in a callback of another session's
// call, make more, of which the largest is kept. The pool ends with the last
// session. Thread-safe.
class WorkspacePool {
 public:
  // `accounts` count each rank's memory; null: not counted. `host` counts the
  // host's memory.
  WorkspacePool(std::vector<std::shared_ptr<MemoryAccount>> accounts,
                std::shared_ptr<MemoryAccount> host);

  // The size that a rank's workspace was promised to have.
  WorkspaceSize Promised(size_t rank) const;
  // Promises that a workspace may be as large as `size` on this rank.
  void Promise(size_t rank, const WorkspaceSize& size);

  // Returns the idle workspace, or an empty one. It is as large as its last
  // holder needed it.
  std::unique_ptr<Workspace> Take();
  void GiveBack(std::unique_ptr<Workspace> workspace);
  // Frees the idle workspace, if none is in use; the next Take makes another.
  void Trim();
  // Returns true if a workspace is in use.
  bool InUse() const;

 private:
  void NotePromises();

  mutable std::mutex mutex_;             // guards the members below
  std::vector<WorkspaceSize> promised_;  // [rank]
  // [rank]: the part of `promised_` that is not taken yet.
  std::vector<MemoryPromise> promises_;
  MemoryPromise distributions_;
  std::unique_ptr<Workspace> idle_;  // null: none was made, or all are in use
  int in_use_ = 0;
};

}  // namespace tiercel

#endif  // TIERCEL_RUNTIME_MODEL_WORKSPACE_POOL_H_

#ifndef TIERCEL_OFFLOAD_RETRIEVAL_SELECTOR_H_
#define TIERCEL_OFFLOAD_RETRIEVAL_SELECTOR_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/device/device_memory.h"
#include "kernels/device/stream.h"
#include "offload/kv/layered_kv.h"

namespace tiercel {

// A selector: it chooses the chunks of a sequence that its retrieval view
// shows, per layer and KV head. Chunks are counted from the one in which the
// sequence begins.
class Selector {
 public:
  // The positions that were in view of a row, counted from the sequence's
  // beginning.
  struct Seen {
    const int32_t* const* kept;  // [kv_heads][num_kept], each once
    int64_t num_kept;
    int64_t newest;  // all positions from this one on were in view too
  };
  // The query rows by which chunks are chosen: [rows, row_floats], rotated.
  struct QueryRows {
    DevicePtr<const float> q;
    int64_t row_floats;  // heads * head_dim
    int64_t rows;
    int64_t position;  // the position of the first row
    // The last `drafted` rows may yet be rejected: they take part in this
    // choice, but their importance is not remembered.
    int64_t drafted = 0;
    // The view of the last row that was not drafted, to measure its coverage;
    // null: coverage is not measured.
    const Seen* seen = nullptr;
    // The rows that chose this layer last were of the same text, before these.
    bool goes_on = false;

    int64_t Certain() const { return rows - drafted; }
  };
  virtual ~Selector() = default;

  // Called when positions kv.end .. kv.end + rows - 1 of `layer` are written.
  virtual absl::Status Update(Stream& stream, int layer, const KvPages& kv,
                              int64_t rows) = 0;
  // Update reads no K and V before this position.
  virtual int64_t UpdatesFrom() const { return 0; }
  // Chooses those of the first `chunks` chunks of `layer` that each KV head
  // sees, in order, the sinks among them. `kv` has the layer's pages; it is
  // null where they are not on the device. Errors: those of the ops.
  virtual absl::Status Choose(Stream& stream, int layer, const QueryRows& by,
                              const KvPages* kv, int64_t chunks,
                              std::vector<std::vector<int32_t>>* chosen) = 0;
  // The coverage in the layer that was chosen last: the share of the attention
  // of the last row that was not drafted that fell on the positions in
  // QueryRows::seen, as the mean of the query heads. Absent where `seen` was
  // null, or chunks are not single positions.
  virtual std::optional<double> coverage() const { return std::nullopt; }
  // Forgets the positions from `end` on.
  virtual void Truncate(int64_t end) = 0;
  // Returns an independent copy. Errors: out_of_memory.
  virtual absl::StatusOr<std::unique_ptr<Selector>> Copy(
      DeviceMemory& memory) const = 0;
};

}  // namespace tiercel

#endif  // TIERCEL_OFFLOAD_RETRIEVAL_SELECTOR_H_

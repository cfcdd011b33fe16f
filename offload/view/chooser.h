#ifndef TIERCEL_OFFLOAD_VIEW_CHOOSER_H_
#define TIERCEL_OFFLOAD_VIEW_CHOOSER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/machine/device_memory.h"
#include "kernels/machine/stream.h"
#include "offload/kv/layered_kv.h"

namespace tiercel {

// Says which chunks of a sequence its retrieval view shows, per layer and KV
// head. Chunks are counted from the one in which the sequence begins.
class Chooser {
 public:
  // What a row had in view so far, of single positions counted from where the
  // sequence begins.
  struct Seen {
    const int32_t* const* kept;  // [kv_heads][num_kept], each once
    int64_t num_kept;
    int64_t newest;  // all from this one on were in view too
  };
  // Rows whose queries choose: [rows, row_floats], rotated.
  struct Asking {
    const float* q;
    int64_t row_floats;  // heads * head_dim
    int64_t rows;
    int64_t position;  // of the first of them
    // The last so many of the rows may yet turn out not to be of the text: they
    // choose this once, and what they said is not remembered.
    int64_t drafted = 0;
    // What the last row that was not drafted had in view; null: nobody asks.
    const Seen* seen = nullptr;
    // What chose this layer last was of the same text, before these rows.
    bool goes_on = false;

    int64_t Certain() const { return rows - drafted; }
  };
  virtual ~Chooser() = default;

  // Positions kv.end .. kv.end + rows - 1 of `layer` have been written.
  virtual absl::Status Update(Stream& stream, int layer, const KvPages& kv,
                              int64_t rows) = 0;
  // Finds which of the first `chunks` chunks of `layer` each KV head sees, in
  // order, the sinks among them. `kv` has the layer's pages; null: they are not
  // at hand. Errors: those of the ops.
  virtual absl::Status Choose(Stream& stream, int layer, const Asking& by,
                              const KvPages* kv, int64_t chunks,
                              std::vector<std::vector<int32_t>>* chosen) = 0;
  // The share of the attention of the last row that was not drafted, in the
  // layer that was chosen last, that fell on what it had seen: the mean of the
  // query heads. Absent where nobody asked, or what is scored are not
  // positions.
  virtual std::optional<double> coverage() const { return std::nullopt; }
  // Forgets the positions from `end` on.
  virtual void Truncate(int64_t end) = 0;
  // One that goes its own way from now on. Errors: out_of_memory.
  virtual absl::StatusOr<std::unique_ptr<Chooser>> Copy(
      DeviceMemory& memory) const = 0;
};

}  // namespace tiercel

#endif  // TIERCEL_OFFLOAD_VIEW_CHOOSER_H_

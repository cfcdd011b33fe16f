#ifndef TIERCEL_OFFLOAD_VIEW_LANDING_H_
#define TIERCEL_OFFLOAD_VIEW_LANDING_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/kv/kv_layout.h"
#include "kernels/machine/device_memory.h"
#include "kernels/machine/stream.h"
#include "offload/kv/kv_run.h"

namespace tiercel {

// Where rows of a store arrive on the device before they become the smaller
// rows of a view. Rows of a layer are settled together; its place is free again
// when all that it holds is settled or dropped.
class Landing {
 public:
  struct Shape {
    KvLayout from;
    KvLayout to;
    int64_t bytes = 0;  // 0: it takes no rows
  };
  // Errors: out_of_memory.
  static absl::StatusOr<Landing> Create(DeviceMemory& memory,
                                        const Shape& shape);

  // The run as it arrives here instead of in its place; none: there is no room.
  // An empty landing has room for any run of at most shape.bytes.
  std::optional<KvRun> Take(const KvRun& run);
  // The runs of `layer` that have arrived go to their places, or nowhere.
  absl::Status Settle(Stream& stream, int layer);
  void Drop(int layer);

 private:
  struct Arrival {
    KvRun here;
    KvRun place;
  };

  Landing(const Shape& shape, DeviceArray<std::byte> memory)
      : shape_(shape), memory_(std::move(memory)) {}

  Shape shape_;
  DeviceArray<std::byte> memory_;
  int64_t used_ = 0;
  std::vector<Arrival> arrivals_;
};

}  // namespace tiercel

#endif  // TIERCEL_OFFLOAD_VIEW_LANDING_H_

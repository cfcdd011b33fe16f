#ifndef TIERCEL_OFFLOAD_RETRIEVAL_VIEW_STAGING_H_
#define TIERCEL_OFFLOAD_RETRIEVAL_VIEW_STAGING_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/device/device_memory.h"
#include "kernels/device/stream.h"
#include "kernels/kv/kv_layout.h"
#include "offload/kv/kv_run.h"

namespace tiercel {

// A staging buffer on the device, in which rows of a store arrive before they
// are converted to the smaller rows of a view. Rows of a layer are settled
// together; the buffer is free again when all rows in it are settled or
// dropped.
class ViewStaging {
 public:
  struct Shape {
    KvLayout from;
    KvLayout to;
    int64_t bytes = 0;  // 0: it takes no rows
  };
  // Errors: out_of_memory.
  static absl::StatusOr<ViewStaging> Create(DeviceMemory& memory,
                                            const Shape& shape);

  // Returns the run with an address in the buffer, into which its rows are to
  // be copied; nothing if there is no room. An empty buffer has room for any
  // run of at most shape.bytes.
  std::optional<KvRun> Take(const KvRun& run);
  // Converts the runs of `layer`, which have arrived, into their places in the
  // view.
  absl::Status Settle(Stream& stream, int layer);
  // Discards the runs of `layer`.
  void Drop(int layer);

 private:
  struct Arrival {
    KvRun here;
    KvRun place;
  };

  ViewStaging(const Shape& shape, DeviceArray<std::byte> memory)
      : shape_(shape), memory_(std::move(memory)) {}

  Shape shape_;
  DeviceArray<std::byte> memory_;
  int64_t used_ = 0;
  std::vector<Arrival> arrivals_;
};

}  // namespace tiercel

#endif  // TIERCEL_OFFLOAD_RETRIEVAL_VIEW_STAGING_H_

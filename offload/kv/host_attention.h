#ifndef TIERCEL_OFFLOAD_KV_HOST_ATTENTION_H_
#define TIERCEL_OFFLOAD_KV_HOST_ATTENTION_H_

#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "kernels/attention/attention.h"
#include "kernels/device/device_memory.h"
#include "kernels/device/stream.h"
#include "kernels/system/clock.h"
#include "offload/kv/layered_kv.h"
#include "offload/tier/host_region.h"

namespace tiercel {

// Attention of a step whose pages do not all cross the link: the CPU attends to
// some of them where they are, in the host tier, while the link brings others.
// The queries and the fold of the pages before go down, the fold comes back,
// and the device continues with it, so the bits are those of one device.
//
//   device   the pages before the host's; a fold of them
//   host     queries and fold down, the host's pages, fold up
//   device   the pages after the host's
class HostAttention {
 public:
  struct Options {
    int heads = 0;  // a row's, as Attention takes them
    int head_dim = 0;
    int64_t q_stride = 0;
    std::unique_ptr<Stream> cpu;
    // The rate at which the host pretends to attend, in bytes of K and V a
    // second; 0: as fast as it can.
    double bytes_per_s = 0;
    Clock* clock = &SteadyClock();
  };

  // `memory`, the device's, holds folds of up to kMaxStepRows rows: it gives
  // DeviceBytes(heads). Errors: out_of_memory.
  static absl::StatusOr<std::unique_ptr<HostAttention>> Create(
      DeviceMemory& memory, Options options);
  static int64_t DeviceBytes(int heads);
  // Bytes of the host's memory, for buffers and for scratch of the CPU's op.
  static int64_t HostBytes(const Options& options, int threads);

  ~HostAttention();
  HostAttention(const HostAttention&) = delete;
  HostAttention& operator=(const HostAttention&) = delete;

  // Computes Attention on `device`, with the host's pages. `p` reads all pages,
  // without a view, for at most kMaxStepRows rows, and the host's are before
  // the first row's own. Waits for all that `device` has queued. The device's
  // queue is always the same, and outlives this. No cancellation ends it: it
  // takes no longer than the layer's other pages take to cross. Errors: those
  // of Attention and of copies.
  absl::Status Attend(Stream& device, AttentionParams p, const HostPages& host);

 private:
  HostAttention(Options options, DeviceArray<float> max, DeviceArray<float> sum,
                HostRegion buffers);

  void Pin(Stream& device);
  // The sizes of the parts of a buffer, in floats, for so many rows.
  int64_t QueryFloats(int64_t rows) const;
  int64_t OutFloats(int64_t rows) const {
    return rows * options_.heads * options_.head_dim;
  }

  const Options options_;
  HostRegion buffers_;      // q, out, max and sum
  DeviceArray<float> max_;  // [kMaxStepRows, heads]
  DeviceArray<float> sum_;
  DeviceQueue* queue_ = nullptr;  // the device's, once it has attended
  bool pinned_ = false;
};

// Computes Attention over a layer's KV, with the host's share if it has one.
absl::Status AttendToLayer(Stream& stream, const AttentionParams& p,
                           const KvPages& kv);

}  // namespace tiercel

#endif  // TIERCEL_OFFLOAD_KV_HOST_ATTENTION_H_

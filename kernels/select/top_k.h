#ifndef TIERCEL_KERNELS_SELECT_TOP_K_H_
#define TIERCEL_KERNELS_SELECT_TOP_K_H_

#include <cstdint>

#include "kernels/device/device_ptr.h"
#include "kernels/device/kernel_entry.h"
#include "lib/status/status_forward.h"

struct CUstream_st;

namespace tiercel {

class Stream;

// The indices of the k greatest values of each row in ascending order (all if
// there are no more than k). The first `always` are kept whatever their value,
// and of equal values the earlier. This is how TriForce selects a KV head's
// chunks (arXiv 2404.11912, section 4.1), of which the first are sinks.
//
// Scratch: a float per value for each thread. Errors: invalid_sizes,
// out_of_memory.
struct TopKParams {
  DevicePtr<const float>
      values;              // [rows, stride], for each row [n]; none is NaN
  int64_t stride;          // elements from one row to the next
  int64_t rows;            // 0 is allowed
  int64_t n;               // 0 is allowed; at most 2^28
  int64_t always;          // at least 0
  int64_t k;               // at least 0
  DevicePtr<int32_t> out;  // [rows, min(k, n)]
};
absl::Status TopK(Stream& stream, const TopKParams& p);

// ---- Its bodies ----

void TopKReference(const TopKParams& p);

// Writes the indices of the k greatest of n values in ascending order, each
// with `first` added. Of equal values the earlier are taken. `room` is scratch
// of [n].
void KeepGreatest(const float* values, int64_t n, int64_t k, int32_t first,
                  float* room, int32_t* out);

// Queues the work on a GPU's stream. At least one value is kept. Returns a
// cudaError_t.
TIERCEL_KERNEL(TopKCuda, CUstream_st* stream, const TopKParams& p);

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_SELECT_TOP_K_H_

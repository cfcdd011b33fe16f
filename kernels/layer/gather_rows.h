#ifndef TIERCEL_KERNELS_LAYER_GATHER_ROWS_H_
#define TIERCEL_KERNELS_LAYER_GATHER_ROWS_H_

#include <cstdint>

#include "kernels/device/device_ptr.h"
#include "kernels/device/kernel_entry.h"
#include "lib/status/status_forward.h"

struct CUstream_st;

namespace tiercel {

class Stream;

// out[i] = x[rows[i]].  Errors: a row that there is not (invalid_argument).
struct GatherRowsParams {
  DevicePtr<const float> x;  // [x_rows, x_stride]
  int64_t x_stride;          // floats, >= dim
  int64_t x_rows;
  const int32_t* rows;  // [items]
  int64_t items;        // 0 is allowed
  int64_t dim;
  DevicePtr<float> out;  // [items, dim]
};
absl::Status GatherRows(Stream& stream, const GatherRowsParams& p);

// Returns an error unless `count` indices are from 0 to end - 1: it is
// invalid_argument, and begins with `list`, their name, as in "Op: rows".
absl::Status CheckIndices(const char* list, const int32_t* indices,
                          int64_t count, int64_t end);

// ---- Its body on a GPU ----

// Queues the work on a GPU's stream; p.rows is in its memory. Returns a
// cudaError_t.
TIERCEL_KERNEL(GatherRowsCuda, CUstream_st* stream, const GatherRowsParams& p);

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_LAYER_GATHER_ROWS_H_

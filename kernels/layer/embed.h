#ifndef TIERCEL_KERNELS_LAYER_EMBED_H_
#define TIERCEL_KERNELS_LAYER_EMBED_H_

#include <cstdint>

#include "kernels/device/device_ptr.h"
#include "kernels/device/kernel_entry.h"
#include "kernels/number/dtype.h"
#include "lib/status/status_forward.h"

struct CUstream_st;

namespace tiercel {

class PackedMatrix;
class Stream;

// out[r] = scale table[ids[r]].  Errors: an id outside the table
// (invalid_argument).
struct EmbedParams {
  const PackedMatrix* table;  // [vocab, hidden]
  const int32_t* ids;         // [rows]
  int64_t rows;               // 0 is allowed
  DevicePtr<float> out;       // [rows, hidden]
  float scale = 1.0f;
};
absl::Status Embed(Stream& stream, const EmbedParams& p);

// ---- Its bodies ----

// Computes rows [begin, end); rows are independent of each other.
void EmbedReference(const EmbedParams& p, int64_t begin, int64_t end);

// The parameters of the kernel. All pointers are into the memory of its GPU.
struct EmbedRows {
  const uint8_t* panels;  // the table, laid out as in packed_layout.h
  int64_t panel_bytes;
  int64_t cols;
  const int32_t* ids;  // [rows]
  int64_t rows;        // at least one
  float* out;          // [rows, cols]
  float scale;
};

// Queues the work on a GPU's stream, with the reference's bits. Returns a
// cudaError_t.
TIERCEL_KERNEL(EmbedCuda, CUstream_st* stream, DType type, const EmbedRows& p);

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_LAYER_EMBED_H_

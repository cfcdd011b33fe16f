#ifndef TIERCEL_KERNELS_LAYER_EMBED_BODY_H_
#define TIERCEL_KERNELS_LAYER_EMBED_BODY_H_

#include <cstdint>

#include "kernels/number/dtype.h"

struct CUstream_st;

namespace tiercel {

struct EmbedParams;

// Rows [begin, end); a row is independent of the others.
void EmbedReference(const EmbedParams& p, int64_t begin, int64_t end);

// What a kernel is given, all of it in the memory of its GPU.
struct EmbedRows {
  const uint8_t* panels;  // of the table, as packed_layout.h says
  int64_t panel_bytes;
  int64_t cols;
  const int32_t* ids;  // [rows]
  int64_t rows;        // at least one
  float* out;          // [rows, cols]
};

// Queued on a GPU's stream, with the reference's bits. Returns a cudaError_t.
int EmbedCuda(CUstream_st* stream, DType type, const EmbedRows& p);

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_LAYER_EMBED_BODY_H_

#ifndef TIERCEL_KERNELS_LAYER_EMBED_H_
#define TIERCEL_KERNELS_LAYER_EMBED_H_

#include <cstdint>

#include "absl/status/status.h"
#include "kernels/device/stream.h"
#include "kernels/layer/packed_matrix.h"

namespace tiercel {

// out[r] = table[ids[r]].  Errors: an id outside the table (invalid_token).
struct EmbedParams {
  const PackedMatrix* table;  // [vocab, hidden]
  const int32_t* ids;         // [rows], in the host's memory
  int64_t rows;               // 0 is allowed
  float* out;                 // [rows, hidden]
};
absl::Status Embed(Stream& stream, const EmbedParams& p);

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_LAYER_EMBED_H_

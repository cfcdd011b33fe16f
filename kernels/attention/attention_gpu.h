#ifndef TIERCEL_KERNELS_ATTENTION_ATTENTION_GPU_H_
#define TIERCEL_KERNELS_ATTENTION_ATTENTION_GPU_H_

#include <cstdint>

#include "absl/status/status.h"
#include "kernels/attention/attention.h"
#include "kernels/device/stream.h"

namespace tiercel {

// The partial results held at a time, in floats: 32 MiB, which the second-level
// cache of a GPU keeps until they are folded.
inline constexpr int64_t kGpuWaveFloats = int64_t{8} << 20;

// The number of tiles of 32 queries from which on each tile goes over all pages
// by itself: so many keep a GPU busy, and no partial results are needed.
inline constexpr int64_t kGpuFoldingTiles = 256;

// Computes Attention on a stream of a GPU; `p` is valid. Errors: as
// Attention's.
absl::Status AttendOnGpu(Stream& stream, const AttentionParams& p,
                         int64_t wave_floats = kGpuWaveFloats,
                         int64_t folding_tiles = kGpuFoldingTiles);

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_ATTENTION_ATTENTION_GPU_H_

#ifndef TIERCEL_KERNELS_ATTENTION_ATTENTION_GPU_H_
#define TIERCEL_KERNELS_ATTENTION_ATTENTION_GPU_H_

#include <cstdint>

#include "absl/status/status.h"
#include "kernels/attention/attention.h"
#include "kernels/machine/stream.h"

namespace tiercel {

// Floats of partial results held at a time: 32 MiB, which the second-level
// cache of a GPU keeps until they are folded.
inline constexpr int64_t kGpuWaveFloats = int64_t{8} << 20;

// Tiles of 32 queries from which on each goes over all pages by itself: so many
// keep a GPU busy, and partial results are spared.
inline constexpr int64_t kGpuFoldingTiles = 256;

// Attention of some rows, valid, on a stream of a GPU. Errors: as Attention's.
absl::Status AttendOnGpu(Stream& stream, const AttentionParams& p,
                         int64_t wave_floats = kGpuWaveFloats,
                         int64_t folding_tiles = kGpuFoldingTiles);

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_ATTENTION_ATTENTION_GPU_H_

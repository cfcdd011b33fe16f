// Bytes: 8 an element, x read twice, once of it from shared memory.
// Operations: 4 f32 an element; 16 chains, so n / 16 of them in a row.
// Bound by: the launch and the chains for one row, memory for a prompt.

#include <cmath>

#include "kernels/device/device_lang.h"
#include "kernels/layer/rms_norm_body.h"
#include "kernels/layer/rms_norm_params.h"

namespace tiercel {
namespace {

constexpr int kChains = 16;          // of the contract
constexpr int kMaxBlocks = 1 << 16;  // each takes groups until none is left
constexpr int kMaxTile = 4096;       // floats of a group in shared memory

static_assert(kMaxTile % kChains == 0, "element i belongs to chain i % 16");

// A block takes one group at a time. All its threads fetch; the 16 chains,
// each of which has to be walked in order, are walked by 16 threads over the
// copy in shared memory. For one row of 4096 that is 256 dependent
// multiply-adds; with more rows, blocks hide each other's.
struct NormGroups {
  static constexpr int kMaxThreads = 256;
  struct Shared {
    float inverse;
    Array<float, kMaxTile> tile;  // min(dim, kMaxTile) of them
  };
  RmsNormParams p;

  TIERCEL_DEVICE void operator()(const Thread& t, Shared& shared) const {
    for (int64_t g = t.block; g < p.rows * p.groups; g += t.blocks) {
      const int64_t row = g / p.groups;
      const int64_t column = g % p.groups * p.dim;
      NormGroup(t, shared, p.x + row * p.x_stride + column,
                p.out + row * p.out_stride + column);
    }
  }

  TIERCEL_DEVICE void NormGroup(const Thread& t, Shared& shared, const float* x,
                                float* out) const {
    // 1. the chains of squares, a tile at a time
    float squares = 0.0f;  // of chain t.index
    for (int64_t begin = 0; begin < p.dim; begin += kMaxTile) {
      const int64_t left = p.dim - begin;
      const int size = left < kMaxTile ? static_cast<int>(left) : kMaxTile;
      Barrier();  // all are done with the tile before
#pragma unroll 4
      for (int i = t.index; i < size; i += t.count) {
        shared.tile[i] = x[begin + i];
      }
      Barrier();
      if (t.index >= kChains) continue;
#pragma unroll 8
      for (int i = t.index; i < size; i += kChains) {
        squares = std::fma(shared.tile[i], shared.tile[i], squares);
      }
    }
    // 2. their sum: the tree of the contract ends in lane 0
    if (t.index < kWarpLanes) {
      for (int half = kChains / 2; half > 0; half /= 2) {
        squares += ShuffleDown(kAllLanes, squares, half, kChains);
      }
    }
    if (t.index == 0) {
      const float mean = squares / static_cast<float>(p.dim);
      shared.inverse = 1.0f / std::sqrt(mean + p.eps);
    }
    Barrier();
    // 3. the outputs; a group longer than a tile is fetched again, by the
    // thread that writes: out may be x
#pragma unroll 4
    for (int i = t.index; i < p.dim; i += t.count) {
      const float value = p.dim <= kMaxTile ? shared.tile[i] : x[i];
      out[i] = value * shared.inverse * p.weight[i];
    }
  }
};

}  // namespace

int RmsNormCuda(CUstream_st* stream, const RmsNormParams& p) {
  if (p.rows == 0) return 0;
  const int64_t groups = p.rows * p.groups;
  const int tile = p.dim < kMaxTile ? p.dim : kMaxTile;
  LaunchShape shape;
  shape.blocks = groups < kMaxBlocks ? groups : kMaxBlocks;
  // Four elements or more a thread, in whole warps.
  shape.threads =
      tile < 8 * kWarpLanes ? kWarpLanes : tile / (4 * kWarpLanes) * kWarpLanes;
  if (shape.threads > NormGroups::kMaxThreads) {
    shape.threads = NormGroups::kMaxThreads;
  }
  shape.shared_bytes = offsetof(NormGroups::Shared, tile) +
                       static_cast<size_t>(tile) * sizeof(float);
  return Launch(stream, shape, NormGroups{p});
}

}  // namespace tiercel

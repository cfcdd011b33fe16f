#include "kernels/layer/rms_norm_body.h"
#include "kernels/layer/rms_norm_params.h"
#include "kernels/machine/cuda_launch.h"

namespace tiercel {
namespace {

constexpr int kChains = 16;  // of the contract
constexpr int kWarp = 32;
constexpr int kMaxThreads = 256;     // of a block
constexpr int kMaxBlocks = 1 << 16;  // each takes groups until none is left
constexpr int kMaxTile = 4096;       // floats of a group in shared memory

static_assert(kMaxTile % kChains == 0, "element i belongs to chain i % 16");

// A block takes one group at a time. All its threads fetch; the 16 chains,
// each of which has to be walked in order, are walked by 16 threads over the
// copy in shared memory. For one row of 4096 that is 256 dependent
// multiply-adds; with more rows, blocks hide each other's.
__global__ void __launch_bounds__(kMaxThreads) RmsNormGroups(RmsNormParams p) {
  extern __shared__ float tile[];  // [min(dim, kMaxTile)]
  __shared__ float inverse;
  const int thread = static_cast<int>(threadIdx.x);
  const int threads = static_cast<int>(blockDim.x);
  const int64_t groups = p.rows * p.groups;

  for (int64_t group = blockIdx.x; group < groups; group += gridDim.x) {
    const int64_t row = group / p.groups;
    const int64_t column = group % p.groups * p.dim;
    const float* x = p.x + row * p.x_stride + column;
    float* out = p.out + row * p.out_stride + column;

    float squares = 0.0f;  // of chain `thread`
    for (int64_t begin = 0; begin < p.dim; begin += kMaxTile) {
      const int64_t left = p.dim - begin;
      const int size = left < kMaxTile ? static_cast<int>(left) : kMaxTile;
      __syncthreads();  // all are done with the tile before
#pragma unroll 4
      for (int i = thread; i < size; i += threads) tile[i] = x[begin + i];
      __syncthreads();
      if (thread < kChains) {
#pragma unroll 8
        for (int i = thread; i < size; i += kChains) {
          squares = fmaf(tile[i], tile[i], squares);
        }
      }
    }
    if (thread < kWarp) {
      // The tree of the contract ends in lane 0.
      for (int half = kChains / 2; half > 0; half /= 2) {
        squares += __shfl_down_sync(0xffffffffu, squares, half, kChains);
      }
    }
    if (thread == 0) {
      const float mean = squares / static_cast<float>(p.dim);
      inverse = 1.0f / sqrtf(mean + p.eps);
    }
    __syncthreads();
    // A group longer than a tile is fetched again, by the thread that writes:
    // out may be x.
#pragma unroll 4
    for (int i = thread; i < p.dim; i += threads) {
      const float value = p.dim <= kMaxTile ? tile[i] : x[i];
      out[i] = value * inverse * __ldg(p.weight + i);
    }
  }
}

}  // namespace

int RmsNormCuda(CUstream_st* stream, const RmsNormParams& p) {
  if (p.rows == 0) return cudaSuccess;
  const int64_t groups = p.rows * p.groups;
  const int tile = p.dim < kMaxTile ? p.dim : kMaxTile;
  LaunchShape shape;
  shape.blocks = groups < kMaxBlocks ? groups : kMaxBlocks;
  // Four elements or more a thread, in whole warps.
  shape.threads = tile < 8 * kWarp ? kWarp : tile / (4 * kWarp) * kWarp;
  if (shape.threads > kMaxThreads) shape.threads = kMaxThreads;
  shape.shared_bytes = static_cast<size_t>(tile) * sizeof(float);
  return Launch(stream, shape, RmsNormGroups, p);
}

}  // namespace tiercel

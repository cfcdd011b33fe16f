#ifndef TIERCEL_KERNELS_SELECT_KEY_SCORES_BODY_H_
#define TIERCEL_KERNELS_SELECT_KEY_SCORES_BODY_H_

#include <cstddef>
#include <cstdint>

#include "kernels/device/kernel_entry.h"
#include "kernels/number/dtype.h"

struct CUstream_st;

namespace tiercel {

struct KeyScoresParams;
void KeyScoresReference(const KeyScoresParams& p);

// The scores of cells begin..end - 1 of one page and KV head, for `rows`
// consecutive rows and the query heads that share the KV head.
struct KeyBlock {
  const float* q;  // the first query; the next head is head_dim further
  int64_t q_stride;
  int64_t rows;
  int group;  // query heads of this KV head
  int head_dim;
  float scale;

  const std::byte* k;  // this head's [kPageTokens][head_dim]
  DType type_k;
  int64_t k_row_bytes;
  int begin;
  int end;       // after begin; the last row sees the cells before it
  int64_t seen;  // row r sees the cells before seen + r

  float* out;  // score of cell `begin`
  int64_t out_head_stride;
  int64_t out_row_stride;
};
using KeyBlockFn = void(const KeyBlock& b);

namespace portable {
KeyBlockFn ComputeKeyBlock;
}
namespace avx2 {
KeyBlockFn ComputeKeyBlock;
}
namespace avx512 {
KeyBlockFn ComputeKeyBlock;
}

// Queues the work on a GPU's stream, with the reference's bits. The array of
// pages is in the GPU's memory too. Returns a cudaError_t.
TIERCEL_KERNEL int KeyScoresCuda(CUstream_st* stream, const KeyScoresParams& p);

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_SELECT_KEY_SCORES_BODY_H_

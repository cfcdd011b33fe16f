#ifndef TIERCEL_KERNELS_ATTENTION_FLASH_ATTENTION_H_
#define TIERCEL_KERNELS_ATTENTION_FLASH_ATTENTION_H_

#include <cstdint>

#include "kernels/attention/attention_body.h"
#include "kernels/device/kernel_entry.h"
#include "kernels/kv/kv_layout.h"

struct CUstream_st;

namespace tiercel {

// Consecutive rows over all positions that they see, for the matrix unit. All
// pointers are into the memory of a GPU.
struct FlashAttentionRows {
  const float* q;
  int64_t q_stride;
  int64_t rows;  // at least one
  int heads;
  float scale;
  KvLayout layout;
  const AttentionWave::Page* pages;  // they follow each other
  int64_t num_pages;                 // at least one
  int64_t begin;
  int64_t position;  // position of the first row
  float* out;        // [rows, heads, head_dim], at a multiple of 8 bytes
};

// Returns true if FlashAttentionCuda can read such pages: K and V are both f16,
// both q8_0 or both q4_0, in heads of 64, 96 or 128.
inline bool FlashAttentionFits(const KvLayout& layout) {
  return layout.type_k == layout.type_v &&
         (layout.type_k == DType::kF16 || layout.type_k == DType::kQ8_0 ||
          layout.type_k == DType::kQ4_0) &&
         (layout.head_dim == 64 || layout.head_dim == 96 ||
          layout.head_dim == 128);
}

// Computes attention by matrix steps of f16 (FlashAttention-2, Dao 2023), by
// blocks of 64 positions that begin at multiples of 64:
//
//   score_j = sum of f16(q) f16(k_j) in f32, m = max score, rescaled block by
//   block; out = sum of f16(e^(score_j - m)) f16(v_j) / sum of e^(score_j - m)
//
// A row's bits depend on no other row, as long as the K and V of later rows are
// finite. Queues the work on a GPU's stream. Returns a cudaError_t.
TIERCEL_KERNEL(FlashAttentionCuda, CUstream_st* stream,
               const FlashAttentionRows& p);

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_ATTENTION_FLASH_ATTENTION_H_

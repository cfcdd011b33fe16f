#ifndef TIERCEL_KERNELS_ATTENTION_ATTENTION_BODY_H_
#define TIERCEL_KERNELS_ATTENTION_ATTENTION_BODY_H_

// The interface between attention.cc, which plans, and attention_cpu.cc, which
// computes and is compiled once per ISA. It has plain data alone: no inline
// functions, and no header whose static initialisers would be compiled for the
// ISA too (<iostream>).

#include <cstddef>
#include <cstdint>

#include "kernels/device/kernel_entry.h"
#include "kernels/kv/kv_layout.h"

struct CUstream_st;

namespace tiercel {

struct AttentionParams;
void AttentionReference(const AttentionParams& p);

// The most queries whose scores a body holds at a time.
inline constexpr int kMaxTileQueries = 8;

// A set of a page's cells, one bit each. The first cell is the lowest bit.
struct CellSet {
  uint64_t word[kPageTokens / 64];
};

// The work on one page of one KV head, for `rows` consecutive rows and the
// query heads that share the KV head. A query is one (row, head of the group).
struct AttentionBlock {
  const float* q;  // the first query; the next head is head_dim further
  int64_t q_stride;
  int rows;
  int group;  // query heads of this KV head
  int head_dim;
  float scale;

  const std::byte* k;  // this head's [kPageTokens][head_dim]
  const std::byte* v;
  DType type_k;
  DType type_v;
  int64_t k_row_bytes;
  int64_t v_row_bytes;
  const std::byte* next_k;  // K of the next block, to prefetch; may be null

  // Row r sees cells begin..end + r - 1 that are in `fixed` or not before
  // recent + r.
  int begin;
  int64_t end;
  int64_t recent;
  CellSet fixed;

  // The partial results. That of query (r, g) is at index r * stride + g. Rows
  // that see no cell get a sum of zero; results of rows before the page (end +
  // r < 1) are not written.
  int64_t stride;
  float* max;
  float* sum;
  float* out;  // [.., padded head_dim]

  // Scratch of [2 * kPageTokens * padded head_dim + kMaxTileQueries *
  // kPageTokens], 64-byte aligned.
  float* scratch;
};
using ComputeBlockFn = void(const AttentionBlock& b);

// The fold of one query's partial results in page order. Results with a sum of
// zero are left out.
struct AttentionFold {
  const float* max;  // the first page's; the next is `stride` further
  const float* sum;
  const float* out;
  int64_t stride;
  int64_t out_stride;
  int64_t pages;
  int head_dim;
  bool first;  // no page was folded before
  bool last;   // divide by the sum at the end

  float* running_max;
  float* running_sum;
  float* result;  // [head_dim], holds the running out
};
using FoldPagesFn = void(const AttentionFold& f);

namespace portable {
ComputeBlockFn ComputeBlock;
FoldPagesFn FoldPages;
}  // namespace portable
namespace avx2 {
ComputeBlockFn ComputeBlock;
FoldPagesFn FoldPages;
}  // namespace avx2
namespace avx512 {
ComputeBlockFn ComputeBlock;
FoldPagesFn FoldPages;
}  // namespace avx512

// Some rows, and a wave of the pages that they see. All pointers are into the
// memory of a GPU.
struct AttentionWave {
  struct Page {
    const std::byte* at;
    int64_t start;  // its first position
  };
  // A short list is part of the launch; to send it before would be a launch of
  // its own, which costs as much as the attention to so few pages.
  struct Pages {
    static constexpr int64_t kFew = 64;
    const Page* list;  // null: `few` has them
    Page few[kFew];
  };
  // The positions that rows see of one KV head, as in HeadView.
  struct Shown {
    const int64_t* bounds;  // begin and end of each range
    int64_t ranges;
    int64_t recent;
  };

  const float* q;  // queries of the first row
  int64_t q_stride;
  int64_t rows;
  int heads;
  float scale;
  KvLayout layout;
  int64_t num_pages;
  int64_t begin;
  int64_t position;    // position of the first row
  const Shown* shown;  // [kv_heads]; null: rows see all positions

  // The partial results, [num_pages, rows, heads]
  float* max;
  float* sum;  // zero: nothing is seen
  float* out;  // [.., head_dim]
  // The maxima and sums of all waves up to this one, [rows, heads]
  float* running_max;
  float* running_sum;
  bool first;     // there is no wave before
  bool last;      // divide by the sum at the end
  float* result;  // [rows, heads, head_dim], holds the running out
  // True if each block of the GPU goes over all pages and folds them, so that
  // there are no partial results. The wave has all pages then, and `result`
  // begins at a multiple of 16 bytes.
  bool folds;
};

// Queues the wave on a GPU's stream. The results have the reference's bits.
// Returns a cudaError_t.
TIERCEL_KERNEL(AttentionWaveCuda, CUstream_st* stream,
               const AttentionWave& wave, const AttentionWave::Pages& pages);

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_ATTENTION_ATTENTION_BODY_H_

#ifndef TIERCEL_KERNELS_KV_CHUNK_MEANS_PARAMS_H_
#define TIERCEL_KERNELS_KV_CHUNK_MEANS_PARAMS_H_

#include <cstddef>
#include <cstdint>

#include "kernels/kv/kv_layout.h"

namespace tiercel {

// Digests of chunks: the mean of a chunk's keys, as they are stored, rotated
// (TriForce, arXiv 2404.11912, section 4.1). Chunk c covers the positions
// [c * chunk, (c + 1) * chunk), of them those from `begin` on:
//
//   out[g, c] = f16((k_first + ... + k_last) / count)
//
// in float until it is rounded: each element's sum is one chain of additions
// in the order of positions, from zero on, then divided by the number of
// positions. So a digest does not depend on other chunks, threads or where
// pages live. A key that is not finite makes its elements of its digest not
// finite, and so does a mean beyond 65,504.
//
// Positions before `begin` and V are not read; all others of the chunks are,
// and must have been written. Errors: invalid_shape, invalid_kv_type,
// invalid_position (also a chunk that lies before `begin`), invalid_page.
struct ChunkMeansParams {
  KvLayout layout;
  const std::byte* const* pages;  // page i holds positions from i * kPageTokens
  int64_t first_page;             // the page index of pages[0]
  int64_t num_pages;
  int64_t begin;        // the first position that exists
  int chunk;            // positions of a chunk; divides kPageTokens
  int64_t first_chunk;  // absolute
  int64_t num_chunks;   // 0 is allowed
  uint16_t* out;  // f16 [kv_heads, out_stride], of each [num_chunks, head_dim]
  int64_t out_stride;  // elements from one KV head to the next
  // Lengths of the digests, as KeyNorms has them of keys: f16 [kv_heads,
  // norms_stride], of each [num_chunks]; null: none are wanted.
  uint16_t* norms;
  int64_t norms_stride;
};

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_KV_CHUNK_MEANS_PARAMS_H_

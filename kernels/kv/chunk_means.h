#ifndef TIERCEL_KERNELS_KV_CHUNK_MEANS_H_
#define TIERCEL_KERNELS_KV_CHUNK_MEANS_H_

#include <cstddef>
#include <cstdint>

#include "kernels/device/device_ptr.h"
#include "kernels/device/kernel_entry.h"
#include "kernels/kv/device_pages.h"
#include "kernels/kv/kv_layout.h"
#include "lib/status/status_forward.h"

struct CUstream_st;

namespace tiercel {

class Stream;

// Digests of chunks: the mean of a chunk's keys as they are stored, i.e.
// rotated (TriForce, arXiv 2404.11912, section 4.1). Chunk c covers those of
// the positions [c * chunk, (c + 1) * chunk) that are not before `begin`:
//
//   out[g, c] = f16((k_first + ... + k_last) / count)
//
// in float until it is rounded: each element's sum is one chain of additions
// in the order of positions, from zero on, then divided by the number of
// positions. So a digest does not depend on other chunks, on threads or on the
// place of pages. An element of a key that is not finite makes that element of
// the digest not finite, and so does a mean beyond 65,504.
//
// V and positions before `begin` are not read. All other positions of the
// chunks are read and must have been written. Errors: invalid_sizes,
// invalid_kv_type, invalid_position (also if a chunk is before `begin`),
// invalid_page.
struct ChunkMeansParams {
  KvLayout layout;
  const DevicePtr<std::byte>*
      pages;           // page i holds positions from i * kPageTokens
  int64_t first_page;  // the page index of pages[0]
  int64_t num_pages;
  int64_t begin;        // the first position that exists
  int chunk;            // positions per chunk; divides kPageTokens
  int64_t first_chunk;  // absolute
  int64_t num_chunks;   // 0 is allowed
  // f16 [kv_heads, out_stride], for each KV head [num_chunks, head_dim]
  DevicePtr<uint16_t> out;
  int64_t out_stride;  // elements from one KV head to the next
  // The lengths of the digests, computed as KeyNorms does: f16 [kv_heads,
  // norms_stride], for each KV head [num_chunks]. Null: they are not computed.
  DevicePtr<uint16_t> norms;
  int64_t norms_stride;
};
absl::Status ChunkMeans(Stream& stream, const ChunkMeansParams& p);

// ---- Its bodies ----

// Computes items begin..end - 1 of [kv_heads, num_chunks]. The plain loops are
// the CPU's body too, as each key is summed only once.
void ChunkMeansReference(const ChunkMeansParams& p, int64_t begin, int64_t end);

// Queues the work on a GPU's stream, with the same bits; `pages` replaces
// that of `p`. Returns a cudaError_t.
TIERCEL_KERNEL(ChunkMeansCuda, CUstream_st* stream, const ChunkMeansParams& p,
               const DevicePages& pages);

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_KV_CHUNK_MEANS_H_

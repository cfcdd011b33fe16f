#ifndef TIERCEL_KERNELS_KV_CHUNK_MEANS_BODY_H_
#define TIERCEL_KERNELS_KV_CHUNK_MEANS_BODY_H_

#include <cstdint>

struct CUstream_st;

namespace tiercel {

struct ChunkMeansParams;

// Items begin..end - 1 of [kv_heads, num_chunks]. The plain loops are the CPU's
// body too: a key is summed once in its life.
void ChunkMeansReference(const ChunkMeansParams& p, int64_t begin, int64_t end);

// Queued on a GPU's stream, with the same bits; the array of pages is in the
// GPU's memory too. Returns a cudaError_t.
int ChunkMeansCuda(CUstream_st* stream, const ChunkMeansParams& p);

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_KV_CHUNK_MEANS_BODY_H_

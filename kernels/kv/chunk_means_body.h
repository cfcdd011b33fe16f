#ifndef TIERCEL_KERNELS_KV_CHUNK_MEANS_BODY_H_
#define TIERCEL_KERNELS_KV_CHUNK_MEANS_BODY_H_

#include <cstdint>

#include "kernels/device/kernel_entry.h"

struct CUstream_st;

namespace tiercel {

struct ChunkMeansParams;

// Computes items begin..end - 1 of [kv_heads, num_chunks]. The plain loops are
// the CPU's body too, as each key is summed only once.
void ChunkMeansReference(const ChunkMeansParams& p, int64_t begin, int64_t end);

// Queues the work on a GPU's stream, with the same bits. The array of pages is
// in the GPU's memory too. Returns a cudaError_t.
TIERCEL_KERNEL int ChunkMeansCuda(CUstream_st* stream,
                                  const ChunkMeansParams& p);

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_KV_CHUNK_MEANS_BODY_H_

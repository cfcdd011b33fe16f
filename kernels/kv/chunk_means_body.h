#ifndef TIERCEL_KERNELS_KV_CHUNK_MEANS_BODY_H_
#define TIERCEL_KERNELS_KV_CHUNK_MEANS_BODY_H_

#include <cstdint>

#include "kernels/kv/chunk_means.h"

namespace tiercel {

// Items begin..end - 1 of [kv_heads, num_chunks]. The plain loops are the CPU's
// body too: a key is summed once in its life.
void ChunkMeansReference(const ChunkMeansParams& p, int64_t begin, int64_t end);

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_KV_CHUNK_MEANS_BODY_H_

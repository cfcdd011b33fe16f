#ifndef TIERCEL_KERNELS_KV_CHUNK_MEANS_H_
#define TIERCEL_KERNELS_KV_CHUNK_MEANS_H_

#include "absl/status/status.h"
#include "kernels/kv/chunk_means_params.h"
#include "kernels/machine/stream.h"

namespace tiercel {

absl::Status ChunkMeans(Stream& stream, const ChunkMeansParams& p);

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_KV_CHUNK_MEANS_H_

#ifndef TIERCEL_KERNELS_LAYER_ROPE_BODY_H_
#define TIERCEL_KERNELS_LAYER_ROPE_BODY_H_

#include <cstdint>

#include "kernels/device/kernel_entry.h"

struct CUstream_st;

namespace tiercel {

struct RopeAnglesParams;
struct RopeParams;

// These compute rows begin..end - 1. The plain loops are the CPU's body too, as
// a rotation takes under 1 % of the time of the products around it.
void RopeAnglesReference(const RopeAnglesParams& p, int64_t begin, int64_t end);
void RopeReference(const RopeParams& p, int64_t begin, int64_t end);

// Queues all rows on a GPU's stream, with the same bits. Returns a cudaError_t.
// Angles are computed on the host, in double.
TIERCEL_KERNEL int RopeCuda(CUstream_st* stream, const RopeParams& p);

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_LAYER_ROPE_BODY_H_

#ifndef TIERCEL_KERNELS_SELECT_TOP_K_BODY_H_
#define TIERCEL_KERNELS_SELECT_TOP_K_BODY_H_

#include <cstdint>

#include "kernels/device/kernel_entry.h"

struct CUstream_st;

namespace tiercel {

struct TopKParams;
void TopKReference(const TopKParams& p);

// Writes the indices of the k greatest of n values in ascending order, each
// with `first` added. Of equal values the earlier are taken. `room` is scratch
// of [n].
void KeepGreatest(const float* values, int64_t n, int64_t k, int32_t first,
                  float* room, int32_t* out);

// Queues the work on a GPU's stream. At least one value is kept. Returns a
// cudaError_t.
TIERCEL_KERNEL int TopKCuda(CUstream_st* stream, const TopKParams& p);

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_SELECT_TOP_K_BODY_H_

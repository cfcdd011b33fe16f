#ifndef TIERCEL_KERNELS_ATTENTION_TOP_K_BODY_H_
#define TIERCEL_KERNELS_ATTENTION_TOP_K_BODY_H_

#include <cstdint>

struct CUstream_st;

namespace tiercel {

struct TopKParams;
void TopKReference(const TopKParams& p);

// The places of the k greatest of n values, ascending, each with `first` added;
// of equals the earlier. The order of values is lost in `room`, [n].
void KeepGreatest(const float* values, int64_t n, int64_t k, int32_t first,
                  float* room, int32_t* out);

// Queued on a GPU's stream; something is kept. Returns a cudaError_t.
int TopKCuda(CUstream_st* stream, const TopKParams& p);

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_ATTENTION_TOP_K_BODY_H_

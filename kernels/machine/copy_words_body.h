#ifndef TIERCEL_KERNELS_MACHINE_COPY_WORDS_BODY_H_
#define TIERCEL_KERNELS_MACHINE_COPY_WORDS_BODY_H_

#include <cstdint>

struct CUstream_st;

namespace tiercel {

// Words of pinned memory of the host to the GPU's, by a kernel. Returns a
// cudaError_t.
int CopyWordsCuda(CUstream_st* stream, const uint32_t* from, int64_t words,
                  uint32_t* to);

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_MACHINE_COPY_WORDS_BODY_H_

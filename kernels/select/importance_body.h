#ifndef TIERCEL_KERNELS_SELECT_IMPORTANCE_BODY_H_
#define TIERCEL_KERNELS_SELECT_IMPORTANCE_BODY_H_

#include <cstdint>

#include "kernels/device/kernel_entry.h"

struct CUstream_st;

namespace tiercel {

struct ImportanceParams;
void AddImportanceReference(const ImportanceParams& p);

// The maximum and the norm that normalise the weights of one row and head.
struct RootWeights {
  float max;
  float length;  // sqrt(sum_j w_j^2); 0: the head adds nothing
};
using RootWeightsFn = RootWeights(const float* scores, int64_t candidates);

// Adds w_j / length for some of the candidates.
using AddRootsFn = void(const float* scores, int64_t candidates,
                        const RootWeights& weights, float* importance);

namespace portable {
RootWeightsFn WeighRoots;
AddRootsFn AddRoots;
}  // namespace portable
namespace avx2 {
RootWeightsFn WeighRoots;
AddRootsFn AddRoots;
}  // namespace avx2
namespace avx512 {
RootWeightsFn WeighRoots;
AddRootsFn AddRoots;
}  // namespace avx512

// Queues the work on a GPU's stream, with the reference's bits; `weights` is
// scratch of [rows, heads]. Returns a cudaError_t.
TIERCEL_KERNEL int AddImportanceCuda(CUstream_st* stream,
                                     const ImportanceParams& p,
                                     RootWeights* weights);

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_SELECT_IMPORTANCE_BODY_H_

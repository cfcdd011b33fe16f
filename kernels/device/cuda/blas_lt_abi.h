#ifndef TIERCEL_KERNELS_DEVICE_CUDA_BLAS_LT_ABI_H_
#define TIERCEL_KERNELS_DEVICE_CUDA_BLAS_LT_ABI_H_

// Constants of cublasLt.h, version 13. blas_lt_abi.cc compares them with it.

namespace tiercel::blas_lt {

inline constexpr int kTypeF32 = 0;
inline constexpr int kTypeF16 = 2;
inline constexpr int kTypeBf16 = 14;
inline constexpr int kComputeF32 = 68;
inline constexpr int kTransposed = 1;
inline constexpr int kTransposeOfFirst = 3;
inline constexpr int kMostWorkspace = 1;
inline constexpr int kReductionSchemes = 3;
// The attributes for the first matrix, the second, the one that is added, and
// the product.
inline constexpr int kLeastAlignments[] = {5, 6, 7, 8};

}  // namespace tiercel::blas_lt

#endif  // TIERCEL_KERNELS_DEVICE_CUDA_BLAS_LT_ABI_H_

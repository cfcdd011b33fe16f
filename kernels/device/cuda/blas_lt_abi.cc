// Compares the declarations of blas_lt.h with cuBLASLt's header, if it is
// installed. No other file of this program includes that header.

#if __has_include(<cublasLt.h>)

#include "kernels/device/cuda/blas_lt_abi.h"

#include <cublasLt.h>

#include <cstddef>
#include <type_traits>

#include "kernels/device/cuda/abi_alike.h"
#include "kernels/device/cuda/blas_lt.h"

namespace tiercel {
namespace {

static_assert(CUBLAS_VER_MAJOR == BlasLt::kVersion);
static_assert(blas_lt::kTypeF32 == CUDA_R_32F);
static_assert(blas_lt::kTypeF16 == CUDA_R_16F);
static_assert(blas_lt::kTypeBf16 == CUDA_R_16BF);
static_assert(blas_lt::kComputeF32 == CUBLAS_COMPUTE_32F);
static_assert(blas_lt::kTransposed == CUBLAS_OP_T);
static_assert(blas_lt::kTransposeOfFirst == CUBLASLT_MATMUL_DESC_TRANSA);
static_assert(blas_lt::kMostWorkspace ==
              CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES);
static_assert(blas_lt::kReductionSchemes ==
              CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK);
static_assert(blas_lt::kLeastAlignments[0] ==
              CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES);
static_assert(blas_lt::kLeastAlignments[1] ==
              CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES);
static_assert(blas_lt::kLeastAlignments[2] ==
              CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES);
static_assert(blas_lt::kLeastAlignments[3] ==
              CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES);
static_assert(CUBLASLT_REDUCTION_SCHEME_NONE == 0);
static_assert(CUBLAS_STATUS_SUCCESS == 0);

using Theirs = cublasLtMatmulHeuristicResult_t;
static_assert(sizeof(BlasLtChoice) == sizeof(Theirs));
static_assert(offsetof(BlasLtChoice, algorithm) == offsetof(Theirs, algo));
static_assert(sizeof(BlasLtChoice::algorithm) == sizeof(Theirs::algo));
static_assert(offsetof(BlasLtChoice, workspace_bytes) ==
              offsetof(Theirs, workspaceSize));
static_assert(offsetof(BlasLtChoice, status) == offsetof(Theirs, state));

#define TIERCEL_ALIKE(ours, theirs)                    \
  static_assert(Alike<decltype(BlasLtFunctions::ours), \
                      std::decay_t<decltype(theirs)>>::value)
TIERCEL_ALIKE(version, cublasLtGetVersion);
TIERCEL_ALIKE(create, cublasLtCreate);
TIERCEL_ALIKE(destroy, cublasLtDestroy);
TIERCEL_ALIKE(create_product, cublasLtMatmulDescCreate);
TIERCEL_ALIKE(destroy_product, cublasLtMatmulDescDestroy);
TIERCEL_ALIKE(set_product, cublasLtMatmulDescSetAttribute);
TIERCEL_ALIKE(create_layout, cublasLtMatrixLayoutCreate);
TIERCEL_ALIKE(destroy_layout, cublasLtMatrixLayoutDestroy);
TIERCEL_ALIKE(create_preference, cublasLtMatmulPreferenceCreate);
TIERCEL_ALIKE(destroy_preference, cublasLtMatmulPreferenceDestroy);
TIERCEL_ALIKE(set_preference, cublasLtMatmulPreferenceSetAttribute);
TIERCEL_ALIKE(choose, cublasLtMatmulAlgoGetHeuristic);
TIERCEL_ALIKE(multiply, cublasLtMatmul);
#undef TIERCEL_ALIKE

}  // namespace
}  // namespace tiercel

#endif

#ifndef TIERCEL_KERNELS_DEVICE_CUDA_BLAS_LT_H_
#define TIERCEL_KERNELS_DEVICE_CUDA_BLAS_LT_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <tuple>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/number/dtype.h"

struct CUstream_st;

namespace tiercel {

// The types and functions of cuBLASLt that we use, as cublasLt.h of version 13
// declares them. An int is one of its enums, a void* one of its handles.
// blas_lt_abi.cc compares the two if that header is installed.
struct BlasLtChoice {  // cublasLtMatmulHeuristicResult_t
  uint64_t algorithm[8];
  size_t workspace_bytes;
  int status;
  float waves;
  int reserved[4];
};
struct BlasLtFunctions {
  size_t (*version)() = nullptr;
  int (*create)(void** library) = nullptr;
  int (*destroy)(void* library) = nullptr;
  int (*create_product)(void** product, int compute, int scale) = nullptr;
  int (*destroy_product)(void* product) = nullptr;
  int (*set_product)(void* product, int attribute, const void* value,
                     size_t bytes) = nullptr;
  int (*create_layout)(void** layout, int type, uint64_t rows, uint64_t columns,
                       int64_t stride) = nullptr;
  int (*destroy_layout)(void* layout) = nullptr;
  int (*create_preference)(void** preference) = nullptr;
  int (*destroy_preference)(void* preference) = nullptr;
  int (*set_preference)(void* preference, int attribute, const void* value,
                        size_t bytes) = nullptr;
  int (*choose)(void* library, void* product, void* a, void* b, void* c,
                void* d, void* preference, int most, BlasLtChoice* choices,
                int* found) = nullptr;
  int (*multiply)(void* library, void* product, const void* alpha,
                  const void* a, void* a_layout, const void* b, void* b_layout,
                  const void* beta, const void* c, void* c_layout, void* d,
                  void* d_layout, const uint64_t* algorithm, void* workspace,
                  size_t workspace_bytes, CUstream_st* stream) = nullptr;
};

// cuBLASLt, for products of prompts that need not have our kernels' bits. It is
// not linked, but loaded when the user asks for it. Every product has kRows
// rows (the last ones of a prompt are padded with zeros), and one algorithm per
// shape that splits no sum. So a row's bits do not depend on the number of
// other rows. It may be used by one thread at a time.
class BlasLt {
 public:
  static constexpr int64_t kRows = 256;
  static constexpr size_t kVersion = 13;
  static constexpr uint32_t kAlignment = 16;  // alignment of all matrices

  // Finds the functions of a library. Errors: no_library if it cannot be loaded
  // or lacks one of them.
  static absl::StatusOr<BlasLtFunctions> Load(const char* library);
  // Errors: no_library if the library has another version; device_failed.
  static absl::StatusOr<std::unique_ptr<BlasLt>> Create(
      const BlasLtFunctions& functions);
  // Returns true if TIERCEL_CUBLASLT=1 asks for the library.
  static bool IsAsked();
  // Returns a library if TIERCEL_CUBLASLT=1, or null if it is not set. Errors:
  // invalid_environment for another value; those of Load and Create.
  static absl::StatusOr<std::unique_ptr<BlasLt>> FromEnvironment();

  ~BlasLt();
  BlasLt(const BlasLt&) = delete;
  BlasLt& operator=(const BlasLt&) = delete;

  // Returns true if it multiplies by weights [n, k] of this type, whose rows
  // are contiguous.
  static bool Takes(DType type, int64_t k);

  // Queues out[r][i] = sum over j of x[r][j] w[i][j] for kRows rows on
  // `stream`. x and w have the type, and all arrays are on the device and
  // aligned to kAlignment. Sums are float32, in the library's order. Errors:
  // device_failed.
  struct Product {
    DType type;
    int64_t n;
    int64_t k;
    const void* w;  // [n, k]
    const void* x;  // [kRows, k]
    float* out;     // [kRows, n]
  };
  absl::Status Multiply(CUstream_st* stream, const Product& p);

 private:
  // The library's descriptors and algorithm for a shape; null: not made yet.
  struct Plan {
    void* product = nullptr;
    void* w = nullptr;
    void* x = nullptr;
    void* out = nullptr;
    BlasLtChoice choice = {};
  };

  explicit BlasLt(const BlasLtFunctions& functions) : call_(functions) {}
  absl::Status MakePlan(const Product& p, Plan* plan);
  absl::Status Choose(Plan* plan);
  void Destroy(const Plan& plan);

  const BlasLtFunctions call_;
  void* library_ = nullptr;
  std::map<std::tuple<DType, int64_t, int64_t>, Plan> plans_;  // type, n, k
};

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_DEVICE_CUDA_BLAS_LT_H_

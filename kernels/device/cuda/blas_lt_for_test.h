#ifndef TIERCEL_KERNELS_DEVICE_CUDA_BLAS_LT_FOR_TEST_H_
#define TIERCEL_KERNELS_DEVICE_CUDA_BLAS_LT_FOR_TEST_H_

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <iterator>
#include <map>
#include <string>

#include "kernels/device/cuda/blas_lt.h"
#include "kernels/device/cuda/blas_lt_abi.h"
#include "kernels/system/faults.h"
#include "kernels/system/signals_for_test.h"

namespace tiercel {

// A simulated cuBLASLt. It records its calls and counts the handles that are
// alive; its calls may fail by faults (Callee::kBlasLt). One may exist at a
// time.
class FakeBlas {
 public:
  struct Layout {
    int type;
    uint64_t rows;
    uint64_t columns;
    int64_t stride;
  };
  struct Product {
    int compute;
    int scale;
    int transposed;
  };
  // The parameters of a multiplication, with the contents of its handles.
  struct Call {
    Product product;
    Layout a_layout, b_layout, d_layout;
    const void* a;
    const void* b;
    void* d;
    uint64_t algorithm;
    CUstream_st* stream;
  };

  FakeBlas() { own_ = this; }
  ~FakeBlas() { own_ = nullptr; }

  size_t version = 130100;
  int found = 1;  // number of algorithms that it finds
  std::function<int(const Call&)> multiply = [](const Call&) { return 0; };
  std::map<std::string, int> calls;
  int alive = 0;                  // number of handles
  bool signals_in_create = true;  // its threads would take signals
  uint32_t reductions = 7;
  uint64_t workspace = 1;
  std::array<uint32_t, 4> alignments = {256, 256, 256, 256};

  static BlasLtFunctions Functions() {
    BlasLtFunctions f;
    f.version = [] { return own_->version; };
    f.create = [](void** to) {
      own_->signals_in_create = TakesSignals();
      return Make("create", to, new int(0));
    };
    f.destroy = [](void* of) { return End(static_cast<int*>(of)); };
    f.create_product = [](void** to, int compute, int scale) {
      return Make("create_product", to, new Product{compute, scale, 0});
    };
    f.destroy_product = [](void* of) { return End(static_cast<Product*>(of)); };
    f.set_product = [](void* of, int attribute, const void* value,
                       size_t bytes) {
      if (attribute != blas_lt::kTransposeOfFirst || bytes != sizeof(int)) {
        return kInvalid;
      }
      std::memcpy(&static_cast<Product*>(of)->transposed, value, bytes);
      return Answer("set_product");
    };
    f.create_layout = [](void** to, int type, uint64_t rows, uint64_t columns,
                         int64_t stride) {
      return Make("create_layout", to, new Layout{type, rows, columns, stride});
    };
    f.destroy_layout = [](void* of) { return End(static_cast<Layout*>(of)); };
    f.create_preference = [](void** to) {
      return Make("create_preference", to, new char(0));
    };
    f.destroy_preference = [](void* of) { return End(static_cast<char*>(of)); };
    f.set_preference = [](void*, int attribute, const void* value,
                          size_t bytes) {
      if (attribute == blas_lt::kReductionSchemes && bytes == 4) {
        std::memcpy(&own_->reductions, value, bytes);
      } else if (attribute == blas_lt::kMostWorkspace && bytes == 8) {
        std::memcpy(&own_->workspace, value, bytes);
      } else if (const auto* const matrix =
                     std::find(std::begin(blas_lt::kLeastAlignments),
                               std::end(blas_lt::kLeastAlignments), attribute);
                 matrix != std::end(blas_lt::kLeastAlignments) && bytes == 4) {
        std::memcpy(
            &own_->alignments[matrix - std::begin(blas_lt::kLeastAlignments)],
            value, bytes);
      } else {
        return kInvalid;
      }
      return Answer("set_preference");
    };
    f.choose = [](void*, void*, void*, void*, void*, void*, void*, int most,
                  BlasLtChoice* choices, int* found) {
      if (most != 1) return kInvalid;
      *found = own_->found;
      if (own_->found > 0) {
        choices[0] = {};
        choices[0].algorithm[7] = kAlgorithm;
      }
      return Answer("choose");
    };
    f.multiply = [](void*, void* product, const void* alpha, const void* a,
                    void* a_layout, const void* b, void* b_layout,
                    const void* beta, const void*, void*, void* d,
                    void* d_layout, const uint64_t* algorithm, void* workspace,
                    size_t workspace_bytes, CUstream_st* stream) {
      if (*static_cast<const float*>(alpha) != 1.0f ||
          *static_cast<const float*>(beta) != 0.0f || workspace != nullptr ||
          workspace_bytes != 0) {
        return kInvalid;
      }
      const int refused = Answer("multiply");
      return refused != 0 ? refused
                          : own_->multiply({*static_cast<Product*>(product),
                                            *static_cast<Layout*>(a_layout),
                                            *static_cast<Layout*>(b_layout),
                                            *static_cast<Layout*>(d_layout), a,
                                            b, d, algorithm[7], stream});
    };
    return f;
  }

  static constexpr uint64_t kAlgorithm = 4711;
  static constexpr int kInvalid = 7;  // a status of the library
  static constexpr int kRefused = 13;

 private:
  static int Answer(const char* call) {
    ++own_->calls[call];
    return FaultAt({.of = Callee::kBlasLt, .call = call});
  }
  template <typename T>
  static int Make(const char* call, void** to, T* made) {
    if (const int refused = Answer(call); refused != 0) {
      delete made;
      return refused;
    }
    ++own_->alive;
    *to = made;
    return 0;
  }
  template <typename T>
  static int End(T* made) {
    --own_->alive;
    delete made;
    return 0;
  }

  static inline FakeBlas* own_ = nullptr;
};

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_DEVICE_CUDA_BLAS_LT_FOR_TEST_H_

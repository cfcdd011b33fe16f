#ifndef TIERCEL_KERNELS_KV_TESTING_H_
#define TIERCEL_KERNELS_KV_TESTING_H_

// For tests of ops only.

#include <vector>

#include "kernels/kv/kv_row.h"

namespace tiercel {

// The types that K and V may have in rows of `head_dim` elements.
inline std::vector<DType> KvTypes(int head_dim) {
  std::vector<DType> types;
  for (DType type : {DType::kF32, DType::kF16, DType::kBF16, DType::kQ8_0}) {
    if (IsKvType(type, head_dim)) types.push_back(type);
  }
  return types;
}

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_KV_TESTING_H_

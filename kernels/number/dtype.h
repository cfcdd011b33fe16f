#ifndef TIERCEL_KERNELS_NUMBER_DTYPE_H_
#define TIERCEL_KERNELS_NUMBER_DTYPE_H_

#include <cstdint>
#include <optional>
#include <string_view>

namespace tiercel {

// Element types of weights and of KV. The quantised ones store blocks of
// elements with common scales; their byte layouts are GGUF's.
enum class DType : uint8_t {
  kF32,
  kF16,
  kBF16,
  kQ8_0,
  kQ4_0,
  kQ4_1,
  kQ5_0,
  kQ5_1,
  kQ4_K,
  kQ5_K,
  kQ6_K,
};

struct DTypeInfo {
  std::string_view name;  // the users' spelling: "f16", "q4_K"
  int block_elements;     // elements per block; 1 if not quantised
  int block_bytes;        // bytes per block
};

const DTypeInfo& InfoOf(DType type);

// Accepts any letter case. Returns nullopt for an unknown name.
std::optional<DType> ParseDType(std::string_view name);

// The bytes of a row of `elements`, which must be whole blocks.
inline int64_t RowBytes(DType type, int64_t elements) {
  const DTypeInfo& info = InfoOf(type);
  return elements / info.block_elements * info.block_bytes;
}

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_NUMBER_DTYPE_H_

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
  kIQ4_NL,
  kIQ4_XS,
  kMXFP4,
  kQ3_K,
  kQ2_K,
};

struct DTypeInfo {
  std::string_view name;  // the users' spelling: "f16", "q4_K"
  int block_elements;     // elements per block; 1 if not quantised
  int block_bytes;        // bytes per block
};

inline constexpr DTypeInfo kDTypeInfos[] = {
    // in the order of DType
    {"f32", 1, 4},        {"f16", 1, 2},      {"bf16", 1, 2},
    {"q8_0", 32, 34},     {"q4_0", 32, 18},   {"q4_1", 32, 20},
    {"q5_0", 32, 22},     {"q5_1", 32, 24},   {"q4_K", 256, 144},
    {"q5_K", 256, 176},   {"q6_K", 256, 210}, {"iq4_nl", 32, 18},
    {"iq4_xs", 256, 136}, {"mxfp4", 32, 17},  {"q3_K", 256, 110},
    {"q2_K", 256, 84},
};

constexpr const DTypeInfo& InfoOf(DType type) {
  return kDTypeInfos[static_cast<int>(type)];
}

// Accepts any letter case. Returns nullopt for an unknown name.
std::optional<DType> ParseDType(std::string_view name);

// The bytes of a row of `elements`, which must be whole blocks.
inline int64_t RowBytes(DType type, int64_t elements) {
  const DTypeInfo& info = InfoOf(type);
  return elements / info.block_elements * info.block_bytes;
}

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_NUMBER_DTYPE_H_

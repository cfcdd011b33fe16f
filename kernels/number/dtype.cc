#include "kernels/number/dtype.h"

#include <array>

#include "absl/strings/match.h"

namespace tiercel {
namespace {

// The infos are in the order of DType.
constexpr std::array<DTypeInfo, 11> kInfos = {{
    {"f32", 1, 4},
    {"f16", 1, 2},
    {"bf16", 1, 2},
    {"q8_0", 32, 34},
    {"q4_0", 32, 18},
    {"q4_1", 32, 20},
    {"q5_0", 32, 22},
    {"q5_1", 32, 24},
    {"q4_K", 256, 144},
    {"q5_K", 256, 176},
    {"q6_K", 256, 210},
}};

}  // namespace

const DTypeInfo& InfoOf(DType type) {
  return kInfos[static_cast<size_t>(type)];
}

std::optional<DType> ParseDType(std::string_view name) {
  for (size_t i = 0; i < kInfos.size(); ++i) {
    if (absl::EqualsIgnoreCase(
            absl::string_view(name.data(), name.size()),
            absl::string_view(kInfos[i].name.data(), kInfos[i].name.size()))) {
      return static_cast<DType>(i);
    }
  }
  return std::nullopt;
}

}  // namespace tiercel

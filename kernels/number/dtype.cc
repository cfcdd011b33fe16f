#include "kernels/number/dtype.h"

#include <iterator>

#include "absl/strings/match.h"

namespace tiercel {

std::optional<DType> ParseDType(std::string_view name) {
  for (size_t i = 0; i < std::size(kDTypeInfos); ++i) {
    const std::string_view one = kDTypeInfos[i].name;
    if (absl::EqualsIgnoreCase(absl::string_view(name.data(), name.size()),
                               absl::string_view(one.data(), one.size()))) {
      return static_cast<DType>(i);
    }
  }
  return std::nullopt;
}

}  // namespace tiercel

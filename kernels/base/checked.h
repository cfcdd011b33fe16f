#ifndef TIERCEL_KERNELS_BASE_CHECKED_H_
#define TIERCEL_KERNELS_BASE_CHECKED_H_

#include <cstdint>
#include <optional>

namespace tiercel {

// Arithmetic on numbers that come from outside (files, requests, flags). Each
// function returns nullopt instead of wrapping.
inline std::optional<uint64_t> CheckedAdd(uint64_t a, uint64_t b) {
  uint64_t sum;
  if (__builtin_add_overflow(a, b, &sum)) return std::nullopt;
  return sum;
}

inline std::optional<uint64_t> CheckedMul(uint64_t a, uint64_t b) {
  uint64_t product;
  if (__builtin_mul_overflow(a, b, &product)) return std::nullopt;
  return product;
}

// The least multiple of `alignment` (> 0) that is at least `n`.
inline std::optional<uint64_t> CheckedAlignUp(uint64_t n, uint64_t alignment) {
  const uint64_t rest = n % alignment;
  return rest == 0 ? n : CheckedAdd(n, alignment - rest);
}

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_BASE_CHECKED_H_

#ifndef TIERCEL_KERNELS_BASE_SPAN_H_
#define TIERCEL_KERNELS_BASE_SPAN_H_

#include <cstddef>

namespace tiercel {

// Which tier bytes live in is part of the type: handing host memory to code
// that needs device memory does not compile. A span owns nothing.
enum class Tier { kHost, kPinned, kDevice };

template <Tier kTier, typename T>
class TierSpan {
 public:
  constexpr TierSpan() = default;
  constexpr TierSpan(T* data, size_t size) : data_(data), size_(size) {}

  constexpr T* data() const { return data_; }
  constexpr size_t size() const { return size_; }
  constexpr bool empty() const { return size_ == 0; }
  constexpr T* begin() const { return data_; }
  constexpr T* end() const { return data_ + size_; }
  constexpr T& operator[](size_t i) const { return data_[i]; }

  constexpr TierSpan subspan(size_t offset, size_t count) const {
    return TierSpan(data_ + offset, count);
  }
  constexpr operator TierSpan<kTier, const T>() const { return {data_, size_}; }

 private:
  T* data_ = nullptr;
  size_t size_ = 0;
};

template <typename T>
using HostSpan = TierSpan<Tier::kHost, T>;  // pageable
template <typename T>
using PinnedSpan = TierSpan<Tier::kPinned, T>;  // the device can copy from it
template <typename T>
using DeviceSpan = TierSpan<Tier::kDevice, T>;  // ops compute on it

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_BASE_SPAN_H_

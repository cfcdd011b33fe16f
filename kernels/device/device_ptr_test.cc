#include "kernels/device/device_ptr.h"

#include <concepts>
#include <cstddef>
#include <type_traits>

#include "gtest/gtest.h"

namespace tiercel {
namespace {

// ---- The tiers cannot be mixed up ----

template <typename P>
concept Dereferenced = requires(P p) {
  *p;
};
template <typename P>
concept Indexed = requires(P p) {
  p[0];
};
template <typename P>
concept Entered = requires(P p) {
  p.operator->();
};

struct Header {
  int size;
};
static_assert(Dereferenced<Header*> && Indexed<Header*>);
static_assert(!Dereferenced<DevicePtr<Header>> && !Indexed<DevicePtr<Header>> &&
              !Entered<DevicePtr<Header>>);

static_assert(std::constructible_from<DevicePtr<float>, float*>);
static_assert(!std::is_convertible_v<float*, DevicePtr<float>>);
static_assert(!std::is_convertible_v<DevicePtr<float>, float*>);
static_assert(!std::is_convertible_v<DevicePtr<float>, const void*>);
static_assert(!std::is_convertible_v<DevicePtr<float>, bool>);

// ---- Otherwise it converts as a plain pointer does ----

static_assert(std::is_convertible_v<std::nullptr_t, DevicePtr<float>>);
static_assert(std::is_convertible_v<DevicePtr<float>, DevicePtr<const float>>);
static_assert(!std::is_convertible_v<DevicePtr<const float>, DevicePtr<float>>);
static_assert(std::is_convertible_v<DevicePtr<float>, DevicePtr<void>>);
static_assert(!std::is_convertible_v<DevicePtr<void>, DevicePtr<float>>);
static_assert(!std::is_convertible_v<DevicePtr<float>, DevicePtr<int>>);

// Kernels take it among their parameters.
static_assert(std::is_trivially_copyable_v<DevicePtr<float>> &&
              sizeof(DevicePtr<float>) == sizeof(float*));

TEST(DevicePtrTest, CountsInElements) {
  alignas(16) float x[8] = {};
  const DevicePtr<float> first = InPlace(x);
  DevicePtr<float> third = first + 2;
  EXPECT_EQ(HostAddress(third), &x[2]);
  EXPECT_EQ(third - first, 2);
  EXPECT_EQ(third - 2, first);
  EXPECT_LT(first, third);
  third += 3;
  EXPECT_EQ(HostAddress(third), &x[5]);
  EXPECT_EQ(HostAddress(third.As<std::byte>() + 4),
            reinterpret_cast<std::byte*>(&x[6]));
  EXPECT_TRUE(first.IsAligned(16));
  EXPECT_FALSE(third.IsAligned(8));
  EXPECT_EQ(DevicePtr<float>(), nullptr);
  EXPECT_NE(first, nullptr);
}

}  // namespace
}  // namespace tiercel

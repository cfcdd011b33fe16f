#ifndef TIERCEL_KERNELS_DEVICE_DEVICE_PTR_H_
#define TIERCEL_KERNELS_DEVICE_DEVICE_PTR_H_

#include <compare>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace tiercel {

// An address in the memory that ops compute in: a GPU's, a simulated device's,
// or the CPU's. The host cannot read what is there, so this has no `*`, no `[]`
// and no `->`. A plain pointer or a span is the host's.
//
// raw() is for the bodies of ops, for launches of kernels and for copies. All
// others that read a device's memory on the host do so by HostAddress.
// tests/layering_test.sh names the files that may call either.
//
// Bodies are compiled once per ISA, hence the attribute: no copy of a member is
// left for the linker to choose.
template <typename T>
class DevicePtr {
 public:
  constexpr DevicePtr() = default;
  // NOLINTNEXTLINE(google-explicit-constructor): as for a plain pointer
  [[gnu::always_inline]] constexpr DevicePtr(std::nullptr_t) {}
  [[gnu::always_inline]] explicit constexpr DevicePtr(T* address)
      : address_(address) {}
  // Pointers convert as plain ones do: to const elements, and to void.
  template <typename U>
  requires std::is_convertible_v<U*, T*>
  // NOLINTNEXTLINE(google-explicit-constructor)
  [[gnu::always_inline]] constexpr DevicePtr(DevicePtr<U> other)
      : address_(other.raw()) {}

  [[gnu::always_inline]] constexpr T* raw() const { return address_; }

  // Returns this address as one of elements of another type.
  template <typename U>
  [[gnu::always_inline]] DevicePtr<U> As() const {
    return DevicePtr<U>(reinterpret_cast<U*>(address_));
  }
  // Returns true if the address is a multiple of `alignment`.
  [[gnu::always_inline]] bool IsAligned(size_t alignment) const {
    return reinterpret_cast<uintptr_t>(address_) % alignment == 0;
  }

  [[gnu::always_inline]] constexpr DevicePtr& operator+=(int64_t n) {
    address_ += n;
    return *this;
  }
  [[gnu::always_inline]] friend constexpr DevicePtr operator+(DevicePtr p,
                                                              int64_t n) {
    return p += n;
  }
  [[gnu::always_inline]] friend constexpr DevicePtr operator-(DevicePtr p,
                                                              int64_t n) {
    return p += -n;
  }
  [[gnu::always_inline]] friend constexpr int64_t operator-(DevicePtr a,
                                                            DevicePtr b) {
    return a.address_ - b.address_;
  }
  [[gnu::always_inline]] friend constexpr auto operator<=>(DevicePtr a,
                                                           DevicePtr b) {
    return a.address_ <=> b.address_;
  }
  [[gnu::always_inline]] friend constexpr bool operator==(DevicePtr a,
                                                          DevicePtr b) {
    return a.address_ == b.address_;
  }

 private:
  T* address_ = nullptr;
};

// The host's own address of memory in which a device computes in place. The
// caller has asked whether it does: Device::in_place, Stream::on_host.
template <typename T>
constexpr T* HostAddress(DevicePtr<T> p) {
  return p.raw();
}
// Memory of the host, as the ops of a device that computes in place take it.
template <typename T>
constexpr DevicePtr<T> InPlace(T* p) {
  return DevicePtr<T>(p);
}

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_DEVICE_DEVICE_PTR_H_

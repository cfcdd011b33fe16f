#ifndef TIERCEL_KERNELS_DEVICE_CUDA_ABI_ALIKE_H_
#define TIERCEL_KERNELS_DEVICE_CUDA_ABI_ALIKE_H_

// Compares function types that are declared here with those of a library's
// header.

#include <type_traits>

struct CUstream_st;

namespace tiercel {

// The type by which a parameter is compared: int for an enum, const void* for a
// pointer or handle.
template <typename T>
using Passed = std::conditional_t<
    std::is_enum_v<T>, int,
    std::conditional_t<std::is_pointer_v<T> && !std::is_same_v<T, CUstream_st*>,
                       const void*, T>>;
template <typename Ours, typename Given>
struct Alike;
template <typename R, typename... A, typename S, typename... B>
struct Alike<R (*)(A...), S (*)(B...)>
    : std::bool_constant<std::is_same_v<Passed<R>, Passed<S>> &&
                         (... && std::is_same_v<Passed<A>, Passed<B>>)> {};

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_DEVICE_CUDA_ABI_ALIKE_H_

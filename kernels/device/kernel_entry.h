#ifndef TIERCEL_KERNELS_DEVICE_KERNEL_ENTRY_H_
#define TIERCEL_KERNELS_DEVICE_KERNEL_ENTRY_H_

#include <atomic>
#include <string_view>

// The way from the host's code to the functions that launch kernels. They are
// in a module that is opened at run time (cuda_module.h), or linked to a
// program whose kernels the host executor runs.
//
// A header declares a kernel's entry, which is called like a function and
// returns a cudaError_t; a .cu file defines its body:
//
//   TIERCEL_KERNEL(TwiceCuda, CUstream_st* stream, float* x);
//   TIERCEL_KERNEL_BODY(TwiceCuda, CUstream_st* stream, float* x) { ... }

namespace tiercel {

// The cudaErrorInvalidDeviceFunction of an entry without a body.
inline constexpr int kNoKernelBody = 98;

// A body that this program, library or module contains, in a list of them.
struct KernelBody {
  using Function = void (*)();

  KernelBody(const char* of_entry, Function function)
      : entry(of_entry), launch(function), next(first) {
    first = this;
  }
  KernelBody(const KernelBody&) = delete;
  KernelBody& operator=(const KernelBody&) = delete;

  // Null: there is none.
  static Function Find(std::string_view name) {
    const KernelBody* body = first;
    while (body != nullptr && body->entry != name) body = body->next;
    return body != nullptr ? body->launch : nullptr;
  }

  const std::string_view entry;  // its name
  const Function launch;         // its type is the entry's Launch
  const KernelBody* const next;

  // The list of this program or library: of the bodies that are linked to it,
  // else those of the module that it has opened.
  static inline const KernelBody* first = nullptr;
};

template <typename Signature>
class KernelEntry;

template <typename... Args>
class KernelEntry<int(Args...)> {
 public:
  using Launch = int(Args...);

  constexpr explicit KernelEntry(const char* name) : name_(name) {}

  int operator()(Args... args) {
    Launch* launch = launch_.load(std::memory_order_acquire);
    if (launch == nullptr) {
      launch = reinterpret_cast<Launch*>(KernelBody::Find(name_));
      if (launch == nullptr) return kNoKernelBody;
      launch_.store(launch, std::memory_order_release);
    }
    return launch(args...);
  }

 private:
  const char* const name_;
  std::atomic<Launch*> launch_ = nullptr;
};

}  // namespace tiercel

#define TIERCEL_KERNEL(entry, ...) \
  inline constinit KernelEntry<int(__VA_ARGS__)> entry(#entry)

#define TIERCEL_KERNEL_BODY(entry, ...)                              \
  static decltype(entry)::Launch entry##Body;                        \
  static const KernelBody entry##InList(                             \
      #entry, reinterpret_cast<KernelBody::Function>(&entry##Body)); \
  static int entry##Body(__VA_ARGS__)

#endif  // TIERCEL_KERNELS_DEVICE_KERNEL_ENTRY_H_

#ifndef TIERCEL_KERNELS_DEVICE_CUDA_DYNAMIC_LIBRARY_H_
#define TIERCEL_KERNELS_DEVICE_CUDA_DYNAMIC_LIBRARY_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace tiercel {

// A library that is loaded at run time and stays until the process ends, as
// such libraries keep threads and memory of their own. Errors name it by
// `title`.
class DynamicLibrary {
 public:
  // Errors: no_library.
  static absl::StatusOr<DynamicLibrary> Load(const char* title,
                                             const char* file);

  // Sets *function to the library's function `name`.
  template <typename Function>
  void Find(const char* name, Function** function) {
    *function = reinterpret_cast<Function*>(AddressOf(name));
  }
  // Errors: no_library, with the first name that Find did not find.
  absl::Status HasAll() const;

 private:
  DynamicLibrary(const char* title, const char* file, void* handle)
      : title_(title), file_(file), handle_(handle) {}
  void* AddressOf(const char* name);

  std::string title_;
  std::string file_;
  void* handle_;
  std::string missing_;
};

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_DEVICE_CUDA_DYNAMIC_LIBRARY_H_

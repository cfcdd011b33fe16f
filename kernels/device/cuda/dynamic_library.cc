#include "kernels/device/cuda/dynamic_library.h"

#include <dlfcn.h>

#include "absl/strings/str_cat.h"
#include "kernels/system/no_signals.h"
#include "lib/status/error.h"

namespace tiercel {

absl::StatusOr<DynamicLibrary> DynamicLibrary::Load(const char* title,
                                                    const char* file) {
  const NoSignals no_signals;  // for threads that it starts when it is loaded
  void* const handle = dlopen(file, RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* const why = dlerror();
    return DeviceError("no_library",
                       absl::StrCat(title, ": ", why != nullptr ? why : file));
  }
  return DynamicLibrary(title, file, handle);
}

void* DynamicLibrary::AddressOf(const char* name) {
  void* const address = dlsym(handle_, name);
  if (address == nullptr && missing_.empty()) missing_ = name;
  return address;
}

absl::Status DynamicLibrary::HasAll() const {
  if (missing_.empty()) return absl::OkStatus();
  return DeviceError("no_library",
                     absl::StrCat(title_, ": ", file_, " has no ", missing_));
}

}  // namespace tiercel

#include "kernels/device/cuda/cuda_module.h"

#include <string_view>

#include "absl/strings/str_cat.h"
#include "kernels/device/cuda/dynamic_library.h"
#include "kernels/device/kernel_entry.h"
#include "kernels/device/kernels_sum.h"
#include "lib/status/error.h"
#include "lib/status/status_macros.h"

namespace tiercel {

absl::StatusOr<const CudaModule*> OpenCudaModule(const char* file) {
  absl::StatusOr<DynamicLibrary> loaded =
      DynamicLibrary::Load("the CUDA module", file);
  const CudaModule* (*contents)() = nullptr;
  absl::Status status = loaded.status();
  if (status.ok()) {
    loaded->Find("tiercel_cuda_module", &contents);
    status = loaded->HasAll();
  }
  if (!status.ok()) {
    return DeviceError(
        "no_device",
        absl::StrCat("device cuda: ", std::string(status.message())));
  }
  const CudaModule* const module = contents();
  if (module->kernels_sum != std::string_view(kKernelsSum)) {
    return DeviceError(
        "no_device",
        absl::StrCat("device cuda: the CUDA module: ", file,
                     " is of another build, need the one of this program"));
  }
  return module;
}

const absl::StatusOr<const CudaModule*>& OwnCudaModule() {
  static const auto* const own = [] {
    auto* const opened = new absl::StatusOr<const CudaModule*>(
        OpenCudaModule("libtiercel-cuda.so"));
    if (opened->ok()) KernelBody::first = (**opened)->kernels;
    return opened;
  }();
  return *own;
}

const CudaCalls& Cuda() { return (*OwnCudaModule())->calls; }

}  // namespace tiercel

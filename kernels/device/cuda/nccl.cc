#include "kernels/device/cuda/nccl.h"

#include <cstdlib>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "kernels/device/cuda/dynamic_library.h"
#include "lib/status/error.h"
#include "lib/status/status_macros.h"

namespace tiercel {

absl::StatusOr<NcclFunctions> NcclFunctions::Load(const char* library) {
  ASSIGN_OR_RETURN(DynamicLibrary loaded,
                   DynamicLibrary::Load("NCCL", library));
  NcclFunctions f;
  loaded.Find("ncclGetVersion", &f.version);
  loaded.Find("ncclCommInitAll", &f.create_all);
  loaded.Find("ncclCommDestroy", &f.destroy);
  loaded.Find("ncclCommAbort", &f.abort);
  loaded.Find("ncclCommGetAsyncError", &f.async_error);
  loaded.Find("ncclGroupStart", &f.group_start);
  loaded.Find("ncclGroupEnd", &f.group_end);
  loaded.Find("ncclSend", &f.send);
  loaded.Find("ncclRecv", &f.receive);
  loaded.Find("ncclGetErrorString", &f.error_text);
  RETURN_IF_ERROR(loaded.HasAll());
  return f;
}

absl::Status NcclFunctions::CheckVersion() const {
  int number = 0;
  RETURN_IF_ERROR(StatusOf("GetVersion", version(&number)));
  if (number >= kLeastVersion && number / 10000 == kLeastVersion / 10000) {
    return absl::OkStatus();
  }
  // Up to 2.8 a version is written in fewer digits.
  const int major = number < 10000 ? number / 1000 : number / 10000;
  const int minor = number < 10000 ? number / 100 % 10 : number / 100 % 100;
  return DeviceError("no_library",
                     absl::StrCat("NCCL: got version ", major, ".", minor, ".",
                                  number % 100, ", need 2.27.5 or a later 2"));
}

absl::Status NcclFunctions::StatusOf(const char* call, int error) const {
  if (error == 0) return absl::OkStatus();
  return DeviceError("gather_failed",
                     absl::StrCat("NCCL: ", call, " ended with error ", error,
                                  ", ", error_text(error)));
}

absl::StatusOr<NcclUse> NcclFromEnvironment() {
  const char* const asked = std::getenv("TIERCEL_NCCL");
  const std::string_view value = asked == nullptr ? "" : asked;
  if (value.empty()) return NcclUse::kWhereItIs;
  if (value == "0") return NcclUse::kNever;
  if (value == "1") return NcclUse::kAlways;
  return UsageError("invalid_environment",
                    absl::StrCat("TIERCEL_NCCL: got \"", std::string(value),
                                 "\", need 0 or 1"));
}

}  // namespace tiercel

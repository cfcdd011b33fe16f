// Describes the machine and the build, for a place beside every measured
// number.

#include "include/tiercel_lab.h"
#include "kernels/device/cpu/probe.h"
#include "lib/status/status_macros.h"
#include "runtime/api/boundary.h"
#include "runtime/api/build_info.h"
#include "runtime/api/version.h"
#include "runtime/machine/machine_json.h"

namespace tiercel {
const char* VersionText() {
  try {
    // Never destroyed: the caller may keep it until the process ends.
    static const std::string* const text = [] {
      const absl::StatusOr<Isa> isa = ChooseIsa();
      return new std::string(
          absl::StrCat(kVersion, " (commit ", kCommit, ", ", kBuildType, ", ",
                       isa.ok() ? std::string(NameOf(*isa)) : "no ISA", ")"));
    }();
    return text->c_str();
  } catch (const std::bad_alloc&) {
    return kVersion;  // next time it returns the whole text
  }
}

}  // namespace tiercel

extern "C" const char* tiercel_status_name(tiercel_status status) {
  switch (status) {
    case TIERCEL_OK:
      return "ok";
    case TIERCEL_FAILED:
      return "failed";
    case TIERCEL_USAGE:
      return "wrong usage";
    case TIERCEL_INVALID_INPUT:
      return "invalid input";
    case TIERCEL_OUT_OF_MEMORY:
      return "out of memory";
    case TIERCEL_NO_DEVICE:
      return "no device";
    case TIERCEL_IO:
      return "input or output failed";
    case TIERCEL_CANCELLED:
      return "cancelled";
    case TIERCEL_BUFFER_TOO_SMALL:
      return "buffer too small";
  }
  return "unknown status";
}

extern "C" tiercel_status tiercel_check_environment(tiercel_error* error) {
  return tiercel::AtBoundary(error,
                             [] { return tiercel::ChooseIsa().status(); });
}

extern "C" tiercel_status tiercel_devices(char* json, size_t* size,
                                          tiercel_error* error) {
  return tiercel::AtBoundary(error, [&]() -> absl::Status {
    RETURN_IF_ERROR(tiercel::NeedPlace("json", json, size));
    ASSIGN_OR_RETURN(const tiercel::Isa isa, tiercel::ChooseIsa());
    return tiercel::FillJson(tiercel::DevicesJson(isa), json, size);
  });
}

extern "C" tiercel_status tiercel_machine(const tiercel_machine_params* params,
                                          char* json, size_t* size,
                                          tiercel_error* error) {
  return tiercel::AtBoundary(error, [&](auto& thread) -> absl::Status {
    tiercel_machine_params p = {};
    if (params != nullptr) {
      RETURN_IF_ERROR(tiercel::ReadStruct("params", params, &p));
    }
    RETURN_IF_ERROR(tiercel::NeedPlace("json", json, size));
    if (p.threads < 0 || p.threads > 1024) {
      return tiercel::UsageError(
          "invalid_threads",
          absl::StrCat("threads: got ", p.threads, ", need 0 to 1024"));
    }
    ASSIGN_OR_RETURN(
        const std::unique_ptr<tiercel::Stream> stream,
        tiercel::Stream::Create({.threads = static_cast<int>(p.threads)}));
    ASSIGN_OR_RETURN(
        const tiercel::Peaks peaks,
        tiercel::MeasurePeaks(*stream, [&](uint64_t done, uint64_t total) {
          return thread.GoesOn(p.progress, p.user_data, done, total);
        }));
    return tiercel::FillJson(tiercel::MachineJson(peaks, stream->isa(),
                                                  stream->pool().num_threads()),
                             json, size);
  });
}

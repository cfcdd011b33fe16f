#include "apps/cli/tried.h"

#include <new>

#include "apps/cli/error.h"
#include "include/tiercel.hpp"

namespace tiercel::cli {
namespace {

// A call is cancelled only by a signal. For the command line a view that
// exceeds the context is one that does not fit.
absl::Status FromLibrary(const tiercel::Error& error) {
  switch (error.status()) {
    case TIERCEL_CANCELLED:
      return Interrupted();
    case TIERCEL_USAGE:
      return Error(
          error.code() == "view_too_large" ? Exit::kMemory : Exit::kUsage,
          error.code(), error.what());
    case TIERCEL_INVALID_INPUT:
      return Error(Exit::kInput, error.code(), error.what());
    case TIERCEL_OUT_OF_MEMORY:
      return Error(Exit::kMemory, error.code(), error.what());
    case TIERCEL_NO_DEVICE:
      return Error(Exit::kDevice, error.code(), error.what());
    case TIERCEL_IO:
      return Error(Exit::kIo, error.code(), error.what());
    case TIERCEL_OK:
    case TIERCEL_FAILED:
    case TIERCEL_BUFFER_TOO_SMALL:
      break;
  }
  return Error(Exit::kFailed, error.code(), error.what());
}

}  // namespace

absl::Status StatusOf(const std::exception_ptr& thrown) {
  if (thrown == nullptr) return absl::OkStatus();
  try {
    std::rethrow_exception(thrown);
  } catch (const Stopped& stopped) {
    return stopped.status();
  } catch (const tiercel::Error& error) {
    return FromLibrary(error);
  } catch (const std::bad_alloc&) {
    return Error(Exit::kMemory, "out_of_memory", "out of memory");
  } catch (const std::exception& exception) {
    return Error(Exit::kFailed, "internal", exception.what());
  } catch (...) {
    return Error(Exit::kFailed, "internal", "no std::exception was thrown");
  }
}

}  // namespace tiercel::cli

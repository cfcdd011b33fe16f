#ifndef TIERCEL_KERNELS_MACHINE_NCCL_H_
#define TIERCEL_KERNELS_MACHINE_NCCL_H_

#include <cstddef>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

struct CUstream_st;

namespace tiercel {

// What of NCCL is called, as nccl.h of version 2 declares it: an int is one of
// its enums, a void* a communicator. nccl_abi.cc compares the two where that
// header is. Nothing of it is linked: it is loaded where several GPUs compute
// one model.
struct NcclFunctions {
  static constexpr int kBytes = 0;  // ncclInt8
  // Before it an all-reduce wrote behind its buffer; a later 2 has the same
  // functions.
  static constexpr int kLeastVersion = 22705;

  int (*version)(int* version) = nullptr;
  int (*create_all)(void** communicators, int ranks, const int* gpus) = nullptr;
  int (*destroy)(void* communicator) = nullptr;
  // Ends what is under way, on GPUs too; the communicator is no more.
  int (*abort)(void* communicator) = nullptr;
  int (*async_error)(void* communicator, int* error) = nullptr;
  int (*group_start)() = nullptr;
  int (*group_end)() = nullptr;
  int (*send)(const void* from, size_t count, int type, int peer,
              void* communicator, CUstream_st* stream) = nullptr;
  int (*receive)(void* to, size_t count, int type, int peer, void* communicator,
                 CUstream_st* stream) = nullptr;
  const char* (*error_text)(int error) = nullptr;

  // Finds them in a library. Errors: no_library, where it cannot be loaded or
  // has not all of them.
  static absl::StatusOr<NcclFunctions> Load(const char* library);
  // Errors: no_library, where the version is not one that is known to serve.
  absl::Status CheckVersion() const;
  // Errors: gather_failed, with the library's words for its `error`.
  absl::Status StatusOf(const char* call, int error) const;
};

inline constexpr const char* kNcclLibrary = "libnccl.so.2";

// What TIERCEL_NCCL asks for: that GPUs use NCCL where it is (empty, or not
// set), never (0), or that nothing is done without it (1). Errors:
// invalid_environment.
enum class NcclUse { kWhereItIs, kNever, kAlways };
absl::StatusOr<NcclUse> NcclFromEnvironment();

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_MACHINE_NCCL_H_

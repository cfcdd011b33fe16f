#ifndef TIERCEL_KERNELS_DEVICE_CUDA_NCCL_H_
#define TIERCEL_KERNELS_DEVICE_CUDA_NCCL_H_

#include <cstddef>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

struct CUstream_st;

namespace tiercel {

// The functions of NCCL that we call, as nccl.h of version 2 declares them. An
// int is one of its enums, a void* a communicator. nccl_abi.cc compares the two
// if that header is installed. NCCL is not linked, but loaded when several GPUs
// compute one model.
struct NcclFunctions {
  static constexpr int kBytes = 0;  // ncclInt8
  // Before this version an all-reduce wrote past its buffer. A later version 2
  // has the same functions.
  static constexpr int kLeastVersion = 22705;

  int (*version)(int* version) = nullptr;
  int (*create_all)(void** communicators, int ranks, const int* gpus) = nullptr;
  int (*destroy)(void* communicator) = nullptr;
  // Ends pending work, on GPUs too, and destroys the communicator.
  int (*abort)(void* communicator) = nullptr;
  int (*async_error)(void* communicator, int* error) = nullptr;
  int (*group_start)() = nullptr;
  int (*group_end)() = nullptr;
  int (*send)(const void* from, size_t count, int type, int peer,
              void* communicator, CUstream_st* stream) = nullptr;
  int (*receive)(void* to, size_t count, int type, int peer, void* communicator,
                 CUstream_st* stream) = nullptr;
  const char* (*error_text)(int error) = nullptr;

  // Finds the functions in a library. Errors: no_library if it cannot be loaded
  // or lacks one of them.
  static absl::StatusOr<NcclFunctions> Load(const char* library);
  // Errors: no_library if the version is not known to work.
  absl::Status CheckVersion() const;
  // Errors: gather_failed, with the library's text for its `error`.
  absl::Status StatusOf(const char* call, int error) const;
};

inline constexpr const char* kNcclLibrary = "libnccl.so.2";

// The value of TIERCEL_NCCL. GPUs use NCCL if it is installed (empty or not
// set), never (0), or always, and it is an error if it is missing (1). Errors:
// invalid_environment.
enum class NcclUse { kWhereItIs, kNever, kAlways };
absl::StatusOr<NcclUse> NcclFromEnvironment();

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_DEVICE_CUDA_NCCL_H_

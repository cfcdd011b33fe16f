// Compares the declarations of machine/nccl.h with NCCL's header, if it is
// installed. No other file of this program includes that header.

#if __has_include(<nccl.h>)

#include <nccl.h>

#include <type_traits>

#include "kernels/device/cuda/abi_alike.h"
#include "kernels/device/cuda/nccl.h"

namespace tiercel {
namespace {

static_assert(NCCL_MAJOR == NcclFunctions::kLeastVersion / 10000);
static_assert(NCCL_VERSION(2, 27, 5) == NcclFunctions::kLeastVersion);
static_assert(NcclFunctions::kBytes == ncclInt8);
static_assert(ncclSuccess == 0);

#define TIERCEL_ALIKE(ours, theirs)                  \
  static_assert(Alike<decltype(NcclFunctions::ours), \
                      std::decay_t<decltype(theirs)>>::value)
TIERCEL_ALIKE(version, ncclGetVersion);
TIERCEL_ALIKE(create_all, ncclCommInitAll);
TIERCEL_ALIKE(destroy, ncclCommDestroy);
TIERCEL_ALIKE(abort, ncclCommAbort);
TIERCEL_ALIKE(async_error, ncclCommGetAsyncError);
TIERCEL_ALIKE(group_start, ncclGroupStart);
TIERCEL_ALIKE(group_end, ncclGroupEnd);
TIERCEL_ALIKE(send, ncclSend);
TIERCEL_ALIKE(receive, ncclRecv);
TIERCEL_ALIKE(error_text, ncclGetErrorString);
#undef TIERCEL_ALIKE

}  // namespace
}  // namespace tiercel

#endif

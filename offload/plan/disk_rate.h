#ifndef TIERCEL_OFFLOAD_PLAN_DISK_RATE_H_
#define TIERCEL_OFFLOAD_PLAN_DISK_RATE_H_

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "kernels/kv/kv_layout.h"
#include "offload/disk/disk_calls.h"

namespace tiercel {

// Bytes a second with which pages of `layout` come from `file`, which is open,
// empty and closed by this, as steps read them: several at once, checked and
// copied. It writes 64 MiB there first, and has the system forget them.
// Errors: disk_full, io_error; out_of_memory; cancelled.
absl::StatusOr<double> MeasureDiskRate(DiskCalls& disk, int file,
                                       const KvLayout& layout,
                                       absl::FunctionRef<bool()> cancelled);

}  // namespace tiercel

#endif  // TIERCEL_OFFLOAD_PLAN_DISK_RATE_H_

#ifndef TIERCEL_OFFLOAD_PLAN_DISK_RATE_H_
#define TIERCEL_OFFLOAD_PLAN_DISK_RATE_H_

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "kernels/kv/kv_layout.h"
#include "kernels/machine/clock.h"
#include "offload/disk/disk_calls.h"

namespace tiercel {

struct DiskRate {
  double bytes_per_s = 0;
  double bytes_per_cpu_s = 0;  // of the time that it takes of this process
};

// How fast pages of `layout` come from `file`, which is open, empty and closed
// by this, as steps read them: several at once, checked and copied. It writes
// 64 MiB there first, has the system forget them, and reads them some times:
// the median counts, of all but the first where there are others, as decoding
// reads its pages again and again. Errors: disk_full, io_error; out_of_memory;
// cancelled.
absl::StatusOr<DiskRate> MeasureDiskRate(DiskCalls& disk, int file,
                                         const KvLayout& layout,
                                         absl::FunctionRef<bool()> cancelled,
                                         Clock& clock = SteadyClock());

}  // namespace tiercel

#endif  // TIERCEL_OFFLOAD_PLAN_DISK_RATE_H_

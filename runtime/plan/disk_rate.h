#ifndef TIERCEL_RUNTIME_PLAN_DISK_RATE_H_
#define TIERCEL_RUNTIME_PLAN_DISK_RATE_H_

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "kernels/kv/kv_layout.h"
#include "kernels/system/clock.h"
#include "offload/disk/disk_calls.h"

namespace tiercel {

struct DiskRate {
  double bytes_per_s = 0;
  double bytes_per_cpu_s = 0;  // bytes per second of this process's CPU time
};

// Measures the rate at which steps read pages of `layout` from disk: several at
// once, checked and copied. Writes 64 MiB to `file`, which is open and empty
// and which it closes, has the system drop them from its cache, and reads them
// several times. Returns the median of the readings; the first is left out if
// there are others, as decoding reads its pages again and again. Errors:
// disk_full, io_error; out_of_memory; cancelled.
absl::StatusOr<DiskRate> MeasureDiskRate(DiskCalls& disk, int file,
                                         const KvLayout& layout,
                                         absl::FunctionRef<bool()> cancelled,
                                         Clock& clock = SteadyClock());

}  // namespace tiercel

#endif  // TIERCEL_RUNTIME_PLAN_DISK_RATE_H_

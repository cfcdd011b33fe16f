#ifndef TIERCEL_OFFLOAD_KV_KV_RUN_H_
#define TIERCEL_OFFLOAD_KV_KV_RUN_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "kernels/device/stream.h"
#include "kernels/kv/kv_convert.h"
#include "kernels/kv/kv_layout.h"

namespace tiercel {

// A run of rows of one KV head, all in one page, and the addresses that their K
// and V are copied to.
struct KvRun {
  int layer = 0;
  int head = 0;
  int64_t position = 0;  // the first row's
  int64_t rows = 0;
  DevicePtr<std::byte> k;
  DevicePtr<std::byte> v;
};

// Copies the rows of `runs` to their places, converted to the types of `to`.
// page_of(run) returns the page with the rows. Errors: those of KvConvert.
absl::Status FillRuns(
    Stream& stream, const KvLayout& layout, const KvLayout& to,
    std::span<const KvRun> runs,
    absl::FunctionRef<DevicePtr<std::byte>(const KvRun& run)> page_of);

// Converts rows of K and rows of V to another layout. `k` and `v` say from
// where to where, and have the same number of runs. Errors: those of KvConvert.
absl::Status ConvertRows(Stream& stream, const KvLayout& from,
                         const KvLayout& to,
                         const std::vector<KvConvertParams::Run>& k,
                         const std::vector<KvConvertParams::Run>& v);

}  // namespace tiercel

#endif  // TIERCEL_OFFLOAD_KV_KV_RUN_H_

#ifndef TIERCEL_OFFLOAD_KV_KV_RUN_H_
#define TIERCEL_OFFLOAD_KV_KV_RUN_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "kernels/kv/kv_convert.h"
#include "kernels/kv/kv_layout.h"
#include "kernels/machine/stream.h"

namespace tiercel {

// Rows of one KV head, all in one page, and where their K and V are to go.
struct KvRun {
  int layer = 0;
  int head = 0;
  int64_t position = 0;  // of the first row
  int64_t rows = 0;
  std::byte* k = nullptr;
  std::byte* v = nullptr;
};

// Has the places of `runs` filled on the device with their rows, which become
// those of `to`. page_of(run) is the page that holds them, at hand. Errors:
// those of KvConvert.
absl::Status FillRuns(
    Stream& stream, const KvLayout& layout, const KvLayout& to,
    std::span<const KvRun> runs,
    absl::FunctionRef<const std::byte*(const KvRun& run)> page_of);

// Rows of K and rows of V as those of another layout, which `k` and `v` say
// from where to where; as many of one as of the other. Errors: those of
// KvConvert.
absl::Status ConvertRows(Stream& stream, const KvLayout& from,
                         const KvLayout& to,
                         const std::vector<KvConvertParams::Run>& k,
                         const std::vector<KvConvertParams::Run>& v);

}  // namespace tiercel

#endif  // TIERCEL_OFFLOAD_KV_KV_RUN_H_

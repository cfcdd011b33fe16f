#include "kernels/layer/gather_rows.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "kernels/device/cuda/cuda_driver.h"
#include "kernels/device/op.h"
#include "lib/status/error.h"
#include "lib/status/status_macros.h"

namespace tiercel {
namespace {

absl::Status Validate(const GatherRowsParams& p) {
  if (p.items < 0 || p.dim < 1 || p.x_stride < p.dim) {
    return UsageError(
        "invalid_sizes",
        absl::StrCat("GatherRows: items=", p.items, ", dim=", p.dim,
                     ", x_stride=", p.x_stride,
                     "; need items >= 0, dim positive, a stride of dim at "
                     "least"));
  }
  if (p.items == 0) return absl::OkStatus();
  const char* const missing = p.x == nullptr      ? "x"
                              : p.rows == nullptr ? "rows"
                              : p.out == nullptr  ? "out"
                                                  : nullptr;
  if (missing != nullptr) {
    return UsageError("invalid_argument",
                      absl::StrCat("GatherRows: ", missing, " is null"));
  }
  return CheckIndices("GatherRows: rows", p.rows, p.items, p.x_rows);
}

absl::Status OnHost(Stream& stream, const GatherRowsParams& p) {
  constexpr int64_t kBytes = int64_t{64} << 10;  // worth a thread
  const auto bytes = static_cast<size_t>(p.dim) * sizeof(float);
  stream.pool().ParallelFor(
      p.items, std::max<int64_t>(1, kBytes / static_cast<int64_t>(bytes)),
      [&](int64_t begin, int64_t end, int) {
        for (int64_t i = begin; i < end; ++i) {
          std::memcpy(p.out.raw() + i * p.dim,
                      p.x.raw() + p.rows[i] * p.x_stride, bytes);
        }
      });
  return absl::OkStatus();
}

absl::Status OnGpu(Stream& stream, const GatherRowsParams& p) {
  ASSIGN_OR_RETURN(const DevicePtr<const int32_t> rows,
                   SendToScratch(stream, p.rows, p.items));
  GatherRowsParams there = p;
  there.rows = rows.raw();
  return CudaStatus("GatherRows",
                    GatherRowsCuda(stream.queue().handle(), there));
}

constexpr OpBodies<GatherRowsParams> kGatherRows = {
    .reference = OnHost,
    .cpu = OnHost,
    .gpu = OnGpu,
    .keep = [](GatherRowsParams& p, HostLists& lists) {
      p.rows = lists.Keep(p.rows, p.items);
    }};

}  // namespace

absl::Status CheckIndices(const char* list, const int32_t* indices,
                          int64_t count, int64_t end) {
  for (int64_t i = 0; i < count; ++i) {
    if (indices[i] >= 0 && indices[i] < end) continue;
    return UsageError(
        "invalid_argument",
        absl::StrCat(list, "[", i, "]=", indices[i], "; need 0 to ", end - 1));
  }
  return absl::OkStatus();
}

absl::Status GatherRows(Stream& stream, const GatherRowsParams& p) {
  RETURN_IF_ERROR(Validate(p));
  if (p.items == 0) return absl::OkStatus();
  return Run(kGatherRows, stream, p);
}

}  // namespace tiercel

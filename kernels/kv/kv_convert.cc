#include "kernels/kv/kv_convert.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "kernels/device/cuda/cuda_driver.h"
#include "kernels/device/op.h"
#include "kernels/device/stream.h"
#include "kernels/kv/kv_row.h"
#include "lib/status/error.h"
#include "lib/status/status_macros.h"

namespace tiercel {

void KvRowConvertReference(DType from, const std::byte* row, DType to,
                           int head_dim, std::byte* out) {
  std::vector<float> values(static_cast<size_t>(head_dim));
  KvRowToF32(from, row, head_dim, values.data());
  KvRowFromF32(to, values.data(), head_dim, out);
}

namespace {

// VNNI multiplies bytes, which this op does not.
constexpr PerIsa<KvRowConvertFn*> kRowConvert = {
    portable::KvRowConvert, avx2::KvRowConvert, avx512::KvRowConvert,
    avx512::KvRowConvert};

absl::Status Validate(const KvConvertParams& p) {
  const auto has_less_than_none = [](const auto& run) { return run.rows < 0; };
  if (p.head_dim <= 0 || p.head_dim % 8 != 0 || p.num_runs < 0 ||
      std::any_of(p.runs, p.runs + p.num_runs, has_less_than_none)) {
    return UsageError(
        "invalid_sizes",
        absl::StrCat("KvConvert: head_dim=", p.head_dim,
                     ", num_runs=", p.num_runs,
                     "; need a positive multiple of 8, and neither "
                     "runs nor rows below 0"));
  }
  for (DType type : {p.from, p.to}) {
    RETURN_IF_ERROR(CheckKvType("KvConvert", type, p.head_dim));
  }
  return absl::OkStatus();
}

void ConvertRun(const KvConvertParams& p, int64_t i, KvRowConvertFn* convert) {
  const KvConvertParams::Run& run = p.runs[i];
  if (run.rows == 0) return;  // its addresses may be null
  const int64_t from_bytes = RowBytes(p.from, p.head_dim);
  const int64_t to_bytes = RowBytes(p.to, p.head_dim);
  if (p.from == p.to) {
    std::memcpy(run.to.raw(), run.from.raw(),
                static_cast<size_t>(run.rows * to_bytes));
    return;
  }
  for (int64_t r = 0; r < run.rows; ++r) {
    convert(p.from, run.from.raw() + r * from_bytes, p.to, p.head_dim,
            run.to.raw() + r * to_bytes);
  }
}

absl::Status OnCpu(Stream& stream, const KvConvertParams& p,
                   KvRowConvertFn* convert) {
  constexpr int64_t kGrain = 4;  // some microseconds
  stream.pool().ParallelFor(p.num_runs, kGrain,
                            [&](int64_t begin, int64_t end, int) {
                              for (int64_t i = begin; i < end; ++i) {
                                ConvertRun(p, i, convert);
                              }
                            });
  return absl::OkStatus();
}

absl::Status OnGpu(Stream& stream, const KvConvertParams& p) {
  ASSIGN_OR_RETURN(const auto runs, SendToScratch(stream, p.runs, p.num_runs));
  return CudaStatus("KvConvert",
                    KvConvertCuda(stream.queue().handle(), p, runs));
}

constexpr OpBodies<KvConvertParams> kKvConvert = {
    .reference =
        [](Stream& stream, const KvConvertParams& p) {
          return OnCpu(stream, p, KvRowConvertReference);
        },
    .cpu =
        [](Stream& stream, const KvConvertParams& p) {
          return OnCpu(stream, p, kRowConvert[stream.isa()]);
        },
    .gpu = OnGpu,
    .keep = [](KvConvertParams& p,
               HostLists& lists) { p.runs = lists.Keep(p.runs, p.num_runs); }};

}  // namespace

absl::Status KvConvert(Stream& stream, const KvConvertParams& p) {
  RETURN_IF_ERROR(Validate(p));
  if (p.num_runs == 0) return absl::OkStatus();
  return Run(kKvConvert, stream, p);
}

}  // namespace tiercel

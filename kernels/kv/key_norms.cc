#include "kernels/kv/key_norms.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "kernels/device/cuda/cuda_driver.h"
#include "kernels/device/op.h"
#include "kernels/device/stream.h"
#include "kernels/kv/kv_row.h"
#include "kernels/kv/page_range.h"
#include "kernels/number/half.h"
#include "lib/status/error.h"
#include "lib/status/status_macros.h"

namespace tiercel {

void KeyNormsReference(const KeyNormsParams& p) {
  const KvLayout& kv = p.layout;
  std::vector<float> key(static_cast<size_t>(kv.head_dim));
  for (int head = 0; head < kv.kv_heads; ++head) {
    for (int64_t j = p.first; j < p.last; ++j) {
      KvRowToF32(kv.type_k,
                 p.pages[j / kPageTokens - p.first_page].raw() +
                     kv.KOffset(head, static_cast<int>(j % kPageTokens)),
                 kv.head_dim, key.data());
      float sum = 0.0f;
      for (const float x : key) sum = std::fma(x, x, sum);
      p.out.raw()[head * p.out_stride + j - p.first] =
          F16FromF32(std::sqrt(sum));
    }
  }
}

namespace {

constexpr PerIsa<NormRowsFn*> kComputeNorms = {
    portable::ComputeNorms, avx2::ComputeNorms, avx512::ComputeNorms,
    avx512::ComputeNorms};

absl::Status Validate(const KeyNormsParams& p) {
  const KvLayout& kv = p.layout;
  if (kv.kv_heads <= 0 || kv.head_dim <= 0 || kv.head_dim % 8 != 0) {
    return UsageError("invalid_sizes",
                      absl::StrCat("KeyNorms: kv_heads=", kv.kv_heads,
                                   ", head_dim=", kv.head_dim,
                                   "; need kv_heads positive and head_dim a "
                                   "positive multiple of 8"));
  }
  RETURN_IF_ERROR(CheckKvType("KeyNorms", kv.type_k, kv.head_dim));
  constexpr int64_t kMaxPosition = int64_t{1} << 48;
  if (p.first < 0 || p.first > p.last || p.last > kMaxPosition) {
    return UsageError(
        "invalid_position",
        absl::StrCat("KeyNorms: first=", p.first, ", last=", p.last,
                     "; need 0 <= first <= last <= 2^48"));
  }
  if (p.out_stride < p.last - p.first) {
    return UsageError(
        "invalid_sizes",
        absl::StrCat("KeyNorms: out_stride=", p.out_stride,
                     "; need at least last - first = ", p.last - p.first));
  }
  if (p.first == p.last) return absl::OkStatus();
  return CheckPageRange("KeyNorms", p.pages, p.first_page, p.num_pages,
                        p.first / kPageTokens, (p.last - 1) / kPageTokens);
}

absl::Status OnGpu(Stream& stream, const KeyNormsParams& p) {
  ASSIGN_OR_RETURN(
      const DevicePages pages,
      SendPages(stream, p, p.first / kPageTokens, (p.last - 1) / kPageTokens));
  return CudaStatus("KeyNorms",
                    KeyNormsCuda(stream.queue().handle(), p, pages));
}

absl::Status OnCpu(Stream& stream, const KeyNormsParams& p) {
  // An item is one KV head of one page, which takes some microseconds.
  const KvLayout& kv = p.layout;
  const int64_t first_page = p.first / kPageTokens;
  const int64_t pages = (p.last - 1) / kPageTokens - first_page + 1;
  stream.pool().ParallelFor(
      pages * kv.kv_heads, 1, [&](int64_t begin, int64_t end, int) {
        for (int64_t item = begin; item < end; ++item) {
          const int64_t page = first_page + item / kv.kv_heads;
          const auto head = static_cast<int>(item % kv.kv_heads);
          const int64_t start = page * kPageTokens;
          const int64_t first = std::max(p.first, start);
          const int64_t last = std::min(p.last, start + kPageTokens);
          kComputeNorms[stream.isa()](
              {kv.type_k,
               p.pages[page - p.first_page].raw() +
                   kv.KOffset(head, static_cast<int>(first - start)),
               kv.KRowBytes(), kv.head_dim, static_cast<int>(last - first),
               p.out.raw() + head * p.out_stride + first - p.first});
        }
      });
  return absl::OkStatus();
}

constexpr OpBodies<KeyNormsParams> kKeyNorms = {
    .reference = PlainBody<KeyNormsReference>,
    .cpu = OnCpu,
    .gpu = OnGpu,
    .keep = KeepPages<KeyNormsParams>};

}  // namespace

absl::Status KeyNorms(Stream& stream, const KeyNormsParams& p) {
  RETURN_IF_ERROR(Validate(p));
  if (p.first == p.last) return absl::OkStatus();
  return Run(kKeyNorms, stream, p);
}

}  // namespace tiercel

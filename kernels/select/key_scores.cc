#include "kernels/select/key_scores.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "kernels/device/cuda/cuda_driver.h"
#include "kernels/device/op.h"
#include "kernels/device/stream.h"
#include "kernels/kv/kv_row.h"
#include "kernels/kv/page_range.h"
#include "lib/status/error.h"
#include "lib/status/status_macros.h"

namespace tiercel {
namespace {

// VNNI has no body of its own, as it has no instructions for floats.
constexpr PerIsa<KeyBlockFn*> kComputeKeyBlock = {
    portable::ComputeKeyBlock, avx2::ComputeKeyBlock, avx512::ComputeKeyBlock,
    avx512::ComputeKeyBlock};

absl::Status Validate(const KeyScoresParams& p) {
  const KvLayout& kv = p.layout;
  RETURN_IF_ERROR(CheckQueryRows("KeyScores", p.rows, p.heads, p.q_stride, kv));
  RETURN_IF_ERROR(CheckKvType("KeyScores", kv.type_k, kv.head_dim));
  constexpr int64_t kMaxPosition = int64_t{1} << 48;
  if (p.position < 0 || p.position > kMaxPosition || p.rows > kMaxPosition ||
      p.first < 0 || p.first > p.last || p.last > p.position + p.rows) {
    return UsageError(
        "invalid_position",
        absl::StrCat("KeyScores: first=", p.first, ", last=", p.last,
                     ", position=", p.position, ", rows=", p.rows,
                     "; need 0 <= first <= last <= position + rows, both "
                     "position and rows at most 2^48"));
  }
  if (p.out_stride < p.last - p.first) {
    return UsageError("invalid_sizes",
                      absl::StrCat("KeyScores: out_stride=", p.out_stride,
                                   ", first=", p.first, ", last=", p.last,
                                   "; need no less than last - first"));
  }
  if (p.rows == 0 || p.first == p.last) return absl::OkStatus();
  return CheckPageRange("KeyScores", p.pages, p.first_page, p.num_pages,
                        p.first / kPageTokens, (p.last - 1) / kPageTokens);
}

// The work on one KV head of one page.
KeyBlock BlockOf(const KeyScoresParams& p, int64_t page, int kv_head) {
  const KvLayout& kv = p.layout;
  const int group = p.heads / kv.kv_heads;
  const int64_t start = page * kPageTokens;
  KeyBlock b;
  b.q = p.q.raw() + int64_t{kv_head} * group * kv.head_dim;
  b.q_stride = p.q_stride;
  b.rows = p.rows;
  b.group = group;
  b.head_dim = kv.head_dim;
  b.scale = p.scale;
  b.k = p.pages[page - p.first_page].raw() + kv.KOffset(kv_head, 0);
  b.type_k = kv.type_k;
  b.k_row_bytes = kv.KRowBytes();
  b.begin = static_cast<int>(std::max(p.first - start, int64_t{0}));
  b.end = static_cast<int>(std::min<int64_t>(p.last - start, kPageTokens));
  b.seen = p.position + 1 - start;
  b.out = p.out.raw() + int64_t{kv_head} * group * p.out_stride +
          std::max(start - p.first, int64_t{0});
  b.out_head_stride = p.out_stride;
  b.out_row_stride = p.heads * p.out_stride;
  return b;
}

absl::Status OnGpu(Stream& stream, const KeyScoresParams& p) {
  ASSIGN_OR_RETURN(
      const DevicePages pages,
      SendPages(stream, p, p.first / kPageTokens, (p.last - 1) / kPageTokens));
  return CudaStatus("KeyScores",
                    KeyScoresCuda(stream.queue().handle(), p, pages));
}

absl::Status OnCpu(Stream& stream, const KeyScoresParams& p) {
  // Items are in the order of memory: a page's keys are contiguous.
  const int64_t kv_heads = p.layout.kv_heads;
  const int64_t first = p.first / kPageTokens;
  const int64_t items = ((p.last - 1) / kPageTokens - first + 1) * kv_heads;
  const int64_t ranges = int64_t{12} * stream.pool().num_threads();
  stream.pool().ParallelFor(
      items, std::clamp<int64_t>(items / ranges, 1, 16),
      [&](int64_t begin, int64_t end, int) {
        for (int64_t item = begin; item < end; ++item) {
          kComputeKeyBlock[stream.isa()](BlockOf(
              p, first + item / kv_heads, static_cast<int>(item % kv_heads)));
        }
      });
  return absl::OkStatus();
}

constexpr OpBodies<KeyScoresParams> kKeyScores = {
    .reference = PlainBody<KeyScoresReference>,
    .cpu = OnCpu,
    .gpu = OnGpu,
    .keep = KeepPages<KeyScoresParams>};

}  // namespace

absl::Status KeyScores(Stream& stream, const KeyScoresParams& p) {
  RETURN_IF_ERROR(Validate(p));
  if (p.rows == 0 || p.first == p.last) return absl::OkStatus();
  return Run(kKeyScores, stream, p);
}

}  // namespace tiercel

#include "kernels/kv/kv_write.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "kernels/device/cuda/cuda_driver.h"
#include "kernels/device/op.h"
#include "kernels/kv/kv_row.h"
#include "kernels/kv/page_range.h"
#include "lib/status/error.h"
#include "lib/status/status_macros.h"

namespace tiercel {

void KvWriteReference(const KvWriteParams& p) {
  const KvLayout& kv = p.layout;
  for (int64_t r = 0; r < p.rows; ++r) {
    const int64_t position = p.position + r;
    const auto cell = static_cast<int>(position % kPageTokens);
    std::byte* page = p.pages[position / kPageTokens - p.first_page].raw();
    for (int head = 0; head < kv.kv_heads; ++head) {
      const int64_t column = int64_t{head} * kv.head_dim;
      KvRowFromF32(kv.type_k, p.k.raw() + r * p.k_stride + column, kv.head_dim,
                   page + kv.KOffset(head, cell));
      KvRowFromF32(kv.type_v, p.v.raw() + r * p.v_stride + column, kv.head_dim,
                   page + kv.VOffset(head, cell));
    }
  }
}

namespace {

constexpr PerIsa<KvRowWriteFn*> kRowWrite = {
    portable::KvRowWrite, avx2::KvRowWrite, avx512::KvRowWrite,
    avx512vnni::KvRowWrite};

absl::Status Validate(const KvWriteParams& p) {
  const KvLayout& kv = p.layout;
  const int64_t row = int64_t{kv.kv_heads} * kv.head_dim;
  if (p.rows < 0 || kv.kv_heads <= 0 || kv.head_dim <= 0 || p.k_stride < row ||
      p.v_stride < row) {
    return UsageError(
        "invalid_shape",
        absl::StrCat("KvWrite: rows=", p.rows, ", kv_heads=", kv.kv_heads,
                     ", head_dim=", kv.head_dim, ", k_stride=", p.k_stride,
                     ", v_stride=", p.v_stride,
                     "; need rows >= 0, heads and head_dim positive, strides "
                     "of at least kv_heads * head_dim"));
  }
  for (DType type : {kv.type_k, kv.type_v}) {
    RETURN_IF_ERROR(CheckKvType("KvWrite", type, kv.head_dim));
  }
  constexpr int64_t kMaxPosition = int64_t{1} << 48;
  if (p.position < 0 || p.position > kMaxPosition || p.rows > kMaxPosition) {
    return UsageError("invalid_position",
                      absl::StrCat("KvWrite: position=", p.position, ", rows=",
                                   p.rows, "; need both in 0 to 2^48"));
  }
  if (p.rows == 0) return absl::OkStatus();
  return CheckPageRange("KvWrite", p.pages, p.first_page, p.num_pages,
                        p.position / kPageTokens,
                        (p.position + p.rows - 1) / kPageTokens);
}

void WriteRow(const KvWriteParams& p, int64_t r, KvRowWriteFn* write) {
  const KvLayout& kv = p.layout;
  const int64_t position = p.position + r;
  const auto cell = static_cast<int>(position % kPageTokens);
  std::byte* page = p.pages[position / kPageTokens - p.first_page].raw();
  for (int head = 0; head < kv.kv_heads; ++head) {
    const int64_t column = int64_t{head} * kv.head_dim;
    write(kv.type_k, p.k.raw() + r * p.k_stride + column, kv.head_dim,
          page + kv.KOffset(head, cell));
    write(kv.type_v, p.v.raw() + r * p.v_stride + column, kv.head_dim,
          page + kv.VOffset(head, cell));
  }
}

// Launches a kernel for each page, as the host has the list of their addresses.
absl::Status OnGpu(Stream& stream, const KvWriteParams& p) {
  CUstream_st* const queue = stream.queue().handle();
  const KvLayout& kv = p.layout;
  for (int64_t r = 0; r < p.rows;) {
    const int64_t position = p.position + r;
    const auto cell = static_cast<int>(position % kPageTokens);
    const int64_t rows = std::min<int64_t>(p.rows - r, kPageTokens - cell);
    std::byte* page = p.pages[position / kPageTokens - p.first_page].raw();
    const KvPageRows part = {{kv.type_k, p.k.raw() + r * p.k_stride, p.k_stride,
                              page + kv.KOffset(0, cell), kv.KRowBytes(),
                              kPageTokens * kv.KRowBytes()},
                             {kv.type_v, p.v.raw() + r * p.v_stride, p.v_stride,
                              page + kv.VOffset(0, cell), kv.VRowBytes(),
                              kPageTokens * kv.VRowBytes()},
                             rows,
                             kv.kv_heads,
                             kv.head_dim};
    RETURN_IF_ERROR(CudaStatus("KvWrite", KvWriteCuda(queue, part)));
    r += rows;
  }
  return absl::OkStatus();
}

absl::Status OnCpu(Stream& stream, const KvWriteParams& p) {
  // An item has about 16K elements, which take some microseconds.
  const int64_t grain =
      1 + (int64_t{1} << 13) / (int64_t{p.layout.kv_heads} * p.layout.head_dim);
  stream.pool().ParallelFor(p.rows, grain,
                            [&](int64_t begin, int64_t end, int) {
                              for (int64_t r = begin; r < end; ++r) {
                                WriteRow(p, r, kRowWrite[stream.isa()]);
                              }
                            });
  return absl::OkStatus();
}

constexpr OpBodies<KvWriteParams> kKvWrite = {
    .reference = PlainBody<KvWriteReference>,
    .cpu = OnCpu,
    .gpu = OnGpu,
    .keep = KeepPages<KvWriteParams>};

}  // namespace

absl::Status KvWrite(Stream& stream, const KvWriteParams& p) {
  RETURN_IF_ERROR(Validate(p));
  return Run(kKvWrite, stream, p);
}

}  // namespace tiercel

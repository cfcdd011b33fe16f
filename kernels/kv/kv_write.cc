#include "kernels/kv/kv_write.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/device/cuda/cuda_driver.h"
#include "kernels/device/op.h"
#include "kernels/kv/kv_row.h"
#include "kernels/kv/page_range.h"
#include "lib/status/error.h"
#include "lib/status/status_macros.h"

namespace tiercel {

namespace {

// Writes rows by one function, after rotating them.
class RowWriter {
 public:
  RowWriter(const KvWriteParams& p, KvRowWriteFn* write)
      : p_(p), write_(write) {
    if (p.rotation.half > 0) {
      head_.resize(static_cast<size_t>(p.layout.head_dim));
    }
  }

  void Write(int64_t r) {
    const KvLayout& kv = p_.layout;
    const Rotation& to = p_.rotation;
    const int64_t position = p_.position + r;
    const auto cell = static_cast<int>(position % kPageTokens);
    std::byte* page = p_.pages[position / kPageTokens - p_.first_page].raw();
    for (int head = 0; head < kv.kv_heads; ++head) {
      const int64_t column = int64_t{head} * kv.head_dim;
      const float* k = p_.k.raw() + r * p_.k_stride + column;
      if (to.half > 0) {
        std::copy_n(k, kv.head_dim, head_.data());
        Rotate(r, head_.data());
        k = head_.data();
      }
      write_(kv.type_k, k, kv.head_dim, page + kv.KOffset(head, cell));
      write_(kv.type_v, p_.v.raw() + r * p_.v_stride + column, kv.head_dim,
             page + kv.VOffset(head, cell));
    }
    if (!to.ChangesQueries()) return;
    for (int head = 0; head < to.heads; ++head) {
      float* const q =
          to.q.raw() + r * to.q_stride + int64_t{head} * kv.head_dim;
      Rotate(r, q);
      for (int i = 0; i < kv.head_dim; ++i) q[i] *= to.q_scale;
    }
  }

 private:
  // Rotates a head of row r. Plain loops are fast enough: they take under 1 %
  // of the time of the products around them.
  void Rotate(int64_t r, float* x) const {
    const int half = p_.rotation.half;
    const float* const cos = p_.rotation.cos.raw() + r * half;
    const float* const sin = p_.rotation.sin.raw() + r * half;
    for (int i = 0; i < half; ++i) {
      const float a = x[i];
      const float b = x[i + half];
      x[i] = a * cos[i] - b * sin[i];
      x[i + half] = b * cos[i] + a * sin[i];
    }
  }

  const KvWriteParams& p_;
  KvRowWriteFn* const write_;
  std::vector<float> head_;  // a head of K, rotated
};

}  // namespace

void KvWriteReference(const KvWriteParams& p) {
  RowWriter writer(p, KvRowFromF32);
  for (int64_t r = 0; r < p.rows; ++r) writer.Write(r);
}

namespace {

constexpr PerIsa<KvRowWriteFn*> kRowWrite = {
    portable::KvRowWrite, avx2::KvRowWrite, avx512::KvRowWrite,
    avx512vnni::KvRowWrite};

absl::Status ValidateRotation(const KvWriteParams& p) {
  const Rotation& to = p.rotation;
  if (to.half >= 0 && !to.ChangesQueries()) return absl::OkStatus();
  const int head_dim = p.layout.head_dim;
  if (to.half < 0 || int64_t{2} * to.half > head_dim || to.heads < 0 ||
      to.q_stride < int64_t{to.heads} * head_dim) {
    return UsageError(
        "invalid_sizes",
        absl::StrCat("KvWrite: rotation.half=", to.half, ", heads=", to.heads,
                     ", q_stride=", to.q_stride, ", head_dim=", head_dim,
                     "; need half and heads of at least 0, 2 * half <= "
                     "head_dim, q_stride >= heads * head_dim"));
  }
  const bool no_angles = to.cos == nullptr || to.sin == nullptr;
  if (p.rows > 0 &&
      ((to.half > 0 && no_angles) || (to.heads > 0 && to.q == nullptr))) {
    return UsageError("invalid_argument",
                      "KvWrite: rotation.cos, sin or q is null");
  }
  return absl::OkStatus();
}

absl::Status Validate(const KvWriteParams& p) {
  const KvLayout& kv = p.layout;
  const int64_t row = int64_t{kv.kv_heads} * kv.head_dim;
  if (p.rows < 0 || kv.kv_heads <= 0 || kv.head_dim <= 0 || p.k_stride < row ||
      p.v_stride < row) {
    return UsageError(
        "invalid_sizes",
        absl::StrCat("KvWrite: rows=", p.rows, ", kv_heads=", kv.kv_heads,
                     ", head_dim=", kv.head_dim, ", k_stride=", p.k_stride,
                     ", v_stride=", p.v_stride,
                     "; need rows >= 0, heads and head_dim positive, strides "
                     "of at least kv_heads * head_dim"));
  }
  RETURN_IF_ERROR(ValidateRotation(p));
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

// Launches a kernel for each page, as the host has the list of their addresses.
absl::Status OnGpu(Stream& stream, const KvWriteParams& p) {
  CUstream_st* const queue = stream.queue().handle();
  const KvLayout& kv = p.layout;
  for (int64_t r = 0; r < p.rows;) {
    const int64_t position = p.position + r;
    const auto cell = static_cast<int>(position % kPageTokens);
    const int64_t rows = std::min<int64_t>(p.rows - r, kPageTokens - cell);
    std::byte* page = p.pages[position / kPageTokens - p.first_page].raw();
    Rotation rotation = p.rotation;
    rotation.cos += r * rotation.half;
    rotation.sin += r * rotation.half;
    rotation.q += r * rotation.q_stride;
    const KvPageRows part = {{kv.type_k, p.k.raw() + r * p.k_stride, p.k_stride,
                              page + kv.KOffset(0, cell), kv.KRowBytes(),
                              kPageTokens * kv.KRowBytes()},
                             {kv.type_v, p.v.raw() + r * p.v_stride, p.v_stride,
                              page + kv.VOffset(0, cell), kv.VRowBytes(),
                              kPageTokens * kv.VRowBytes()},
                             rows,
                             kv.kv_heads,
                             kv.head_dim,
                             rotation};
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
                              RowWriter writer(p, kRowWrite[stream.isa()]);
                              for (int64_t r = begin; r < end; ++r) {
                                writer.Write(r);
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

#include "kernels/layer/rope.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "kernels/device/cuda/cuda_driver.h"
#include "kernels/device/op.h"
#include "kernels/device/stream.h"
#include "lib/status/error.h"
#include "lib/status/status_macros.h"

namespace tiercel {
namespace {

// The rows of a work item, which has about 16K elements and takes some
// microseconds.
int64_t Grain(int64_t row_elements) {
  return 1 + (int64_t{1} << 14) / row_elements;
}

absl::Status Validate(const RopeAnglesParams& p) {
  // Doubles hold every integer up to 2^53.
  constexpr int64_t kMaxPosition = int64_t{1} << 52;
  if (p.rows < 0 || p.half <= 0 || p.position < 0 ||
      p.position > kMaxPosition || p.rows > kMaxPosition) {
    return UsageError(
        "invalid_shape",
        absl::StrCat("RopeAngles: rows=", p.rows, ", half=", p.half,
                     ", position=", p.position,
                     "; need half positive, rows and position in 0 to 2^52"));
  }
  return absl::OkStatus();
}

absl::Status Validate(const RopeParams& p) {
  if (p.rows < 0 || p.half <= 0 || int64_t{2} * p.half > p.head_dim ||
      p.num_tensors < 1 || p.num_tensors > 2) {
    return UsageError(
        "invalid_shape",
        absl::StrCat("Rope: rows=", p.rows, ", head_dim=", p.head_dim,
                     ", half=", p.half, ", num_tensors=", p.num_tensors,
                     "; need rows >= 0, half positive, 2 * half <= head_dim, "
                     "1 or 2 tensors"));
  }
  for (int i = 0; i < p.num_tensors; ++i) {
    const RopeParams::Heads& heads = p.tensors[i];
    if (heads.count > 0 && heads.stride >= int64_t{heads.count} * p.head_dim) {
      continue;
    }
    return UsageError("invalid_shape",
                      absl::StrCat("Rope: tensor ", i, ": heads=", heads.count,
                                   ", stride=", heads.stride,
                                   "; need heads positive, "
                                   "stride >= heads * ",
                                   p.head_dim));
  }
  return absl::OkStatus();
}

absl::Status OnCpu(Stream& stream, const RopeParams& p) {
  stream.pool().ParallelFor(
      p.rows, Grain(p.AllHeads() * p.head_dim),
      [&](int64_t begin, int64_t end, int) { RopeReference(p, begin, end); });
  return absl::OkStatus();
}

constexpr OpBodies<RopeParams> kRope = {
    .reference = OnCpu,
    .cpu = OnCpu,
    .gpu = [](Stream& stream, const RopeParams& p) {
      return CudaStatus("Rope", RopeCuda(stream.queue().handle(), p));
    }};

}  // namespace

absl::Status RopeAngles(Stream& stream, const RopeAnglesParams& p) {
  RETURN_IF_ERROR(Validate(p));
  // A sine and a cosine together cost about as much as forty other elements.
  stream.pool().ParallelFor(p.rows, Grain(int64_t{p.half} * 40),
                            [&](int64_t begin, int64_t end, int) {
                              RopeAnglesReference(p, begin, end);
                            });
  return absl::OkStatus();
}

absl::Status Rope(Stream& stream, const RopeParams& p) {
  RETURN_IF_ERROR(Validate(p));
  return Run(kRope, stream, p);
}

}  // namespace tiercel

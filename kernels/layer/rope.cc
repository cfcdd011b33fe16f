#include "kernels/layer/rope.h"

#include <cmath>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
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
        "invalid_sizes",
        absl::StrCat("RopeAngles: rows=", p.rows, ", half=", p.half,
                     ", position=", p.position,
                     "; need half positive, rows and position in 0 to 2^52"));
  }
  return absl::OkStatus();
}

void ComputeRows(const RopeAnglesParams& p, int64_t begin, int64_t end) {
  for (int64_t r = begin; r < end; ++r) {
    const auto position = static_cast<double>(p.position + r);
    for (int i = 0; i < p.half; ++i) {
      const double angle = position * p.inv_freq[i];
      p.cos_out[r * p.half + i] = static_cast<float>(p.scale * std::cos(angle));
      p.sin_out[r * p.half + i] = static_cast<float>(p.scale * std::sin(angle));
    }
  }
}

}  // namespace

absl::Status RopeAngles(Stream& stream, const RopeAnglesParams& p) {
  RETURN_IF_ERROR(Validate(p));
  // A sine and a cosine together cost about as much as forty other elements.
  stream.pool().ParallelFor(
      p.rows, Grain(int64_t{p.half} * 40),
      [&](int64_t begin, int64_t end, int) { ComputeRows(p, begin, end); });
  return absl::OkStatus();
}

}  // namespace tiercel

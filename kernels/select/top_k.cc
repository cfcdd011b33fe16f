#include "kernels/select/top_k.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <numeric>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "kernels/device/cuda/cuda_driver.h"
#include "kernels/device/op.h"
#include "kernels/device/stream.h"
#include "lib/status/error.h"
#include "lib/status/status_macros.h"

namespace tiercel {

void TopKReference(const TopKParams& p) {
  const int64_t kept = std::min(p.k, p.n);
  const auto always = static_cast<std::ptrdiff_t>(std::min(p.always, p.n));
  for (int64_t row = 0; row < p.rows; ++row) {
    const float* const values = p.values.raw() + row * p.stride;
    std::vector<int32_t> order(static_cast<size_t>(p.n));
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(
        order.begin() + always, order.end(),
        [&](int32_t a, int32_t b) { return values[a] > values[b]; });
    int32_t* const out = p.out.raw() + row * kept;
    std::copy_n(order.begin(), kept, out);
    std::sort(out, out + kept);
  }
}

namespace {

absl::Status Validate(const TopKParams& p) {
  constexpr int64_t kMost = int64_t{1} << 28;
  if (p.rows < 0 || p.rows > kMost || p.n < 0 || p.n > kMost ||
      p.stride < p.n || p.always < 0 || p.k < 0) {
    return UsageError(
        "invalid_sizes",
        absl::StrCat("TopK: rows=", p.rows, ", n=", p.n, ", stride=", p.stride,
                     ", always=", p.always, ", k=", p.k,
                     "; need rows and n in 0 to 2^28, stride >= n, always and "
                     "k >= 0"));
  }
  return absl::OkStatus();
}

absl::Status OnCpu(Stream& stream, const TopKParams& p) {
  const int64_t kept = std::min(p.k, p.n);
  ASSIGN_OR_RETURN(
      const DevicePtr<std::byte> scratch,
      stream.Scratch(static_cast<size_t>(stream.pool().num_threads() * p.n) *
                     sizeof(float)));
  float* const room = scratch.As<float>().raw();
  const int64_t always = std::min(p.always, kept);
  stream.pool().ParallelFor(
      p.rows, 1, [&](int64_t begin, int64_t end, int thread) {
        for (int64_t row = begin; row < end; ++row) {
          int32_t* const out = p.out.raw() + row * kept;
          std::iota(out, out + always, 0);
          KeepGreatest(p.values.raw() + row * p.stride + always, p.n - always,
                       kept - always, static_cast<int32_t>(always),
                       room + thread * p.n, out + always);
        }
      });
  return absl::OkStatus();
}

constexpr OpBodies<TopKParams> kTopK = {
    .reference = PlainBody<TopKReference>,
    .cpu = OnCpu,
    .gpu = [](Stream& stream, const TopKParams& p) {
      return CudaStatus("TopK", TopKCuda(stream.queue().handle(), p));
    }};

}  // namespace

void KeepGreatest(const float* values, int64_t n, int64_t k, int32_t first,
                  float* room, int32_t* out) {
  if (k == n) {
    std::iota(out, out + n, first);
    return;
  }
  if (k == 0) return;
  std::copy_n(values, n, room);
  std::nth_element(room, room + k - 1, room + n, std::greater<>());
  const float least = room[k - 1];
  int64_t equals = k - std::count_if(values, values + n,
                                     [least](float x) { return x > least; });
  for (int64_t j = 0; j < n; ++j) {
    if (values[j] > least || (values[j] == least && equals-- > 0)) {
      *out++ = first + static_cast<int32_t>(j);
    }
  }
}

absl::Status TopK(Stream& stream, const TopKParams& p) {
  RETURN_IF_ERROR(Validate(p));
  if (p.rows == 0 || std::min(p.k, p.n) == 0) return absl::OkStatus();
  return Run(kTopK, stream, p);
}

}  // namespace tiercel

#include "kernels/kv/kv_row.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>

#include "absl/strings/str_cat.h"
#include "kernels/number/block_bytes.h"
#include "kernels/number/dequantize.h"
#include "kernels/number/half.h"
#include "lib/status/error.h"

namespace tiercel {
namespace {

constexpr int kBlock = 32;

void Q8FromF32(const float* x, std::byte* block) {
  float max = 0.0f;
  bool finite = true;
  for (int i = 0; i < kBlock; ++i) {
    max = std::max(max, std::fabs(x[i]));
    finite = finite && std::isfinite(x[i]);
  }
  const float d =
      finite ? max / 127.0f : std::numeric_limits<float>::quiet_NaN();
  WriteAs(F16FromF32(d), block);
  for (int i = 0; i < kBlock; ++i) {
    // A subnormal d has few bits, so that the quotient can exceed 127.
    const float q =
        d > 0.0f ? std::clamp(std::nearbyint(x[i] / d), -127.0f, 127.0f) : 0.0f;
    block[2 + i] = static_cast<std::byte>(static_cast<int8_t>(q));
  }
}

void Q4FromF32(const float* x, std::byte* block) {
  float greatest = x[0];
  float least = x[0];
  bool finite = true;
  for (int i = 0; i < kBlock; ++i) {
    greatest = std::max(greatest, x[i]);
    least = std::min(least, x[i]);
    finite = finite && std::isfinite(x[i]);
  }
  const float outermost = greatest >= -least ? greatest : least;
  const float d = !finite             ? std::numeric_limits<float>::quiet_NaN()
                  : outermost == 0.0f ? 0.0f
                                      : outermost / -8.0f;
  WriteAs(F16FromF32(d), block);
  const auto code = [&](int i) {
    const float q =
        std::fabs(d) > 0.0f ? std::nearbyint(x[i] / d) + 8.0f : 8.0f;
    return static_cast<int>(std::clamp(q, 0.0f, 15.0f));
  };
  for (int i = 0; i < kBlock / 2; ++i) {
    block[2 + i] = static_cast<std::byte>(code(i) | code(i + kBlock / 2) << 4);
  }
}

}  // namespace

bool IsKvType(DType type, int head_dim) {
  switch (type) {
    case DType::kF32:
    case DType::kF16:
    case DType::kBF16:
      return true;
    case DType::kQ8_0:
    case DType::kQ4_0:
      return head_dim % kBlock == 0;
    default:
      return false;
  }
}

absl::Status CheckKvType(std::string_view op, DType type, int head_dim) {
  if (IsKvType(type, head_dim)) return absl::OkStatus();
  return UsageError(
      "invalid_kv_type",
      absl::StrCat(std::string(op), ": KV type ",
                   std::string(InfoOf(type).name), ", head_dim=", head_dim,
                   "; need ", kKvTypeNames,
                   ", the last two with head_dim a multiple of 32"));
}

absl::Status CheckQueryRows(std::string_view op, int64_t rows, int heads,
                            int64_t q_stride, const KvLayout& kv) {
  if (rows < 0 || heads <= 0 || kv.kv_heads <= 0 || heads % kv.kv_heads != 0) {
    return UsageError(
        "invalid_sizes",
        absl::StrCat(std::string(op), ": rows=", rows, ", heads=", heads,
                     ", kv_heads=", kv.kv_heads,
                     "; need rows >= 0 and heads a positive multiple of "
                     "kv_heads"));
  }
  if (kv.head_dim <= 0 || kv.head_dim % 8 != 0 ||
      q_stride < int64_t{heads} * kv.head_dim) {
    return UsageError(
        "invalid_sizes",
        absl::StrCat(std::string(op), ": head_dim=", kv.head_dim,
                     ", q_stride=", q_stride,
                     "; need head_dim a positive multiple of 8 and q_stride >= "
                     "heads * head_dim"));
  }
  return absl::OkStatus();
}

void KvRowToF32(DType type, const std::byte* row, int head_dim, float* out) {
  Dequantize(type, row, head_dim, out);
}

void KvRowFromF32(DType type, const float* x, int head_dim, std::byte* row) {
  switch (type) {
    case DType::kF16:
      for (int i = 0; i < head_dim; ++i) {
        WriteAs(F16FromF32(x[i]), row + 2 * i);
      }
      break;
    case DType::kBF16:
      for (int i = 0; i < head_dim; ++i) {
        WriteAs(Bf16FromF32(x[i]), row + 2 * i);
      }
      break;
    case DType::kQ8_0:
      for (int i = 0; i < head_dim; i += kBlock) {
        Q8FromF32(x + i, row + RowBytes(type, i));
      }
      break;
    case DType::kQ4_0:
      for (int i = 0; i < head_dim; i += kBlock) {
        Q4FromF32(x + i, row + RowBytes(type, i));
      }
      break;
    default:
      std::memcpy(row, x, sizeof(float) * static_cast<size_t>(head_dim));
  }
}

}  // namespace tiercel

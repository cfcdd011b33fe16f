#include "kernels/kv/kv_write.h"
#include "kernels/simd/simd.h"
#include "kernels/simd/simd_int.h"

namespace tiercel::TIERCEL_ISA_NS {
namespace {

void WriteF16(const float* x, int n, std::byte* row) {
  int i = 0;
  for (; i + 16 <= n; i += 16) {
    StoreF16(Load(x + i), reinterpret_cast<uint16_t*>(row + 2 * i));
  }
  uint16_t tail[16];
  StoreF16(LoadN(x + i, n - i), tail);
  memcpy(row + 2 * i, tail, 2 * static_cast<size_t>(n - i));
}

// Bf16FromF32 of kernels/number/half.h without a branch, so that the compiler
// vectorises it.
void WriteBf16(const float* x, int n, std::byte* row) {
  for (int i = 0; i < n; ++i) {
    uint32_t bits;
    memcpy(&bits, x + i, sizeof(bits));
    const bool nan = (bits & 0x7fffffffu) > 0x7f800000u;
    const uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
    const auto half =
        static_cast<uint16_t>(nan ? (bits >> 16) | 0x40u : rounded);
    memcpy(row + 2 * i, &half, sizeof(half));
  }
}

void WriteQ8Block(const float* x, std::byte* block) {
  const F32x16 a = Load(x);
  const F32x16 b = Load(x + 16);
  const F32x16 fault = Fma(a, Zero(), Fma(b, Zero(), Zero()));
  const bool finite = ReduceAdd(fault) == 0.0f;
  const float d = finite ? ReduceMax(Max(Abs(a), Abs(b))) / 127.0f : 0.0f;
  uint16_t halves[16];
  StoreF16(Set1(d), halves);
  if (!finite) halves[0] = 0x7e00;  // NaN
  memcpy(block, halves, sizeof(uint16_t));

  auto* q = reinterpret_cast<int8_t*>(block + 2);
  memset(q, 0, 32);
  if (!(d > 0.0f)) return;
  const F32x16 limit = Set1(127.0f);
  const F32x16 low = Zero() - limit;
  StoreI8(Max(low, Min(limit, Round(a / Set1(d)))), q);
  StoreI8(Max(low, Min(limit, Round(b / Set1(d)))), q + 16);
}

void WriteQ4Block(const float* x, std::byte* block) {
  const F32x16 a = Load(x);
  const F32x16 b = Load(x + 16);
  const F32x16 fault = Fma(a, Zero(), Fma(b, Zero(), Zero()));
  const bool finite = ReduceAdd(fault) == 0.0f;
  const float greatest = ReduceMax(Max(a, b));
  const float below = ReduceMax(Max(Zero() - a, Zero() - b));
  const float outermost = greatest >= below ? greatest : -below;
  const float d = finite && outermost != 0.0f ? outermost / -8.0f : 0.0f;
  uint16_t halves[16];
  StoreF16(Set1(d), halves);
  if (!finite) halves[0] = 0x7e00;  // NaN
  memcpy(block, halves, sizeof(uint16_t));

  auto* codes = reinterpret_cast<uint8_t*>(block + 2);
  if (!(d > 0.0f || d < 0.0f)) {
    memset(codes, 0x88, 16);
    return;
  }
  const F32x16 most = Set1(15.0f);
  const F32x16 eight = Set1(8.0f);
  int8_t q[2][16];
  StoreI8(Max(Zero(), Min(most, Round(a / Set1(d)) + eight)), q[0]);
  StoreI8(Max(Zero(), Min(most, Round(b / Set1(d)) + eight)), q[1]);
  for (int i = 0; i < 16; ++i) {
    codes[i] = static_cast<uint8_t>(q[0][i] | q[1][i] << 4);
  }
}

}  // namespace

void KvRowWrite(DType type, const float* x, int head_dim, std::byte* row) {
  switch (type) {
    case DType::kF16:
      WriteF16(x, head_dim, row);
      break;
    case DType::kBF16:
      WriteBf16(x, head_dim, row);
      break;
    case DType::kQ8_0:
      for (int i = 0; i < head_dim; i += 32) {
        WriteQ8Block(x + i, row + i / 32 * 34);
      }
      break;
    case DType::kQ4_0:
      for (int i = 0; i < head_dim; i += 32) {
        WriteQ4Block(x + i, row + i / 32 * 18);
      }
      break;
    default:
      memcpy(row, x, sizeof(float) * static_cast<size_t>(head_dim));
  }
}

}  // namespace tiercel::TIERCEL_ISA_NS

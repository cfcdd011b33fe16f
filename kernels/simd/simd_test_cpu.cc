#include "kernels/simd/simd.h"
#include "kernels/simd/simd_test_body.h"

namespace tiercel::TIERCEL_ISA_NS {
namespace {

F32x16 Compute(SimdOp op, const SimdLanes& in) {
  const F32x16 a = Load(in.a);
  const F32x16 b = Load(in.b);
  switch (op) {
    case SimdOp::kAdd:
      return a + b;
    case SimdOp::kSub:
      return a - b;
    case SimdOp::kMul:
      return a * b;
    case SimdOp::kDiv:
      return a / b;
    case SimdOp::kFma:
      return Fma(a, b, Load(in.c));
    case SimdOp::kMax:
      return Max(a, b);
    case SimdOp::kMin:
      return Min(a, b);
    case SimdOp::kAbs:
      return Abs(a);
    case SimdOp::kSqrt:
      return Sqrt(a);
    case SimdOp::kRound:
      return Round(a);
    case SimdOp::kScaleByPowerOf2:
      return ScaleByPowerOf2(a, b);
    case SimdOp::kExp:
      return Exp(a);
    case SimdOp::kLog:
      return Log(a);
    case SimdOp::kLoadN:
      return LoadN(in.a, in.n);
    case SimdOp::kReduceAdd:
      return Set1(ReduceAdd(a));
    case SimdOp::kReduceMax:
      return Set1(ReduceMax(a));
    case SimdOp::kLoadF16:
      return LoadF16(in.half);
    case SimdOp::kSet1F16:
      return Set1F16(in.half[0]);
    case SimdOp::kLoadBf16:
      return LoadBf16(in.half);
    case SimdOp::kLoadI8:
      return LoadI8(in.i8);
    case SimdOp::kLoadU8:
      return LoadU8(in.u8);
    case SimdOp::kLoadI4:
      return LoadI4(in.u8, /*high=*/false);
    case SimdOp::kLoadI4High:
      return LoadI4(in.u8, /*high=*/true);
    default:
      return Zero();
  }
}

}  // namespace

void RunSimd(SimdOp op, SimdLanes* lanes) {
  if (op == SimdOp::kStoreN) {
    StoreN(Load(lanes->a), lanes->out, lanes->n);
  } else if (op == SimdOp::kStoreF16) {
    StoreF16(Load(lanes->a), lanes->half_out);
  } else if (op == SimdOp::kTranspose) {
    F32x16 rows[16];
    for (int i = 0; i < 16; ++i) rows[i] = Load(lanes->a + 16 * i);
    Transpose(rows);
    for (int i = 0; i < 16; ++i) Store(rows[i], lanes->out + 16 * i);
  } else {
    Store(Compute(op, *lanes), lanes->out);
  }
}

}  // namespace tiercel::TIERCEL_ISA_NS

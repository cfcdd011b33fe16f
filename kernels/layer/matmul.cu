#include <cmath>
#include <limits>

#include "kernels/device/device_lang.h"
#include "kernels/layer/matmul_body.h"
#include "kernels/layer/packed_device.h"
#include "kernels/layer/packed_layout.h"
#include "kernels/number/half.h"

namespace tiercel {
namespace {

// a is above 0. Written so it takes fewer registers than (a + b - 1) / b.
constexpr int64_t CeilDiv(int64_t a, int64_t b) { return (a - 1) / b + 1; }

TIERCEL_DEVICE void StoreProduct(const MatmulTarget& target, int64_t row,
                                 int64_t column, float value) {
  float& out = target.out[row * target.out_stride + column];
  if (target.bias != nullptr) value += target.bias[column];
  out = target.add ? value + out : value;
}

// How many groups of `columns` columns all targets have, one after the other.
int64_t GroupsOfAll(const MatmulTargets& targets, int columns) {
  int64_t groups = 0;
  for (int i = 0; i < targets.count; ++i) {
    groups += CeilDiv(targets.of[i].n, columns);
  }
  return groups;
}

// The target that has group `group` of all, which becomes the group's number
// in it. The loop is unrolled, so that parameters are not copied to a stack.
TIERCEL_DEVICE MatmulTarget TargetWith(const MatmulTargets& targets,
                                       int columns, int64_t& group) {
  MatmulTarget target = targets.of[0];
#pragma unroll
  for (int i = 1; i < MatmulTargets::kMost; ++i) {
    const int64_t before = CeilDiv(target.n, columns);
    if (i >= targets.count || group < before) break;
    group -= before;
    target = targets.of[i];
  }
  return target;
}

// ---- activations as int8 ----

// Q8Block of matmul_body.h, its codes four to a word.
struct alignas(16) Q8Words {
  uint32_t codes[8];
  float scale;
  float scaled_sum;
  int32_t neg_sum;
  int32_t neg_sum_low;
};
static_assert(sizeof(Q8Words) == sizeof(Q8Block));

// Half a warp quantises a block of 32: lane i of it has elements i and i + 16.
struct QuantiseBlocks {
  static constexpr int kMaxThreads = 128;
  static constexpr int kLanes = 16;
  struct Shared {};
  const float* x;
  int64_t x_stride;
  int64_t rows;
  int64_t row_blocks;
  Q8Words* out;  // [rows][row_blocks]

  TIERCEL_DEVICE void operator()(const Thread& t, Shared&) const {
    const int64_t block = (t.block * t.count + t.index) / kLanes;
    const bool there = block < rows * row_blocks;
    const int lane = t.lane() % kLanes;
    float low = 0.0f;
    float high = 0.0f;
    if (there) {
      const float* from =
          x + block / row_blocks * x_stride + block % row_blocks * 32;
      low = from[lane];
      high = from[lane + kLanes];
    }

    // 1. whether all is finite, and the greatest magnitude
    const uint32_t fine =
        Ballot(kAllLanes, std::isfinite(low) && std::isfinite(high));
    const bool finite =
        (fine >> (t.lane() / kLanes * kLanes) & 0xffffu) == 0xffffu;
    float max = std::fmax(std::fabs(low), std::fabs(high));
    for (int bits = kLanes / 2; bits > 0; bits /= 2) {
      max = std::fmax(max, ShuffleXor(kAllLanes, max, bits));
    }

    // 2. the scale that rounds best
    constexpr float kSteps[kNumQ8Steps] = {kQ8Steps[0], kQ8Steps[1],
                                           kQ8Steps[2], kQ8Steps[3]};
    float scale = max / kSteps[0];
    const bool codes = finite && scale != 0.0f;
    float least = RoundingError(low, high, scale);
#pragma unroll
    for (int i = 1; i < kNumQ8Steps; ++i) {
      const float other = max / kSteps[i];
      const float error = RoundingError(low, high, other);
      if (error < least) {
        least = error;
        scale = other;
      }
    }
    if (!finite) scale = std::numeric_limits<float>::quiet_NaN();

    // 3. the codes and their sums
    const int code_low = codes ? static_cast<int>(CodeOf(low, scale)) : 0;
    const int code_high = codes ? static_cast<int>(CodeOf(high, scale)) : 0;
    int sum_low = code_low;
    int sum = code_low + code_high;
    for (int bits = kLanes / 2; bits > 0; bits /= 2) {
      sum_low += ShuffleXor(kAllLanes, sum_low, bits);
      sum += ShuffleXor(kAllLanes, sum, bits);
    }
    if (!there) return;
    auto* const bytes = reinterpret_cast<unsigned char*>(out[block].codes);
    bytes[lane] = static_cast<unsigned char>(code_low);
    bytes[lane + kLanes] = static_cast<unsigned char>(code_high);
    if (lane != 0) return;
    out[block].scale = scale;
    out[block].scaled_sum = scale * static_cast<float>(sum);
    out[block].neg_sum = -sum;
    out[block].neg_sum_low = -sum_low;
  }

  static TIERCEL_DEVICE float CodeOf(float value, float scale) {
    return std::fmin(std::fmax(std::nearbyint(value / scale), -127.0f), 127.0f);
  }

  // The sum of the errors of a half warp, which each of its lanes gets.
  static TIERCEL_DEVICE float RoundingError(float low, float high,
                                            float scale) {
    const float a = std::fma(-scale, CodeOf(low, scale), low);
    const float b = std::fma(-scale, CodeOf(high, scale), high);
    float error = std::fma(b, b, a * a);
    for (int half = kLanes / 2; half > 0; half /= 2) {
      error += ShuffleDown(kAllLanes, error, half, kLanes);
    }
    return Shuffle(kAllLanes, error, 0, kLanes);
  }
};

// ---- quantised weights, int8 activations ----

// A warp computes one panel for 8 kTiles rows. A block of 32 is one exact step
// of the matrix unit (two for Q6_K, whose halves have scales of their own), and
// then one link of each output's chain; nothing is split over k. A panel passes
// through shared memory: eight blocks are on their way while eight are used.
//
// Bytes: the weights once for 8 kTiles rows, and 1.5 an element of x for each
// panel, from the second-level cache.
template <DType kType, int kTiles>
struct MultiplyPanels {
  using W = PackedBlocks<kType>;
  static constexpr int kWarps = 4;
  static constexpr int kMaxThreads = kWarps * kWarpLanes;
  static constexpr int kColumns = kWarps * kPanelRows;
  static constexpr int kRows = 8 * kTiles;
  static constexpr int kBlocks = 8;  // of a stage

  struct Stage {
    Array<uint32_t, kBlocks * W::kCodeWords> codes;
    Array<uint16_t, kBlocks / W::kGroup * W::kGroupHalves> scales;
  };
  struct Shared {
    Stage stages[kWarps][2];
  };

  MatmulTargets targets;
  const Q8Words* x;  // [rows][blocks]
  int64_t blocks;    // k / 32
  int64_t rows;
  int64_t row_tiles;

  TIERCEL_DEVICE void operator()(const Thread& t, Shared& shared) const {
    int64_t group = t.block / row_tiles;
    const MatmulTarget target = TargetWith(targets, kColumns, group);
    const int64_t panels = CeilDiv(target.n, kPanelRows);
    const int64_t own = group * kWarps + t.warp();
    // A warp without a panel of its own repeats the last one.
    const int64_t panel = own < panels ? own : panels - 1;
    const int64_t row = t.block % row_tiles * kRows;
    Stage(&stages)[2] = shared.stages[t.warp()];

    float acc[kTiles][4] = {};
    const uint8_t* const codes = target.panels + panel * target.panel_bytes;
    Fetch(t, codes, 0, stages[0]);
    CopyCommit();
    for (int64_t first = 0; first < blocks; first += kBlocks) {
      const auto turn = static_cast<int>(first / kBlocks % 2);
      CopyWait<0>();
      Barrier();  // this stage is there, and all are done with the other
      Fetch(t, codes, first + kBlocks, stages[1 - turn]);
      CopyCommit();
      const int size = SizeOf(first);
      for (int i = 0; i < size; ++i) {
        AddBlock(t, stages[turn], i, first + i, row, acc);
      }
    }
    if (own == panel) Store(t, target, panel, row, acc);
  }

  // Blocks of the stage that starts with `first`; none past the end.
  TIERCEL_DEVICE int SizeOf(int64_t first) const {
    const int64_t left = blocks - first;
    return left <= 0 ? 0 : left < kBlocks ? static_cast<int>(left) : kBlocks;
  }

  // Has the next stage of the panel whose codes are at `codes` copied to shared
  // memory.
  TIERCEL_DEVICE void Fetch(const Thread& t, const uint8_t* codes,
                            int64_t first, Stage& stage) const {
    const int size = SizeOf(first);
    const uint8_t* scales = codes + blocks * (4 * W::kCodeWords);
    codes += first * (4 * W::kCodeWords);
    scales += first / W::kGroup * (2 * W::kGroupHalves);
    for (int i = t.lane(); i < size * W::kCodeWords / 4; i += kWarpLanes) {
      CopyAsync16(&stage.codes[4 * i], codes + 16 * i);
    }
    for (int i = t.lane(); i < size / W::kGroup * W::kGroupHalves / 8;
         i += kWarpLanes) {
      CopyAsync16(&stage.scales[8 * i], scales + 16 * i);
    }
  }

  // Rows past the end repeat the last one.
  TIERCEL_DEVICE const Q8Words& XBlock(int64_t row, int64_t block) const {
    return x[(row < rows ? row : rows - 1) * blocks + block];
  }

  // Block `i` of the stage, `block` of the panel. A lane has the sums of rows g
  // and g + 8 of the panel and of rows 2 pair and 2 pair + 1 of each tile of x.
  TIERCEL_DEVICE void AddBlock(const Thread& t, Stage& stage, int i,
                               int64_t block, int64_t row,
                               float (&acc)[kTiles][4]) const {
    const int g = t.lane() / 4;
    const int pair = t.lane() % 4;
    const uint32_t* codes = &stage.codes[i * W::kCodeWords];
    const uint16_t* group = &stage.scales[i / W::kGroup * W::kGroupHalves];
    uint32_t a[4];
    typename W::Scales w[2];
    for (int h = 0; h < 2; ++h) {
      uint32_t quads[2];
      W::ReadQuads(codes, pair, g + 8 * h, quads);
      a[h] = Signed(quads[0]);
      a[2 + h] = Signed(quads[1]);
      w[h] = W::ReadScales(group, i % W::kGroup, g + 8 * h);
    }
#pragma unroll
    for (int tile = 0; tile < kTiles; ++tile) {
      const int64_t first = row + 8 * tile;
      const Q8Words& given = XBlock(first + g, block);
      const uint32_t b[2] = {given.codes[2 * pair], given.codes[2 * pair + 1]};
      const Q8Words* of_sums[2] = {&XBlock(first + 2 * pair, block),
                                   &XBlock(first + 2 * pair + 1, block)};
      int32_t dots[4] = {};
      Multiply(a, b, w, of_sums, pair, dots);
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const Q8Words& xj = *of_sums[j % 2];
        float& sum = acc[tile][j];
        sum = std::fma(static_cast<float>(dots[j]), w[j / 2].d * xj.scale, sum);
        if constexpr (HasMin(W::kLayout.scales)) {
          sum = std::fma(w[j / 2].m, xj.scaled_sum, sum);
        }
      }
    }
  }

  // Q8_0's codes with their offset taken off; those of others fit as they are.
  static TIERCEL_DEVICE uint32_t Signed(uint32_t quad) {
    return kType == DType::kQ8_0 ? quad ^ 0x80808080u : quad;
  }

  // Adds the dot products of one block to zeros. Which columns of the step are
  // which quads does not matter: a and b agree, and integers have no order.
  static TIERCEL_DEVICE void Multiply(const uint32_t (&a)[4],
                                      const uint32_t (&b)[2],
                                      const typename W::Scales (&w)[2],
                                      const Q8Words* (&of_sums)[2], int pair,
                                      int32_t (&dots)[4]) {
    constexpr int kLeft = kType == DType::kQ8_0 ? 0 : W::kOffset;
    if constexpr (W::kHasHalves) {
      for (int h = 0; h < 2; ++h) {
        uint32_t half[4];
        int32_t sums[4];
        for (int j = 0; j < 4; ++j) {
          const Q8Words& xj = *of_sums[j % 2];
          half[j] = pair / 2 == h ? a[j] : 0;
          sums[j] =
              kLeft * (h == 0 ? xj.neg_sum_low : xj.neg_sum - xj.neg_sum_low);
        }
        MmaS8(sums, half, b);
        for (int j = 0; j < 4; ++j) {
          dots[j] += sums[j] * w[j / 2].of_halves[h];
        }
      }
    } else {
      for (int j = 0; j < 4; ++j) dots[j] = of_sums[j % 2]->neg_sum * kLeft;
      MmaS8(dots, a, b);
    }
  }

  TIERCEL_DEVICE void Store(const Thread& t, const MatmulTarget& target,
                            int64_t panel, int64_t row,
                            const float (&acc)[kTiles][4]) const {
#pragma unroll
    for (int tile = 0; tile < kTiles; ++tile) {
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const int64_t r = row + 8 * tile + t.lane() % 4 * 2 + j % 2;
        const int64_t column = panel * kPanelRows + t.lane() / 4 + j / 2 * 8;
        if (r >= rows || column >= target.n) continue;
        StoreProduct(target, r, column, acc[tile][j]);
      }
    }
  }
};

// ---- float activations ----

// A thread computes one output: its chain over k. Plain, because int8 is what
// quantised weights are meant for.
template <DType kType>
struct MultiplyFloats {
  static constexpr int kRows = 8;
  static constexpr int kMaxThreads = kPanelRows * kRows;
  struct Shared {};
  MatmulTargets targets;
  const float* x;
  int64_t x_stride;
  int64_t rows;
  int64_t row_tiles;

  TIERCEL_DEVICE void operator()(const Thread& t, Shared&) const {
    int64_t panel = t.block / row_tiles;
    const MatmulTarget target = TargetWith(targets, kPanelRows, panel);
    const int64_t row = t.block % row_tiles * kRows + t.index / kPanelRows;
    const int lane = t.index % kPanelRows;
    const int64_t column = panel * kPanelRows + lane;
    if (row >= rows || column >= target.n) return;
    const uint8_t* weights = target.panels + panel * target.panel_bytes;
    StoreProduct(target, row, column,
                 Chain(weights, target.k, lane, x + row * x_stride));
  }

  static TIERCEL_DEVICE float Chain(const uint8_t* panel, int64_t length,
                                    int lane, const float* from) {
    float acc = 0.0f;
    if constexpr (kType == DType::kF32) {
      const auto* w = reinterpret_cast<const float*>(panel);
      for (int64_t k = 0; k < length; ++k) {
        acc = std::fma(from[k], w[k * kPanelRows + lane], acc);
      }
    } else if constexpr (!IsQuantised(kType)) {
      const auto* w = reinterpret_cast<const uint16_t*>(panel);
      for (int64_t k = 0; k < length; ++k) {
        const uint16_t bits = w[k * kPanelRows + lane];
        acc = std::fma(
            from[k],
            kType == DType::kF16 ? F32FromF16(bits) : F32FromBf16(bits), acc);
      }
    } else {
      using W = PackedBlocks<kType>;
      const int64_t blocks = length / 32;
      const auto* codes = reinterpret_cast<const uint32_t*>(panel);
      const auto* groups = reinterpret_cast<const uint16_t*>(
          panel + blocks * (4 * W::kCodeWords));
      for (int64_t block = 0; block < blocks; ++block) {
        const typename W::Scales s =
            W::ReadScales(groups + block / W::kGroup * W::kGroupHalves,
                          static_cast<int>(block % W::kGroup), lane);
#pragma unroll
        for (int i = 0; i < 32; ++i) {
          uint32_t quads[2];
          W::ReadQuads(codes + block * W::kCodeWords, i / 8, lane, quads);
          acc = std::fma(*from++, W::Get(s, quads, i), acc);
        }
      }
    }
    return acc;
  }
};

// ---- launches ----

template <DType kType, int kTiles>
int LaunchPanels(CUstream_st* stream, const MatmulTargets& targets,
                 const Q8Block* x, int64_t rows) {
  using Kernel = MultiplyPanels<kType, kTiles>;
  const int64_t row_tiles = CeilDiv(rows, Kernel::kRows);
  return Launch(stream,
                {.blocks = GroupsOfAll(targets, Kernel::kColumns) * row_tiles,
                 .threads = Kernel::kMaxThreads},
                Kernel{targets, reinterpret_cast<const Q8Words*>(x),
                       targets.of[0].k / 32, rows, row_tiles});
}

}  // namespace

int QuantiseCuda(CUstream_st* stream, const float* x, int64_t x_stride,
                 int64_t rows, int64_t k, Q8Block* out) {
  using Kernel = QuantiseBlocks;
  return Launch(
      stream,
      {.blocks = CeilDiv(rows * (k / 32), Kernel::kMaxThreads / Kernel::kLanes),
       .threads = Kernel::kMaxThreads},
      Kernel{x, x_stride, rows, k / 32, reinterpret_cast<Q8Words*>(out)});
}

int MultiplyQ8Cuda(CUstream_st* stream, const MatmulTargets& targets,
                   const Q8Block* x, int64_t rows) {
  return WithWeightType(targets.of[0].type, [&]<DType kType>() {
    if constexpr (IsQuantised(kType)) {
      return rows <= 8 ? LaunchPanels<kType, 1>(stream, targets, x, rows)
                       : LaunchPanels<kType, 4>(stream, targets, x, rows);
    } else {
      return 0;
    }
  });
}

int MultiplyF32Cuda(CUstream_st* stream, const MatmulTargets& targets,
                    const float* x, int64_t x_stride, int64_t rows) {
  return WithWeightType(targets.of[0].type, [&]<DType kType>() {
    using Kernel = MultiplyFloats<kType>;
    const int64_t row_tiles = CeilDiv(rows, Kernel::kRows);
    return Launch(stream,
                  {.blocks = GroupsOfAll(targets, kPanelRows) * row_tiles,
                   .threads = Kernel::kMaxThreads},
                  Kernel{targets, x, x_stride, rows, row_tiles});
  });
}

}  // namespace tiercel

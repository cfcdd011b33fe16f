// Products of prompts by the matrix unit in f16.
//
// Bytes: the weights once for 128 rows, x once for 128 columns, both from the
// second-level cache if the blocks that run together share them.
// Operations: 2 f16 a weight and row; 2.5 to 4 instructions a weight, once for
// 128 rows, to make it f16.
// Bound by: the matrix unit.

#include <type_traits>

#include "kernels/device/device_lang.h"
#include "kernels/layer/fast_matmul.h"
#include "kernels/layer/matmul_device.h"
#include "kernels/layer/packed_device.h"
#include "kernels/layer/packed_layout.h"

namespace tiercel {
namespace {

// Two blocks of 32 columns of a panel of F16 or BF16, as they are in memory:
// the quads of rows g and g + 8 at the places that F16Fragments gives the lane.
template <DType kType>
struct FloatPair {
  struct alignas(8) Quad {
    uint32_t words[2];
  };
  Quad quads[2][2][2];  // [block][half of the block][row]

  TIERCEL_DEVICE static FloatPair Load(const uint8_t* panel, int64_t blocks,
                                       int64_t pair, int lane) {
    FloatPair loaded;
    const auto* const row =
        reinterpret_cast<const uint16_t*>(panel) + lane / 4 * 32 * blocks;
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      const int64_t at =
          i % 2 * 8 * 32 * blocks + 64 * pair + i / 2 * 16 + lane % 4 * 4;
      loaded.quads[i / 4][i / 2 % 2][i % 2] =
          *reinterpret_cast<const Quad*>(row + at);
    }
    return loaded;
  }

  // The weights of block `b` for two steps of the matrix unit.
  TIERCEL_DEVICE void Halves(int b, uint32_t (&a)[2][4]) const {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const uint32_t word = quads[b][half][i % 2].words[i / 2];
        a[half][i] = kType == DType::kF16
                         ? word
                         : PackHalves(FloatOf<kType>(word & 0xffffu),
                                      FloatOf<kType>(word >> 16));
      }
    }
  }
};

// Two blocks of a panel of quantised weights: the codes and scales of rows g
// and g + 8 of a lane, as they are in memory.
template <DType kType>
struct CodePair {
  using W = PackedBlocks<kType>;
  typename W::PairWords codes;
  typename W::ScaleWords scales[2];

  TIERCEL_DEVICE static CodePair Load(const uint8_t* panel, int64_t blocks,
                                      int64_t pair, int lane) {
    const auto* const words = reinterpret_cast<const uint32_t*>(panel);
    CodePair loaded;
    loaded.codes = W::LoadPair(words, blocks, pair, lane);
#pragma unroll
    for (int b = 0; b < 2; ++b) {
      loaded.scales[b] = W::ReadScaleWords(words + blocks * W::kCodeWords,
                                           2 * pair + b, lane / 4);
    }
    return loaded;
  }

  TIERCEL_DEVICE void Halves(int b, uint32_t (&a)[2][4]) const {
    typename W::Scales s[2];
    W::ScalesOf(scales[b], s);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
#pragma unroll
      for (int row = 0; row < 2; ++row) {
        const float d = s[row].d * static_cast<float>(s[row].of_halves[half]);
        const uint32_t quad = W::PairWord(codes, b, 2 * half + row);
        float w[4];
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          w[i] = d * FloatOfByte(quad, i, W::kOffset);
          if constexpr (HasMin(W::kLayout.scales))
            w[i] += W::MinOf(s[row], half);
        }
        a[half][row] = PackHalves(w[0], w[1]);
        a[half][row + 2] = PackHalves(w[2], w[3]);
      }
    }
  }
};

// A block computes 128 columns, two panels by each warp, for 128 rows. Weights
// go from memory to registers, a pair of blocks ahead of their use, where they
// become f16; x passes through a ring of stages in shared memory, and each
// packet of it that a lane loads is multiplied by both panels.
template <DType kType>
struct MultiplyHalves {
  static constexpr int kWarps = 4;
  static constexpr int kMaxThreads = kWarps * kWarpLanes;
  static constexpr int kBlocksAtOnce = 2;
  static constexpr int kPanels = 2;  // panels of a warp
  static constexpr int kColumns = kWarps * kPanels * kPanelRows;
  static constexpr int kTiles = 16;  // tiles of 8 rows
  static constexpr int kRows = 8 * kTiles;
  static constexpr int kStages = 3;
  static constexpr int kXWords = sizeof(F16Fragments) / 4;
  static constexpr int kTilePackets = 2 * kXWords / 4;  // a tile of a stage
  static constexpr int kTilesAtOnce = kMaxThreads / kTilePackets;
  using Pair =
      std::conditional_t<IsQuantised(kType), CodePair<kType>, FloatPair<kType>>;

  struct Stage {  // [tile][block of a pair]
    Array<uint32_t, kTiles * 2 * kXWords> x;
  };
  struct Shared {
    Array<Stage, kStages> stages;
  };

  MatmulTargets targets;
  const F16Fragments* x;  // [tile][block]
  const float* back;      // [rows]
  int64_t blocks;         // k / 32, an even number
  int64_t rows;
  int64_t row_groups;  // groups of kRows

  TIERCEL_DEVICE void operator()(const Thread& t, Shared& shared) const {
    int64_t group = t.block / row_groups;
    const MatmulTarget target = TargetWith(targets, kColumns, group);
    const int64_t panels = CeilDiv(target.n, kPanelRows);
    const int64_t row = t.block % row_groups * kRows;
    const int64_t left = CeilDiv(rows - row, 8);
    const int tiles = left < kTiles ? static_cast<int>(left) : kTiles;

    // A warp without a panel repeats the last one, and does not store it.
    const uint8_t* panel[kPanels];
    const int64_t first = (group * kWarps + t.warp()) * kPanels;
#pragma unroll
    for (int i = 0; i < kPanels; ++i) {
      const int64_t own = first + i < panels ? first + i : panels - 1;
      panel[i] = target.panels + own * target.panel_bytes;
    }

    float acc[kPanels][kTiles][4];
#pragma unroll
    for (int i = 0; i < kPanels * kTiles * 4; ++i) {
      acc[i / (kTiles * 4)][i / 4 % kTiles][i % 4] = 0.0f;
    }
    const int64_t pairs = blocks / 2;
    const uint32_t* const from =
        x[(row / 8 + t.index / kTilePackets) * blocks].words[0] +
        t.index % kTilePackets * 4;
#pragma unroll 1
    for (int i = 0; i < kStages - 1; ++i) {
      Fetch(t, from, i, tiles, shared.stages[i]);
      CopyCommit();
    }
    Pair next[kPanels];
#pragma unroll
    for (int i = 0; i < kPanels; ++i) {
      next[i] = Pair::Load(panel[i], blocks, 0, t.lane());
    }
    int turn = 0;
#pragma unroll 1
    for (int64_t pair = 0; pair < pairs; ++pair) {
      CopyWait<kStages - 2>();
      Barrier();  // this stage is there, and all are done with the one before
      Fetch(t, from, pair + kStages - 1, tiles,
            shared.stages[turn == 0 ? kStages - 1 : turn - 1]);
      CopyCommit();
      const int64_t following = pair + 1 < pairs ? pair + 1 : pair;
      Pair now[kPanels];
#pragma unroll
      for (int i = 0; i < kPanels; ++i) {
        now[i] = next[i];
        next[i] = Pair::Load(panel[i], blocks, following, t.lane());
      }
      AddPair(t, shared.stages[turn], now, tiles, acc);
      turn = turn == kStages - 1 ? 0 : turn + 1;
    }
    CopyWait<0>();
    Store(t, target, first, row, acc);
  }

  // Starts the copy of a pair of blocks of x to shared memory, if there is one.
  // `from` is the thread's packet of the first pair.
  TIERCEL_DEVICE void Fetch(const Thread& t, const uint32_t* from, int64_t pair,
                            int tiles, Stage& stage) const {
    if (2 * pair >= blocks) return;
    from += pair * 2 * kXWords;
#pragma unroll
    for (int i = 0; i < kTiles; i += kTilesAtOnce) {
      if (i + t.index / kTilePackets < tiles) {
        CopyAsync16(&stage.x[4 * (i * kTilePackets + t.index)], from);
      }
      from += kTilesAtOnce * blocks * kXWords;
    }
  }

  TIERCEL_DEVICE static void AddPair(const Thread& t, Stage& stage,
                                     const Pair (&pair)[kPanels], int tiles,
                                     float (&acc)[kPanels][kTiles][4]) {
#pragma unroll
    for (int b = 0; b < 2; ++b) {
      uint32_t a[kPanels][2][4];
#pragma unroll
      for (int i = 0; i < kPanels; ++i) pair[i].Halves(b, a[i]);
#pragma unroll
      for (int tile = 0; tile < kTiles; ++tile) {
        if (tile >= tiles) break;
        const Packet<uint32_t> of_x =
            Load16(&stage.x[(2 * tile + b) * kXWords + 4 * t.lane()]);
#pragma unroll
        for (int i = 0; i < kPanels; ++i) {
          MmaF16(acc[i][tile], a[i][0], {of_x[0], of_x[1]});
          MmaF16(acc[i][tile], a[i][1], {of_x[2], of_x[3]});
        }
      }
    }
  }

  TIERCEL_DEVICE void Store(const Thread& t, const MatmulTarget& target,
                            int64_t first, int64_t row,
                            const float (&acc)[kPanels][kTiles][4]) const {
#pragma unroll
    for (int tile = 0; tile < kTiles; ++tile) {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const int64_t r = row + 8 * tile + t.lane() % 4 * 2 + i;
        if (r >= rows) continue;
        const float undo = back[r];
#pragma unroll
        for (int j = 0; j < 2 * kPanels; ++j) {
          const int64_t column = first * kPanelRows + 8 * j + t.lane() / 4;
          if (column >= target.n) continue;
          StoreProduct(target, targets.scale, r, column,
                       undo * acc[j / 2][tile][j % 2 * 2 + i]);
        }
      }
    }
  }
};

}  // namespace

TIERCEL_KERNEL_BODY(MultiplyF16Cuda, CUstream_st* stream,
                    const MatmulTargets& targets, const F16Fragments* x,
                    const float* back, int64_t rows) {
  return WithWeightType(targets.of[0].type, [&]<DType kType>() {
    if constexpr (kType != DType::kF32) {
      using Kernel = MultiplyHalves<kType>;
      const int64_t row_groups = CeilDiv(rows, Kernel::kRows);
      return Launch(
          stream,
          {.blocks = GroupsOfAll(targets, Kernel::kColumns) * row_groups,
           .threads = Kernel::kMaxThreads},
          Kernel{targets, x, back, targets.of[0].k / 32, rows, row_groups});
    } else {
      return 0;
    }
  });
}

}  // namespace tiercel

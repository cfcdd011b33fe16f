// Products of several rows of x. matmul_row.cu has those of one row, if it can.
//
// Bytes: the weights once for 8, 24 or 32 rows (floats: for 8, 24 or 64), after
// that from the second-level cache, as is x, once for two or four panels
// (floats: for two, or eight).
// Operations: 2 int8 a weight and row, in tiles of 8 rows, and the link of a
// chain a block of 32, 6 to 8 f32 instructions; floats: 2 f32 a weight and row,
// of which a multiply-add is 1.5 instructions for 24 rows, 1.2 for 64.
// Bound by: memory up to 64 rows of 4 bits and 60 of F16 (4090), then by f32,
// which for quantised weights is the links of chains.

#include <cmath>
#include <limits>

#include "kernels/device/device_lang.h"
#include "kernels/layer/matmul_body.h"
#include "kernels/layer/matmul_device.h"
#include "kernels/layer/packed_device.h"
#include "kernels/layer/packed_layout.h"

namespace tiercel {
namespace {

// ---- Quantised weights, int8 activations ----

// A warp computes one panel for 8 kTiles rows. A block of 32 takes one exact
// step of the matrix unit (two where halves of blocks have their own scales),
// and then one link of each output's chain; k is not split. Panels and x pass
// through a ring of stages in shared memory, eight blocks each: while one stage
// is used the others are copied. Both are in the order of the matrix unit: a
// lane gets its part of two blocks by one load of 16 bytes.
template <DType kType, int kTiles>
struct MultiplyPanels {
  using W = PackedBlocks<kType>;
  // For few rows there are more and smaller blocks, so that the whole GPU
  // reads.
  static constexpr int kWarps = kTiles < 4 ? 2 : 4;
  static constexpr int kStages = kTiles == 1 ? 4 : kTiles < 4 ? 3 : 2;
  static constexpr int kMaxThreads = kWarps * kWarpLanes;
  static constexpr int kBlocksAtOnce = kTiles == 1 ? 6 : kTiles < 4 ? 5 : 3;
  static constexpr int kColumns = kWarps * kPanelRows;
  static constexpr int kRows = 8 * kTiles;
  static constexpr int kBlocks = 8;  // blocks per stage
  static constexpr int kGroups = kBlocks / W::kGroup;
  static constexpr int kXWords = sizeof(Q8Fragments) / 4;
  static constexpr int kTileWords = kBlocks / 2 * kXWords;

  struct Stage {
    Array<uint32_t, kWarps * kBlocks * W::kCodeWords> codes;
    Array<uint32_t, kWarps * kGroups * W::kGroupWords> scales;
    Array<uint32_t, kTiles * kTileWords> x;
  };
  struct Shared {
    Array<Stage, kStages> stages;
  };

  MatmulTargets targets;
  const Q8Fragments* x;  // [tiles of 8 rows][pairs of blocks]
  int64_t blocks;        // k / 32
  int64_t rows;
  int64_t row_tiles;

  TIERCEL_DEVICE void operator()(const Thread& t, Shared& shared) const {
    int64_t group = t.block / row_tiles;
    const MatmulTarget target = TargetWith(targets, kColumns, group);
    const int64_t panels = CeilDiv(target.n, kPanelRows);
    const int64_t own = group * kWarps + t.warp();
    // A warp without a panel repeats the last one.
    const int64_t panel = own < panels ? own : panels - 1;
    const int64_t row = t.block % row_tiles * kRows;

    float acc[kTiles][4] = {};
    const uint8_t* const codes = target.panels + panel * target.panel_bytes;
#pragma unroll 1
    for (int i = 0; i < kStages - 1; ++i) {
      Fetch(t, codes, row, i * kBlocks, shared.stages[i]);
      CopyCommit();
    }
    int turn = 0;
#pragma unroll 1
    for (int64_t first = 0; first < blocks; first += kBlocks) {
      CopyWait<kStages - 2>();
      Barrier();  // this stage is there, and all are done with the one before
      const int last = turn == 0 ? kStages - 1 : turn - 1;
      Fetch(t, codes, row, first + (kStages - 1) * kBlocks,
            shared.stages[last]);
      CopyCommit();
      AddStage(t, shared.stages[turn], SizeOf(first), acc);
      turn = turn == kStages - 1 ? 0 : turn + 1;
    }
    if (own == panel) Store(t, target, panel, row, acc);
  }

  // The number of blocks of the stage that starts with block `first`; 0 past
  // the end.
  TIERCEL_DEVICE int SizeOf(int64_t first) const {
    const int64_t left = blocks - first;
    return left <= 0 ? 0 : left < kBlocks ? static_cast<int>(left) : kBlocks;
  }

  // Starts the copy of the blocks from `first` on to shared memory: those of
  // the panel whose codes are at `codes`, and those of x for the rows from
  // `row` on. Rows past the end are undefined; their outputs are not stored.
  TIERCEL_DEVICE void Fetch(const Thread& t, const uint8_t* codes, int64_t row,
                            int64_t first, Stage& stage) const {
    const int size = SizeOf(first);
    const uint8_t* scales = codes + blocks * (4 * W::kCodeWords);
    codes += first * (4 * W::kCodeWords);
    scales += first / W::kGroup * (4 * W::kGroupWords);
    CopyPackets<kBlocks * W::kCodeWords, kWarpLanes>(
        &stage.codes[t.warp() * kBlocks * W::kCodeWords], codes, t.lane(),
        size * W::kCodeWords);
    CopyPackets<kGroups * W::kGroupWords, kWarpLanes>(
        &stage.scales[t.warp() * kGroups * W::kGroupWords], scales, t.lane(),
        size / W::kGroup * W::kGroupWords);

    const int64_t pairs = CeilDiv(blocks, 2);
#pragma unroll
    for (int tile = 0; tile < kTiles; ++tile) {
      const int64_t left = rows - row - 8 * tile;
      if (left <= 0) break;
      CopyPackets<kTileWords, kMaxThreads>(
          &stage.x[tile * kTileWords],
          reinterpret_cast<const uint8_t*>(x + (row / 8 + tile) * pairs +
                                           first / 2),
          t.index, (size + 1) / 2 * kXWords, [left](int i) {
            const int in_fragments = i % kXWords;
            return in_fragments >= 128 || in_fragments / 16 < left;
          });
    }
  }

  // Copies `words` words (at most kMost) by kThreads threads, of which this is
  // `thread`, but only packets for whose first word wanted() is true.
  template <int kMost, int kThreads, typename Wanted>
  static TIERCEL_DEVICE void CopyPackets(uint32_t* to, const uint8_t* from,
                                         int thread, int words,
                                         const Wanted& wanted) {
#pragma unroll
    for (int i = 0; i < kMost; i += kThreads * 4) {
      const int word = i + thread * 4;
      if (word >= words || !wanted(word)) continue;
      CopyAsync16(to + word, from + 4 * word);
    }
  }
  template <int kMost, int kThreads>
  static TIERCEL_DEVICE void CopyPackets(uint32_t* to, const uint8_t* from,
                                         int thread, int words) {
    CopyPackets<kMost, kThreads>(to, from, thread, words,
                                 [](int) { return true; });
  }

  // In a whole stage the loop is unrolled, so that the products of pairs do not
  // wait for each other: only the links are in order.
  TIERCEL_DEVICE void AddStage(const Thread& t, Stage& stage, int size,
                               float (&acc)[kTiles][4]) const {
    if (size == kBlocks) {
#pragma unroll
      for (int pair = 0; 2 * pair < kBlocks; ++pair) {
        AddPair(t, stage, kBlocks, pair, acc);
      }
    } else {
#pragma unroll 1
      for (int pair = 0; 2 * pair < size; ++pair) {
        AddPair(t, stage, size, pair, acc);
      }
    }
  }

  // Adds blocks 2 pair and 2 pair + 1 of a stage of `size` blocks. A lane has
  // the sums of rows g and g + 8 of the panel with rows 2 column and 2 column +
  // 1 of each tile of x.
  TIERCEL_DEVICE void AddPair(const Thread& t, Stage& stage, int size, int pair,
                              float (&acc)[kTiles][4]) const {
    const int g = t.lane() / 4;
    const int column = t.lane() % 4;
    const uint32_t* codes = &stage.codes[t.warp() * kBlocks * W::kCodeWords];
    const uint32_t* scales = &stage.scales[t.warp() * kGroups * W::kGroupWords];
    const typename W::PairWords words =
        W::LoadPair(codes, size, pair, t.lane());
    uint32_t a[2][4];
#pragma unroll
    for (int i = 0; i < 8; ++i)
      a[i / 4][i % 4] = W::PairWord(words, i / 4, i % 4);
    typename W::Scales w[2][2] = {};
    W::ReadScales(scales, 2 * pair, g, w[0]);
    const bool both = 2 * pair + 1 < size;
    if (both) W::ReadScales(scales, 2 * pair + 1, g, w[1]);
#pragma unroll
    for (int tile = 0; tile < kTiles; ++tile) {
      const int at = tile * kTileWords + pair * kXWords;
      const Packet<uint32_t> b = Load16(&stage.x[at + 4 * t.lane()]);
      const int sums = at + 128 + 4 * column;
      AddBlock(a[0], {b[0], b[1]}, w[0], Load16(&stage.x[sums]), acc[tile]);
      if (both) {
        AddBlock(a[1], {b[2], b[3]}, w[1], Load16(&stage.x[sums + 16]),
                 acc[tile]);
      }
    }
  }

  static TIERCEL_DEVICE void AddBlock(const uint32_t (&a)[4],
                                      const uint32_t (&b)[2],
                                      const typename W::Scales (&w)[2],
                                      const Packet<uint32_t>& of_x,
                                      float (&acc)[4]) {
    int32_t dots[4] = {};
    Multiply(a, b, w, of_x, dots);
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const float scale = FloatOf<DType::kF32>(of_x[j % 2]);
      float& sum = acc[j];
      sum = std::fma(static_cast<float>(dots[j]), w[j / 2].d * scale, sum);
      if constexpr (HasMin(W::kLayout.scales)) {
        const uint32_t halves = of_x[2 + j % 2];
        const auto of_codes = static_cast<float>(
            W::MinSum(w[j / 2], SumOf(halves, 0), SumOf(halves, 1)));
        sum = std::fma(w[j / 2].m, scale * of_codes, sum);
      }
    }
  }

  // Computes the dot products of one block; `dots` must be zeros. The first two
  // words of `a`, and the first of `b`, belong to the first half of the block.
  static TIERCEL_DEVICE void Multiply(const uint32_t (&a)[4],
                                      const uint32_t (&b)[2],
                                      const typename W::Scales (&w)[2],
                                      const Packet<uint32_t>& of_x,
                                      int32_t (&dots)[4]) {
    constexpr int kLeft = OffsetLeft(kType);
    if constexpr (W::kHasHalves) {
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        const uint32_t half[4] = {h == 0 ? a[0] : 0, h == 0 ? a[1] : 0,
                                  h == 1 ? a[2] : 0, h == 1 ? a[3] : 0};
        int32_t sums[4];
        for (int j = 0; j < 4; ++j) {
          sums[j] = -kLeft * SumOf(of_x[2 + j % 2], h);
        }
        MmaS8(sums, half, b);
        for (int j = 0; j < 4; ++j) {
          dots[j] += sums[j] * w[j / 2].of_halves[h];
        }
      }
    } else {
      const uint32_t quads[4] = {Signed<kType>(a[0]), Signed<kType>(a[1]),
                                 Signed<kType>(a[2]), Signed<kType>(a[3])};
      if constexpr (kLeft != 0) {
        for (int j = 0; j < 4; ++j) {
          const uint32_t halves = of_x[2 + j % 2];
          dots[j] = -kLeft * (SumOf(halves, 0) + SumOf(halves, 1));
        }
      }
      MmaS8(dots, quads, b);
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
        StoreProduct(target, targets.scale, r, column, acc[tile][j]);
      }
    }
  }
};

// ---- Float activations ----

// The rows and columns of outputs of the threads of a block. The lanes of a
// warp, and their outputs, are arranged as four along rows and eight along
// columns.
template <int kRowsOfThread, int kColumnsOfThread, int kWarpsAlongRows>
struct FloatTile {
  static constexpr int kWarps = 4;
  static constexpr int kThreadRows = kRowsOfThread;
  static constexpr int kThreadColumns = kColumnsOfThread;
  static constexpr int kWarpRows = 4 * kThreadRows;
  static constexpr int kWarpColumns = 8 * kThreadColumns;
  static constexpr int kRows = kWarpsAlongRows * kWarpRows;
  static constexpr int kColumns = kWarps / kWarpsAlongRows * kWarpColumns;
};
// For few rows there are as many blocks as possible, with many copies under way
// for each.
struct Rows8 : FloatTile<2, 1, 1> {
  static constexpr int kStages = 5;
  static constexpr int kColumnBytes = 128;  // bytes of a column per stage
  static constexpr int kUnrolled = 4;       // packets of a stage
  static constexpr int kBlocksAtOnce = 6;
};
struct Rows24 : FloatTile<6, 1, 1> {
  static constexpr int kStages = 3;
  static constexpr int kColumnBytes = 128;
  static constexpr int kUnrolled = 4;
  static constexpr int kBlocksAtOnce = 5;
};
// For many rows each number that is loaded is multiplied eight times.
struct Rows64 : FloatTile<8, 8, 2> {
  static constexpr int kStages = 2;
  static constexpr int kColumnBytes = 64;
  static constexpr int kUnrolled = 1;
  static constexpr int kBlocksAtOnce = 3;
};

// A thread computes a tile of outputs, each a chain over k. Weights and x pass
// through a ring of stages in shared memory.
template <DType kType, typename Tile>
struct MultiplyFloatPanels {
  using Word = WordOf<kType>;
  static constexpr int kPacket = Packet<Word>::kSize;
  static constexpr int kMaxThreads = Tile::kWarps * kWarpLanes;
  static constexpr int kBlocksAtOnce = Tile::kBlocksAtOnce;
  static constexpr int kStages = Tile::kStages;
  static constexpr int kLength =
      Tile::kColumnBytes / static_cast<int>(sizeof(Word));
  // Rows and columns of a stage begin in different memory banks.
  static constexpr int kColumnWords = kLength + kPacket;
  static constexpr int kRowFloats = kLength + 4;

  struct Stage {
    Array<Word, Tile::kColumns * kColumnWords> weights;
    Array<float, Tile::kRows * kRowFloats> x;
  };
  struct Shared {
    Array<Stage, kStages> stages;
  };
  using Sums = float[Tile::kThreadRows][Tile::kThreadColumns];

  MatmulTargets targets;
  const float* x;  // each row is aligned to 16 bytes; k is whole packets
  int64_t x_stride;
  int64_t rows;
  int64_t row_tiles;

  TIERCEL_DEVICE void operator()(const Thread& t, Shared& shared) const {
    int64_t group = t.block / row_tiles;
    const MatmulTarget target = TargetWith(targets, Tile::kColumns, group);
    const int64_t row = t.block % row_tiles * Tile::kRows;

    Sums acc = {};
    From from = Begin(t, target, group * Tile::kColumns, row);
#pragma unroll 1
    for (int i = 0; i < kStages - 1; ++i) {
      Fetch(t, from, shared.stages[i]);
      CopyCommit();
    }
    int turn = 0;
#pragma unroll 1
    for (int64_t left = target.k; left > 0; left -= kLength) {
      CopyWait<kStages - 2>();
      Barrier();  // the stage is there, and all are done with the one before
      Fetch(t, from, shared.stages[turn == 0 ? kStages - 1 : turn - 1]);
      CopyCommit();
      AddStage(t, shared.stages[turn], UpTo(left, kLength), acc);
      turn = turn == kStages - 1 ? 0 : turn + 1;
    }

#pragma unroll
    for (int i = 0; i < Tile::kThreadRows; ++i) {
#pragma unroll
      for (int j = 0; j < Tile::kThreadColumns; ++j) {
        const int64_t r = row + RowOf(t, i);
        const int64_t column = group * Tile::kColumns + ColumnOf(t, j);
        if (r < rows && column < target.n) {
          StoreProduct(target, targets.scale, r, column, acc[i][j]);
        }
      }
    }
  }

  static TIERCEL_DEVICE int RowOf(const Thread& t, int i) {
    return t.warp() % (Tile::kRows / Tile::kWarpRows) * Tile::kWarpRows +
           t.lane() / 8 + 4 * i;
  }
  static TIERCEL_DEVICE int ColumnOf(const Thread& t, int j) {
    return t.warp() / (Tile::kRows / Tile::kWarpRows) * Tile::kWarpColumns +
           t.lane() % 8 + 8 * j;
  }

  // The source of a thread's copies: a packet of every kAtOnce-th column, and
  // of every kAtOnce-th row.
  struct From {
    const uint8_t* columns;
    int64_t column_step;  // bytes
    int columns_left;     // columns left, in whole panels
    const float* rows;
    int64_t row_step;
    int rows_left;
    int64_t left;  // elements of k left
  };
  template <typename T>
  struct Copies {
    static constexpr int kPackets = kLength / Packet<T>::kSize;
    static constexpr int kAtOnce = kMaxThreads / kPackets;
    static constexpr int Own(const Thread& t) { return t.index / kPackets; }
    static constexpr int At(const Thread& t) {
      return t.index % kPackets * Packet<T>::kSize;
    }
  };
  using Columns = Copies<Word>;
  using Rows = Copies<float>;
  static_assert(Columns::kAtOnce % kPanelRows == 0);

  TIERCEL_DEVICE From Begin(const Thread& t, const MatmulTarget& target,
                            int64_t column, int64_t row) const {
    const int own = Columns::Own(t);
    const uint8_t* const panel =
        target.panels + (column + own) / kPanelRows * target.panel_bytes;
    const int64_t at = own % kPanelRows * target.k + Columns::At(t);
    return {panel + at * static_cast<int64_t>(sizeof(Word)),
            Columns::kAtOnce / kPanelRows * target.panel_bytes,
            UpTo(CeilDiv(target.n, kPanelRows) * kPanelRows - column,
                 Tile::kColumns),
            x + (row + Rows::Own(t)) * x_stride + Rows::At(t),
            Rows::kAtOnce * x_stride,
            UpTo(rows - row, Tile::kRows),
            target.k};
  }
  static TIERCEL_DEVICE int UpTo(int64_t a, int most) {
    return a < most ? static_cast<int>(a) : most;
  }

  // Starts the copy of the next stage to shared memory. Rows and panels past
  // the end are undefined.
  static TIERCEL_DEVICE void Fetch(const Thread& t, From& from, Stage& stage) {
    if (Columns::At(t) < from.left) {
#pragma unroll
      for (int i = 0; i * Columns::kAtOnce < Tile::kColumns; ++i) {
        const int column = Columns::Own(t) + i * Columns::kAtOnce;
        if (column >= from.columns_left) continue;
        CopyAsync16(&stage.weights[column * kColumnWords + Columns::At(t)],
                    from.columns + i * from.column_step);
      }
    }
    if (Rows::At(t) < from.left) {
#pragma unroll
      for (int i = 0; i * Rows::kAtOnce < Tile::kRows; ++i) {
        const int row = Rows::Own(t) + i * Rows::kAtOnce;
        if (row >= from.rows_left) continue;
        CopyAsync16(&stage.x[row * kRowFloats + Rows::At(t)],
                    from.rows + i * from.row_step);
      }
    }
    from.columns += Tile::kColumnBytes;
    from.rows += kLength;
    from.left -= kLength;
  }

  // `size` is a multiple of kPacket.
  static TIERCEL_DEVICE void AddStage(const Thread& t, Stage& stage, int size,
                                      Sums& acc) {
#pragma unroll(Tile::kUnrolled)
    for (int k = 0; k < size; k += kPacket) AddPacket(t, stage, k, acc);
  }

  static TIERCEL_DEVICE void AddPacket(const Thread& t, Stage& stage, int k,
                                       Sums& acc) {
    Packet<uint32_t> w[Tile::kThreadColumns];
#pragma unroll
    for (int j = 0; j < Tile::kThreadColumns; ++j) {
      w[j] = Load16(reinterpret_cast<const uint32_t*>(
          &stage.weights[ColumnOf(t, j) * kColumnWords + k]));
    }
#pragma unroll
    for (int part = 0; part < kPacket; part += 4) {
      Packet<float> four[Tile::kThreadRows];
#pragma unroll
      for (int i = 0; i < Tile::kThreadRows; ++i) {
        four[i] = Load16(&stage.x[RowOf(t, i) * kRowFloats + k + part]);
      }
#pragma unroll
      for (int of_four = 0; of_four < 4; ++of_four) {
#pragma unroll
        for (int j = 0; j < Tile::kThreadColumns; ++j) {
          const float weight = WeightOf<kType>(w[j], part + of_four);
#pragma unroll
          for (int i = 0; i < Tile::kThreadRows; ++i) {
            acc[i][j] = std::fma(four[i][of_four], weight, acc[i][j]);
          }
        }
      }
    }
  }
};

// A thread computes one output, a chain over k. It is not optimised, as models
// do not need it: their quantised weights use int8, and their rows are aligned.
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
    StoreProduct(target, targets.scale, row, column,
                 Chain(weights, target.k, lane, x + row * x_stride));
  }

  static TIERCEL_DEVICE float Chain(const uint8_t* panel, int64_t length,
                                    int lane, const float* from) {
    float acc = 0.0f;
    if constexpr (!IsQuantised(kType)) {
      using Word = WordOf<kType>;
      const auto* w = reinterpret_cast<const Word*>(panel);
      for (int64_t k = 0; k < length; ++k) {
        acc = std::fma(from[k], FloatOf<kType>(w[lane * length + k]), acc);
      }
    } else {
      using W = PackedBlocks<kType>;
      const int64_t blocks = length / 32;
      const auto* codes = reinterpret_cast<const uint32_t*>(panel);
      const uint32_t* const groups = codes + blocks * W::kCodeWords;
      for (int64_t block = 0; block < blocks; ++block) {
        const typename W::Scales s = W::ReadScales(groups, block, lane);
#pragma unroll
        for (int quad = 0; quad < 8; ++quad) {
          const uint32_t bytes = W::ReadQuad(codes, blocks, block, lane, quad);
#pragma unroll
          for (int i = 4 * quad; i < 4 * quad + 4; ++i) {
            acc = std::fma(*from++, W::Get(s, bytes, i), acc);
          }
        }
      }
    }
    return acc;
  }
};

// ---- Launches ----

template <DType kType, int kTiles>
int LaunchPanels(CUstream_st* stream, const MatmulTargets& targets,
                 const Q8Fragments* x, int64_t rows) {
  using Kernel = MultiplyPanels<kType, kTiles>;
  const int64_t row_tiles = CeilDiv(rows, Kernel::kRows);
  return Launch(stream,
                {.blocks = GroupsOfAll(targets, Kernel::kColumns) * row_tiles,
                 .threads = Kernel::kMaxThreads},
                Kernel{targets, x, targets.of[0].k / 32, rows, row_tiles});
}

template <DType kType, typename Tile>
int LaunchFloats(CUstream_st* stream, const MatmulTargets& targets,
                 const float* x, int64_t x_stride, int64_t rows) {
  using Kernel = MultiplyFloatPanels<kType, Tile>;
  const int64_t row_tiles = CeilDiv(rows, Tile::kRows);
  return Launch(stream,
                {.blocks = GroupsOfAll(targets, Tile::kColumns) * row_tiles,
                 .threads = Kernel::kMaxThreads},
                Kernel{targets, x, x_stride, rows, row_tiles});
}

}  // namespace

TIERCEL_KERNEL_BODY(MultiplyQ8Cuda, CUstream_st* stream,
                    const MatmulTargets& targets, const Q8Fragments* x,
                    int64_t rows) {
  return WithWeightType(targets.of[0].type, [&]<DType kType>() {
    if constexpr (IsQuantised(kType)) {
      if (rows == 1 && targets.of[0].k % kRowUnit == 0) {
        return MultiplyRowQ8Cuda(stream, targets, x);
      }
      const auto launch = rows <= 8    ? LaunchPanels<kType, 1>
                          : rows <= 24 ? LaunchPanels<kType, 3>
                                       : LaunchPanels<kType, 4>;
      return launch(stream, targets, x, rows);
    } else {
      return 0;
    }
  });
}

TIERCEL_KERNEL_BODY(MultiplyF32Cuda, CUstream_st* stream,
                    const MatmulTargets& targets, const float* x,
                    int64_t x_stride, int64_t rows) {
  const bool aligned = IsAligned(x) && x_stride % 4 == 0;
  return WithWeightType(targets.of[0].type, [&]<DType kType>() {
    if constexpr (!IsQuantised(kType)) {
      constexpr int kPacket = Packet<WordOf<kType>>::kSize;
      if (aligned && targets.of[0].k % kPacket == 0) {
        if (rows == 1) return MultiplyRowF32Cuda(stream, targets, x);
        const auto launch = rows <= 8    ? LaunchFloats<kType, Rows8>
                            : rows <= 48 ? LaunchFloats<kType, Rows24>
                                         : LaunchFloats<kType, Rows64>;
        return launch(stream, targets, x, x_stride, rows);
      }
    }
    using Kernel = MultiplyFloats<kType>;
    const int64_t row_tiles = CeilDiv(rows, Kernel::kRows);
    return Launch(stream,
                  {.blocks = GroupsOfAll(targets, kPanelRows) * row_tiles,
                   .threads = Kernel::kMaxThreads},
                  Kernel{targets, x, x_stride, rows, row_tiles});
  });
}

}  // namespace tiercel

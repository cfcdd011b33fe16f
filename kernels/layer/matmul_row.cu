// Products of one row of x, which are bound by memory.
//
// Bytes: the weights once; x once for one panel of quantised weights, or two of
// floats.
// Operations: for floats 2 a weight; 64 links of a chain take 213 instructions
// of the warp that has two panels. For quantised weights 8 blocks of a panel
// take a warp 200 to 280 instructions, 8 of them steps of the matrix unit, of
// which an eighth is used.
// Bound by: memory; if there are no more panels than processors, by chains of
// floats, whose links take 4 cycles.

#include <cmath>

#include "kernels/device/device_lang.h"
#include "kernels/layer/matmul_body.h"
#include "kernels/layer/matmul_device.h"
#include "kernels/layer/packed_device.h"
#include "kernels/layer/packed_layout.h"

namespace tiercel {
namespace {

// ---- Weights that are not quantised ----

// A warp computes two panels: a lane has one column, which is a chain over k.
// Weights and x pass through a ring of stages in shared memory, 128 bytes of
// each column at a time. The operands of the next links are in registers before
// the last ones are done, so that the lane waits for the chain alone.
template <DType kType, int kStages>
struct MultiplyFloatRow {
  using Word = WordOf<kType>;
  static constexpr int kMaxThreads = kWarpLanes;
  static constexpr int kColumns = 2 * kPanelRows;
  static constexpr int kPacket = Packet<Word>::kSize;
  static constexpr int kPackets = 8;  // packets of a column per stage
  static constexpr int kLength = kPackets * kPacket;
  // Columns begin in different memory banks.
  static constexpr int kColumnWords = kLength + kPacket;
  static_assert(kColumns == kWarpLanes);

  struct Stage {
    Array<Word, kColumns * kColumnWords> weights;
    Array<float, kLength> x;
  };
  struct Shared {
    Array<Stage, kStages> stages;
  };

  // The operands of some links of a lane, in registers.
  struct Links {
    static constexpr int kLength = 2 * kPacket;
    Packet<uint32_t> weights[2];
    Packet<float> x[kLength / 4];
  };

  // The source of a lane's copies: its packets of every fourth column of each
  // panel. Each is 4 k words (`four_columns`) after the one before.
  struct From {
    const Word* panels[2];
    int64_t four_columns;
    const float* x;
  };

  MatmulTargets targets;
  const float* x;  // aligned to 16 bytes; k is whole packets

  TIERCEL_DEVICE void operator()(const Thread& t, Shared& shared) const {
    int64_t group = t.block;
    const MatmulTarget target = TargetWith(targets, kColumns, group);
    const int64_t stages = target.k / kLength;
    From from = Begin(t, target, group);
#pragma unroll 1
    for (int i = 0; i < kStages - 1; ++i) {
      if (i < stages) Fetch(t, from, shared.stages[i]);
      CopyCommit();
    }

    float acc = 0.0f;
    int turn = 0;
    CopyWait<kStages - 2>();
    WarpBarrier();
    Links next = {};
    if (stages > 0) next = Read(t, shared.stages[0], 0);
    int64_t stage = 0;
#pragma unroll 1
    for (; stage + kStages - 1 < stages; ++stage) {
      AddStage<true>(t, shared, turn, from, next, acc);
    }
#pragma unroll 1
    for (; stage < stages; ++stage) {
      AddStage<false>(t, shared, turn, from, next, acc);
    }

    const int64_t column = group * kColumns + t.lane();
    if (column >= target.n) return;
    acc = AddRest(target, column, stages * kLength, acc);
    StoreProduct(target, targets.scale, 0, column, acc);
  }

  // Columns past the end of the last panel are undefined. A panel past the end
  // is replaced by the one before.
  TIERCEL_DEVICE From Begin(const Thread& t, const MatmulTarget& target,
                            int64_t group) const {
    const int64_t at =
        t.lane() / kPackets * target.k + t.lane() % kPackets * kPacket;
    const int64_t panel = 2 * group;
    const bool both = (panel + 1) * kPanelRows < target.n;
    const uint8_t* const first = target.panels + panel * target.panel_bytes;
    const uint8_t* const second = both ? first + target.panel_bytes : first;
    return {{reinterpret_cast<const Word*>(first) + at,
             reinterpret_cast<const Word*>(second) + at},
            kWarpLanes / kPackets * target.k,
            x + t.lane() * 4};
  }

  // Starts the copy of the next stage to shared memory.
  static TIERCEL_DEVICE void Fetch(const Thread& t, From& from, Stage& stage) {
    const int to =
        t.lane() / kPackets * kColumnWords + t.lane() % kPackets * kPacket;
#pragma unroll
    for (int panel = 0; panel < 2; ++panel) {
      const Word* columns = from.panels[panel];
#pragma unroll
      for (int i = 0; i < kPackets / 2; ++i) {
        constexpr int kAtOnce = kWarpLanes / kPackets * kColumnWords;
        CopyAsync16(&stage.weights[to + (panel * kPackets / 2 + i) * kAtOnce],
                    columns);
        columns += from.four_columns;
      }
      from.panels[panel] += kLength;
    }
    if (t.lane() < kLength / 4) CopyAsync16(&stage.x[t.lane() * 4], from.x);
    from.x += kLength;
  }

  static TIERCEL_DEVICE Links Read(const Thread& t, Stage& stage, int at) {
    Links links;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      links.weights[i] = Load16(reinterpret_cast<const uint32_t*>(
          &stage.weights[t.lane() * kColumnWords + at + i * kPacket]));
    }
#pragma unroll
    for (int i = 0; i < Links::kLength / 4; ++i) {
      links.x[i] = Load16(&stage.x[at + 4 * i]);
    }
    return links;
  }

  // Adds stage `turn`, whose first links have been read, and reads the first
  // links of the next stage. If kFetches, starts the copy of another stage to
  // the place of the stage before.
  template <bool kFetches>
  static TIERCEL_DEVICE void AddStage(const Thread& t, Shared& shared,
                                      int& turn, From& from, Links& next,
                                      float& acc) {
    Stage& stage = shared.stages[turn];
    Stage& before = shared.stages[turn == 0 ? kStages - 1 : turn - 1];
    turn = turn == kStages - 1 ? 0 : turn + 1;
#pragma unroll
    for (int at = 0; at < kLength; at += Links::kLength) {
      const Links own = next;
      if (at + Links::kLength < kLength) {
        next = Read(t, stage, at + Links::kLength);
      } else {
        CopyWait<kStages - 2>();
        WarpBarrier();  // all have read this stage, and the next one is there
        next = Read(t, shared.stages[turn], 0);
      }
      if (at == 0) {
        if constexpr (kFetches) Fetch(t, from, before);
        CopyCommit();
      }
      Add(own, acc);
    }
  }

  static TIERCEL_DEVICE void Add(const Links& links, float& acc) {
#pragma unroll
    for (int i = 0; i < Links::kLength; ++i) {
      acc = std::fma(links.x[i / 4][i % 4],
                     WeightOf<kType>(links.weights[i / kPacket], i % kPacket),
                     acc);
    }
  }

  // Adds the products after the last full stage.
  TIERCEL_DEVICE float AddRest(const MatmulTarget& target, int64_t column,
                               int64_t begin, float acc) const {
    const auto* const weights =
        reinterpret_cast<const Word*>(target.panels + column / kPanelRows *
                                                          target.panel_bytes) +
        column % kPanelRows * target.k;
#pragma unroll 1
    for (int64_t k = begin; k < target.k; k += kPacket) {
      const Packet<Word> w = Load16(weights + k);
#pragma unroll
      for (int i = 0; i < kPacket; i += 4) {
        const Packet<float> four = Load16(x + k + i);
#pragma unroll
        for (int j = 0; j < 4; ++j) {
          acc = std::fma(four[j], FloatOf<kType>(w[i + j]), acc);
        }
      }
    }
    return acc;
  }
};

// ---- Quantised weights, int8 activations ----

// A block of threads computes one panel. Its warps take units of eight blocks
// in turn, and turn them into links: the exact dot products, by the matrix
// unit, and their factors. Links go to shared memory. One warp, each in its
// turn, adds them to the chains while the others work on their next units. The
// operands of a unit are loaded as soon as the registers of the unit before are
// free.
template <DType kType>
struct MultiplyPanelRow {
  using W = PackedBlocks<kType>;
  static constexpr int kWarps = 4;
  static constexpr int kMaxThreads = kWarps * kWarpLanes;
  static constexpr int kBlocksAtOnce = W::kHasHalves ? 3 : 4;
  static constexpr int kUnit = 8;  // blocks
  static constexpr int kScaleWords = kUnit / W::kGroup * W::kGroupWords;
  static constexpr bool kHasMin = HasMin(W::kLayout.scales);

  // The dot product and the scale of one row of the panel and one block and, if
  // the type has a minimum, the minimum and its factor.
  struct alignas(kHasMin ? 16 : 8) Link {
    float at[kHasMin ? 4 : 2];
  };
  // Links of different blocks begin in different memory banks.
  static constexpr int kPitch =
      kPanelRows + 32 / static_cast<int>(sizeof(Link));
  static constexpr int kRoundLinks = kWarps * kUnit * kPitch;
  struct Shared {
    Array<Link, 2 * kRoundLinks> links;
    Array<float, kPanelRows> sums;
  };

  // A lane's part of four blocks. All columns of the matrix unit are the row of
  // x, so lanes 4 g to 4 g + 3 get the same sums. Lane 4 g + i of them
  // continues with block i.
  struct Quad {
    Packet<uint32_t> codes[W::kQuadPackets];
    Packet<uint32_t> x[2];
    Packet<uint32_t> of_x;  // scale and sums of the lane's block
    typename W::ScaleWords scales;
  };

  // The addresses from which a lane loads a unit.
  struct From {
    const uint32_t* codes;
    const uint32_t* scales;  // scales of the whole unit
    const uint32_t* x;
    const uint32_t* of_x;
  };

  MatmulTargets targets;
  const Q8Fragments* x;
  int64_t units;  // k / 256

  TIERCEL_DEVICE void operator()(const Thread& t, Shared& shared) const {
    int64_t panel = t.block;
    const MatmulTarget target = TargetWith(targets, kPanelRows, panel);
    From from = FirstOf(t, target.panels + panel * target.panel_bytes);
    Quad quads[2] = {};
    int64_t own = t.warp();
    if (own < units) {
      quads[0] = Load(t, from, 0);
      quads[1] = Load(t, from, 1);
    }
    int turn = 0;
    int half = 0;  // offset of the current half of shared.links
    for (int64_t first = 0; first < units; first += kWarps) {
      const int64_t next = own + kWarps;
      if (own < units) {
        from = NextOf(from);
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          int32_t dots[W::kHasHalves ? 2 : 1][2] = {};
          Multiply(t, quads[i], dots);
          const Packet<uint32_t> of_x = quads[i].of_x;
          const typename W::ScaleWords scales = quads[i].scales;
          if (next < units) quads[i] = Load(t, from, i);
          const int block = t.warp() * kUnit + 4 * i + t.lane() % 4;
          StoreLinks(dots, of_x, scales, shared,
                     half + block * kPitch + t.lane() / 4);
        }
      }
      own = next;
      Barrier();  // links are there, and those before are added
      if (t.warp() == turn && t.lane() < kPanelRows) {
        AddLinks(shared, half, t.lane(), units - first, first == 0);
      }
      turn = turn == kWarps - 1 ? 0 : turn + 1;
      half = half == 0 ? kRoundLinks : 0;
    }

    Barrier();
    if (t.index >= kPanelRows) return;
    const int64_t column = panel * kPanelRows + t.index;
    if (column < target.n) {
      StoreProduct(target, targets.scale, 0, column, shared.sums[t.index]);
    }
  }

  TIERCEL_DEVICE From FirstOf(const Thread& t, const uint8_t* panel) const {
    const int in_quad = t.lane() % 4;
    const auto* const codes = reinterpret_cast<const uint32_t*>(panel);
    const Q8Fragments* const own = x + t.warp() * (kUnit / 2);
    return {codes + t.warp() * (kUnit * W::kCodeWords) + 4 * t.lane(),
            codes + units * (kUnit * W::kCodeWords) + t.warp() * kScaleWords,
            own->codes[in_quad],
            reinterpret_cast<const uint32_t*>(
                &own[in_quad / 2].sums[in_quad % 2][0])};
  }

  // The addresses of the warp's next unit.
  static TIERCEL_DEVICE From NextOf(const From& from) {
    constexpr int kFragments = kWarps * kUnit / 2 * sizeof(Q8Fragments) / 4;
    return {from.codes + kWarps * kUnit * W::kCodeWords,
            from.scales + kWarps * kScaleWords, from.x + kFragments,
            from.of_x + kFragments};
  }

  // Loads quad i of a unit.
  static TIERCEL_DEVICE Quad Load(const Thread& t, const From& from, int i) {
    constexpr int kFragment = sizeof(Q8Fragments) / 4;
    Quad quad;
#pragma unroll
    for (int j = 0; j < W::kQuadPackets; ++j) {
      quad.codes[j] = Load16(from.codes + (i * W::kQuadPackets + j) * 128);
    }
#pragma unroll
    for (int j = 0; j < 2; ++j) {
      quad.x[j] = Load16(from.x + (2 * i + j) * kFragment);
    }
    quad.of_x = Load16(from.of_x + 2 * i * kFragment);
    quad.scales =
        W::ReadScaleWords(from.scales, 4 * i + t.lane() % 4, t.lane() / 4);
    return quad;
  }

  // Computes the dot products of rows g and g + 8 with the lane's block of a
  // quad, or with each half of it if halves have their own scales. OffsetLeft
  // is not subtracted yet.
  static TIERCEL_DEVICE void Multiply(
      const Thread& t, const Quad& quad,
      int32_t (&dots)[W::kHasHalves ? 2 : 1][2]) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      uint32_t a[4];
      W::WordsOf(quad.codes, i, a);
      const uint32_t b[2] = {quad.x[i / 2][i % 2 * 2],
                             quad.x[i / 2][i % 2 * 2 + 1]};
#pragma unroll
      for (int h = 0; h < (W::kHasHalves ? 2 : 1); ++h) {
        const bool low = !W::kHasHalves || h == 0;
        const bool high = !W::kHasHalves || h == 1;
        const uint32_t half[4] = {
            low ? Signed<kType>(a[0]) : 0, low ? Signed<kType>(a[1]) : 0,
            high ? Signed<kType>(a[2]) : 0, high ? Signed<kType>(a[3]) : 0};
        int32_t sums[4] = {};
        MmaS8(sums, half, b);
        if (t.lane() % 4 == i) {
          dots[h][0] = sums[0];
          dots[h][1] = sums[2];
        }
      }
    }
  }

  static TIERCEL_DEVICE void StoreLinks(
      const int32_t (&dots)[W::kHasHalves ? 2 : 1][2],
      const Packet<uint32_t>& of_x, const typename W::ScaleWords& words,
      Shared& shared, int at) {
    constexpr int kLeft = OffsetLeft(kType);
    typename W::Scales w[2];
    W::ScalesOf(words, w);
    const float scale = FloatOf<DType::kF32>(of_x[0]);
    const int sums[2] = {SumOf(of_x[2], 0), SumOf(of_x[2], 1)};
#pragma unroll
    for (int j = 0; j < 2; ++j) {
      int dot = 0;
      if constexpr (W::kHasHalves) {
        for (int h = 0; h < 2; ++h) {
          dot += (dots[h][j] - kLeft * sums[h]) * w[j].of_halves[h];
        }
      } else {
        dot = dots[0][j] - kLeft * (sums[0] + sums[1]);
      }
      Link link;
      link.at[0] = static_cast<float>(dot);
      link.at[1] = w[j].d * scale;
      if constexpr (kHasMin) {
        link.at[2] = w[j].m;
        link.at[3] =
            scale * static_cast<float>(W::MinSum(w[j], sums[0], sums[1]));
      }
      shared.links[at + 8 * j] = link;
    }
  }

  // Adds the links of a round, which has kWarps units or the `left` ones, to
  // the chain of row `row` of the panel.
  static TIERCEL_DEVICE void AddLinks(Shared& shared, int half, int row,
                                      int64_t left, bool is_first) {
    float acc = is_first ? 0.0f : shared.sums[row];
    const int size = left < kWarps ? static_cast<int>(left) : kWarps;
#pragma unroll 1
    for (int unit = 0; unit < size; ++unit) {
#pragma unroll
      for (int i = 0; i < kUnit; ++i) {
        const Link link =
            shared.links[half + (unit * kUnit + i) * kPitch + row];
        acc = std::fma(link.at[0], link.at[1], acc);
        if constexpr (kHasMin) acc = std::fma(link.at[2], link.at[3], acc);
      }
    }
    shared.sums[row] = acc;
  }
};

// With up to this many blocks a processor has one or two, and each has more
// stages under way.
constexpr int64_t kFewBlocks = 256;

template <typename Kernel>
int LaunchRow(CUstream_st* stream, int64_t blocks, const MatmulTargets& targets,
              const float* x) {
  return Launch(stream, {.blocks = blocks, .threads = Kernel::kMaxThreads},
                Kernel{targets, x});
}

}  // namespace

TIERCEL_KERNEL_BODY(MultiplyRowQ8Cuda, CUstream_st* stream,
                    const MatmulTargets& targets, const Q8Fragments* x) {
  return WithWeightType(targets.of[0].type, [&]<DType kType>() {
    if constexpr (IsQuantised(kType)) {
      using Kernel = MultiplyPanelRow<kType>;
      return Launch(stream,
                    {.blocks = GroupsOfAll(targets, kPanelRows),
                     .threads = Kernel::kMaxThreads},
                    Kernel{targets, x, targets.of[0].k / kRowUnit});
    } else {
      return 0;
    }
  });
}

TIERCEL_KERNEL_BODY(MultiplyRowF32Cuda, CUstream_st* stream,
                    const MatmulTargets& targets, const float* x) {
  return WithWeightType(targets.of[0].type, [&]<DType kType>() {
    if constexpr (!IsQuantised(kType)) {
      const int64_t blocks = GroupsOfAll(targets, 2 * kPanelRows);
      return blocks <= kFewBlocks ? LaunchRow<MultiplyFloatRow<kType, 12>>(
                                        stream, blocks, targets, x)
                                  : LaunchRow<MultiplyFloatRow<kType, 6>>(
                                        stream, blocks, targets, x);
    } else {
      return 0;
    }
  });
}

}  // namespace tiercel

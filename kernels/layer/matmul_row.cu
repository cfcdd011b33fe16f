// One row of x, whose products are bound by memory.
//
// Bytes: the weights once; x once for two panels.
// Operations: 2 a weight. Two panels are one warp's where weights are floats,
// so of them a multiply-add may take a GPU 4 cycles, the time of one link of a
// chain; everything else is done between links.
// Bound by: memory; by the chain where there are as few panels as processors.

#include <cmath>
#include <type_traits>

#include "kernels/device/device_lang.h"
#include "kernels/layer/matmul_body.h"
#include "kernels/layer/matmul_device.h"
#include "kernels/layer/packed_layout.h"

namespace tiercel {
namespace {

// ---- weights that are not quantised ----

// A warp computes two panels: a lane has one column, its chain over k. Weights
// and x pass through a ring of stages in shared memory, a line of each column
// at a time, and what the next links take is in registers before the last ones
// are done, so that nothing but the chain itself is waited for.
template <DType kType>
struct MultiplyFloatRow {
  using Word = std::conditional_t<kType == DType::kF32, uint32_t, uint16_t>;
  static constexpr int kMaxThreads = kWarpLanes;
  static constexpr int kColumns = 2 * kPanelRows;
  static constexpr int kStages = 6;
  static constexpr int kPacket = Packet<Word>::kSize;
  static constexpr int kPackets = 8;  // of a column, in a stage
  static constexpr int kLength = kPackets * kPacket;
  // Columns begin in memory banks of their own.
  static constexpr int kColumnWords = kLength + kPacket;
  static_assert(kColumns == kWarpLanes);

  struct Stage {
    Array<Word, kColumns * kColumnWords> weights;
    Array<float, kLength> x;
  };
  struct Shared {
    Array<Stage, kStages> stages;
  };

  // What a lane takes for some links, in registers.
  struct Links {
    static constexpr int kLength = 2 * kPacket;
    Packet<uint32_t> weights[2];
    Packet<float> x[kLength / 4];
  };

  // Where a lane copies from: its packets of every fourth column of a panel,
  // from the second one on 4 k words further each.
  struct From {
    const Word* panels[2];
    int64_t four_columns;
    const float* x;
  };

  MatmulTargets targets;
  const float* x;  // aligned to 16 bytes; k to packets

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
    StoreProduct(target, 0, column, acc);
  }

  // Columns past the end of the last panel are whatever lies there; instead of
  // a panel past the end comes the one before.
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

  // Has the next stage copied to shared memory.
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

  // Adds the stage `turn`, of which the first links are read, and reads the
  // first of the next one; has another stage copied to where the one before
  // was.
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

  static TIERCEL_DEVICE float WeightOf(const Packet<uint32_t>& words, int i) {
    constexpr int kInWord = sizeof(uint32_t) / sizeof(Word);
    return FloatOf<kType>(words[i / kInWord] >> (i % kInWord * 16));
  }

  static TIERCEL_DEVICE void Add(const Links& links, float& acc) {
#pragma unroll
    for (int i = 0; i < Links::kLength; ++i) {
      acc = std::fma(links.x[i / 4][i % 4],
                     WeightOf(links.weights[i / kPacket], i % kPacket), acc);
    }
  }

  // What does not fill a stage.
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

}  // namespace

int MultiplyRowF32Cuda(CUstream_st* stream, const MatmulTargets& targets,
                       const float* x) {
  return WithWeightType(targets.of[0].type, [&]<DType kType>() {
    if constexpr (!IsQuantised(kType)) {
      using Kernel = MultiplyFloatRow<kType>;
      return Launch(stream,
                    {.blocks = GroupsOfAll(targets, Kernel::kColumns),
                     .threads = Kernel::kMaxThreads},
                    Kernel{targets, x});
    } else {
      return 0;
    }
  });
}

}  // namespace tiercel

// Bytes: K and V once for each 64 queries of a KV head, from the second-level
// cache; q8_0 and q4_0 are expanded to f16 on the way into shared memory.
// Operations: 4 f16 an element, position and query, by the matrix unit; an
// exponential a position and query.
// Bound by: the matrix unit.

#include <cmath>
#include <limits>
#include <type_traits>

#include "kernels/attention/flash_attention.h"
#include "kernels/device/device_lang.h"
#include "kernels/kv/kv_element.h"

namespace tiercel {
namespace {

// A block computes 64 queries (rows and heads that share a KV head) of one KV
// head, 16 by each warp. It goes over the positions in blocks of kCells: scores
// stay in registers, where they become the weights of the values. While scores
// are computed the block's values arrive, and meanwhile the next keys.
//
// A lane has the elements of rows g = lane / 4 and g + 8 of its warp's queries
// that the matrix unit's layout gives it (device_lang.h).
template <int kDim, DType kType>
struct FlashAttend {
  static constexpr int kWarps = 4;
  static constexpr int kMaxThreads = kWarps * kWarpLanes;
  static constexpr int kBlocksAtOnce = 2;
  static constexpr int kOfWarp = 16;  // queries of a warp
  static constexpr int kTile = kWarps * kOfWarp;
  static constexpr int kCells = 64;
  static_assert(kPageTokens % kCells == 0 && kDim % 32 == 0);
  // A row is padded by a packet, so that the rows of a matrix are in different
  // banks.
  static constexpr int kPitch = kDim + 8;
  static constexpr int kDimSteps = kDim / 16;
  static constexpr int kRowBytes = KvBytes(kType, kDim);
  static constexpr bool kInBlocks = IsInBlocks(kType);
  using Block = std::conditional_t<kType == DType::kQ4_0, Q4Words, Q8Words>;

  struct Shared {
    Array<uint16_t, kCells * kPitch> keys;
    Array<uint16_t, kCells * kPitch> values;
  };

  FlashAttentionRows p;
  int64_t tiles;  // tiles of queries per KV head

  // The lane's two queries.
  struct Query {
    int64_t row;
    int head;
  };
  struct State {
    uint32_t q[kDimSteps][4];
    float out[kDim / 8][4];
    float max[2];
    float sum[2];  // over the columns that the lane has
    int64_t position[2];
  };
  // A block of positions, of which cells begin..end - 1 exist for the tile.
  struct Cells {
    int64_t start;
    const std::byte* keys;
    const std::byte* values;
    int begin;
    int end;
  };

  TIERCEL_DEVICE void operator()(const Thread& t, Shared& s) const {
    const auto kv_heads = static_cast<int64_t>(p.layout.kv_heads);
    const int kv_head = static_cast<int>(t.block % kv_heads);
    // The last tiles, which see the most, are computed first.
    const int64_t first = (tiles - 1 - t.block / kv_heads) * kTile;
    const int64_t queries = p.rows * Group();
    const int64_t after = first + kTile < queries ? first + kTile : queries;
    const int64_t last = p.position + (after - 1) / Group();

    State state;
    const int64_t own = first + t.warp() * kOfWarp + t.lane() / 4;
    for (int i = 0; i < 2; ++i) {
      const Query query = QueryAt(own + 8 * i, queries);
      state.position[i] = p.position + query.row;
      state.max[i] = -std::numeric_limits<float>::infinity();
      state.sum[i] = 0.0f;
      TakeQuery(t, kv_head, query, i, state);
    }
#pragma unroll
    for (int d = 0; d < kDim / 8; ++d) {
#pragma unroll
      for (int i = 0; i < 4; ++i) state.out[d][i] = 0.0f;
    }

    const int64_t origin = p.pages[0].start;
    const int64_t begin = p.begin > origin ? (p.begin - origin) / kCells : 0;
    const int64_t end = (last - origin) / kCells + 1;
    Cells cells = Open(kv_head, begin, last);
    Fetch(t, s.keys, cells.keys, cells);
    CopyCommit();
    for (int64_t block = begin; block < end; ++block) {
      CopyWait<0>();
      Barrier();  // the keys are there, and all are done with the values before
      Fetch(t, s.values, cells.values, cells);
      CopyCommit();
      float scores[kCells / 8][4];
      Score(t, s, state, scores);
      Weigh(t, cells, state, scores);
      CopyWait<0>();
      Barrier();  // the values are there, and all are done with the keys
      if (block + 1 < end) {
        cells = Open(kv_head, block + 1, last);
        Fetch(t, s.keys, cells.keys, cells);
      }
      CopyCommit();
      AddValues(t, s, scores, state);
    }
    CopyWait<0>();
    Store(t, kv_head, own, queries, state);
  }

  TIERCEL_DEVICE int Group() const { return p.heads / p.layout.kv_heads; }

  // Query i, or the last if there are not as many.
  TIERCEL_DEVICE Query QueryAt(int64_t i, int64_t queries) const {
    const auto query = static_cast<uint32_t>(i < queries ? i : queries - 1);
    const auto group = static_cast<uint32_t>(Group());
    return {query / group, static_cast<int>(query % group)};
  }

  // Rounds the lane's elements of its query i (0 or 1) to f16.
  TIERCEL_DEVICE void TakeQuery(const Thread& t, int kv_head,
                                const Query& query, int i, State& state) const {
    const float* const q = p.q + query.row * p.q_stride +
                           int64_t{kv_head * Group() + query.head} * kDim +
                           2 * (t.lane() % 4);
#pragma unroll
    for (int step = 0; step < kDimSteps; ++step) {
      const float* const at = q + 16 * step;
      state.q[step][i] = PackHalves(at[0], at[1]);
      state.q[step][i + 2] = PackHalves(at[8], at[9]);
    }
  }

  TIERCEL_DEVICE Cells Open(int kv_head, int64_t block, int64_t last) const {
    constexpr int kBlocks = kPageTokens / kCells;
    const AttentionWave::Page page = p.pages[block / kBlocks];
    const int first = static_cast<int>(block % kBlocks) * kCells;
    Cells cells;
    cells.start = page.start + first;
    cells.keys = page.at + (int64_t{kv_head} * kPageTokens + first) * kRowBytes;
    // V has as many rows of as many bytes, behind K.
    cells.values =
        cells.keys + int64_t{p.layout.kv_heads} * kPageTokens * kRowBytes;
    const int64_t begin = p.begin - cells.start;
    const int64_t end = last + 1 - cells.start;
    cells.begin = begin > 0 ? static_cast<int>(begin) : 0;
    cells.end = end < kCells ? static_cast<int>(end) : kCells;
    return cells;
  }

  // Starts to bring K or V of a block of positions. Cells that do not exist
  // become zero, as even a weight of zero would let their NaN pass.
  TIERCEL_DEVICE void Fetch(const Thread& t,
                            Array<uint16_t, kCells * kPitch>& to,
                            const std::byte* from, const Cells& cells) const {
    constexpr int kUnit = kInBlocks ? kKvPiece : 8;  // elements
    constexpr int kUnits = kDim / kUnit;
#pragma unroll
    for (int own = 0; own < kCells * kUnits; own += kMaxThreads) {
      const int i = own + t.index;
      if (i >= kCells * kUnits) break;
      const int cell = i / kUnits;
      const int d = i % kUnits * kUnit;
      const bool exists = cell >= cells.begin && cell < cells.end;
      const std::byte* const at = from + cell * kRowBytes;
      uint16_t* const place = &to[cell * kPitch + d];
      if constexpr (kInBlocks) {
        Expand(exists, at + d / kKvPiece * Block::kBytes, place);
      } else if (exists) {
        CopyAsync16(place, at + 2 * d);
      } else {
        Store16(Packet<uint16_t>{}, place);
      }
    }
  }

  // Writes a block as f16.
  TIERCEL_DEVICE static void Expand(bool exists, const std::byte* from,
                                    uint16_t* to) {
    if (!exists) {
#pragma unroll
      for (int i = 0; i < 4; ++i) Store16(Packet<uint16_t>{}, to + 8 * i);
      return;
    }
    const Block block = ReadBlock<Block>(from);
    const float scale = block.Scale();
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      Packet<uint32_t> packet;
#pragma unroll
      for (int w = 0; w < 4; ++w) {
        packet[w] = PackHalves(scale * block.Code(8 * i + 2 * w),
                               scale * block.Code(8 * i + 2 * w + 1));
      }
      Store16(packet, reinterpret_cast<uint32_t*>(to + 8 * i));
    }
  }

  // scores = scale * q K^T, in units of log2.
  TIERCEL_DEVICE void Score(const Thread& t, Shared& s, const State& state,
                            float (&scores)[kCells / 8][4]) const {
    const float scale = p.scale * 1.44269504f;
#pragma unroll
    for (int n = 0; n < kCells / 8; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) scores[n][i] = 0.0f;
    }
    // Matrix m of a load has the second eight dimensions if it is odd, and the
    // second eight cells from the third on.
    const int row = t.lane() % 8 + t.lane() / 16 * 8;
    const int d = t.lane() / 8 % 2 * 8;
#pragma unroll
    for (int step = 0; step < kDimSteps; ++step) {
#pragma unroll
      for (int n = 0; n < kCells / 16; ++n) {
        uint32_t k[4];
        LoadMatrices(k, &s.keys[(16 * n + row) * kPitch + 16 * step + d]);
        MmaF16(scores[2 * n], state.q[step], {k[0], k[1]});
        MmaF16(scores[2 * n + 1], state.q[step], {k[2], k[3]});
      }
    }
#pragma unroll
    for (int n = 0; n < kCells / 8; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) scores[n][i] *= scale;
    }
  }

  // Replaces scores by weights, and rescales what was summed before.
  TIERCEL_DEVICE void Weigh(const Thread& t, const Cells& cells, State& state,
                            float (&scores)[kCells / 8][4]) const {
    constexpr float kUnseen = -std::numeric_limits<float>::infinity();
    // Row r sees cells cells.begin..seen[r] - 1.
    int seen[2];
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const int64_t end = state.position[r] + 1 - cells.start;
      seen[r] = end < kCells ? static_cast<int>(end) : kCells;
    }
    if (cells.begin > 0 || seen[0] < kCells || seen[1] < kCells) {
#pragma unroll
      for (int n = 0; n < kCells / 8; ++n) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const int cell = 8 * n + 2 * (t.lane() % 4) + i % 2;
          const bool sees = cell >= cells.begin && cell < seen[i / 2];
          if (!sees) scores[n][i] = kUnseen;
        }
      }
    }
    float rescale[2];
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      float max = state.max[r];
#pragma unroll
      for (int n = 0; n < kCells / 8; ++n) {
        max = std::fmax(max, std::fmax(scores[n][2 * r], scores[n][2 * r + 1]));
      }
      max = std::fmax(max, ShuffleXor(kAllLanes, max, 1));
      max = std::fmax(max, ShuffleXor(kAllLanes, max, 2));
      const float base = max == kUnseen ? 0.0f : max;
      rescale[r] = Exp2(state.max[r] - base);
      state.max[r] = max;
      float sum = 0.0f;
#pragma unroll
      for (int n = 0; n < kCells / 8; ++n) {
#pragma unroll
        for (int i = 2 * r; i < 2 * r + 2; ++i) {
          scores[n][i] = Exp2(scores[n][i] - base);
          sum += scores[n][i];
        }
      }
      state.sum[r] = state.sum[r] * rescale[r] + sum;
    }
    const bool same = rescale[0] == 1.0f && rescale[1] == 1.0f;
    if (Ballot(kAllLanes, same) == kAllLanes) return;
#pragma unroll
    for (int d = 0; d < kDim / 8; ++d) {
#pragma unroll
      for (int i = 0; i < 4; ++i) state.out[d][i] *= rescale[i / 2];
    }
  }

  // out += weights V. Two tiles of weights, as the matrix unit gave them, are
  // the 16 columns of its next step.
  TIERCEL_DEVICE void AddValues(const Thread& t, Shared& s,
                                const float (&weights)[kCells / 8][4],
                                State& state) const {
    // Matrix m of a load has the second eight cells if it is odd, and the
    // second eight dimensions from the third on.
    const int row = t.lane() % 16;
    const int d = t.lane() / 16 * 8;
#pragma unroll
    for (int n = 0; n < kCells / 16; ++n) {
      const float(&low)[4] = weights[2 * n];
      const float(&high)[4] = weights[2 * n + 1];
      const uint32_t a[4] = {
          PackHalves(low[0], low[1]), PackHalves(low[2], low[3]),
          PackHalves(high[0], high[1]), PackHalves(high[2], high[3])};
#pragma unroll
      for (int step = 0; step < kDimSteps; ++step) {
        uint32_t v[4];
        LoadTransposed(v, &s.values[(16 * n + row) * kPitch + 16 * step + d]);
        MmaF16(state.out[2 * step], a, {v[0], v[1]});
        MmaF16(state.out[2 * step + 1], a, {v[2], v[3]});
      }
    }
  }

  TIERCEL_DEVICE void Store(const Thread& t, int kv_head, int64_t own,
                            int64_t queries, const State& state) const {
    struct alignas(8) Two {
      float at[2];
    };
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      float sum = state.sum[r];
      sum += ShuffleXor(kAllLanes, sum, 1);
      sum += ShuffleXor(kAllLanes, sum, 2);
      if (own + 8 * r >= queries) continue;
      const Query query = QueryAt(own + 8 * r, queries);
      float* const out =
          p.out +
          (query.row * p.heads + kv_head * Group() + query.head) * kDim +
          2 * (t.lane() % 4);
#pragma unroll
      for (int d = 0; d < kDim / 8; ++d) {
        *reinterpret_cast<Two*>(out + 8 * d) = {state.out[d][2 * r] / sum,
                                                state.out[d][2 * r + 1] / sum};
      }
    }
  }
};

template <int kDim, DType kType>
int LaunchTiles(CUstream_st* stream, const FlashAttentionRows& p) {
  using Attend = FlashAttend<kDim, kType>;
  const int64_t queries = p.rows * (p.heads / p.layout.kv_heads);
  const int64_t tiles = (queries - 1) / Attend::kTile + 1;
  return Launch(
      stream,
      {.blocks = tiles * p.layout.kv_heads, .threads = Attend::kMaxThreads},
      Attend{p, tiles});
}

template <DType kType>
int LaunchDim(CUstream_st* stream, const FlashAttentionRows& p) {
  switch (p.layout.head_dim) {
    case 64:
      return LaunchTiles<64, kType>(stream, p);
    case 96:
      return LaunchTiles<96, kType>(stream, p);
    default:
      return LaunchTiles<128, kType>(stream, p);
  }
}

}  // namespace

TIERCEL_KERNEL_BODY(FlashAttentionCuda, CUstream_st* stream,
                    const FlashAttentionRows& p) {
  switch (p.layout.type_k) {
    case DType::kQ8_0:
      return LaunchDim<DType::kQ8_0>(stream, p);
    case DType::kQ4_0:
      return LaunchDim<DType::kQ4_0>(stream, p);
    default:
      return LaunchDim<DType::kF16>(stream, p);
  }
}

}  // namespace tiercel

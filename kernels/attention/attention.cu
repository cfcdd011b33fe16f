// Bytes: K and V once a step, for tiles of up to 32 queries of a KV head. With
// few rows partial results are written to and read from the second-level cache.
// Operations: 4 f32 an element, position and query.
// Bound by: memory up to about 50 queries of a KV head (4090), 10 (H200); then
// by f32.

#include <bit>
#include <cmath>
#include <limits>

#include "kernels/attention/attention_body.h"
#include "kernels/attention/fold_wave.h"
#include "kernels/device/device_lang.h"
#include "kernels/device/stages.h"
#include "kernels/kv/kv_ring.h"
#include "kernels/number/reference_math.h"

namespace tiercel {
namespace {

// The type of K and V for which a kernel is compiled; with kAny it reads the
// type from the layout. kQ8 and kQ4 are for heads of up to 128 elements, whose
// rows pass whole.
enum class OfType { kF16, kQ8, kQ4, kAny };

// A block computes one page of one KV head for a tile of queries (rows and
// heads that share the KV head), with one warp for each kQueries of them. K and
// V pass through shared memory, once for all warps. For scores a lane has four
// cells of the page, kCells of them at a time; for sums of values it has four
// elements of the head. Only the sum of the weights crosses lanes, in the order
// of the contract.
//
// If kFolds, a block goes over all pages in their order and folds them as
// FoldWave does; its results are those of all pages so far.
template <int kQueries, int kCells, OfType kOf, bool kFolds = false>
struct ComputePages {
  static constexpr int kMostWarps = kQueries == 1 ? 1 : 4;
  static constexpr int kMaxThreads = kMostWarps * kWarpLanes;
  // The blocks whose registers fit a processor without a spill.
  static constexpr int BlocksAtOnce() {
    if (kQueries == 1) return 16;
    if (kOf == OfType::kAny || (kFolds && kOf == OfType::kQ4)) return 2;
    const bool is_large =
        kFolds ? kOf == OfType::kQ8 : kOf == OfType::kQ4 && kQueries > 4;
    return is_large ? 3 : 4;
  }
  static constexpr int kBlocksAtOnce = BlocksAtOnce();
  static constexpr int kElements = 4;  // elements of the head per lane
  static constexpr int kSlice = kElements * kWarpLanes;
  static constexpr int kOfLane = kPageTokens / kWarpLanes;  // cells per lane
  static constexpr int kGroups = kOfLane / kCells;
  static constexpr float kUnseen = -1.0f;  // stands for the weight of no cell

  // The bytes of a key's row that pass at a time. With few queries, which are
  // bound by memory, it is a whole row of 128 f16. Rows are padded by one
  // packet, so that lanes read different banks.
  static constexpr int kKeyBytes = 256 / kCells;
  static constexpr bool kWhole = kOf == OfType::kQ8 || kOf == OfType::kQ4;
  static constexpr int kKeyPitch =
      kOf == OfType::kQ8   ? kSlice / kKvPiece * kQ8Bytes
      : kOf == OfType::kQ4 ? kSlice / kKvPiece * kQ4Bytes
                           : kKeyBytes + 16;
  static constexpr int kStageBytes = kCells * kWarpLanes * kKeyPitch;
  static constexpr int kStages = kQueries == 1 ? 3 : 2;
  using Ring = KvRing<kStages, kStageBytes>;

  // The state of a query's fold: all pages so far, and this page's part.
  struct Folded {
    float max;
    float sum;         // zero: nothing is seen
    float old_weight;  // weight of all pages before; kUnseen: none was seen
    float new_weight;  // weight of this page; kUnseen: nothing of it is seen
  };

  // `of_queries` holds the queries first, then their weights.
  struct Shared {
    Ring rows;
    Array<Folded, kFolds ? kMostWarps * kQueries : 1> folded;
    Array<float, kMostWarps * kQueries * kSlice> of_queries;
  };
  static_assert(kSlice == kPageTokens);
  static constexpr size_t BytesOf(int warps) {
    return sizeof(Shared) -
           (kMostWarps - warps) * kQueries * kSlice * sizeof(float);
  }

  AttentionWave w;
  AttentionWave::Pages pages;
  int k_row_bytes;
  int v_row_bytes;
  int tiles;  // tiles of queries per KV head
  int warps;  // warps per block

  // One of the KV head's queries, which are counted row by row.
  struct Query {
    int64_t row;
    int head;  // index among the heads that share the KV head
  };

  // The block's work, and that of the thread's warp.
  struct Tile {
    int kv_head;
    Query query;   // the warp's first
    int queries;   // queries of the warp, at most kQueries
    int64_t last;  // position of the block's last row
    int64_t page_index;
    int64_t start;  // first position of the page
    int begin;      // cells that exist for one of the rows: begin..end - 1
    int end;
    KvRows keys;
    KvRows values;
  };

  TIERCEL_DEVICE void operator()(const Thread& t, Shared& shared) const {
    const auto kv_heads = static_cast<uint32_t>(w.layout.kv_heads);
    const auto group = static_cast<uint32_t>(Group());
    const int queries = static_cast<int>(w.rows) * Group();
    const auto item = static_cast<uint32_t>(t.block);
    const uint32_t page_head = item / static_cast<uint32_t>(tiles);
    const int first = static_cast<int>(item % static_cast<uint32_t>(tiles)) *
                      warps * kQueries;
    const int after = first + warps * kQueries;
    const int own = first + t.warp() * kQueries;
    const int left = queries - own;
    Tile tile = {};
    tile.kv_head = static_cast<int>(page_head % kv_heads);
    tile.query = QueryAt(own < queries ? own : 0, group);
    tile.queries = left < kQueries ? left : kQueries;
    tile.last = w.position +
                QueryAt((after < queries ? after : queries) - 1, group).row;
    if constexpr (kFolds) {
      if (t.index < warps * kQueries) {
        shared.folded[t.index] = {-std::numeric_limits<float>::infinity(), 0.0f,
                                  0.0f, 0.0f};
      }
      for (int64_t page = 0; page < w.num_pages; ++page) {
        if (!Open(tile, page)) break;
        Barrier();  // all are done with the page before
        ComputeTile(t, shared, tile);
      }
      DivideBySums(t, shared, tile);
    } else if (Open(tile, page_head / kv_heads)) {
      ComputeTile(t, shared, tile);
    } else if (t.lane() < tile.queries) {
      w.sum[Place(tile, QueryAt(own + t.lane(), group))] = 0.0f;
    }
  }

  // Moves the tile to a page. Returns false if the page is in the future of all
  // rows.
  TIERCEL_DEVICE bool Open(Tile& tile, int64_t page_index) const {
    const AttentionWave::Page page =
        pages.list != nullptr ? pages.list[page_index] : pages.few[page_index];
    tile.page_index = page_index;
    tile.start = page.start;
    if (tile.last < page.start) return false;
    const int64_t end = tile.last - page.start + 1;
    tile.begin =
        w.begin > page.start ? static_cast<int>(w.begin - page.start) : 0;
    tile.end = end < kPageTokens ? static_cast<int>(end) : kPageTokens;
    const std::byte* const keys =
        page.at + int64_t{tile.kv_head} * kPageTokens * k_row_bytes;
    const std::byte* const values =
        page.at + int64_t{w.layout.kv_heads} * kPageTokens * k_row_bytes +
        int64_t{tile.kv_head} * kPageTokens * v_row_bytes;
    tile.keys = {TypeOf(w.layout.type_k), keys,       k_row_bytes,
                 w.layout.head_dim,       tile.begin, tile.end};
    tile.values = {TypeOf(w.layout.type_v), values,     v_row_bytes,
                   w.layout.head_dim,       tile.begin, tile.end};
    return true;
  }

  TIERCEL_DEVICE DType TypeOf(DType in_layout) const {
    return kOf == OfType::kF16  ? DType::kF16
           : kOf == OfType::kQ8 ? DType::kQ8_0
           : kOf == OfType::kQ4 ? DType::kQ4_0
                                : in_layout;
  }
  TIERCEL_DEVICE int Group() const { return w.heads / w.layout.kv_heads; }
  TIERCEL_DEVICE static Query QueryAt(int i, uint32_t group) {
    const auto query = static_cast<uint32_t>(i);
    return {query / group, static_cast<int>(query % group)};
  }
  TIERCEL_DEVICE static void Next(Query& query, int group) {
    if (++query.head < group) return;
    query.head = 0;
    ++query.row;
  }
  // HeadOf is the query's index among [rows, heads], Place that among the
  // partial results.
  TIERCEL_DEVICE int64_t HeadOf(const Tile& tile, const Query& query) const {
    return query.row * w.heads + tile.kv_head * Group() + query.head;
  }
  TIERCEL_DEVICE int64_t Place(const Tile& tile, const Query& query) const {
    return tile.page_index * w.rows * w.heads + HeadOf(tile, query);
  }

  TIERCEL_DEVICE void ComputeTile(const Thread& t, Shared& shared,
                                  const Tile& tile) const {
    const int head_dim = w.layout.head_dim;
    const int threads = kMostWarps == 1 ? kMaxThreads : t.count;
    float* const of_queries = &shared.of_queries[t.warp() * kQueries * kSlice];

    // Keys pass slice by slice, and within a slice some cells at a time. Values
    // pass likewise, in slices of kSlice elements.
    const DType type_k = tile.keys.type;
    const int key_step = kWhole                  ? kSlice
                         : IsInBlocks(type_k)    ? kKeyBytes / 64 * kKvPiece
                         : type_k == DType::kF32 ? kKeyBytes / 4
                                                 : kKeyBytes / 2;
    static_assert(kWhole || kKeyBytes / 64 * kQ8Bytes + 14 <= kKeyPitch);
    const int key_parts = (head_dim + key_step - 1) / key_step * kGroups;
    const auto key_part = [&](int i) {
      const int d = i / kGroups * key_step;
      const int first = i % kGroups * kCells * kWarpLanes;
      const int left = head_dim - d;
      return KvPart{first, first + kCells * kWarpLanes, d,
                    left < key_step ? left : key_step};
    };
    const int slice = head_dim < kSlice ? head_dim : kSlice;
    const int pitch =
        kWhole ? v_row_bytes : Ring::PitchOf(tile.values.type, slice);
    const int fit = kStageBytes / pitch / 8 * 8;
    const int step = fit < kPageTokens ? fit : kPageTokens;
    const int slice_parts = (kPageTokens + step - 1) / step;
    const int parts =
        key_parts + (head_dim + kSlice - 1) / kSlice * slice_parts;
    const auto value_part = [&](int i) {
      const int d = (i - key_parts) / slice_parts * kSlice;
      const int first = (i - key_parts) % slice_parts * step;
      const int left = head_dim - d;
      return KvPart{first, first + step, d, left < kSlice ? left : kSlice};
    };
    const auto fetch_values = [&](int i, int stage) {
      if (i >= parts) return;
      if constexpr (kWhole) {
        shared.rows.FetchWhole(t, threads, tile.values, value_part(i), stage);
      } else if (tile.values.type == DType::kF32) {
        shared.rows.template Fetch<32>(t, threads, tile.values, value_part(i),
                                       pitch, stage);
      } else {
        shared.rows.template Fetch<16>(t, threads, tile.values, value_part(i),
                                       pitch, stage);
      }
    };
    const auto fetch = [&](int i, int stage) {
      if (i >= key_parts) {
        fetch_values(i, stage);
        return;
      }
      if constexpr (kWhole) {
        shared.rows.FetchWhole(t, threads, tile.keys, key_part(i), stage);
      } else {
        shared.rows.template Fetch<kKeyBytes / 16>(
            t, threads, tile.keys, key_part(i), kKeyPitch, stage);
      }
    };

    for (int i = 0; i < kStages - 1; ++i) {
      fetch(i, i);
      CopyCommit();
    }
    PutQueries(t, of_queries, tile, 0);

    float dots[kGroups][kCells][kQueries] = {};
    ThroughStages<kStages>(0, key_parts, fetch, [&](int i, int stage) {
      const KvPart part = key_part(i);
      if (i != 0 && i % kGroups == 0 && part.d % kSlice == 0) {
        PutQueries(t, of_queries, tile, part.d);
        Barrier();
      }
      if (tile.queries <= 0) return;
#pragma unroll
      for (int group = 0; group < kGroups; ++group) {
        if (i % kGroups != group) continue;
        AddProducts(t, shared.rows, of_queries + part.d % kSlice, tile.keys,
                    part, stage, dots[group]);
      }
    });

    Barrier();  // all are done with the queries
#pragma unroll
    for (int i = 0; i < kQueries; ++i) {
#pragma unroll
      for (int c = 0; c < kOfLane; ++c) {
        of_queries[i * kPageTokens + c * kWarpLanes + t.lane()] =
            dots[c / kCells][c % kCells][i] * w.scale;
      }
    }
    const bool all_seen = Exponentiate(t, shared, of_queries, tile);

    float sums[kQueries][kElements] = {};
    ThroughStages<kStages>(
        key_parts, parts, fetch_values, [&](int i, int stage) {
          if (tile.queries <= 0) return;
          const KvPart part = value_part(i);
          const int own = kElements * t.lane();
          if (part.first == 0) {
#pragma unroll
            for (int q = 0; q < kQueries; ++q) {
#pragma unroll
              for (int e = 0; e < kElements; ++e) sums[q][e] = 0.0f;
            }
          }
          const int d = own < part.n ? own : 0;
          if (all_seen) {
            AddValues<false>(shared.rows, of_queries, tile.values, part, pitch,
                             stage, d, sums);
          } else {
            AddValues<true>(shared.rows, of_queries, tile.values, part, pitch,
                            stage, d, sums);
          }
          if (part.last < kPageTokens) return;
          Query query = tile.query;
#pragma unroll
          for (int q = 0; q < kQueries; ++q) {
            if (q >= tile.queries) return;
            const float(&x)[kElements] = sums[q];
            if constexpr (kFolds) {
              FoldQuery(shared.folded[t.warp() * kQueries + q], tile, query,
                        part.d + own, x);
            } else if (own < part.n) {
              Store16(Packet<float>{x[0], x[1], x[2], x[3]},
                      &w.out[Place(tile, query) * head_dim + part.d + own]);
            }
            Next(query, Group());
          }
        });
  }

  // Adds the page's result x for the lane's elements (from d on) of a query to
  // the results of the pages before.
  TIERCEL_DEVICE void FoldQuery(const Folded& folded, const Tile& tile,
                                const Query& query, int d,
                                const float (&x)[kElements]) const {
    const float old_weight = folded.old_weight;
    const float new_weight = folded.new_weight;
    if (new_weight < 0.0f || d >= w.layout.head_dim) return;
    float* const at = &w.result[HeadOf(tile, query) * w.layout.head_dim + d];
    Packet<float> out = {};
    if (!(old_weight < 0.0f)) out = Load16(at);
#pragma unroll
    for (int e = 0; e < kElements; ++e) {
      const float own = x[e] * new_weight;
      out[e] = old_weight < 0.0f ? own : std::fma(out[e], old_weight, own);
    }
    Store16(out, at);
  }

  TIERCEL_DEVICE void DivideBySums(const Thread& t, Shared& shared,
                                   const Tile& tile) const {
    const int head_dim = w.layout.head_dim;
    Query query = tile.query;
    for (int q = 0; q < tile.queries; ++q) {
      const float sum = shared.folded[t.warp() * kQueries + q].sum;
      for (int d = kElements * t.lane(); d < head_dim; d += kSlice) {
        float* const at = &w.result[HeadOf(tile, query) * head_dim + d];
        Packet<float> out = Load16(at);
#pragma unroll
        for (int e = 0; e < kElements; ++e) out[e] = out[e] / sum;
        Store16(out, at);
      }
      Next(query, Group());
    }
  }

  // Copies elements d..d + kSlice - 1, as far as they exist, of the warp's
  // queries to `to`.
  TIERCEL_DEVICE void PutQueries(const Thread& t, float* to, const Tile& tile,
                                 int d) const {
    const int head_dim = w.layout.head_dim;
    Query query = tile.query;
#pragma unroll
    for (int i = 0; i < kQueries; ++i) {
      if (i >= tile.queries) return;
      const float* const from = w.q + query.row * w.q_stride +
                                (tile.kv_head * Group() + query.head) *
                                    static_cast<int64_t>(head_dim) +
                                d;
#pragma unroll
      for (int e = t.lane(); e < kSlice; e += kWarpLanes) {
        if (d + e < head_dim) to[i * kSlice + e] = from[e];
      }
      Next(query, Group());
    }
  }

  // Continues the dot products of the warp's queries and the lane's kCells
  // cells of a part. Each is one chain over the elements of the head. `queries`
  // begins with the part's first element.
  TIERCEL_DEVICE static void AddProducts(const Thread& t, Ring& ring,
                                         float* queries, const KvRows& keys,
                                         const KvPart& part, int stage,
                                         float (&dots)[kCells][kQueries]) {
    const auto add = [&](int e, const float(&x)[kCells][4]) {
#pragma unroll
      for (int i = 0; i < kQueries; ++i) {
        const Packet<float> q = Load16(queries + i * kSlice + e);
#pragma unroll
        for (int j = 0; j < 4; ++j) {
#pragma unroll
          for (int c = 0; c < kCells; ++c) {
            dots[c][i] = std::fma(q[j], x[c][j], dots[c][i]);
          }
        }
      }
    };
    const auto cell = [&](int c) {
      return part.first + c * kWarpLanes + t.lane();
    };
    const auto add_blocks = [&]<typename Block>() {
#pragma unroll 1
      for (int d = 0; d < part.n; d += kKvPiece) {
        Block blocks[kCells];
#pragma unroll
        for (int c = 0; c < kCells; ++c) {
          const int own = cell(c) - part.first;
          if constexpr (kWhole) {
            const int row = own * static_cast<int>(keys.row_bytes);
            blocks[c] = ReadBlock<Block>(
                &ring.at[stage * kStageBytes + row +
                         (part.d + d) / kKvPiece * Block::kBytes]);
          } else {
            const int skew = Ring::SkewOf(keys, cell(c), part.d) +
                             d / kKvPiece * Block::kBytes;
            blocks[c] =
                ReadBlock<Block>(&ring.at[stage * kStageBytes +
                                          own * kKeyPitch + skew / 16 * 16],
                                 skew % 16);
          }
        }
#pragma unroll
        for (int e = 0; e < kKvPiece; e += 4) {
          float x[kCells][4];
#pragma unroll
          for (int c = 0; c < kCells; ++c) {
#pragma unroll
            for (int j = 0; j < 4; ++j) {
              x[c][j] = blocks[c].Scale() * blocks[c].Code(e + j);
            }
          }
          add(d + e, x);
        }
      }
    };
    if (keys.type == DType::kQ8_0) {
      add_blocks.template operator()<Q8Words>();
      return;
    }
    if (keys.type == DType::kQ4_0) {
      add_blocks.template operator()<Q4Words>();
      return;
    }
    const std::byte* const row =
        &ring.at[stage * kStageBytes + t.lane() * kKeyPitch];
    const int wide = keys.type == DType::kF32 ? 4 : 8;  // elements of a packet
#pragma unroll(kCells == 1 ? 4 : 1)
    for (int d = 0; d < part.n; d += wide) {
      Packet<uint32_t> packets[kCells];
#pragma unroll
      for (int c = 0; c < kCells; ++c) {
        packets[c] = Load16(reinterpret_cast<const uint32_t*>(
            row + c * kWarpLanes * kKeyPitch + 16 * d / wide));
      }
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        float x[kCells][4];
#pragma unroll
        for (int c = 0; c < kCells; ++c) {
          FourOf(keys.type, packets[c], half, x[c]);
        }
        add(d + 4 * half, x);
        if (keys.type == DType::kF32) break;
      }
    }
  }

  // Converts four elements of a packet to floats: all of a packet of f32, or
  // one half (`half`) of a packet of f16 or bf16.
  TIERCEL_DEVICE static void FourOf(DType type, const Packet<uint32_t>& packet,
                                    int half, float (&x)[4]) {
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      if (type == DType::kF32) {
        x[j] = std::bit_cast<float>(packet[j]);
        continue;
      }
      const auto bits =
          static_cast<uint16_t>(packet[2 * half + j / 2] >> j % 2 * 16);
      x[j] = type == DType::kF16 ? F32FromF16(bits) : F32FromBf16(bits);
    }
  }

  // Turns the warp's scores into weights, and stores their maxima and sums. If
  // a query sees a score that is not finite, all its weights are NaN, so that
  // no fault hides behind a weight of zero. Returns true if all queries see all
  // cells that AddValues reads.
  TIERCEL_DEVICE bool Exponentiate(const Thread& t, Shared& shared,
                                   float* of_queries, const Tile& tile) const {
    constexpr float kInf = std::numeric_limits<float>::infinity();
    const int64_t start = tile.start;
    bool fixed[kOfLane];
#pragma unroll
    for (int c = 0; c < kOfLane; ++c) {
      fixed[c] = InRanges(tile.kv_head, start + c * kWarpLanes + t.lane());
    }
    bool all_seen = true;
    Query query = tile.query;
    for (int i = 0; i < tile.queries; ++i) {
      // The query sees the cells of begin..end - 1 that are fixed or not before
      // `recent`.
      const int64_t row = w.position + query.row - start;
      const int end = row < 0             ? 0
                      : row < kPageTokens ? static_cast<int>(row) + 1
                                          : kPageTokens;
      int recent = 0;
      if (w.shown != nullptr && end != 0) {
        const int64_t from = row - w.shown[tile.kv_head].recent + 1;
        recent = from < 0             ? 0
                 : from < kPageTokens ? static_cast<int>(from)
                                      : kPageTokens;
      }
      float score[kOfLane];
      bool seen[kOfLane];
      float max = -kInf;
      bool fault = false;
#pragma unroll
      for (int c = 0; c < kOfLane; ++c) {
        const int cell = c * kWarpLanes + t.lane();
        score[c] = of_queries[i * kPageTokens + cell];
        seen[c] =
            cell >= tile.begin && cell < end && (fixed[c] || cell >= recent);
        fault = fault || (seen[c] && !std::isfinite(score[c]));
        if (seen[c]) max = std::fmax(max, score[c]);
        all_seen = all_seen && (seen[c] || !IsLookedAt(tile.values, cell));
      }
      for (int bits = kWarpLanes / 2; bits > 0; bits /= 2) {
        max = std::fmax(max, ShuffleXor(kAllLanes, max, bits));
      }
      if (Ballot(kAllLanes, fault) != 0) {
        max = std::numeric_limits<float>::quiet_NaN();
      }
      // The sum is made by sixteen chains, each over every sixteenth cell, and
      // then a tree.
      float sum = 0.0f;
#pragma unroll
      for (int c = 0; c < kOfLane; ++c) {
        const float weight =
            seen[c] ? ExpLaneOfNegative(score[c] - max) : kUnseen;
        of_queries[i * kPageTokens + c * kWarpLanes + t.lane()] = weight;
        const float next = ShuffleXor(kAllLanes, weight, kWarpLanes / 2);
        if (!(weight < 0.0f)) sum += weight;
        if (!(next < 0.0f)) sum += next;
      }
      for (int half = kWarpLanes / 4; half > 0; half /= 2) {
        sum += ShuffleDown(kAllLanes, sum, half, kWarpLanes / 2);
      }
      if (t.lane() == 0 && kFolds) {
        AddPage(max, sum, shared.folded[t.warp() * kQueries + i]);
      } else if (t.lane() == 0) {
        const int64_t place = Place(tile, query);
        w.max[place] = max == -kInf ? 0.0f : max;
        w.sum[place] = sum;
      }
      Next(query, Group());
    }
    return Ballot(kAllLanes, all_seen) == kAllLanes;
  }

  TIERCEL_DEVICE static void AddPage(float max, float sum, Folded& folded) {
    if (sum == 0.0f) {
      folded.new_weight = kUnseen;
      return;
    }
    const float with = folded.max > max ? folded.max : max;
    const float old_weight = ExpLaneOfNegative(folded.max - with);
    folded.new_weight = ExpLaneOfNegative(max - with);
    folded.old_weight = folded.sum == 0.0f ? kUnseen : old_weight;
    folded.sum = std::fma(folded.sum, old_weight, sum * folded.new_weight);
    folded.max = with;
  }

  TIERCEL_DEVICE bool InRanges(int kv_head, int64_t position) const {
    if (w.shown == nullptr) return true;
    const AttentionWave::Shown& shown = w.shown[kv_head];
    for (int64_t i = 0; i < shown.ranges; ++i) {
      if (position < shown.bounds[2 * i]) return false;
      if (position < shown.bounds[2 * i + 1]) return true;
    }
    return false;
  }

  // Values are read in groups of this many cells.
  static constexpr int kAtOnce = 4;
  TIERCEL_DEVICE static bool IsLookedAt(const KvRows& values, int cell) {
    return cell / kAtOnce >= values.begin / kAtOnce &&
           cell / kAtOnce <= (values.end - 1) / kAtOnce;
  }

  // Continues the weighted sums of the lane's elements (from d on in the part),
  // in the order of cells. If kHidden, some of the cells that are read may be
  // hidden; they are skipped, as such a cell may hold NaN, and zero times NaN
  // is NaN.
  template <bool kHidden>
  TIERCEL_DEVICE static void AddValues(Ring& ring, float* weights,
                                       const KvRows& values, const KvPart& part,
                                       int pitch, int stage, int d,
                                       float (&sums)[kQueries][kElements]) {
    const int begin = values.begin / kAtOnce * kAtOnce;
    const int last = values.end < part.last ? values.end : part.last;
    for (int cell = begin > part.first ? begin : part.first; cell < last;
         cell += kAtOnce) {
      float x[kAtOnce][kElements];
#pragma unroll
      for (int c = 0; c < kAtOnce; ++c) {
        const std::byte* const row =
            kWhole ? &ring.at[stage * kStageBytes +
                              (cell + c - part.first) * pitch]
                   : ring.Row(values, part, cell + c, pitch, stage);
        ReadKv4(values.type, row, d, x[c]);
      }
#pragma unroll
      for (int q = 0; q < kQueries; ++q) {
        const Packet<float> weight = Load16(weights + q * kPageTokens + cell);
#pragma unroll
        for (int c = 0; c < kAtOnce; ++c) {
#pragma unroll
          for (int e = 0; e < kElements; ++e) {
            if (!kHidden || !(weight[c] < 0.0f)) {
              sums[q][e] = std::fma(weight[c], x[c][e], sums[q][e]);
            }
          }
        }
      }
    }
  }
};

template <int kQueries, int kCells, OfType kOf, bool kFolds = false>
int LaunchTiles(CUstream_st* stream, const AttentionWave& w,
                const AttentionWave::Pages& pages) {
  using Compute = ComputePages<kQueries, kCells, kOf, kFolds>;
  const int64_t queries = w.rows * (w.heads / w.layout.kv_heads);
  const int64_t wanted = (queries - 1) / kQueries + 1;  // warps
  const int64_t tiles = (wanted - 1) / Compute::kMostWarps + 1;
  const int warps = static_cast<int>((wanted - 1) / tiles + 1);
  return Launch(
      stream,
      {.blocks = (kFolds ? 1 : w.num_pages) * w.layout.kv_heads * tiles,
       .threads = warps * kWarpLanes,
       .shared_bytes = Compute::BytesOf(warps)},
      Compute{w, pages, static_cast<int>(w.layout.KRowBytes()),
              static_cast<int>(w.layout.VRowBytes()), static_cast<int>(tiles),
              warps});
}

template <OfType kOf>
int LaunchPages(CUstream_st* stream, const AttentionWave& w,
                const AttentionWave::Pages& pages) {
  const int64_t queries = w.rows * (w.heads / w.layout.kv_heads);
  constexpr int kMost = kOf == OfType::kAny ? 4 : kOf == OfType::kF16 ? 8 : 6;
  if (w.folds) return LaunchTiles<kMost, 4, kOf, true>(stream, w, pages);
  if (queries == 1) return LaunchTiles<1, 1, kOf>(stream, w, pages);
  if constexpr (kOf != OfType::kAny) {
    // Two warps share the few queries of one row, so that one computes while
    // the other waits for memory.
    if (queries <= 4) return LaunchTiles<2, 4, kOf>(stream, w, pages);
    // Warps of six are chosen if they leave enough fewer places empty than
    // warps of eight: 17 queries take three warps either way.
    if (queries > 8 &&
        10 * ((queries + 5) / 6 * 6) < 9 * ((queries + 7) / 8 * 8)) {
      return LaunchTiles<6, 4, kOf>(stream, w, pages);
    }
    if (queries > 8) return LaunchTiles<kMost, 4, kOf>(stream, w, pages);
  }
  return LaunchTiles<4, 4, kOf>(stream, w, pages);
}

}  // namespace

TIERCEL_KERNEL_BODY(AttentionWaveCuda, CUstream_st* stream,
                    const AttentionWave& w, const AttentionWave::Pages& pages) {
  const DType k = w.layout.type_k;
  const DType v = w.layout.type_v;
  const int error =
      k == DType::kF16 && v == k ? LaunchPages<OfType::kF16>(stream, w, pages)
      : k == DType::kQ8_0 && v == k && w.layout.head_dim <= kPageTokens
          ? LaunchPages<OfType::kQ8>(stream, w, pages)
      : k == DType::kQ4_0 && v == k && w.layout.head_dim <= kPageTokens
          ? LaunchPages<OfType::kQ4>(stream, w, pages)
          : LaunchPages<OfType::kAny>(stream, w, pages);
  if (error != 0 || w.folds) return error;
  return Launch(stream,
                {.blocks = w.rows * w.heads,
                 .threads = FoldWave::kMaxThreads,
                 .shared_bytes = FoldWave::BytesFor(w.num_pages)},
                FoldWave{w});
}

}  // namespace tiercel

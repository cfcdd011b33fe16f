// Lanes are positions for scores and elements of a head for sums of values, so
// that neither needs a sum across lanes and one query or a thousand round
// alike. K is transposed in groups of 16 positions.
//
// A block of a few queries (a decode step) reads the page as it is, once. For
// more, K and V become floats first, K transposed, and tiles of a few queries
// go through the expanded page. Both ways do the same arithmetic.

#include "kernels/attention/attention_body.h"
#include "kernels/base/simd.h"

namespace tiercel::TIERCEL_ISA_NS {
namespace {

constexpr int kLanes = 16;

// Queries in a full tile, and how many registers of positions (scores) or of
// elements (values) a tile of R queries covers at a time: enough independent
// chains to hide the latency of a multiply-add, few enough to stay in the
// registers.
#if defined(__AVX512F__)
constexpr int kTileQueries = 8;
constexpr int ColumnsOf(int queries) {
  return queries == 1 ? 8 : queries <= 4 ? 4 : 2;
}
#else
constexpr int kTileQueries = 4;
constexpr int ColumnsOf(int queries) {
  return queries == 1 ? 4 : queries == 2 ? 2 : 1;
}
#endif

// How 16 elements of a row are read from element d, a multiple of 16, on; and
// the bytes of the 8 that may be left at the end.
struct F32Source {
  static constexpr int kTailBytes = 32;
  TIERCEL_INLINE F32x16 Read(const std::byte* row, int d) {
    return Load(reinterpret_cast<const float*>(row) + d);
  }
};
struct F16Source {
  static constexpr int kTailBytes = 16;
  TIERCEL_INLINE F32x16 Read(const std::byte* row, int d) {
    return LoadF16(reinterpret_cast<const uint16_t*>(row) + d);
  }
};
struct Bf16Source {
  static constexpr int kTailBytes = 16;
  TIERCEL_INLINE F32x16 Read(const std::byte* row, int d) {
    return LoadBf16(reinterpret_cast<const uint16_t*>(row) + d);
  }
};
// The product of an 11-bit and an 8-bit number is exact.
struct Q8Source {
  static constexpr int kTailBytes = 0;  // rows are whole blocks of 32
  TIERCEL_INLINE F32x16 Read(const std::byte* row, int d) {
    const std::byte* block = row + d / 32 * 34;
    uint16_t scale;
    memcpy(&scale, block, sizeof(scale));
    return Set1F16(scale) *
           LoadI8(reinterpret_cast<const int8_t*>(block + 2 + d % 32));
  }
};

// The same where 8 elements are left; the other lanes are zero.
template <typename Source>
struct TailOf {
  TIERCEL_INLINE F32x16 Read(const std::byte* row, int d) {
    if constexpr (Source::kTailBytes == 0) {
      return Zero();
    } else {
      std::byte padded[2 * Source::kTailBytes] = {};
      memcpy(padded, row + d / 8 * Source::kTailBytes, Source::kTailBytes);
      return Source::Read(padded, 0);
    }
  }
};

// Calls `body` with the source that reads `type`.
template <typename Body>
TIERCEL_INLINE void ForSource(DType type, Body body) {
  switch (type) {
    case DType::kF16:
      return body(F16Source());
    case DType::kBF16:
      return body(Bf16Source());
    case DType::kQ8_0:
      return body(Q8Source());
    default:
      return body(F32Source());
  }
}

int Padded(int head_dim) { return (head_dim + kLanes - 1) / kLanes * kLanes; }

// While K is computed on, V comes into the cache, and with V the next block's
// K: a block's bytes lie in two places, which is too short for the hardware to
// see where they go on.
// Asks for `bytes` from p on and returns their end.
TIERCEL_INLINE const std::byte* Prefetch(const std::byte* p, int64_t bytes) {
  for (int64_t i = 0; i < bytes; i += 64) __builtin_prefetch(p + i, 0, 2);
  return p + bytes;
}

// The 16 rows of K from `slot` on. Those outside of first..end - 1 may hold
// anything; a row that is seen stands in for them.
struct RowGroup {
  const std::byte* row[kLanes];
};
TIERCEL_INLINE RowGroup RowsFrom(const AttentionBlock& b, int slot, int first,
                                 int end) {
  RowGroup group;
  for (int i = 0; i < kLanes; ++i) {
    const int at_least = slot + i < first ? first : slot + i;
    group.row[i] = b.k + (at_least < end ? at_least : end - 1) * b.k_row_bytes;
  }
  return group;
}

// Elements d..d + 15 of 16 rows, transposed: out[i] is element d + i.
template <typename Source>
TIERCEL_INLINE void ReadColumns(const RowGroup& group, int d,
                                F32x16 (&out)[kLanes]) {
#pragma GCC unroll 16
  for (int i = 0; i < kLanes; ++i) out[i] = Source::Read(group.row[i], d);
  Transpose(out);
}

// Slots first..end - 1 of K to [group of 16 slots][padded head_dim][16].
template <typename Source>
void ExpandK(const AttentionBlock& b, int first, int end, float* out) {
  const int padded = Padded(b.head_dim);
  const std::byte* soon = b.v + first * b.v_row_bytes;
  for (int slot = first / kLanes * kLanes; slot < end; slot += kLanes) {
    const RowGroup group = RowsFrom(b, slot, first, end);
    soon = Prefetch(soon, kLanes * b.v_row_bytes);
    float* to = out + slot * padded;
    for (int d = 0; d < padded; d += kLanes) {
      F32x16 column[kLanes];
      if (d + kLanes <= b.head_dim) {
        ReadColumns<Source>(group, d, column);
      } else {
        ReadColumns<TailOf<Source>>(group, d, column);
      }
      for (int i = 0; i < kLanes; ++i) Store(column[i], to + (d + i) * kLanes);
    }
  }
}

// Slots first..end - 1 of V to [slot][padded head_dim].
template <typename Source>
void ExpandV(const AttentionBlock& b, int first, int end, float* out) {
  const int padded = Padded(b.head_dim);
  const std::byte* soon = b.next_k;
  for (int slot = first; slot < end; ++slot) {
    if (soon != nullptr) soon = Prefetch(soon, b.k_row_bytes);
    const std::byte* row = b.v + slot * b.v_row_bytes;
    float* to = out + slot * padded;
    int d = 0;
    for (; d + kLanes <= b.head_dim; d += kLanes) {
      Store(Source::Read(row, d), to + d);
    }
    if (d < padded) Store(TailOf<Source>::Read(row, d), to + d);
  }
}

// A few queries and what they see of the page.
template <int R>
struct Tile {
  const float* q[R];
  int end[R];        // slots first..end - 1
  int64_t index[R];  // among the partial results
  int first;
  int min_end;
  int max_end;
};

// Dot products of R queries with groups of 16 positions, from group `group` to
// `end`, C at a time.
template <int R, int C>
void Scores(const Tile<R>& t, const float* k, int head_dim, int group, int end,
            float* score) {
  const int64_t pitch = int64_t{Padded(head_dim)} * kLanes;
  for (; group + C <= end; group += C) {
    F32x16 sum[R][C];
    for (int r = 0; r < R; ++r) {
      for (int c = 0; c < C; ++c) sum[r][c] = Zero();
    }
    const float* column = k + group * pitch;
    for (int d = 0; d < head_dim; ++d) {
      F32x16 lanes[C];
#pragma GCC unroll 8
      for (int c = 0; c < C; ++c) lanes[c] = Load(column + c * pitch);
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) {
        const F32x16 q = Set1(t.q[r][d]);
#pragma GCC unroll 8
        for (int c = 0; c < C; ++c) sum[r][c] = Fma(q, lanes[c], sum[r][c]);
      }
      column += kLanes;
    }
    for (int r = 0; r < R; ++r) {
      for (int c = 0; c < C; ++c) {
        Store(sum[r][c], score + r * kPageTokens + (group + c) * kLanes);
      }
    }
  }
  if constexpr (C > 1) {
    Scores<R, C / 2>(t, k, head_dim, group, end, score);
  }
}

// The same from K as it is.
template <typename Source, int R>
void DirectScores(const AttentionBlock& b, const Tile<R>& t, float* score) {
  const std::byte* soon = b.v + t.first * b.v_row_bytes;
  for (int slot = t.first / kLanes * kLanes; slot < t.max_end; slot += kLanes) {
    const RowGroup group = RowsFrom(b, slot, t.first, t.max_end);
    soon = Prefetch(soon, kLanes * b.v_row_bytes);
    F32x16 sum[R];
    for (int r = 0; r < R; ++r) sum[r] = Zero();
    F32x16 column[kLanes];
    int d = 0;
    for (; d + kLanes <= b.head_dim; d += kLanes) {
      ReadColumns<Source>(group, d, column);
#pragma GCC unroll 16
      for (int i = 0; i < kLanes; ++i) {
#pragma GCC unroll 8
        for (int r = 0; r < R; ++r) {
          sum[r] = Fma(Set1(t.q[r][d + i]), column[i], sum[r]);
        }
      }
    }
    if (d < b.head_dim) {
      ReadColumns<TailOf<Source>>(group, d, column);
      for (int i = 0; i < 8; ++i) {
        for (int r = 0; r < R; ++r) {
          sum[r] = Fma(Set1(t.q[r][d + i]), column[i], sum[r]);
        }
      }
    }
    for (int r = 0; r < R; ++r) Store(sum[r], score + r * kPageTokens + slot);
  }
}

// Dot products of slots first..end - 1 to weights, zero in the other lanes of
// their groups.
void Softmax(float scale, int first, int end, float* score, float* max,
             float* sum) {
  const int from = first / kLanes * kLanes;
  const int to = (end + kLanes - 1) / kLanes * kLanes;
  // Lanes that are not seen repeat one that is: they change no maximum.
  for (int i = from; i < first; ++i) score[i] = score[first];
  for (int i = end; i < to; ++i) score[i] = score[first];

  F32x16 largest = Load(score + from) * Set1(scale);
  // Zero, or NaN if a score is not finite: a fault in q or in a key must not
  // hide behind a weight of zero.
  F32x16 fault = Zero();
  for (int i = from; i < to; i += kLanes) {
    const F32x16 x = Load(score + i) * Set1(scale);
    largest = Max(largest, x);
    fault = Fma(x, Zero(), fault);
    Store(x, score + i);
  }
  *max = ReduceMax(largest) + ReduceAdd(fault);

  for (int i = from; i < to; i += kLanes) {
    Store(Exp(Load(score + i) - Set1(*max)), score + i);
  }
  for (int i = from; i < first; ++i) score[i] = 0.0f;
  for (int i = end; i < to; ++i) score[i] = 0.0f;
  F32x16 total = Zero();
  for (int i = from; i < to; i += kLanes) total = total + Load(score + i);
  *sum = ReduceAdd(total);
}

// The rows of V: as they are, or expanded to floats.
struct ValueRows {
  const std::byte* rows;
  int64_t row_bytes;
  const std::byte* soon;  // what is needed after V, or null
  int64_t soon_row_bytes;
};

// Weighted sums of the values of slots first..min_end - 1: elements from d on,
// below `end`, C registers at a time.
template <typename Source, int R, int C>
void Values(const Tile<R>& t, const float* weight, const ValueRows& v, int d,
            int end, int padded, float* out) {
  for (; d + C * kLanes <= end; d += C * kLanes) {
    F32x16 sum[R][C];
    for (int r = 0; r < R; ++r) {
      for (int c = 0; c < C; ++c) sum[r][c] = Zero();
    }
    const std::byte* row = v.rows + t.first * v.row_bytes;
    const std::byte* soon = d == 0 ? v.soon : nullptr;
    for (int slot = t.first; slot < t.min_end; ++slot) {
      if (soon != nullptr) soon = Prefetch(soon, v.soon_row_bytes);
      F32x16 value[C];
#pragma GCC unroll 8
      for (int c = 0; c < C; ++c) value[c] = Source::Read(row, d + c * kLanes);
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) {
        const F32x16 w = Set1(weight[r * kPageTokens + slot]);
#pragma GCC unroll 8
        for (int c = 0; c < C; ++c) sum[r][c] = Fma(w, value[c], sum[r][c]);
      }
      row += v.row_bytes;
    }
    for (int r = 0; r < R; ++r) {
      for (int c = 0; c < C; ++c) {
        Store(sum[r][c], out + t.index[r] * padded + d + c * kLanes);
      }
    }
  }
  if constexpr (C > 1) {
    Values<Source, R, C / 2>(t, weight, v, d, end, padded, out);
  }
}

// Continues one query's sums of elements d..d + 15 over slots first..end - 1:
// what a later row of the tile sees and an earlier one does not.
template <typename Source>
void MoreValues(const float* weight, const ValueRows& v, int d, int first,
                int end, float* out) {
  F32x16 sum = Load(out + d);
  for (int slot = first; slot < end; ++slot) {
    sum = Fma(Set1(weight[slot]), Source::Read(v.rows + slot * v.row_bytes, d),
              sum);
  }
  Store(sum, out + d);
}

// Elements d..end - 1 of all queries of a tile, each to its own end.
template <typename Source, int R, int C>
void TileValues(const Tile<R>& t, const float* weight, const ValueRows& v,
                int d, int end, int padded, float* out) {
  Values<Source, R, C>(t, weight, v, d, end, padded, out);
  for (int r = 0; r < R; ++r) {
    if (t.end[r] == t.min_end) continue;
    for (int at = d; at < end; at += kLanes) {
      MoreValues<Source>(weight + r * kPageTokens, v, at, t.min_end, t.end[r],
                         out + t.index[r] * padded);
    }
  }
}

template <int R>
Tile<R> MakeTile(const AttentionBlock& b, int query) {
  Tile<R> t;
  t.first = b.begin;
  for (int r = 0; r < R; ++r) {
    const int row = (query + r) / b.group;
    const int head = (query + r) % b.group;
    const int64_t end = b.end + row;
    t.q[r] = b.q + row * b.q_stride + int64_t{head} * b.head_dim;
    t.index[r] = row * b.stride + head;
    t.end[r] = end < kPageTokens ? static_cast<int>(end) : kPageTokens;
  }
  t.min_end = t.end[0];
  t.max_end = t.end[R - 1];
  return t;
}

template <int R>
void SoftmaxTile(const AttentionBlock& b, const Tile<R>& t, float* score) {
  for (int r = 0; r < R; ++r) {
    Softmax(b.scale, t.first, t.end[r], score + r * kPageTokens,
            b.max + t.index[r], b.sum + t.index[r]);
  }
}

// The expanded page and what else a block needs while it is computed.
struct Scratch {
  float* k;      // [kPageTokens / 16][padded head_dim][16]
  float* v;      // [kPageTokens][padded head_dim]
  float* score;  // [kTileQueries][kPageTokens]
};

// R queries from `query` on, through the expanded page.
template <int R>
void ExpandedTile(const AttentionBlock& b, int query, const Scratch& s) {
  const Tile<R> t = MakeTile<R>(b, query);
  const int padded = Padded(b.head_dim);
  Scores<R, ColumnsOf(R)>(t, s.k, b.head_dim, t.first / kLanes,
                          (t.max_end + kLanes - 1) / kLanes, s.score);
  SoftmaxTile(b, t, s.score);
  const ValueRows v = {reinterpret_cast<const std::byte*>(s.v),
                       padded * static_cast<int64_t>(sizeof(float)), nullptr,
                       0};
  TileValues<F32Source, R, ColumnsOf(R)>(t, s.score, v, 0, padded, padded,
                                         b.out);
}

// The last queries of a block, fewer than a full tile.
template <int R>
void ExpandedRest(const AttentionBlock& b, int query, int queries,
                  const Scratch& s) {
  if (queries == R) {
    ExpandedTile<R>(b, query, s);
  } else if constexpr (R > 1) {
    ExpandedRest<R - 1>(b, query, queries, s);
  }
}

// A block of R queries, its values from the page as it is.
template <typename Source, int R>
void DirectValues(const AttentionBlock& b, const Tile<R>& t,
                  const float* score) {
  const int padded = Padded(b.head_dim);
  const int full = b.head_dim / kLanes * kLanes;
  const ValueRows v = {b.v, b.v_row_bytes, b.next_k, b.k_row_bytes};
  TileValues<Source, R, ColumnsOf(R)>(t, score, v, 0, full, padded, b.out);
  if (full < padded) {
    TileValues<TailOf<Source>, R, 1>(t, score, v, full, padded, padded, b.out);
  }
}

template <int R>
void DirectTile(const AttentionBlock& b, int query, const Scratch& s) {
  const Tile<R> t = MakeTile<R>(b, query);
  ForSource(b.type_k, [&](auto source) {
    DirectScores<decltype(source), R>(b, t, s.score);
  });
  SoftmaxTile(b, t, s.score);
  ForSource(b.type_v, [&](auto source) {
    DirectValues<decltype(source), R>(b, t, s.score);
  });
}

template <int R>
void DirectBlock(const AttentionBlock& b, int query, int queries,
                 const Scratch& s) {
  if (queries == R) {
    DirectTile<R>(b, query, s);
  } else if constexpr (R > 1) {
    DirectBlock<R - 1>(b, query, queries, s);
  }
}

}  // namespace

void ComputeBlock(const AttentionBlock& b) {
  const int page_floats = kPageTokens * Padded(b.head_dim);
  const Scratch s = {b.scratch, b.scratch + page_floats,
                     b.scratch + 2 * page_floats};

  // Rows before the page see nothing of it.
  int query = b.end >= 1 ? 0 : static_cast<int>(1 - b.end) * b.group;
  const int queries = b.rows * b.group;
  if (queries - query <= kTileQueries) {
    DirectBlock<kTileQueries>(b, query, queries - query, s);
    return;
  }
  const int64_t last_end = b.end + b.rows - 1;
  const int end =
      last_end < kPageTokens ? static_cast<int>(last_end) : kPageTokens;
  ForSource(b.type_k, [&](auto source) {
    ExpandK<decltype(source)>(b, b.begin, end, s.k);
  });
  ForSource(b.type_v, [&](auto source) {
    ExpandV<decltype(source)>(b, b.begin, end, s.v);
  });
  for (; query + kTileQueries <= queries; query += kTileQueries) {
    ExpandedTile<kTileQueries>(b, query, s);
  }
  ExpandedRest<kTileQueries - 1>(b, query, queries - query, s);
}

void FoldPages(const AttentionFold& f) {
  float max = *f.running_max;
  F32x16 sum = Set1(*f.running_sum);
  int64_t page = 0;
  if (f.first) {
    max = f.max[0];
    sum = Set1(f.sum[0]);
    memcpy(f.result, f.out, sizeof(float) * static_cast<size_t>(f.head_dim));
    page = 1;
  }
  // Weights of 16 pages at a time, then the chains over them.
  for (; page < f.pages; page += kLanes) {
    const int n =
        f.pages - page < kLanes ? static_cast<int>(f.pages - page) : kLanes;
    float old_weight[kLanes] = {};
    float new_weight[kLanes] = {};
    for (int i = 0; i < n; ++i) {
      const float page_max = f.max[(page + i) * f.stride];
      const float new_max = max > page_max ? max : page_max;
      old_weight[i] = max - new_max;
      new_weight[i] = page_max - new_max;
      max = new_max;
    }
    Store(Exp(Load(old_weight)), old_weight);
    Store(Exp(Load(new_weight)), new_weight);
    for (int i = 0; i < n; ++i) {
      sum = Fma(sum, Set1(old_weight[i]),
                Set1(f.sum[(page + i) * f.stride]) * Set1(new_weight[i]));
    }
    for (int d = 0; d < f.head_dim; d += kLanes) {
      const int lanes = f.head_dim - d < kLanes ? f.head_dim - d : kLanes;
      const float* out = f.out + page * f.out_stride + d;
      F32x16 result = LoadN(f.result + d, lanes);
      for (int i = 0; i < n; ++i) {
        result = Fma(result, Set1(old_weight[i]),
                     Load(out + i * f.out_stride) * Set1(new_weight[i]));
      }
      StoreN(result, f.result + d, lanes);
    }
  }
  *f.running_max = max;
  StoreN(sum, f.running_sum, 1);
  if (!f.last) return;
  for (int d = 0; d < f.head_dim; d += kLanes) {
    const int lanes = f.head_dim - d < kLanes ? f.head_dim - d : kLanes;
    StoreN(LoadN(f.result + d, lanes) / sum, f.result + d, lanes);
  }
}

}  // namespace tiercel::TIERCEL_ISA_NS

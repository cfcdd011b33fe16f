// Lanes are positions for scores and elements of a head for sums of values, so
// that neither needs a sum across lanes, and rounding does not depend on the
// number of queries. K is transposed in groups of 16 positions.
//
// A block of a few queries (a decode step) reads the page once, as it is
// stored. For more queries K and V are expanded to floats first, K transposed,
// and tiles of a few queries use the expanded page. Both ways do the same
// arithmetic.

#include "kernels/attention/attention_cpu_rows.h"

namespace tiercel::TIERCEL_ISA_NS {
namespace {

// The number of registers of positions (scores) or of elements (values) that a
// tile of so many queries covers at a time, chosen as kTileQueries is.
#if defined(__AVX512F__)
constexpr int ColumnsOf(int queries) {
  return queries == 1 ? 8 : queries <= 4 ? 4 : 2;
}
#elif defined(__AVX2__)
constexpr int ColumnsOf(int queries) {
  return queries == 1 ? 4 : queries == 2 ? 2 : 1;
}
#else
constexpr int ColumnsOf(int) { return 1; }
#endif

// Cells (or groups of 16 cells) begin..end - 1.
struct Run {
  int begin;
  int end;
  bool common;  // all queries of the tile see them; else some do
};

// A few queries, and the cells of the page that they see.
template <int R>
struct Tile {
  const float* q[R];
  int64_t index[R];  // their indices among the partial results
  CellSet sees[R];
  int first[R];  // the first cell seen; kPageTokens: none
  CellSet any;   // cells that at least one query sees
  CellSet all;   // cells that all queries see

  // The cells of `any`, in order
  Run runs[kPageTokens];
  int num_runs;
  // The groups that have such a cell
  Run groups[kGroups];
  int num_groups;
  // The groups among these with a cell that some query does not see
  int edges[kGroups];
  int num_edges;
};

template <int R>
void FindRuns(Tile<R>& t) {
  t.num_edges = 0;
  if (IsWhole(t.all)) {
    t.runs[0] = {0, kPageTokens, true};
    t.groups[0] = {0, kGroups, true};
    t.num_runs = t.num_groups = 1;
    return;
  }
  t.num_runs = 0;
  for (int cell = NextIn(t.any, 0); cell < kPageTokens;
       cell = NextIn(t.any, cell)) {
    const bool common = IsIn(t.all, cell);
    int end = NextOut(common ? t.all : t.any, cell);
    if (!common) {
      const int next = NextIn(t.all, cell);
      end = next < end ? next : end;
    }
    t.runs[t.num_runs++] = {cell, end, common};
    cell = end;
  }
  t.num_groups = 0;
  for (int g = 0; g < kGroups; ++g) {
    if (LanesOf(t.any, g) == 0) continue;
    const bool common = LanesOf(t.all, g) == kAllLanes;
    if (!common) t.edges[t.num_edges++] = g;
    if (t.num_groups > 0 && t.groups[t.num_groups - 1].end == g) {
      t.groups[t.num_groups - 1].end = g + 1;
    } else {
      t.groups[t.num_groups++] = {g, g + 1, common};
    }
  }
}

template <int R>
void MakeTile(const AttentionBlock& b, int query, Tile<R>& t) {
  int row = query / b.group;
  int head = query % b.group;
  CellSet seen = SeenBy(b, row);
  int first = NextIn(seen, 0);
  t.any = t.all = seen;
  for (int r = 0; r < R; ++r) {
    if (head == b.group) {
      head = 0;
      seen = SeenBy(b, ++row);
      first = NextIn(seen, 0);
      t.any = t.any | seen;
      t.all = t.all & seen;
    }
    t.q[r] = b.q + row * b.q_stride + int64_t{head} * b.head_dim;
    t.index[r] = row * b.stride + head;
    t.sees[r] = seen;
    t.first[r] = first;
    ++head;
  }
  FindRuns(t);
}

// Computes the dot products of R queries with groups `group`..`end` - 1 of 16
// positions, C groups at a time.
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

// Computes the dot products of R queries with every group they see, from K as
// it is stored.
template <typename Source, int R>
void DirectScores(const AttentionBlock& b, const Tile<R>& t, float* score) {
  const auto group_scores = [&](int g) {
    const RowGroup group = RowsOf(b.k, b.k_row_bytes, g, LanesOf(t.any, g));
    Prefetch(b.v + int64_t{g} * kLanes * b.v_row_bytes, kLanes * b.v_row_bytes);
    F32x16 sum[R];
    KeyDots<Source>(group, b.head_dim, t.q, sum);
    for (int r = 0; r < R; ++r) {
      Store(sum[r], score + r * kPageTokens + g * kLanes);
    }
  };
  for (int i = 0; i < t.num_groups; ++i) {
    for (int g = t.groups[i].begin; g < t.groups[i].end; ++g) group_scores(g);
  }
}

// Sets the lanes of a tile's groups that query r does not see to `x`.
template <int R>
TIERCEL_INLINE void Fill(const Tile<R>& t, int r, float x, float* score) {
  for (int e = 0; e < t.num_edges; ++e) {
    float* const group = score + t.edges[e] * kLanes;
    const int lanes = LanesOf(t.sees[r], t.edges[e]);
    for (int i = 0; i < kLanes; ++i) {
      group[i] = (lanes >> i & 1) != 0 ? group[i] : x;
    }
  }
}

// Turns the dot products of the cells that query r sees into weights, and the
// other lanes of the tile's groups into zero. The sum is zero if it sees none.
template <int R>
void Softmax(const Tile<R>& t, int r, float scale, float* score, float* max,
             float* sum) {
  if (t.first[r] == kPageTokens) {
    *max = 0.0f;
    *sum = 0.0f;
    return;
  }
  // Lanes that are not seen repeat one that is, so that they change no maximum.
  const float seen = score[t.first[r]];
  Fill(t, r, seen, score);
  F32x16 largest = Set1(seen) * Set1(scale);
  // `fault` becomes NaN if a score is not finite: a fault in q or in a key must
  // not hide behind a weight of zero.
  F32x16 fault = Zero();
  for (int i = 0; i < t.num_groups; ++i) {
    for (int g = t.groups[i].begin; g < t.groups[i].end; ++g) {
      const F32x16 x = Load(score + g * kLanes) * Set1(scale);
      largest = Max(largest, x);
      fault = Fma(x, Zero(), fault);
      Store(x, score + g * kLanes);
    }
  }
  const float block_max = ReduceMax(largest) + ReduceAdd(fault);
  *max = block_max;

  for (int i = 0; i < t.num_groups; ++i) {
    for (int g = t.groups[i].begin; g < t.groups[i].end; ++g) {
      float* const group = score + g * kLanes;
      Store(Exp(Load(group) - Set1(block_max)), group);
    }
  }
  Fill(t, r, 0.0f, score);
  F32x16 total = Zero();
  for (int i = 0; i < t.num_groups; ++i) {
    for (int g = t.groups[i].begin; g < t.groups[i].end; ++g) {
      total = total + Load(score + g * kLanes);
    }
  }
  *sum = ReduceAdd(total);
}

template <int R>
void SoftmaxTile(const AttentionBlock& b, const Tile<R>& t, float* score) {
  for (int r = 0; r < R; ++r) {
    Softmax(t, r, b.scale, score + r * kPageTokens, b.max + t.index[r],
            b.sum + t.index[r]);
  }
}

// The rows of V, as they are stored or expanded to floats.
struct ValueRows {
  const std::byte* rows;
  int64_t row_bytes;
  const std::byte* soon;  // memory to prefetch, needed after V; may be null
  int64_t soon_row_bytes;
};

// Sums the weighted values that each query sees, in the order of positions, for
// elements d..end - 1, C registers at a time. Hidden cells are skipped: such a
// cell may hold NaN, and zero times NaN is NaN.
template <typename Source, int R, int C>
void Values(const Tile<R>& t, const float* weight, const ValueRows& v, int d,
            int end, int padded, float* out) {
  for (; d + C * kLanes <= end; d += C * kLanes) {
    F32x16 sum[R][C];
    for (int r = 0; r < R; ++r) {
      for (int c = 0; c < C; ++c) sum[r][c] = Zero();
    }
    const std::byte* soon = d == 0 ? v.soon : nullptr;
    for (int i = 0; i < t.num_runs; ++i) {
      const Run run = t.runs[i];
      const std::byte* row = v.rows + run.begin * v.row_bytes;
      if (run.common) {
        for (int cell = run.begin; cell < run.end; ++cell) {
          if (soon != nullptr) soon = Prefetch(soon, v.soon_row_bytes);
          F32x16 value[C];
#pragma GCC unroll 8
          for (int c = 0; c < C; ++c) {
            value[c] = Source::Read(row, d + c * kLanes);
          }
#pragma GCC unroll 8
          for (int r = 0; r < R; ++r) {
            const F32x16 w = Set1(weight[r * kPageTokens + cell]);
#pragma GCC unroll 8
            for (int c = 0; c < C; ++c) sum[r][c] = Fma(w, value[c], sum[r][c]);
          }
          row += v.row_bytes;
        }
        continue;
      }
      for (int cell = run.begin; cell < run.end; ++cell) {
        F32x16 value[C];
#pragma GCC unroll 8
        for (int c = 0; c < C; ++c) {
          value[c] = Source::Read(row, d + c * kLanes);
        }
#pragma GCC unroll 8
        for (int r = 0; r < R; ++r) {
          if (!IsIn(t.sees[r], cell)) continue;
          const F32x16 w = Set1(weight[r * kPageTokens + cell]);
#pragma GCC unroll 8
          for (int c = 0; c < C; ++c) sum[r][c] = Fma(w, value[c], sum[r][c]);
        }
        row += v.row_bytes;
      }
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

// The expanded page and the other scratch of a block.
struct Scratch {
  float* k;      // [kPageTokens / 16][padded head_dim][16]
  float* v;      // [kPageTokens][padded head_dim]
  float* score;  // [kTileQueries][kPageTokens]
};

// Computes R queries from `query` on with the expanded page.
template <int R>
void ExpandedTile(const AttentionBlock& b, int query, const Scratch& s) {
  Tile<R> t;
  MakeTile(b, query, t);
  const int padded = Padded(b.head_dim);
  for (int i = 0; i < t.num_groups; ++i) {
    Scores<R, ColumnsOf(R)>(t, s.k, b.head_dim, t.groups[i].begin,
                            t.groups[i].end, s.score);
  }
  SoftmaxTile(b, t, s.score);
  const ValueRows v = {reinterpret_cast<const std::byte*>(s.v),
                       padded * static_cast<int64_t>(sizeof(float)), nullptr,
                       0};
  Values<F32Source, R, ColumnsOf(R)>(t, s.score, v, 0, padded, padded, b.out);
}

// Computes the last queries of a block, which are fewer than a full tile.
template <int R>
void ExpandedRest(const AttentionBlock& b, int query, int queries,
                  const Scratch& s) {
  if (queries == R) {
    ExpandedTile<R>(b, query, s);
  } else if constexpr (R > 1) {
    ExpandedRest<R - 1>(b, query, queries, s);
  }
}

// Computes the values of a block of R queries from the page as it is stored.
template <typename Source, int R>
void DirectValues(const AttentionBlock& b, const Tile<R>& t,
                  const float* score) {
  const int padded = Padded(b.head_dim);
  const int full = b.head_dim / kLanes * kLanes;
  const ValueRows v = {b.v, b.v_row_bytes, b.next_k, b.k_row_bytes};
  Values<Source, R, ColumnsOf(R)>(t, score, v, 0, full, padded, b.out);
  if (full < padded) {
    Values<TailOf<Source>, R, 1>(t, score, v, full, padded, padded, b.out);
  }
}

template <int R>
void DirectTile(const AttentionBlock& b, int query, const Scratch& s) {
  Tile<R> t;
  MakeTile(b, query, t);
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
  const int64_t first_row = b.end >= 1 ? 0 : 1 - b.end;
  int query = static_cast<int>(first_row) * b.group;
  const int queries = b.rows * b.group;
  if (queries - query <= kTileQueries) {
    DirectBlock<kTileQueries>(b, query, queries - query, s);
    return;
  }
  const CellSet seen = SeenFrom(b, first_row);
  ForSource(b.type_k,
            [&](auto source) { ExpandK<decltype(source)>(b, seen, s.k); });
  ForSource(b.type_v,
            [&](auto source) { ExpandV<decltype(source)>(b, seen, s.v); });
  for (; query + kTileQueries <= queries; query += kTileQueries) {
    ExpandedTile<kTileQueries>(b, query, s);
  }
  ExpandedRest<kTileQueries - 1>(b, query, queries - query, s);
}

void FoldPages(const AttentionFold& f) {
  int64_t page = 0;
  float max = *f.running_max;
  float folded = f.first ? 0.0f : *f.running_sum;
  if (folded == 0.0f) {  // nothing yet: the first page seen is copied
    while (page < f.pages && f.sum[page * f.stride] == 0.0f) ++page;
    if (page < f.pages) {
      max = f.max[page * f.stride];
      folded = f.sum[page * f.stride];
      memcpy(f.result, f.out + page * f.out_stride,
             sizeof(float) * static_cast<size_t>(f.head_dim));
      ++page;
    }
  }
  F32x16 sum = Set1(folded);
  // The weights of 16 pages are computed at a time, then the chains over them.
  while (page < f.pages) {
    int64_t seen[kLanes];
    int n = 0;
    for (; page < f.pages && n < kLanes; ++page) {
      if (f.sum[page * f.stride] != 0.0f) seen[n++] = page;
    }
    float old_weight[kLanes] = {};
    float new_weight[kLanes] = {};
    for (int i = 0; i < n; ++i) {
      const float page_max = f.max[seen[i] * f.stride];
      const float new_max = max > page_max ? max : page_max;
      old_weight[i] = max - new_max;
      new_weight[i] = page_max - new_max;
      max = new_max;
    }
    Store(Exp(Load(old_weight)), old_weight);
    Store(Exp(Load(new_weight)), new_weight);
    for (int i = 0; i < n; ++i) {
      sum = Fma(sum, Set1(old_weight[i]),
                Set1(f.sum[seen[i] * f.stride]) * Set1(new_weight[i]));
    }
    for (int d = 0; d < f.head_dim; d += kLanes) {
      const int lanes = f.head_dim - d < kLanes ? f.head_dim - d : kLanes;
      F32x16 result = LoadN(f.result + d, lanes);
      for (int i = 0; i < n; ++i) {
        result =
            Fma(result, Set1(old_weight[i]),
                Load(f.out + seen[i] * f.out_stride + d) * Set1(new_weight[i]));
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

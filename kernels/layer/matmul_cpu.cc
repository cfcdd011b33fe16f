#include "kernels/layer/matmul_body.h"
#include "kernels/layer/matmul_cpu_weights.h"

namespace tiercel::TIERCEL_ISA_NS {
namespace {

// Tile shapes are chosen such that the sums of rows x panels fit the registers.
// Few rows take several panels, for independent chains and for as many streams
// from memory. Every output is one chain whatever its tile, so shapes change
// speed alone.
//
// The integer sums of kQ8Rows rows fit the registers. In a tile of more rows, a
// block's codes are unpacked once and stay in the L1 cache for all of them.
#if defined(__AVX512F__)
constexpr int kQ8Rows = 12;  // 12 int and 12 float sums, codes, scales
constexpr int kQ8TileRows = 12;
constexpr int kF32TileRows = 12;  // times two panels: 24 sums
constexpr int Q8Panels(int rows) { return rows <= 2 ? 4 : rows <= 4 ? 2 : 1; }
constexpr int F32Panels(int rows) { return rows == 1 ? 4 : 2; }
#elif defined(__AVX2__)
constexpr int kQ8Rows = 4;  // two registers a sum: 8 of 16
constexpr int kQ8TileRows = 12;
constexpr int kF32TileRows = 6;
constexpr int Q8Panels(int rows) { return rows == 1 ? 4 : rows == 2 ? 2 : 1; }
constexpr int F32Panels(int rows) { return Q8Panels(rows); }
#else
constexpr int kQ8Rows = 2;
constexpr int kQ8TileRows = 2;
constexpr int kF32TileRows = 2;
constexpr int Q8Panels(int) { return 1; }
constexpr int F32Panels(int) { return 1; }
#endif
constexpr int kMaxPanels = 4;
// Tiles of floats with more rows are bound by arithmetic, which a prefetch for
// every column would hold up.
constexpr int kStepRows = 4;
constexpr int kExpandedPanels = 2;

// The distance in bytes at which a pass over `panels` panels at once
// prefetches: the same place in the next panels, since the hardware's own
// prefetch starts anew with every panel, or within the panel if panels are
// long.
int64_t PrefetchDistance(const MatmulTarget& t, int panels) {
  constexpr int64_t kMostAhead = 256 << 10;
  const int64_t group = panels * t.panel_bytes;
  return group <= kMostAhead ? group : 4096;
}

// Prefetches `bytes` at p + ahead into the L2 cache. An address past the matrix
// causes no fault.
TIERCEL_INLINE void Prefetch(const uint8_t* p, int64_t ahead, int bytes) {
  const uintptr_t target = reinterpret_cast<uintptr_t>(p) + ahead;
  for (int i = 0; i < bytes; i += 64) {
    const uintptr_t line = target + i;
    __builtin_prefetch(reinterpret_cast<const void*>(line), 0, 2);  // NOLINT
  }
}

// Stores panel `panel` of the rows from `row` on: scale (acc[r] (+ bias)) (+
// the old value).
template <int kRows>
TIERCEL_INLINE void StoreTile(const ScaledTarget& t, int64_t panel, int64_t row,
                              const F32x16 acc[kRows]) {
  const int64_t column = panel * 16;
  const int lanes = t.n - column < 16 ? static_cast<int>(t.n - column) : 16;
  float* out = t.out + row * t.out_stride + column;
  const F32x16 scale = Set1(t.scale);
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
    F32x16 value = acc[r];
    if (t.bias != nullptr) value = value + LoadN(t.bias + column, lanes);
    value = value * scale;
    if (t.add) value = value + LoadN(out, lanes);
    StoreN(value, out, lanes);
    out += t.out_stride;
  }
}

// ---- int8 activations ----

// Computes the exact dot products of one block with kRows rows. quad_at(part,
// quad) returns its codes.
template <DType kType, int kRows, typename Quads>
TIERCEL_INLINE void DotBlocks(const Quads& quad_at, const uint8_t* scales,
                              int64_t block, const Q8Block* x,
                              I32x16 dots[kRows]) {
  constexpr PackedLayout kLayout = LayoutOf(kType);
  constexpr int kParts = PartsOf(kLayout.max_code);
  constexpr int kHalves = HasHalves(kLayout.scales) ? 2 : 1;
  constexpr int kQuads = 8 / kHalves;
#pragma GCC unroll 2
  for (int half = 0; half < kHalves; ++half) {
    DotSum<kParts == 1 ? kLayout.max_code : 15, kQuads> sums[kParts][kRows];
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
      int32_t neg_sum = x[r].neg_sum;
      if (kHalves == 2 && half == 0) neg_sum = x[r].neg_sum_low;
      if (kHalves == 2 && half == 1) neg_sum -= x[r].neg_sum_low;
      Start(sums[0][r],
            kLayout.offset_bits > 0 ? neg_sum * (1 << kLayout.offset_bits) : 0);
      if (kParts == 2) Start(sums[kParts - 1][r], 0);
    }
#pragma GCC unroll 8
    for (int j = 0; j < kQuads; ++j) {
      const int quad = half * kQuads + j;
#pragma GCC unroll 2
      for (int part = 0; part < kParts; ++part) {
        const U8x64 w = quad_at(part, quad);
#pragma GCC unroll 16
        for (int r = 0; r < kRows; ++r) {
          AddQuad(sums[part][r], j, w, x[r].codes + 4 * quad);
        }
      }
    }
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
      I32x16 total = Total(sums[0][r]);
      if (kParts == 2) {
        total = total + ShiftLeft<4>(Total(sums[kParts - 1][r]));
      }
      if constexpr (kHalves == 2) {
        total = total * HalfScale<kLayout.scales>(scales, block, half);
      }
      dots[r] = half == 0 ? total : dots[r] + total;
    }
  }
}

// acc[r] += the block's dot products, scaled.
template <DType kType, int kRows>
TIERCEL_INLINE void AddBlock(const I32x16 dots[kRows], const BlockScales& s,
                             const Q8Block* x, F32x16* acc) {
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
    acc[r] = Fma(ToF32(dots[r]), s.d * Set1(x[r].scale), acc[r]);
    if constexpr (LayoutOf(kType).scales == ScaleLayout::kK2) {
      const I32x16 sum =
          s.half_mins[0] * SetI32(-x[r].neg_sum_low) +
          s.half_mins[1] * SetI32(x[r].neg_sum_low - x[r].neg_sum);
      acc[r] = Fma(s.m, Set1(x[r].scale) * ToF32(sum), acc[r]);
    } else if constexpr (HasMin(LayoutOf(kType).scales)) {
      acc[r] = Fma(s.m, Set1(x[r].scaled_sum), acc[r]);
    }
  }
}

// Computes kPanels panels at once. Panels past the range's end repeat the last
// one and are not stored. The rows of a block of x are `pitch` apart from those
// of the next.
template <DType kType, int kRows>
void Q8Tile(const ScaledTarget& t, int64_t panel, int64_t panel_end,
            int64_t row, const Q8Block* x, int64_t pitch) {
  constexpr PackedLayout kLayout = LayoutOf(kType);
  constexpr int kPanels = Q8Panels(kRows);
  constexpr int kScaleBytes =
      GroupBytes(kLayout.scales) / GroupBlocks(kLayout.scales);
  const int64_t blocks = t.k / 32;
  const int64_t live = panel_end - panel;
  const int64_t ahead = PrefetchDistance(t, kPanels);
  const uint8_t* panels[kPanels];
  F32x16 acc[kPanels][kRows];
#pragma GCC unroll 4
  for (int p = 0; p < kPanels; ++p) {
    panels[p] = t.panels + (panel + (p < live ? p : live - 1)) * t.panel_bytes;
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) acc[p][r] = Zero();
  }
  for (int64_t block = 0; block < blocks; ++block) {
#pragma GCC unroll 4
    for (int p = 0; p < kPanels; ++p) {
      const uint8_t* codes = panels[p] + block * CodeBytes(kLayout.codes);
      const uint8_t* scales = panels[p] + blocks * CodeBytes(kLayout.codes);
      Prefetch(codes, ahead, CodeBytes(kLayout.codes));
      Prefetch(scales + block * kScaleBytes, ahead, kScaleBytes);
      I32x16 dots[kRows];
      DotBlocks<kType, kRows>(
          [&](int part, int quad) __attribute__((always_inline)) {
            return PartQuad<kLayout>(codes, part, quad);
          },
          scales, block, x, dots);
      AddBlock<kType, kRows>(dots, LoadScales<kLayout.scales>(scales, block), x,
                             acc[p]);
    }
    x += pitch;
  }
#pragma GCC unroll 4
  for (int p = 0; p < kPanels; ++p) {
    if (p < live) StoreTile<kRows>(t, panel + p, row, acc[p]);
  }
}

// The number of rows whose integer sums for kType fit into the registers.
template <DType kType>
constexpr int RowsAtOnce() {
  return kQ8Rows / PartsOf(LayoutOf(kType).max_code);
}

// Computes one panel for kQ8TileRows rows.
template <DType kType>
void Q8FullTile(const ScaledTarget& t, int64_t panel, int64_t row,
                const Q8Block* x) {
  constexpr PackedLayout kLayout = LayoutOf(kType);
  constexpr int kParts = PartsOf(kLayout.max_code);
  constexpr int kRows = RowsAtOnce<kType>();
  static_assert(kQ8TileRows % kRows == 0);
  const int64_t blocks = t.k / 32;
  const uint8_t* codes = t.panels + panel * t.panel_bytes;
  const uint8_t* scales = codes + blocks * CodeBytes(kLayout.codes);
  F32x16 acc[kQ8TileRows];
  for (int r = 0; r < kQ8TileRows; ++r) acc[r] = Zero();
  for (int64_t block = 0; block < blocks; ++block) {
    alignas(64) uint8_t unpacked[kParts][8][64];
#pragma GCC unroll 2
    for (int part = 0; part < kParts; ++part) {
#pragma GCC unroll 8
      for (int quad = 0; quad < 8; ++quad) {
        Store64(PartQuad<kLayout>(codes, part, quad), unpacked[part][quad]);
      }
    }
    const BlockScales s = LoadScales<kLayout.scales>(scales, block);
    for (int r = 0; r < kQ8TileRows; r += kRows) {
      I32x16 dots[kRows];
      DotBlocks<kType, kRows>(
          [&](int part, int quad) __attribute__((always_inline)) {
            return Load64(unpacked[part][quad]);
          },
          scales, block, x + r, dots);
      AddBlock<kType, kRows>(dots, s, x + r, acc + r);
    }
    codes += CodeBytes(kLayout.codes);
    x += kQ8TileRows;
  }
  StoreTile<kQ8TileRows>(t, panel, row, acc);
}

// Computes the panels of a range for `rows` rows (1 to kRows) from `row` on.
template <DType kType, int kRows>
TIERCEL_INLINE void Q8TileOf(int rows, const ScaledTarget& t,
                             int64_t panel_begin, int64_t panel_end,
                             int64_t row, const Q8Block* x, int64_t pitch) {
  if constexpr (kRows > 0) {
    if (rows != kRows) {
      return Q8TileOf<kType, kRows - 1>(rows, t, panel_begin, panel_end, row, x,
                                        pitch);
    }
    for (int64_t panel = panel_begin; panel < panel_end;
         panel += Q8Panels(kRows)) {
      Q8Tile<kType, kRows>(t, panel, panel_end, row, x, pitch);
    }
  }
}

template <DType kType>
void Q8Range(const ScaledTarget& t, const MatmulRange& range,
             const Q8Block* tiles) {
  constexpr int kGroup = kMaxPanels;
  constexpr int kRows = RowsAtOnce<kType>();
  for (int64_t panel = range.panel_begin; panel < range.panel_end;
       panel += kGroup) {
    const int64_t panel_end =
        panel + kGroup < range.panel_end ? panel + kGroup : range.panel_end;
    for (int64_t row = range.row_begin; row < range.row_end;
         row += kQ8TileRows) {
      const int64_t left = range.row_end - row;
      const int rows =
          left < kQ8TileRows ? static_cast<int>(left) : kQ8TileRows;
      const Q8Block* x = tiles + row * (t.k / 32);
      if constexpr (kRows < kQ8TileRows) {
        if (rows == kQ8TileRows) {
          for (int64_t p = panel; p < panel_end; ++p) {
            Q8FullTile<kType>(t, p, row, x);
          }
          continue;
        }
      }
      for (int r = 0; r < rows; r += kRows) {
        Q8TileOf<kType, kRows>(rows - r < kRows ? rows - r : kRows, t, panel,
                               panel_end, row + r, x + r, rows);
      }
    }
  }
}

void Q8(const ScaledTarget& t, const MatmulRange& range, const Q8Block* tiles) {
  WithWeightType(t.type, [&]<DType kType>() {
    if constexpr (IsQuantised(kType)) Q8Range<kType>(t, range, tiles);
  });
}

// The codes of half a block. A subnormal scale is coarse, so that x / scale may
// exceed 127.
TIERCEL_INLINE F32x16 CodesOf(F32x16 x, float scale) {
  return Max(Set1(-127.0f), Min(Set1(127.0f), Round(x / Set1(scale))));
}

// The squared error that rounding to `scale` makes.
TIERCEL_INLINE float RoundingError(F32x16 low, F32x16 high, float scale) {
  const F32x16 d = Set1(0.0f - scale);
  const F32x16 low_error = Fma(d, CodesOf(low, scale), low);
  const F32x16 high_error = Fma(d, CodesOf(high, scale), high);
  return ReduceAdd(Fma(high_error, high_error, low_error * low_error));
}

void QuantiseBlock(const float* x, Q8Block* out) {
  const F32x16 low = Load(x);
  const F32x16 high = Load(x + 16);
  const int32_t max_bits = MaxAbsBits(low, high);
  float max;
  memcpy(&max, &max_bits, sizeof(max));
  const bool finite = max_bits < 0x7f800000;
  float scale = max / kQ8Steps[0];
  if (!finite || scale == 0.0f) {
    memset(out, 0, sizeof(*out));
    if (!finite) out->scale = out->scaled_sum = __builtin_nanf("");
    return;
  }
  float least = RoundingError(low, high, scale);
  for (int i = 1; i < kNumQ8Steps; ++i) {
    const float other = max / kQ8Steps[i];
    const float error = RoundingError(low, high, other);
    if (error < least) {
      least = error;
      scale = other;
    }
  }
  const int32_t sum_low = StoreI8(CodesOf(low, scale), out->codes);
  const int32_t sum = sum_low + StoreI8(CodesOf(high, scale), out->codes + 16);
  out->scale = scale;
  out->scaled_sum = scale * static_cast<float>(sum);
  out->neg_sum = -sum;
  out->neg_sum_low = -sum_low;
}

void Quantise(const float* x, int64_t x_stride, int rows, int64_t k,
              Q8Block* tile) {
  for (int r = 0; r < rows; ++r) {
    for (int64_t block = 0; block < k / 32; ++block) {
      QuantiseBlock(x + r * x_stride + block * 32, tile + block * rows + r);
    }
  }
}

// ---- float activations ----

// Computes kPanels panels at once. Panels past the range's end repeat the last
// one and are not stored.
template <DType kType, int kRows>
void F32Tile(const ScaledTarget& t, const uint8_t* weights, int64_t panel,
             int64_t panel_end, int64_t row, const float* x) {
  constexpr int kPanels = F32Panels(kRows);
  constexpr int kColumnBytes = kType == DType::kF32 ? 64 : 32;
  const int64_t live = panel_end - panel;
  const int64_t ahead = PrefetchDistance(t, kPanels);
  const uint8_t* panels[kPanels];
  F32x16 acc[kPanels][kRows];
#pragma GCC unroll 4
  for (int p = 0; p < kPanels; ++p) {
    panels[p] = weights + (p < live ? p : live - 1) * t.panel_bytes;
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) acc[p][r] = Zero();
  }
  for (int64_t k = 0; k < t.k; ++k) {
    F32x16 w[kPanels];
#pragma GCC unroll 4
    for (int p = 0; p < kPanels; ++p) {
      if constexpr (kRows <= kStepRows) {
        Prefetch(panels[p] + k * kColumnBytes, ahead, kColumnBytes);
      }
      w[p] = ColumnOf<kType>(panels[p], k);
    }
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
      const F32x16 xr = Set1(x[r]);
#pragma GCC unroll 4
      for (int p = 0; p < kPanels; ++p) acc[p][r] = Fma(xr, w[p], acc[p][r]);
    }
    x += kRows;
  }
#pragma GCC unroll 4
  for (int p = 0; p < kPanels; ++p) {
    if (p < live) StoreTile<kRows>(t, panel + p, row, acc[p]);
  }
}

// Computes the panels of a range, which are at `weights`, for the tile that
// starts at `row`.
template <DType kType, int kRows>
TIERCEL_INLINE void F32TileOf(int rows, const ScaledTarget& t,
                              const uint8_t* weights, const MatmulRange& range,
                              int64_t row, const float* x) {
  if constexpr (kRows > 0) {
    if (rows != kRows) {
      return F32TileOf<kType, kRows - 1>(rows, t, weights, range, row, x);
    }
    for (int64_t panel = range.panel_begin; panel < range.panel_end;
         panel += F32Panels(kRows)) {
      F32Tile<kType, kRows>(
          t, weights + (panel - range.panel_begin) * t.panel_bytes, panel,
          range.panel_end, row, x);
    }
  }
}

// Computes a range, few panels at a time, so that they stay in the cache for
// all tiles of rows.
template <DType kType>
void F32Range(const ScaledTarget& t, const uint8_t* weights,
              const MatmulRange& range, const float* tiles) {
  constexpr int kGroup = kMaxPanels;
  for (int64_t begin = range.panel_begin; begin < range.panel_end;
       begin += kGroup) {
    MatmulRange group = range;
    group.panel_begin = begin;
    if (begin + kGroup < range.panel_end) group.panel_end = begin + kGroup;
    for (int64_t row = range.row_begin; row < range.row_end;
         row += kF32TileRows) {
      const int64_t left = range.row_end - row;
      const int rows =
          left < kF32TileRows ? static_cast<int>(left) : kF32TileRows;
      F32TileOf<kType, kF32TileRows>(
          rows, t, weights + (begin - range.panel_begin) * t.panel_bytes, group,
          row, tiles + row * t.k);
    }
  }
}

// Multiplies one row by quantised weights, which it expands in registers, as no
// second row uses them again.
template <DType kType>
void F32Row(const ScaledTarget& t, const MatmulRange& range, const float* x) {
  constexpr PackedLayout kLayout = LayoutOf(kType);
  constexpr int kPanels = F32Panels(1);
  const int64_t blocks = t.k / 32;
  for (int64_t panel = range.panel_begin; panel < range.panel_end;
       panel += kPanels) {
    const int64_t live = range.panel_end - panel;
    F32x16 acc[kPanels];
#pragma GCC unroll 4
    for (int p = 0; p < kPanels; ++p) acc[p] = Zero();
    for (int64_t half = 0; half < 2 * blocks; ++half) {
#pragma GCC unroll 4
      for (int p = 0; p < kPanels; ++p) {
        const uint8_t* codes =
            t.panels + (panel + (p < live ? p : live - 1)) * t.panel_bytes;
        F32x16 w[16];
        HalfBlockWeights<kType>(codes,
                                codes + blocks * CodeBytes(kLayout.codes),
                                half / 2, static_cast<int>(half % 2), w);
#pragma GCC unroll 16
        for (int i = 0; i < 16; ++i) {
          acc[p] = Fma(Set1(x[half * 16 + i]), w[i], acc[p]);
        }
      }
    }
#pragma GCC unroll 4
    for (int p = 0; p < kPanels; ++p) {
      if (p < live) StoreTile<1>(t, panel + p, range.row_begin, &acc[p]);
    }
  }
}

template <DType kType>
void Expand(const ScaledTarget& t, int64_t panel, float* out) {
  const uint8_t* codes = t.panels + panel * t.panel_bytes;
  if constexpr (!IsQuantised(kType)) {
    const int64_t ahead = PrefetchDistance(t, kExpandedPanels);
    for (int64_t k = 0; k < t.k; ++k) {
      Prefetch(codes + k * 32, ahead, 32);
      Store(ColumnOf<kType>(codes, k), out + k * 16);
    }
  } else {
    const int64_t blocks = t.k / 32;
    const uint8_t* scales = codes + blocks * CodeBytes(LayoutOf(kType).codes);
    for (int64_t half = 0; half < 2 * blocks; ++half) {
      F32x16 w[16];
      HalfBlockWeights<kType>(codes, scales, half / 2,
                              static_cast<int>(half % 2), w);
#pragma GCC unroll 16
      for (int i = 0; i < 16; ++i) Store(w[i], out + (half * 16 + i) * 16);
    }
  }
}

// Expands a few panels at a time to floats, then multiplies by those.
template <DType kType>
void F32Expanded(const ScaledTarget& t, const MatmulRange& range,
                 const float* tiles, float* expanded) {
  ScaledTarget floats = t;
  floats.panel_bytes = t.k * 64;
  MatmulRange group = range;
  for (int64_t begin = range.panel_begin; begin < range.panel_end;
       begin = group.panel_end) {
    group.panel_begin = begin;
    group.panel_end = begin + kExpandedPanels < range.panel_end
                          ? begin + kExpandedPanels
                          : range.panel_end;
    for (int64_t panel = begin; panel < group.panel_end; ++panel) {
      Expand<kType>(t, panel, expanded + (panel - begin) * t.k * 16);
    }
    F32Range<DType::kF32>(floats, reinterpret_cast<const uint8_t*>(expanded),
                          group, tiles);
  }
}

// Expanding costs a pass through the cache. For quantised weights it pays from
// two rows on; for half floats, which one instruction converts, from two tiles
// on.
template <DType kType>
void F32Of(const ScaledTarget& t, const MatmulRange& range, const float* tiles,
           float* expanded) {
  const int64_t rows = range.row_end - range.row_begin;
  if constexpr (IsQuantised(kType)) {
    if (rows == 1) {
      return F32Row<kType>(t, range, tiles + range.row_begin * t.k);
    }
  } else if (kType == DType::kF32 || rows <= kF32TileRows) {
    return F32Range<kType>(t, t.panels + range.panel_begin * t.panel_bytes,
                           range, tiles);
  }
  F32Expanded<kType>(t, range, tiles, expanded);
}

void F32(const ScaledTarget& t, const MatmulRange& range, const float* tiles,
         float* expanded) {
  WithWeightType(
      t.type, [&]<DType kType>() { F32Of<kType>(t, range, tiles, expanded); });
}

void Transpose(const float* x, int64_t x_stride, int rows, int64_t k,
               float* tile) {
  for (int64_t i = 0; i < k; ++i) {
    for (int r = 0; r < rows; ++r) *tile++ = x[r * x_stride + i];
  }
}

}  // namespace

const MatmulBodies kMatmulBodies = {
    kQ8TileRows, kF32TileRows, kExpandedPanels, Quantise, Transpose, Q8, F32};

}  // namespace tiercel::TIERCEL_ISA_NS

#ifndef TIERCEL_KERNELS_SIMD_SIMD_H_
#define TIERCEL_KERNELS_SIMD_SIMD_H_

// Sixteen float lanes on any machine: one register with AVX-512, two with AVX2,
// an array otherwise. Bodies are written once over it, and because every
// operation is defined lane by lane (and ReduceAdd by a fixed tree) all ISAs
// round alike.
//
// Only op_cpu.cc files include this. They are compiled once per ISA with
// TIERCEL_ISA_NS as their namespace, and must not use inline functions of the
// standard library: the linker keeps one copy of those for the whole program,
// and it could be one compiled for an ISA that this machine lacks
// (tests/isa_symbols_test.sh looks for such copies).

#include <stdint.h>
#include <string.h>

#include <cstddef>

#if defined(__AVX2__)
#include <immintrin.h>
#endif

#ifndef TIERCEL_ISA_NS
#error "simd.h is for op_cpu.cc files, which CMake compiles once per ISA"
#endif

#define TIERCEL_INLINE static inline __attribute__((always_inline))

namespace tiercel::TIERCEL_ISA_NS {

#if defined(__AVX2__)
// The low, or the high, four bits of 16 bytes, less 8, as int8.
TIERCEL_INLINE __m128i CodesOfHalf(const uint8_t* p, bool high) {
  const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  const __m128i halves =
      _mm_and_si128(high ? _mm_srli_epi16(bytes, 4) : bytes, _mm_set1_epi8(15));
  const __m128i less_8 =
      _mm_setr_epi8(-8, -7, -6, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 7);
  return _mm_shuffle_epi8(less_8, halves);
}
#endif

// Sixteen floats.
#if defined(__AVX512F__)

struct F32x16 {
  __m512 v;
};

TIERCEL_INLINE F32x16 Zero() { return {_mm512_setzero_ps()}; }
TIERCEL_INLINE F32x16 Set1(float x) { return {_mm512_set1_ps(x)}; }
TIERCEL_INLINE F32x16 Load(const float* p) { return {_mm512_loadu_ps(p)}; }
TIERCEL_INLINE void Store(F32x16 a, float* p) { _mm512_storeu_ps(p, a.v); }
// These access the first n (0 to 16) lanes; the others load as zero.
TIERCEL_INLINE F32x16 LoadN(const float* p, int n) {
  return {_mm512_maskz_loadu_ps(static_cast<__mmask16>((1u << n) - 1), p)};
}
TIERCEL_INLINE void StoreN(F32x16 a, float* p, int n) {
  _mm512_mask_storeu_ps(p, static_cast<__mmask16>((1u << n) - 1), a.v);
}
// The float of half-precision bits, in all lanes.
TIERCEL_INLINE F32x16 Set1F16(uint16_t half) {
  return {_mm512_set1_ps(_cvtsh_ss(half))};
}
TIERCEL_INLINE F32x16 LoadF16(const uint16_t* p) {
  return {
      _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)))};
}
TIERCEL_INLINE F32x16 LoadBf16(const uint16_t* p) {
  const __m512i wide = _mm512_cvtepu16_epi32(
      _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
  return {_mm512_castsi512_ps(_mm512_slli_epi32(wide, 16))};
}
TIERCEL_INLINE F32x16 LoadI8(const int8_t* p) {
  return {_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(
      _mm_loadu_si128(reinterpret_cast<const __m128i*>(p))))};
}
TIERCEL_INLINE F32x16 LoadU8(const uint8_t* p) {
  return {_mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(
      _mm_loadu_si128(reinterpret_cast<const __m128i*>(p))))};
}
// Floats of the low, or the high, four bits of 16 bytes, less 8.
TIERCEL_INLINE F32x16 LoadI4(const uint8_t* p, bool high) {
  return {_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(CodesOfHalf(p, high)))};
}
TIERCEL_INLINE void StoreF16(F32x16 a, uint16_t* p) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p),
                      _mm512_cvtps_ph(a.v, _MM_FROUND_TO_NEAREST_INT));
}
TIERCEL_INLINE F32x16 operator+(F32x16 a, F32x16 b) {
  return {_mm512_add_ps(a.v, b.v)};
}
TIERCEL_INLINE F32x16 operator-(F32x16 a, F32x16 b) {
  return {_mm512_sub_ps(a.v, b.v)};
}
TIERCEL_INLINE F32x16 operator*(F32x16 a, F32x16 b) {
  return {_mm512_mul_ps(a.v, b.v)};
}
TIERCEL_INLINE F32x16 operator/(F32x16 a, F32x16 b) {
  return {_mm512_div_ps(a.v, b.v)};
}
// a * b + c, rounded once.
TIERCEL_INLINE F32x16 Fma(F32x16 a, F32x16 b, F32x16 c) {
  return {_mm512_fmadd_ps(a.v, b.v, c.v)};
}
// Max and Min return the second operand if one is NaN.
TIERCEL_INLINE F32x16 Max(F32x16 a, F32x16 b) {
  return {_mm512_max_ps(a.v, b.v)};
}
TIERCEL_INLINE F32x16 Min(F32x16 a, F32x16 b) {
  return {_mm512_min_ps(a.v, b.v)};
}
TIERCEL_INLINE F32x16 Abs(F32x16 a) { return {_mm512_abs_ps(a.v)}; }
TIERCEL_INLINE F32x16 Sqrt(F32x16 a) { return {_mm512_sqrt_ps(a.v)}; }
// Rounds to the nearest integer, ties to even.
TIERCEL_INLINE F32x16 Round(F32x16 a) {
  return {
      _mm512_roundscale_ps(a.v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)};
}
// a * 2^n for integral n in [-126, 127].
TIERCEL_INLINE F32x16 ScaleByPowerOf2(F32x16 a, F32x16 n) {
  const __m512i exponent = _mm512_slli_epi32(
      _mm512_add_epi32(_mm512_cvtps_epi32(n.v), _mm512_set1_epi32(127)), 23);
  return {_mm512_mul_ps(a.v, _mm512_castsi512_ps(exponent))};
}
// Returns m in [sqrt(1/2), sqrt(2)), and sets the integral n, of a = m * 2^n; a
// is positive and normal.
TIERCEL_INLINE F32x16 SplitPowerOf2(F32x16 a, F32x16* n) {
  const __m512i bits = _mm512_castps_si512(a.v);
  const __m512i exponent = _mm512_srai_epi32(
      _mm512_sub_epi32(bits, _mm512_set1_epi32(0x3f3504f3)), 23);
  n->v = _mm512_cvtepi32_ps(exponent);
  return {_mm512_castsi512_ps(
      _mm512_sub_epi32(bits, _mm512_slli_epi32(exponent, 23)))};
}
// Swaps lane j of r[i] and lane i of r[j]: pairs of rows, then pairs of pairs
// within the 128-bit quarters, then the quarters themselves.
TIERCEL_INLINE void Transpose(F32x16 (&r)[16]) {
  __m512d pair[16];
#pragma GCC unroll 8
  for (int i = 0; i < 16; i += 2) {
    pair[i] = _mm512_castps_pd(_mm512_unpacklo_ps(r[i].v, r[i + 1].v));
    pair[i + 1] = _mm512_castps_pd(_mm512_unpackhi_ps(r[i].v, r[i + 1].v));
  }
  __m512d quad[16];
#pragma GCC unroll 4
  for (int i = 0; i < 16; i += 4) {
    quad[i] = _mm512_unpacklo_pd(pair[i], pair[i + 2]);
    quad[i + 1] = _mm512_unpackhi_pd(pair[i], pair[i + 2]);
    quad[i + 2] = _mm512_unpacklo_pd(pair[i + 1], pair[i + 3]);
    quad[i + 3] = _mm512_unpackhi_pd(pair[i + 1], pair[i + 3]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    const __m512d a = _mm512_shuffle_f64x2(quad[i], quad[i + 4], 0x88);
    const __m512d b = _mm512_shuffle_f64x2(quad[i], quad[i + 4], 0xdd);
    const __m512d c = _mm512_shuffle_f64x2(quad[i + 8], quad[i + 12], 0x88);
    const __m512d d = _mm512_shuffle_f64x2(quad[i + 8], quad[i + 12], 0xdd);
    r[i].v = _mm512_castpd_ps(_mm512_shuffle_f64x2(a, c, 0x88));
    r[i + 4].v = _mm512_castpd_ps(_mm512_shuffle_f64x2(b, d, 0x88));
    r[i + 8].v = _mm512_castpd_ps(_mm512_shuffle_f64x2(a, c, 0xdd));
    r[i + 12].v = _mm512_castpd_ps(_mm512_shuffle_f64x2(b, d, 0xdd));
  }
}

#elif defined(__AVX2__)

struct F32x16 {
  __m256 lo;
  __m256 hi;
};

TIERCEL_INLINE F32x16 Zero() {
  return {_mm256_setzero_ps(), _mm256_setzero_ps()};
}
TIERCEL_INLINE F32x16 Set1(float x) {
  return {_mm256_set1_ps(x), _mm256_set1_ps(x)};
}
TIERCEL_INLINE F32x16 Load(const float* p) {
  return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)};
}
TIERCEL_INLINE void Store(F32x16 a, float* p) {
  _mm256_storeu_ps(p, a.lo);
  _mm256_storeu_ps(p + 8, a.hi);
}
TIERCEL_INLINE __m256i LaneMask(int n) {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(n),
                            _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
// These access the first n (0 to 16) lanes; the others load as zero.
// A store with a mask takes AMD's processors as long as a dozen without.
TIERCEL_INLINE F32x16 LoadN(const float* p, int n) {
  if (n == 16) return Load(p);
  return {_mm256_maskload_ps(p, LaneMask(n)),
          _mm256_maskload_ps(p + 8, LaneMask(n - 8))};
}
TIERCEL_INLINE void StoreN(F32x16 a, float* p, int n) {
  if (n == 16) return Store(a, p);
  _mm256_maskstore_ps(p, LaneMask(n), a.lo);
  _mm256_maskstore_ps(p + 8, LaneMask(n - 8), a.hi);
}
// The float of half-precision bits, in all lanes.
TIERCEL_INLINE F32x16 Set1F16(uint16_t half) { return Set1(_cvtsh_ss(half)); }
TIERCEL_INLINE F32x16 LoadF16(const uint16_t* p) {
  const __m128i* half = reinterpret_cast<const __m128i*>(p);
  return {_mm256_cvtph_ps(_mm_loadu_si128(half)),
          _mm256_cvtph_ps(_mm_loadu_si128(half + 1))};
}
TIERCEL_INLINE F32x16 LoadBf16(const uint16_t* p) {
  const __m128i* half = reinterpret_cast<const __m128i*>(p);
  const __m256i lo = _mm256_cvtepu16_epi32(_mm_loadu_si128(half));
  const __m256i hi = _mm256_cvtepu16_epi32(_mm_loadu_si128(half + 1));
  return {_mm256_castsi256_ps(_mm256_slli_epi32(lo, 16)),
          _mm256_castsi256_ps(_mm256_slli_epi32(hi, 16))};
}
TIERCEL_INLINE F32x16 LoadI8(const int8_t* p) {
  const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  return {_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(bytes)),
          _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_srli_si128(bytes, 8)))};
}
TIERCEL_INLINE F32x16 LoadU8(const uint8_t* p) {
  const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  return {_mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(bytes)),
          _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_srli_si128(bytes, 8)))};
}
TIERCEL_INLINE F32x16 LoadI4(const uint8_t* p, bool high) {
  const __m128i codes = CodesOfHalf(p, high);
  return {_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(codes)),
          _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_srli_si128(codes, 8)))};
}
TIERCEL_INLINE void StoreF16(F32x16 a, uint16_t* p) {
  __m128i* half = reinterpret_cast<__m128i*>(p);
  _mm_storeu_si128(half, _mm256_cvtps_ph(a.lo, _MM_FROUND_TO_NEAREST_INT));
  _mm_storeu_si128(half + 1, _mm256_cvtps_ph(a.hi, _MM_FROUND_TO_NEAREST_INT));
}
TIERCEL_INLINE F32x16 operator+(F32x16 a, F32x16 b) {
  return {_mm256_add_ps(a.lo, b.lo), _mm256_add_ps(a.hi, b.hi)};
}
TIERCEL_INLINE F32x16 operator-(F32x16 a, F32x16 b) {
  return {_mm256_sub_ps(a.lo, b.lo), _mm256_sub_ps(a.hi, b.hi)};
}
TIERCEL_INLINE F32x16 operator*(F32x16 a, F32x16 b) {
  return {_mm256_mul_ps(a.lo, b.lo), _mm256_mul_ps(a.hi, b.hi)};
}
TIERCEL_INLINE F32x16 operator/(F32x16 a, F32x16 b) {
  return {_mm256_div_ps(a.lo, b.lo), _mm256_div_ps(a.hi, b.hi)};
}
// a * b + c, rounded once.
TIERCEL_INLINE F32x16 Fma(F32x16 a, F32x16 b, F32x16 c) {
  return {_mm256_fmadd_ps(a.lo, b.lo, c.lo), _mm256_fmadd_ps(a.hi, b.hi, c.hi)};
}
// Max and Min return the second operand if one is NaN.
TIERCEL_INLINE F32x16 Max(F32x16 a, F32x16 b) {
  return {_mm256_max_ps(a.lo, b.lo), _mm256_max_ps(a.hi, b.hi)};
}
TIERCEL_INLINE F32x16 Min(F32x16 a, F32x16 b) {
  return {_mm256_min_ps(a.lo, b.lo), _mm256_min_ps(a.hi, b.hi)};
}
TIERCEL_INLINE F32x16 Abs(F32x16 a) {
  const __m256 sign = _mm256_set1_ps(-0.0f);
  return {_mm256_andnot_ps(sign, a.lo), _mm256_andnot_ps(sign, a.hi)};
}
TIERCEL_INLINE F32x16 Sqrt(F32x16 a) {
  return {_mm256_sqrt_ps(a.lo), _mm256_sqrt_ps(a.hi)};
}
// Rounds to the nearest integer, ties to even.
TIERCEL_INLINE F32x16 Round(F32x16 a) {
  constexpr int kMode = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
  return {_mm256_round_ps(a.lo, kMode), _mm256_round_ps(a.hi, kMode)};
}
TIERCEL_INLINE __m256 PowerOf2(__m256 n) {
  return _mm256_castsi256_ps(_mm256_slli_epi32(
      _mm256_add_epi32(_mm256_cvtps_epi32(n), _mm256_set1_epi32(127)), 23));
}
// a * 2^n for integral n in [-126, 127].
TIERCEL_INLINE F32x16 ScaleByPowerOf2(F32x16 a, F32x16 n) {
  return {_mm256_mul_ps(a.lo, PowerOf2(n.lo)),
          _mm256_mul_ps(a.hi, PowerOf2(n.hi))};
}
TIERCEL_INLINE __m256 SplitHalf(__m256 a, __m256* n) {
  const __m256i bits = _mm256_castps_si256(a);
  const __m256i exponent = _mm256_srai_epi32(
      _mm256_sub_epi32(bits, _mm256_set1_epi32(0x3f3504f3)), 23);
  *n = _mm256_cvtepi32_ps(exponent);
  return _mm256_castsi256_ps(
      _mm256_sub_epi32(bits, _mm256_slli_epi32(exponent, 23)));
}
// Returns m in [sqrt(1/2), sqrt(2)), and sets the integral n, of a = m * 2^n; a
// is positive and normal.
TIERCEL_INLINE F32x16 SplitPowerOf2(F32x16 a, F32x16* n) {
  return {SplitHalf(a.lo, &n->lo), SplitHalf(a.hi, &n->hi)};
}
TIERCEL_INLINE void Transpose8(__m256 (&r)[8]) {
  __m256d pair[8];
#pragma GCC unroll 4
  for (int i = 0; i < 8; i += 2) {
    pair[i] = _mm256_castps_pd(_mm256_unpacklo_ps(r[i], r[i + 1]));
    pair[i + 1] = _mm256_castps_pd(_mm256_unpackhi_ps(r[i], r[i + 1]));
  }
#pragma GCC unroll 2
  for (int i = 0; i < 8; i += 4) {
    r[i] = _mm256_castpd_ps(_mm256_unpacklo_pd(pair[i], pair[i + 2]));
    r[i + 1] = _mm256_castpd_ps(_mm256_unpackhi_pd(pair[i], pair[i + 2]));
    r[i + 2] = _mm256_castpd_ps(_mm256_unpacklo_pd(pair[i + 1], pair[i + 3]));
    r[i + 3] = _mm256_castpd_ps(_mm256_unpackhi_pd(pair[i + 1], pair[i + 3]));
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    const __m256 lower = _mm256_permute2f128_ps(r[i], r[i + 4], 0x20);
    r[i + 4] = _mm256_permute2f128_ps(r[i], r[i + 4], 0x31);
    r[i] = lower;
  }
}
// Swaps lane j of r[i] and lane i of r[j], by quarters.
TIERCEL_INLINE void Transpose(F32x16 (&r)[16]) {
  __m256 a[8], b[8], c[8], d[8];
  for (int i = 0; i < 8; ++i) {
    a[i] = r[i].lo;
    b[i] = r[i].hi;
    c[i] = r[i + 8].lo;
    d[i] = r[i + 8].hi;
  }
  Transpose8(a);
  Transpose8(b);
  Transpose8(c);
  Transpose8(d);
  for (int i = 0; i < 8; ++i) {
    r[i] = {a[i], c[i]};
    r[i + 8] = {b[i], d[i]};
  }
}

#else

// For long functions: if they are inlined, a body takes minutes to compile.
#define TIERCEL_CALLED __attribute__((noinline, unused)) static

struct F32x16 {
  float v[16];
};

template <typename Lane>
TIERCEL_INLINE F32x16 Lanes(Lane lane) {
  F32x16 r;
  for (int i = 0; i < 16; ++i) r.v[i] = lane(i);
  return r;
}

TIERCEL_INLINE F32x16 Set1(float x) {
  return Lanes([&](int) { return x; });
}
TIERCEL_INLINE F32x16 Zero() { return Set1(0.0f); }
TIERCEL_INLINE F32x16 Load(const float* p) {
  return Lanes([&](int i) { return p[i]; });
}
TIERCEL_INLINE void Store(F32x16 a, float* p) {
  for (int i = 0; i < 16; ++i) p[i] = a.v[i];
}
// These access the first n (0 to 16) lanes; the others load as zero.
TIERCEL_INLINE F32x16 LoadN(const float* p, int n) {
  return Lanes([&](int i) { return i < n ? p[i] : 0.0f; });
}
TIERCEL_INLINE void StoreN(F32x16 a, float* p, int n) {
  for (int i = 0; i < n; ++i) p[i] = a.v[i];
}
TIERCEL_INLINE float FloatFromBits(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof(value));
  return value;
}
TIERCEL_INLINE uint32_t BitsFromFloat(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof(bits));
  return bits;
}
// These convert as kernels/number/half.h does, which must not be included.
TIERCEL_INLINE float F32FromF16Lane(uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000u) << 16;
  const uint32_t rest = half & 0x7fffu;
  if (rest >= 0x7c00u) {
    return FloatFromBits(sign | 0x7f800000u | ((rest & 0x3ffu) << 13));
  }
  return FloatFromBits(sign |
                       BitsFromFloat(FloatFromBits(rest << 13) * 0x1p112f));
}
TIERCEL_INLINE uint16_t F16FromF32Lane(float value) {
  const uint32_t bits = BitsFromFloat(value);
  const uint32_t sign = (bits >> 16) & 0x8000u;
  const uint32_t rest = bits & 0x7fffffffu;
  uint32_t half;
  if (rest > 0x7f800000u) {
    half = 0x7e00u;
  } else if (rest >= 0x477ff000u) {
    half = 0x7c00u;
  } else if (rest < 0x38800000u) {
    half = BitsFromFloat(FloatFromBits(rest) + 0.5f) - 0x3f000000u;
  } else {
    half = (rest + 0xfffu + ((rest >> 13) & 1u) - 0x38000000u) >> 13;
  }
  return static_cast<uint16_t>(sign | half);
}
// The float of half-precision bits, in all lanes.
TIERCEL_INLINE F32x16 Set1F16(uint16_t half) {
  return Set1(F32FromF16Lane(half));
}
TIERCEL_CALLED F32x16 LoadF16(const uint16_t* p) {
  return Lanes([&](int i) { return F32FromF16Lane(p[i]); });
}
TIERCEL_INLINE F32x16 LoadBf16(const uint16_t* p) {
  return Lanes(
      [&](int i) { return FloatFromBits(static_cast<uint32_t>(p[i]) << 16); });
}
TIERCEL_INLINE F32x16 LoadI8(const int8_t* p) {
  return Lanes([&](int i) { return static_cast<float>(p[i]); });
}
TIERCEL_INLINE F32x16 LoadU8(const uint8_t* p) {
  return Lanes([&](int i) { return static_cast<float>(p[i]); });
}
TIERCEL_INLINE F32x16 LoadI4(const uint8_t* p, bool high) {
  const int shift = high ? 4 : 0;
  return Lanes(
      [&](int i) { return static_cast<float>((p[i] >> shift & 15) - 8); });
}
TIERCEL_CALLED void StoreF16(F32x16 a, uint16_t* p) {
  for (int i = 0; i < 16; ++i) p[i] = F16FromF32Lane(a.v[i]);
}
TIERCEL_INLINE F32x16 operator+(F32x16 a, F32x16 b) {
  return Lanes([&](int i) { return a.v[i] + b.v[i]; });
}
TIERCEL_INLINE F32x16 operator-(F32x16 a, F32x16 b) {
  return Lanes([&](int i) { return a.v[i] - b.v[i]; });
}
TIERCEL_INLINE F32x16 operator*(F32x16 a, F32x16 b) {
  return Lanes([&](int i) { return a.v[i] * b.v[i]; });
}
TIERCEL_INLINE F32x16 operator/(F32x16 a, F32x16 b) {
  return Lanes([&](int i) { return a.v[i] / b.v[i]; });
}
// a * b + c, rounded once.
#if defined(__FP_FAST_FMAF)
TIERCEL_INLINE F32x16 Fma(F32x16 a, F32x16 b, F32x16 c) {
  return Lanes([&](int i) { return __builtin_fmaf(a.v[i], b.v[i], c.v[i]); });
}
#else
using F32x2 = float __attribute__((vector_size(8)));
using F64x2 = double __attribute__((vector_size(16)));
using U64x2 = uint64_t __attribute__((vector_size(16)));

TIERCEL_INLINE F64x2 WideLanes(const float* p) {
  F32x2 lanes;
  memcpy(&lanes, p, sizeof(lanes));
  return __builtin_convertvector(lanes, F64x2);
}

// The product is exact in double, but its sum with c is not. The sum is rounded
// to odd (toward zero, with the last bit set if it was inexact), so that the
// second rounding, to float, is as if it were the only one. It works on two
// lanes at a time, as no compiler does by itself, and is not inlined, as a body
// would take minutes to compile.
TIERCEL_CALLED F32x16 Fma(const F32x16& a, const F32x16& b, const F32x16& c) {
  F32x16 r;
  for (int i = 0; i < 16; i += 2) {
    const F64x2 addend = WideLanes(c.v + i);
    const F64x2 product = WideLanes(a.v + i) * WideLanes(b.v + i);
    const F64x2 sum = product + addend;
    const F64x2 c_part = sum - product;
    const F64x2 error = (product - (sum - c_part)) + (addend - c_part);
    // A lane has all bits set, or none. For a sum that is not finite the error
    // is NaN, so that the sum does not change.
    const U64x2 inexact =
        reinterpret_cast<U64x2>((error < 0.0) | (error > 0.0));
    const U64x2 bits = reinterpret_cast<U64x2>(sum);
    const U64x2 too_large =
        ((bits ^ reinterpret_cast<U64x2>(error)) >> 63) & inexact;
    const U64x2 odd = (bits - too_large) | (inexact & 1);
    const F32x2 lanes =
        __builtin_convertvector(reinterpret_cast<F64x2>(odd), F32x2);
    memcpy(r.v + i, &lanes, sizeof(lanes));
  }
  return r;
}
#endif
// Max and Min return the second operand if one is NaN.
TIERCEL_INLINE F32x16 Max(F32x16 a, F32x16 b) {
  return Lanes([&](int i) { return a.v[i] > b.v[i] ? a.v[i] : b.v[i]; });
}
TIERCEL_INLINE F32x16 Min(F32x16 a, F32x16 b) {
  return Lanes([&](int i) { return a.v[i] < b.v[i] ? a.v[i] : b.v[i]; });
}
TIERCEL_INLINE F32x16 Abs(F32x16 a) {
  return Lanes([&](int i) {
    return FloatFromBits(BitsFromFloat(a.v[i]) & 0x7fffffffu);
  });
}
TIERCEL_INLINE F32x16 Sqrt(F32x16 a) {
  return Lanes([&](int i) { return __builtin_sqrtf(a.v[i]); });
}
// Rounds to the nearest integer, ties to even; |a| below 2^22.
TIERCEL_INLINE F32x16 Round(F32x16 a) {
  return Lanes([&](int i) {
    const float magic = a.v[i] < 0.0f ? -0x1.8p23f : 0x1.8p23f;
    volatile float shifted = a.v[i] + magic;
    return shifted - magic;
  });
}
// a * 2^n for integral n in [-126, 127].
TIERCEL_INLINE F32x16 ScaleByPowerOf2(F32x16 a, F32x16 n) {
  return Lanes([&](int i) {
    // Adding 1.5 * 2^23 leaves the integer in the low bits of the float.
    const uint32_t exponent =
        BitsFromFloat(n.v[i] + 0x1.8p23f) - BitsFromFloat(0x1.8p23f) + 127;
    return a.v[i] * FloatFromBits(exponent << 23);
  });
}
// Returns m in [sqrt(1/2), sqrt(2)), and sets the integral n, of a = m * 2^n; a
// is positive and normal.
TIERCEL_INLINE F32x16 SplitPowerOf2(F32x16 a, F32x16* n) {
  F32x16 m;
  for (int i = 0; i < 16; ++i) {
    const uint32_t bits = BitsFromFloat(a.v[i]);
    const int32_t exponent = static_cast<int32_t>(bits - 0x3f3504f3u) >> 23;
    n->v[i] = static_cast<float>(exponent);
    m.v[i] = FloatFromBits(bits - (static_cast<uint32_t>(exponent) << 23));
  }
  return m;
}
// Swaps lane j of r[i] and lane i of r[j].
TIERCEL_CALLED void Transpose(F32x16 (&r)[16]) {
  for (int i = 0; i < 16; ++i) {
    for (int j = 0; j < i; ++j) {
      const float lane = r[i].v[j];
      r[i].v[j] = r[j].v[i];
      r[j].v[i] = lane;
    }
  }
}

#endif

// Byte j of 16 rows of 16 bytes becomes row j.
#if defined(__AVX2__)
TIERCEL_INLINE void TransposeBytes(const std::byte* const (&row)[16],
                                   int8_t (&out)[16][16]) {
  __m128i r[16];
#pragma GCC unroll 16
  for (int i = 0; i < 16; ++i) {
    r[i] = _mm_loadu_si128(reinterpret_cast<const __m128i*>(row[i]));
  }
  // In one line of 256 bytes, each round rotates the bits of a byte's index by
  // one; after four, row and column are swapped.
#pragma GCC unroll 4
  for (int round = 0; round < 4; ++round) {
    __m128i next[16];
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i) {
      next[2 * i] = _mm_unpacklo_epi8(r[i], r[i + 8]);
      next[2 * i + 1] = _mm_unpackhi_epi8(r[i], r[i + 8]);
    }
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i) r[i] = next[i];
  }
#pragma GCC unroll 16
  for (int i = 0; i < 16; ++i) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out[i]), r[i]);
  }
}
#else
TIERCEL_INLINE void TransposeBytes(const std::byte* const (&row)[16],
                                   int8_t (&out)[16][16]) {
  for (int i = 0; i < 16; ++i) {
    for (int j = 0; j < 16; ++j) out[j][i] = static_cast<int8_t>(row[i][j]);
  }
}
#endif

// Reductions combine lanes i and i+8, then i+4, i+2, i+1: the same tree on
// every ISA.
#if defined(__AVX2__)
TIERCEL_INLINE __m256 LowLanes(F32x16 a) {
#if defined(__AVX512F__)
  return _mm512_castps512_ps256(a.v);
#else
  return a.lo;
#endif
}
TIERCEL_INLINE __m256 HighLanes(F32x16 a) {
#if defined(__AVX512F__)
  return _mm256_castpd_ps(_mm512_extractf64x4_pd(_mm512_castps_pd(a.v), 1));
#else
  return a.hi;
#endif
}
TIERCEL_INLINE float ReduceAdd(F32x16 a) {
  const __m256 eight = _mm256_add_ps(LowLanes(a), HighLanes(a));
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight),
                                 _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}
TIERCEL_INLINE float ReduceMax(F32x16 a) {
  const __m256 eight = _mm256_max_ps(LowLanes(a), HighLanes(a));
  const __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight),
                                 _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
}
#else
TIERCEL_INLINE float ReduceAdd(F32x16 a) {
  for (int half = 8; half > 0; half /= 2) {
    for (int i = 0; i < half; ++i) a.v[i] += a.v[i + half];
  }
  return a.v[0];
}
TIERCEL_INLINE float ReduceMax(F32x16 a) {
  for (int half = 8; half > 0; half /= 2) {
    for (int i = 0; i < half; ++i) {
      a.v[i] = a.v[i] > a.v[i + half] ? a.v[i] : a.v[i + half];
    }
  }
  return a.v[0];
}
#endif

// e^x for x <= 88, NaN for NaN; below -87 the value at -87 (1.6e-38). The
// relative error is under 1e-7: n = round(x log2 e), r = x - n ln 2 (with ln 2
// split in two for exactness), and the polynomial of degree 6 in r with the
// least greatest relative error (3e-9, by Remez' exchange) among those that
// begin with 1 + r.
TIERCEL_INLINE F32x16 Exp(F32x16 x) {
  const F32x16 clamped = Max(Set1(-87.0f), x);
  const F32x16 n = Round(clamped * Set1(1.44269504f));
  F32x16 r = Fma(n, Set1(-0.693359375f), clamped);
  r = Fma(n, Set1(2.12194440e-4f), r);
  F32x16 p = Set1(0.00138145697f);
  p = Fma(p, r, Set1(0.00836873055f));
  p = Fma(p, r, Set1(0.041668389f));
  p = Fma(p, r, Set1(0.166665211f));
  p = Fma(p, r, Set1(0.49999994f));
  p = Fma(p, r, Set1(1.0f));
  p = Fma(p, r, Set1(1.0f));
  return ScaleByPowerOf2(p, n);
}

// ln x for positive normal x, exactly 0 for 1. The relative error is under
// 1e-7: with x = (1 + r) 2^n and 1 + r in [sqrt(1/2), sqrt(2)), it is r + r^2
// times the polynomial of degree 8 with the least greatest relative error
// (4e-9), plus n ln 2 (split in two, as in Exp).
TIERCEL_INLINE F32x16 Log(F32x16 x) {
  F32x16 n;
  const F32x16 r = SplitPowerOf2(x, &n) - Set1(1.0f);
  F32x16 p = Set1(-0.0762170702f);
  p = Fma(p, r, Set1(0.129043832f));
  p = Fma(p, r, Set1(-0.132429928f));
  p = Fma(p, r, Set1(0.141818345f));
  p = Fma(p, r, Set1(-0.166090831f));
  p = Fma(p, r, Set1(0.200019732f));
  p = Fma(p, r, Set1(-0.250015825f));
  p = Fma(p, r, Set1(0.333333254f));
  p = Fma(p, r, Set1(-0.499999881f));
  const F32x16 rest = Fma(r * r, p, n * Set1(-2.12194440e-4f));
  return Fma(n, Set1(0.693359375f), r + rest);
}

}  // namespace tiercel::TIERCEL_ISA_NS

#endif  // TIERCEL_KERNELS_SIMD_SIMD_H_

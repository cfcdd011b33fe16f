#ifndef TIERCEL_KERNELS_SIMD_SIMD_INT_H_
#define TIERCEL_KERNELS_SIMD_SIMD_INT_H_

// Integer lanes that go with the floats of simd.h: 16 lanes of int32, and 64
// bytes as 16 lanes of a quad, four consecutive k of one output. Everything is
// exact, so ISAs may add in any order. simd.h's rules for includers hold here.

#include "kernels/simd/simd.h"

namespace tiercel::TIERCEL_ISA_NS {

#if defined(__AVX512F__)

struct I32x16 {
  __m512i v;
};
struct I16x32 {
  __m512i v;
};
struct U8x64 {
  __m512i v;
};

TIERCEL_INLINE I32x16 SetI32(int32_t x) { return {_mm512_set1_epi32(x)}; }
TIERCEL_INLINE I32x16 LoadI8AsI32(const int8_t* p) {
  return {_mm512_cvtepi8_epi32(
      _mm_loadu_si128(reinterpret_cast<const __m128i*>(p)))};
}
// The low, or the high, four bits of 16 bytes.
TIERCEL_INLINE I32x16 LoadU4(const uint8_t* p, bool high) {
  const __m512i bytes = _mm512_cvtepu8_epi32(
      _mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  return {_mm512_and_si512(high ? _mm512_srli_epi32(bytes, 4) : bytes,
                           _mm512_set1_epi32(15))};
}
TIERCEL_INLINE I32x16 operator+(I32x16 a, I32x16 b) {
  return {_mm512_add_epi32(a.v, b.v)};
}
TIERCEL_INLINE I32x16 operator-(I32x16 a, I32x16 b) {
  return {_mm512_sub_epi32(a.v, b.v)};
}
TIERCEL_INLINE I32x16 operator*(I32x16 a, I32x16 b) {
  return {_mm512_mullo_epi32(a.v, b.v)};
}
template <int kBits>
TIERCEL_INLINE I32x16 ShiftLeft(I32x16 a) {
  return {_mm512_slli_epi32(a.v, kBits)};
}
TIERCEL_INLINE F32x16 ToF32(I32x16 a) { return {_mm512_cvtepi32_ps(a.v)}; }
TIERCEL_INLINE int32_t ReduceAdd(I32x16 a) {
  return _mm512_reduce_add_epi32(a.v);
}
// The greatest |a| or |b| of all lanes, as bits; numbers that are not finite
// are greatest.
TIERCEL_INLINE int32_t MaxAbsBits(F32x16 a, F32x16 b) {
  const __m512i magnitude = _mm512_set1_epi32(0x7fffffff);
  return _mm512_reduce_max_epi32(
      _mm512_max_epi32(_mm512_and_si512(_mm512_castps_si512(a.v), magnitude),
                       _mm512_and_si512(_mm512_castps_si512(b.v), magnitude)));
}
// Stores integral lanes in [-128, 127] as bytes and returns their sum.
TIERCEL_INLINE int32_t StoreI8(F32x16 a, int8_t* p) {
  const __m512i lanes = _mm512_cvtps_epi32(a.v);
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm512_cvtepi32_epi8(lanes));
  return _mm512_reduce_add_epi32(lanes);
}

TIERCEL_INLINE U8x64 Load64(const uint8_t* p) {
  return {_mm512_loadu_si512(p)};
}
TIERCEL_INLINE void Store64(U8x64 a, uint8_t* p) {
  _mm512_storeu_si512(p, a.v);
}
TIERCEL_INLINE U8x64 operator|(U8x64 a, U8x64 b) {
  return {_mm512_or_si512(a.v, b.v)};
}
// Bytes (a << kBits) & mask; a negative kBits shifts right.
template <int kBits>
TIERCEL_INLINE U8x64 ShiftMask(U8x64 a, int8_t mask) {
  __m512i shifted = a.v;
  if constexpr (kBits > 0) shifted = _mm512_slli_epi16(a.v, kBits);
  if constexpr (kBits < 0) shifted = _mm512_srli_epi16(a.v, -kBits);
  return {_mm512_and_si512(shifted, _mm512_set1_epi8(mask))};
}
// Returns bytes of the 16 at `table`, which is aligned, by their places.
TIERCEL_INLINE U8x64 LookUp(const uint8_t* table, U8x64 places) {
  const __m128i bytes = _mm_load_si128(reinterpret_cast<const __m128i*>(table));
  return {_mm512_shuffle_epi8(_mm512_broadcast_i32x4(bytes), places.v)};
}
// Returns byte kIndex of every quad.
template <int kIndex>
TIERCEL_INLINE I32x16 ByteOf(U8x64 a) {
  const __m512i shifted = _mm512_srli_epi32(a.v, 8 * kIndex);
  if constexpr (kIndex == 3) return {shifted};
  return {_mm512_and_si512(shifted, _mm512_set1_epi32(0xff))};
}

// Loads the quad at p into every lane.
TIERCEL_INLINE U8x64 BroadcastQuad(const int8_t* p) {
  int32_t quad;
  memcpy(&quad, p, sizeof(quad));
  return {_mm512_set1_epi32(quad)};
}
#if defined(__AVX512VNNI__)
TIERCEL_INLINE I32x16 DotQuads(I32x16 sum, U8x64 codes, U8x64 x) {
  return {_mm512_dpbusd_epi32(sum.v, codes.v, x.v)};
}
#else
#define TIERCEL_PAIRS
#endif
// Multiplies bytes and adds neighbouring products; codes are at most 127.
TIERCEL_INLINE I16x32 DotPairs(U8x64 codes, U8x64 x) {
  return {_mm512_maddubs_epi16(codes.v, x.v)};
}
TIERCEL_INLINE I16x32 operator+(I16x32 a, I16x32 b) {
  return {_mm512_add_epi16(a.v, b.v)};
}
TIERCEL_INLINE void Settle(I16x32& a) { asm("" : "+v"(a.v)); }
TIERCEL_INLINE I32x16 AddNeighbours(I16x32 a) {
  return {_mm512_madd_epi16(a.v, _mm512_set1_epi16(1))};
}

#elif defined(__AVX2__)

struct I32x16 {
  __m256i lo;
  __m256i hi;
};
struct I16x32 {
  __m256i lo;
  __m256i hi;
};
struct U8x64 {
  __m256i lo;
  __m256i hi;
};

TIERCEL_INLINE I32x16 SetI32(int32_t x) {
  return {_mm256_set1_epi32(x), _mm256_set1_epi32(x)};
}
TIERCEL_INLINE I32x16 LoadI8AsI32(const int8_t* p) {
  const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  return {_mm256_cvtepi8_epi32(bytes),
          _mm256_cvtepi8_epi32(_mm_srli_si128(bytes, 8))};
}
// The low, or the high, four bits of 16 bytes.
TIERCEL_INLINE I32x16 LoadU4(const uint8_t* p, bool high) {
  const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  const __m128i four =
      _mm_and_si128(high ? _mm_srli_epi16(bytes, 4) : bytes, _mm_set1_epi8(15));
  return {_mm256_cvtepu8_epi32(four),
          _mm256_cvtepu8_epi32(_mm_srli_si128(four, 8))};
}
TIERCEL_INLINE I32x16 operator+(I32x16 a, I32x16 b) {
  return {_mm256_add_epi32(a.lo, b.lo), _mm256_add_epi32(a.hi, b.hi)};
}
TIERCEL_INLINE I32x16 operator-(I32x16 a, I32x16 b) {
  return {_mm256_sub_epi32(a.lo, b.lo), _mm256_sub_epi32(a.hi, b.hi)};
}
TIERCEL_INLINE I32x16 operator*(I32x16 a, I32x16 b) {
  return {_mm256_mullo_epi32(a.lo, b.lo), _mm256_mullo_epi32(a.hi, b.hi)};
}
template <int kBits>
TIERCEL_INLINE I32x16 ShiftLeft(I32x16 a) {
  return {_mm256_slli_epi32(a.lo, kBits), _mm256_slli_epi32(a.hi, kBits)};
}
TIERCEL_INLINE F32x16 ToF32(I32x16 a) {
  return {_mm256_cvtepi32_ps(a.lo), _mm256_cvtepi32_ps(a.hi)};
}
TIERCEL_INLINE int32_t ReduceAdd(I32x16 a) {
  const __m256i eight = _mm256_add_epi32(a.lo, a.hi);
  __m128i four = _mm_add_epi32(_mm256_castsi256_si128(eight),
                               _mm256_extracti128_si256(eight, 1));
  four = _mm_add_epi32(four, _mm_shuffle_epi32(four, 0x4e));
  return _mm_cvtsi128_si32(_mm_add_epi32(four, _mm_shuffle_epi32(four, 0xb1)));
}
// The greatest |a| or |b| of all lanes, as bits; numbers that are not finite
// are greatest.
TIERCEL_INLINE int32_t MaxAbsBits(F32x16 a, F32x16 b) {
  const __m256i magnitude = _mm256_set1_epi32(0x7fffffff);
  const __m256i a_max =
      _mm256_max_epi32(_mm256_and_si256(_mm256_castps_si256(a.lo), magnitude),
                       _mm256_and_si256(_mm256_castps_si256(a.hi), magnitude));
  const __m256i b_max =
      _mm256_max_epi32(_mm256_and_si256(_mm256_castps_si256(b.lo), magnitude),
                       _mm256_and_si256(_mm256_castps_si256(b.hi), magnitude));
  const __m256i eight = _mm256_max_epi32(a_max, b_max);
  __m128i four = _mm_max_epi32(_mm256_castsi256_si128(eight),
                               _mm256_extracti128_si256(eight, 1));
  four = _mm_max_epi32(four, _mm_shuffle_epi32(four, 0x4e));
  return _mm_cvtsi128_si32(_mm_max_epi32(four, _mm_shuffle_epi32(four, 0xb1)));
}
// Stores integral lanes in [-128, 127] as bytes and returns their sum.
TIERCEL_INLINE int32_t StoreI8(F32x16 a, int8_t* p) {
  const I32x16 lanes = {_mm256_cvtps_epi32(a.lo), _mm256_cvtps_epi32(a.hi)};
  // Packing works within 128-bit halves; the permutation restores the order.
  const __m256i words =
      _mm256_permute4x64_epi64(_mm256_packs_epi32(lanes.lo, lanes.hi), 0xd8);
  const __m128i bytes = _mm_packs_epi16(_mm256_castsi256_si128(words),
                                        _mm256_extracti128_si256(words, 1));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), bytes);
  return ReduceAdd(lanes);
}

TIERCEL_INLINE U8x64 Load64(const uint8_t* p) {
  const __m256i* half = reinterpret_cast<const __m256i*>(p);
  return {_mm256_loadu_si256(half), _mm256_loadu_si256(half + 1)};
}
TIERCEL_INLINE void Store64(U8x64 a, uint8_t* p) {
  __m256i* half = reinterpret_cast<__m256i*>(p);
  _mm256_storeu_si256(half, a.lo);
  _mm256_storeu_si256(half + 1, a.hi);
}
TIERCEL_INLINE U8x64 operator|(U8x64 a, U8x64 b) {
  return {_mm256_or_si256(a.lo, b.lo), _mm256_or_si256(a.hi, b.hi)};
}
// Bytes (a << kBits) & mask; a negative kBits shifts right.
template <int kBits>
TIERCEL_INLINE U8x64 ShiftMask(U8x64 a, int8_t mask) {
  U8x64 shifted = a;
  if constexpr (kBits > 0) {
    shifted = {_mm256_slli_epi16(a.lo, kBits), _mm256_slli_epi16(a.hi, kBits)};
  }
  if constexpr (kBits < 0) {
    shifted = {_mm256_srli_epi16(a.lo, -kBits),
               _mm256_srli_epi16(a.hi, -kBits)};
  }
  return {_mm256_and_si256(shifted.lo, _mm256_set1_epi8(mask)),
          _mm256_and_si256(shifted.hi, _mm256_set1_epi8(mask))};
}
// Returns bytes of the 16 at `table`, which is aligned, by their places.
TIERCEL_INLINE U8x64 LookUp(const uint8_t* table, U8x64 places) {
  const __m256i bytes = _mm256_broadcastsi128_si256(
      _mm_load_si128(reinterpret_cast<const __m128i*>(table)));
  return {_mm256_shuffle_epi8(bytes, places.lo),
          _mm256_shuffle_epi8(bytes, places.hi)};
}
// Returns byte kIndex of every quad.
template <int kIndex>
TIERCEL_INLINE I32x16 ByteOf(U8x64 a) {
  const __m256i byte = _mm256_set1_epi32(0xff);
  return {_mm256_and_si256(_mm256_srli_epi32(a.lo, 8 * kIndex), byte),
          _mm256_and_si256(_mm256_srli_epi32(a.hi, 8 * kIndex), byte)};
}

// Loads the quad at p into every lane.
TIERCEL_INLINE U8x64 BroadcastQuad(const int8_t* p) {
  int32_t quad;
  memcpy(&quad, p, sizeof(quad));
  const __m256i eight = _mm256_set1_epi32(quad);
  return {eight, eight};
}
#if defined(__AVXVNNI__)
TIERCEL_INLINE I32x16 DotQuads(I32x16 sum, U8x64 codes, U8x64 x) {
  return {_mm256_dpbusd_avx_epi32(sum.lo, codes.lo, x.lo),
          _mm256_dpbusd_avx_epi32(sum.hi, codes.hi, x.hi)};
}
#else
#define TIERCEL_PAIRS
#endif
// Multiplies bytes and adds neighbouring products; codes are at most 127.
TIERCEL_INLINE I16x32 DotPairs(U8x64 codes, U8x64 x) {
  return {_mm256_maddubs_epi16(codes.lo, x.lo),
          _mm256_maddubs_epi16(codes.hi, x.hi)};
}
TIERCEL_INLINE I16x32 operator+(I16x32 a, I16x32 b) {
  return {_mm256_add_epi16(a.lo, b.lo), _mm256_add_epi16(a.hi, b.hi)};
}
// Forces the sum to be computed here. Compilers defer sums until all products
// are computed, for which there are not enough registers.
TIERCEL_INLINE void Settle(I16x32& a) { asm("" : "+x"(a.lo), "+x"(a.hi)); }
TIERCEL_INLINE I32x16 AddNeighbours(I16x32 a) {
  const __m256i one = _mm256_set1_epi16(1);
  return {_mm256_madd_epi16(a.lo, one), _mm256_madd_epi16(a.hi, one)};
}

#else

struct I32x16 {
  int32_t v[16];
};
struct U8x64 {
  uint8_t v[64];
};

template <typename Lane>
TIERCEL_INLINE I32x16 IntLanes(Lane lane) {
  I32x16 r;
  for (int i = 0; i < 16; ++i) r.v[i] = lane(i);
  return r;
}
template <typename Byte>
TIERCEL_INLINE U8x64 Bytes(Byte byte) {
  U8x64 r;
  for (int i = 0; i < 64; ++i) r.v[i] = static_cast<uint8_t>(byte(i));
  return r;
}

TIERCEL_INLINE I32x16 SetI32(int32_t x) {
  return IntLanes([&](int) { return x; });
}
TIERCEL_INLINE I32x16 LoadI8AsI32(const int8_t* p) {
  return IntLanes([&](int i) { return p[i]; });
}
// The low, or the high, four bits of 16 bytes.
TIERCEL_INLINE I32x16 LoadU4(const uint8_t* p, bool high) {
  return IntLanes([&](int i) { return p[i] >> (high ? 4 : 0) & 15; });
}
TIERCEL_INLINE I32x16 operator+(I32x16 a, I32x16 b) {
  return IntLanes([&](int i) { return a.v[i] + b.v[i]; });
}
TIERCEL_INLINE I32x16 operator-(I32x16 a, I32x16 b) {
  return IntLanes([&](int i) { return a.v[i] - b.v[i]; });
}
TIERCEL_INLINE I32x16 operator*(I32x16 a, I32x16 b) {
  return IntLanes([&](int i) { return a.v[i] * b.v[i]; });
}
template <int kBits>
TIERCEL_INLINE I32x16 ShiftLeft(I32x16 a) {
  return IntLanes([&](int i) { return a.v[i] * (1 << kBits); });
}
TIERCEL_INLINE F32x16 ToF32(I32x16 a) {
  return Lanes([&](int i) { return static_cast<float>(a.v[i]); });
}
TIERCEL_INLINE int32_t ReduceAdd(I32x16 a) {
  int32_t sum = 0;
  for (int i = 0; i < 16; ++i) sum += a.v[i];
  return sum;
}
// The greatest |a| or |b| of all lanes, as bits; numbers that are not finite
// are greatest.
TIERCEL_INLINE int32_t MaxAbsBits(F32x16 a, F32x16 b) {
  uint32_t greatest = 0;
  for (int i = 0; i < 16; ++i) {
    const uint32_t a_bits = BitsFromFloat(a.v[i]) & 0x7fffffffu;
    const uint32_t b_bits = BitsFromFloat(b.v[i]) & 0x7fffffffu;
    const uint32_t bits = a_bits > b_bits ? a_bits : b_bits;
    greatest = greatest > bits ? greatest : bits;
  }
  return static_cast<int32_t>(greatest);
}
// Stores integral lanes in [-128, 127] as bytes and returns their sum.
TIERCEL_INLINE int32_t StoreI8(F32x16 a, int8_t* p) {
  int32_t sum = 0;
  for (int i = 0; i < 16; ++i) {
    p[i] = static_cast<int8_t>(a.v[i]);
    sum += p[i];
  }
  return sum;
}

TIERCEL_INLINE void Store64(U8x64 a, uint8_t* p) { memcpy(p, a.v, 64); }
TIERCEL_INLINE U8x64 Load64(const uint8_t* p) {
  return Bytes([&](int i) { return p[i]; });
}
TIERCEL_INLINE U8x64 operator|(U8x64 a, U8x64 b) {
  return Bytes([&](int i) { return a.v[i] | b.v[i]; });
}
// Bytes (a << kBits) & mask; a negative kBits shifts right.
template <int kBits>
TIERCEL_INLINE U8x64 ShiftMask(U8x64 a, int8_t mask) {
  return Bytes([&](int i) {
    if constexpr (kBits >= 0) {
      return (a.v[i] << kBits) & mask;
    } else {
      return (a.v[i] >> -kBits) & mask;
    }
  });
}
// Returns bytes of the 16 at `table`, which is aligned, by their places.
TIERCEL_INLINE U8x64 LookUp(const uint8_t* table, U8x64 places) {
  return Bytes([&](int i) { return table[places.v[i]]; });
}
// Returns byte kIndex of every quad.
template <int kIndex>
TIERCEL_INLINE I32x16 ByteOf(U8x64 a) {
  return IntLanes([&](int i) { return a.v[4 * i + kIndex]; });
}
// Adds every quad's dot product with the quad at x.
TIERCEL_CALLED void AddDots(const U8x64& codes, const int8_t* x, I32x16* sum) {
  for (int i = 0; i < 16; ++i) {
    for (int b = 0; b < 4; ++b) sum->v[i] += codes.v[4 * i + b] * x[b];
  }
}

#endif

// The number of parts in which codes are multiplied. Instructions with sums of
// 16 bits take codes up to 127; greater ones are multiplied in two parts, their
// low four bits and their high ones.
#if defined(TIERCEL_PAIRS)
constexpr int PartsOf(int max_code) { return max_code > 127 ? 2 : 1; }
#else
constexpr int PartsOf(int) { return 1; }
#endif

// Sums `start` and the dot product of kQuads (4 or 8) quads of codes (at most
// kMaxCode, one part) with one row's int8 codes, quad by quad. Call Start, then
// AddQuad for each j from 0 on (fully unrolled), then Total.
template <int kMaxCode, int kQuads>
struct DotSum {
  I32x16 wide;
#if defined(TIERCEL_PAIRS)
  I16x32 narrow;
  int32_t start;  // added last, so that it takes no register until then
#endif
};

template <int kMaxCode, int kQuads>
TIERCEL_INLINE void Start(DotSum<kMaxCode, kQuads>& sum, int32_t start) {
#if defined(TIERCEL_PAIRS)
  sum.start = start;
#else
  sum.wide = SetI32(start);
#endif
}

template <int kMaxCode, int kQuads>
TIERCEL_INLINE void AddQuad(DotSum<kMaxCode, kQuads>& sum,
                            [[maybe_unused]] int j, U8x64 codes,
                            const int8_t* x) {
#if defined(TIERCEL_PAIRS)
  // As many products as 16 bits can hold are added before widening. Their
  // number is a power of two, so that it divides the quads.
  constexpr int kHeld = 32767 / (2 * 127 * kMaxCode);
  constexpr int kRun = kHeld >= kQuads ? kQuads
                       : kHeld >= 4    ? 4
                       : kHeld >= 2    ? 2
                                       : 1;
  const I16x32 pairs = DotPairs(codes, BroadcastQuad(x));
  sum.narrow = j % kRun == 0 ? pairs : sum.narrow + pairs;
  Settle(sum.narrow);
  if (j % kRun == kRun - 1) {
    const I32x16 run = AddNeighbours(sum.narrow);
    sum.wide = j < kRun ? run : sum.wide + run;
  }
#elif defined(__AVX2__)
  sum.wide = DotQuads(sum.wide, codes, BroadcastQuad(x));
#else
  AddDots(codes, x, &sum.wide);
#endif
}

template <int kMaxCode, int kQuads>
TIERCEL_INLINE I32x16 Total(const DotSum<kMaxCode, kQuads>& sum) {
#if defined(TIERCEL_PAIRS)
  return sum.wide + SetI32(sum.start);
#else
  return sum.wide;
#endif
}

}  // namespace tiercel::TIERCEL_ISA_NS

#endif  // TIERCEL_KERNELS_SIMD_SIMD_INT_H_

#ifndef TIERCEL_KERNELS_KV_KV_ELEMENT_H_
#define TIERCEL_KERNELS_KV_KV_ELEMENT_H_

// Functions by which kernels read and write rows of K and V.

#include <bit>
#include <cmath>
#include <cstddef>
#include <limits>

#include "kernels/device/device_lang.h"
#include "kernels/number/dtype.h"
#include "kernels/number/half.h"

namespace tiercel {

// The elements that a warp writes at a time: a block of q8_0, which is an f16
// scale and as many int8, or of q4_0, whose codes of 4 bits are 8 more than
// they stand for: in byte i those of elements i and i + 16.
inline constexpr int kKvPiece = 32;
inline constexpr int kQ8Bytes = 34;
inline constexpr int kQ4Bytes = 18;
static_assert(kKvPiece == kWarpLanes);

// Returns true if rows are blocks, which begin at any even address.
constexpr bool IsInBlocks(DType type) {
  return type == DType::kQ8_0 || type == DType::kQ4_0;
}

// Element d of a row, exactly.
TIERCEL_DEVICE float KvElement(DType type, const std::byte* row, int d) {
  switch (type) {
    case DType::kF32:
      return reinterpret_cast<const float*>(row)[d];
    case DType::kF16:
      return F32FromF16(reinterpret_cast<const uint16_t*>(row)[d]);
    case DType::kBF16:
      return F32FromBf16(reinterpret_cast<const uint16_t*>(row)[d]);
    case DType::kQ4_0: {
      const std::byte* block = row + d / kKvPiece * kQ4Bytes;
      const float scale = F32FromF16(*reinterpret_cast<const uint16_t*>(block));
      const int both = static_cast<int>(block[2 + d % 16]);
      return scale *
             static_cast<float>((both >> d % kKvPiece / 16 * 4 & 15) - 8);
    }
    default: {
      const std::byte* block = row + d / kKvPiece * kQ8Bytes;
      const float scale = F32FromF16(*reinterpret_cast<const uint16_t*>(block));
      return scale *
             static_cast<float>(static_cast<int8_t>(block[2 + d % kKvPiece]));
    }
  }
}

// The bytes of n elements, in whole blocks if the type has blocks.
constexpr int KvBytes(DType type, int n) {
  switch (type) {
    case DType::kF32:
      return n * 4;
    case DType::kQ8_0:
      return n / kKvPiece * kQ8Bytes;
    case DType::kQ4_0:
      return n / kKvPiece * kQ4Bytes;
    default:
      return n * 2;
  }
}

// Converts byte i of a word, an int8 whose sign bit was flipped, to float.
TIERCEL_DEVICE float FloatOfTurned(uint32_t turned, int i) {
  return FloatOfByte(turned, i, 128.0f);
}
inline constexpr uint32_t kSignsOfBytes = 0x80808080u;

// A block of kSize bytes in registers: its scale in the lower half of the first
// word, then the codes.
template <int kSize>
struct BlockWords {
  static constexpr int kBytes = kSize;
  static constexpr int kCount = (kSize + 3) / 4;
  uint32_t at[kCount];

  TIERCEL_DEVICE float Scale() const {
    return F32FromF16(static_cast<uint16_t>(at[0]));
  }
};
// Code(e) is code e as a float; `e` must be a constant.
struct Q8Words : BlockWords<kQ8Bytes> {
  TIERCEL_DEVICE float Code(int e) const {
    return FloatOfTurned(at[(2 + e) / 4] ^ kSignsOfBytes, (2 + e) % 4);
  }
};
struct Q4Words : BlockWords<kQ4Bytes> {
  TIERCEL_DEVICE float Code(int e) const {
    const int byte = 2 + e % 16;
    return FloatOfByte(at[byte / 4] >> e / 16 * 4 & 0x0f0f0f0fu, byte % 4,
                       8.0f);
  }
};

// Reads a block (Q8Words or Q4Words) at an even address, by whole words.
template <typename Block>
TIERCEL_DEVICE Block ReadBlock(const std::byte* from) {
  const auto place = reinterpret_cast<uintptr_t>(from);
  const auto* const words =
      reinterpret_cast<const uint32_t*>(from - place % sizeof(uint32_t));
  const uint32_t places = place % sizeof(uint32_t) == 0 ? 0x3210u : 0x5432u;
  Block block;
#pragma unroll
  for (int i = 0; i < Block::kCount; ++i) {
    // The block ends in the middle of the last word.
    const uint32_t next = i + 1 < Block::kCount ? words[i + 1] : 0u;
    block.at[i] = BytePermute(words[i], next, places);
  }
  return block;
}

// Reads the block that begins `skew` bytes, an even number below 16, after the
// start of the packets at `from`.
template <typename Block>
TIERCEL_DEVICE Block ReadBlock(const std::byte* from, int skew) {
  constexpr int kPackets = (Block::kBytes + 14 + 15) / 16;
  uint32_t words[4 * kPackets];
#pragma unroll
  for (int p = 0; p < kPackets; ++p) {
    const Packet<uint32_t> packet =
        Load16(reinterpret_cast<const uint32_t*>(from) + 4 * p);
#pragma unroll
    for (int i = 0; i < 4; ++i) words[4 * p + i] = packet[i];
  }
  // Shift the block to the start of the words, in steps that select between
  // constant indices, as registers cannot be indexed by variables.
#pragma unroll
  for (int i = 0; i < Block::kCount + 1; ++i) {
    words[i] = (skew & 8) != 0 ? words[i + 2] : words[i];
  }
#pragma unroll
  for (int i = 0; i < Block::kCount; ++i) {
    words[i] = (skew & 4) != 0 ? words[i + 1] : words[i];
  }
  Block block;
#pragma unroll
  for (int i = 0; i < Block::kCount; ++i) {
    block.at[i] =
        (skew & 2) != 0 ? words[i] >> 16 | words[i + 1] << 16 : words[i];
  }
  return block;
}
template <typename Block>
TIERCEL_DEVICE void ReadElements(const std::byte* from, int skew,
                                 float (&x)[kKvPiece]) {
  const Block block = ReadBlock<Block>(from, skew);
#pragma unroll
  for (int e = 0; e < kKvPiece; ++e) x[e] = block.Scale() * block.Code(e);
}

// Reads elements d..d + 3 of a row, by one load if it is f32, f16 or bf16. d is
// a multiple of 4.
TIERCEL_DEVICE void ReadKv4(DType type, const std::byte* row, int d,
                            float (&x)[4]) {
  struct alignas(8) Halves {
    uint16_t at[4];
  };
  if (type == DType::kF32) {
    const Packet<float> packet =
        Load16(reinterpret_cast<const float*>(row) + d);
#pragma unroll
    for (int i = 0; i < 4; ++i) x[i] = packet[i];
  } else if (type == DType::kQ8_0) {
    const std::byte* const block = row + d / kKvPiece * kQ8Bytes;
    const auto* const codes =
        reinterpret_cast<const uint16_t*>(block + 2 + d % kKvPiece);
    const float scale = F32FromF16(*reinterpret_cast<const uint16_t*>(block));
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      x[i] = scale * FloatOfTurned(codes[i / 2] ^ kSignsOfBytes, i % 2);
    }
  } else if (type == DType::kQ4_0) {
    const std::byte* const block = row + d / kKvPiece * kQ4Bytes;
    const auto* const codes =
        reinterpret_cast<const uint16_t*>(block + 2 + d % 16);
    const float scale = F32FromF16(*reinterpret_cast<const uint16_t*>(block));
    const int shift = d % kKvPiece / 16 * 4;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      x[i] = scale * FloatOfByte(codes[i / 2] >> shift & 0x0f0fu, i % 2, 8.0f);
    }
  } else {
    const Halves halves = *reinterpret_cast<const Halves*>(row + 2 * d);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      x[i] = type == DType::kF16 ? F32FromF16(halves.at[i])
                                 : F32FromBf16(halves.at[i]);
    }
  }
}

// Reads a block, or up to 64 bytes of a type without blocks. A block begins
// `skew` bytes after the start of the packets at `from`; other types begin with
// a packet.
TIERCEL_DEVICE void ReadKvPiece(DType type, const std::byte* from, int skew,
                                int bytes, float (&x)[kKvPiece]) {
  if (type == DType::kQ8_0) {
    ReadElements<Q8Words>(from, skew, x);
    return;
  }
  if (type == DType::kQ4_0) {
    ReadElements<Q4Words>(from, skew, x);
    return;
  }
#pragma unroll
  for (int p = 0; p < 4; ++p) {
    if (16 * p >= bytes) break;
    const Packet<uint32_t> packet =
        Load16(reinterpret_cast<const uint32_t*>(from) + 4 * p);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if (type == DType::kF32) {
        x[4 * p + i] = std::bit_cast<float>(packet[i]);
        continue;
      }
      const auto low = static_cast<uint16_t>(packet[i]);
      const auto high = static_cast<uint16_t>(packet[i] >> 16);
      const bool f16 = type == DType::kF16;
      x[8 * p + 2 * i] = f16 ? F32FromF16(low) : F32FromBf16(low);
      x[8 * p + 2 * i + 1] = f16 ? F32FromF16(high) : F32FromBf16(high);
    }
  }
}

// Writes a block of q8_0; each lane has one element.
TIERCEL_DEVICE void WriteQ8Block(float x, int lane, std::byte* block) {
  const bool finite = Ballot(kAllLanes, std::isfinite(x)) == kAllLanes;
  float max = std::fabs(x);
  for (int bits = kWarpLanes / 2; bits > 0; bits /= 2) {
    max = std::fmax(max, ShuffleXor(kAllLanes, max, bits));
  }
  const float d =
      finite ? max / 127.0f : std::numeric_limits<float>::quiet_NaN();
  if (lane == 0) *reinterpret_cast<uint16_t*>(block) = F16FromF32(d);
  // A subnormal d has few bits, so that the quotient can exceed 127.
  const float q =
      d > 0.0f ? std::fmin(std::fmax(std::nearbyint(x / d), -127.0f), 127.0f)
               : 0.0f;
  block[2 + lane] = static_cast<std::byte>(static_cast<int8_t>(q));
}

// Writes a block of q4_0; each lane has one element.
TIERCEL_DEVICE void WriteQ4Block(float x, int lane, std::byte* block) {
  const bool finite = Ballot(kAllLanes, std::isfinite(x)) == kAllLanes;
  float greatest = x;
  float least = x;
  for (int bits = kWarpLanes / 2; bits > 0; bits /= 2) {
    greatest = std::fmax(greatest, ShuffleXor(kAllLanes, greatest, bits));
    least = std::fmin(least, ShuffleXor(kAllLanes, least, bits));
  }
  const float outermost = greatest >= -least ? greatest : least;
  // A zero is positive, whatever the signs of the elements.
  const float d = !finite             ? std::numeric_limits<float>::quiet_NaN()
                  : outermost == 0.0f ? 0.0f
                                      : outermost / -8.0f;
  if (lane == 0) *reinterpret_cast<uint16_t*>(block) = F16FromF32(d);
  const float q = std::fabs(d) > 0.0f ? std::nearbyint(x / d) + 8.0f : 8.0f;
  const auto code = static_cast<uint32_t>(std::fmin(std::fmax(q, 0.0f), 15.0f));
  const uint32_t high = ShuffleDown(kAllLanes, code, kWarpLanes / 2);
  if (lane < 16) block[2 + lane] = static_cast<std::byte>(code | high << 4);
}

// Writes the elements of a row from d on; each lane of the warp has one. They
// are rounded as KvRowFromF32 of kv_row.h rounds.
TIERCEL_DEVICE void WriteKvPiece(DType type, float x, int d, int head_dim,
                                 int lane, std::byte* row) {
  if (type == DType::kQ8_0) {
    WriteQ8Block(x, lane, row + d / kKvPiece * kQ8Bytes);
    return;
  }
  if (type == DType::kQ4_0) {
    WriteQ4Block(x, lane, row + d / kKvPiece * kQ4Bytes);
    return;
  }
  const int i = d + lane;
  if (i >= head_dim) return;
  if (type == DType::kF32) {
    reinterpret_cast<float*>(row)[i] = x;
  } else {
    reinterpret_cast<uint16_t*>(row)[i] =
        type == DType::kF16 ? F16FromF32(x) : Bf16FromF32(x);
  }
}

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_KV_KV_ELEMENT_H_

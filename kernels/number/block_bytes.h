#ifndef TIERCEL_KERNELS_NUMBER_BLOCK_BYTES_H_
#define TIERCEL_KERNELS_NUMBER_BLOCK_BYTES_H_

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace tiercel {

// The value whose bytes are at `p`, aligned or not.
template <typename T>
T ReadAs(const std::byte* p) {
  T value;
  std::memcpy(&value, p, sizeof(value));
  return value;
}

// Writes the bytes of `value` to `p`, aligned or not.
template <typename T>
void WriteAs(T value, std::byte* p) {
  std::memcpy(p, &value, sizeof(value));
}

// Scale and min of a sub-block of 32 weights in a Q4_K or Q5_K block: 6 bits
// each.
struct SixBits {
  uint8_t scale;
  uint8_t min;
};

// Unpacks scale and min of sub-block `j` of eight from the 12 bytes at
// `packed`. Those of the first four are the low 6 bits of bytes 0 to 3 and 4
// to 7. Those of the others have their low 4 bits in bytes 8 to 11, and their
// high 2 bits are the high 2 bits of the first 8 bytes.
inline SixBits SixBitsOf(const std::byte* packed, int j) {
  const auto bits = [&](int i) { return std::to_integer<unsigned>(packed[i]); };
  if (j < 4) {
    return {static_cast<uint8_t>(bits(j) & 63u),
            static_cast<uint8_t>(bits(j + 4) & 63u)};
  }
  const unsigned low = bits(j + 4);
  return {static_cast<uint8_t>((low & 15u) | bits(j - 4) >> 6 << 4),
          static_cast<uint8_t>(low >> 4 | bits(j) >> 6 << 4)};
}

// Unpacks the scale of sub-block `j` of eight in the IQ4_XS block at `block`.
// Its low 4 bits are a nibble of bytes 4 to 7, its high 2 bits are in the word
// before; 32 is subtracted.
inline int8_t ScaleOfIQ4_XS(const std::byte* block, int j) {
  const auto byte = std::to_integer<unsigned>(block[4 + j / 2]);
  const unsigned low = byte >> (j % 2 * 4) & 15u;
  const unsigned high = ReadAs<uint16_t>(block + 2) >> (2 * j) & 3u;
  return static_cast<int8_t>(static_cast<int>(low | high << 4) - 32);
}

// Unpacks scale `j` of 16, of six bits, from the 12 bytes at `packed` in a Q3_K
// block. Its low 4 bits are a nibble of the first eight bytes, its high 2 bits
// are in the last four; 32 is subtracted.
inline int8_t ScaleOfQ3_K(const std::byte* packed, int j) {
  const auto bits = [&](int i) { return std::to_integer<unsigned>(packed[i]); };
  const unsigned low = bits(j % 8) >> (j / 8 * 4) & 15u;
  const unsigned high = bits(8 + j % 4) >> (j / 4 * 2) & 3u;
  return static_cast<int8_t>(static_cast<int>(low | high << 4) - 32);
}

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_NUMBER_BLOCK_BYTES_H_

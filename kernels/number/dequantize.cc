#include "kernels/number/dequantize.h"

#include <cmath>

#include "kernels/number/block_bytes.h"
#include "kernels/number/code_book.h"
#include "kernels/number/half.h"

namespace tiercel {
namespace {

float Half(const std::byte* p) { return F32FromF16(ReadAs<uint16_t>(p)); }

float F32(int value) { return static_cast<float>(value); }

int Byte(const std::byte* p) { return std::to_integer<int>(*p); }

// Weight i of 32: the low nibbles are the first 16, the high ones the rest.
int Nibble(const std::byte* bytes, int i) {
  return i < 16 ? Byte(bytes + i) & 15 : Byte(bytes + i - 16) >> 4;
}

void BlockQ8_0(const std::byte* p, float* out) {
  for (int i = 0; i < 32; ++i) {
    out[i] = Half(p) * F32(ReadAs<int8_t>(p + 2 + i));
  }
}

void BlockQ4_0(const std::byte* p, float* out) {
  for (int i = 0; i < 32; ++i) out[i] = Half(p) * F32(Nibble(p + 2, i) - 8);
}

void BlockQ4_1(const std::byte* p, float* out) {
  for (int i = 0; i < 32; ++i) {
    out[i] = Half(p) * F32(Nibble(p + 4, i)) + Half(p + 2);
  }
}

// Weight i of 32, with 5 bits: its fifth is bit i of a word before the nibbles.
int FiveBits(const std::byte* word, int i) {
  const int high = static_cast<int>(ReadAs<uint32_t>(word) >> i & 1u);
  return Nibble(word + 4, i) | high << 4;
}

void BlockQ5_0(const std::byte* p, float* out) {
  for (int i = 0; i < 32; ++i) out[i] = Half(p) * F32(FiveBits(p + 2, i) - 16);
}

void BlockQ5_1(const std::byte* p, float* out) {
  for (int i = 0; i < 32; ++i) {
    out[i] = Half(p) * F32(FiveBits(p + 4, i)) + Half(p + 2);
  }
}

void BlockQ4_K(const std::byte* p, float* out) {
  for (int i = 0; i < 256; ++i) {
    const SixBits s = SixBitsOf(p + 4, i / 32);
    const int byte = Byte(p + 16 + i / 64 * 32 + i % 32);
    const int code = i % 64 < 32 ? byte & 15 : byte >> 4;
    out[i] = Half(p) * F32(s.scale) * F32(code) - Half(p + 2) * F32(s.min);
  }
}

void BlockQ5_K(const std::byte* p, float* out) {
  for (int i = 0; i < 256; ++i) {
    const SixBits s = SixBitsOf(p + 4, i / 32);
    const int byte = Byte(p + 48 + i / 64 * 32 + i % 32);
    const int high = Byte(p + 16 + i % 32) >> (i / 32) & 1;
    const int code = (i % 64 < 32 ? byte & 15 : byte >> 4) | high << 4;
    out[i] = Half(p) * F32(s.scale) * F32(code) - Half(p + 2) * F32(s.min);
  }
}

void BlockQ6_K(const std::byte* p, float* out) {
  const float d = Half(p + 208);
  for (int i = 0; i < 256; ++i) {
    const int half = i / 128;
    const int quarter = i % 128 / 32;
    const int low_byte = Byte(p + 64 * half + quarter % 2 * 32 + i % 32);
    const int low = quarter < 2 ? low_byte & 15 : low_byte >> 4;
    const int high = Byte(p + 128 + 32 * half + i % 32) >> (2 * quarter) & 3;
    const int scale = ReadAs<int8_t>(p + 192 + i / 16);
    out[i] = d * F32(scale) * F32((low | high << 4) - 32);
  }
}

// Weight i of 256, with 2 bits: four times 32 share 32 bytes.
int TwoBits(const std::byte* bytes, int i) {
  return Byte(bytes + i / 128 * 32 + i % 32) >> (i % 128 / 32 * 2) & 3;
}

void BlockQ3_K(const std::byte* p, float* out) {
  for (int i = 0; i < 256; ++i) {
    const int high = Byte(p + i % 32) >> (i / 32) & 1;
    const int code = TwoBits(p + 32, i) | high << 2;
    out[i] = Half(p + 108) * F32(ScaleOfQ3_K(p + 96, i / 16)) * F32(code - 4);
  }
}

void BlockQ2_K(const std::byte* p, float* out) {
  for (int i = 0; i < 256; ++i) {
    const int scale = Byte(p + i / 16) & 15;
    const int min = Byte(p + i / 16) >> 4;
    out[i] = Half(p + 80) * F32(scale) * F32(TwoBits(p + 16, i)) -
             Half(p + 82) * F32(min);
  }
}

void BlockIQ4_NL(const std::byte* p, float* out) {
  for (int i = 0; i < 32; ++i) {
    out[i] = Half(p) * F32(kNl4Book.of[Nibble(p + 2, i)]);
  }
}

void BlockIQ4_XS(const std::byte* p, float* out) {
  for (int i = 0; i < 256; ++i) {
    const int number = kNl4Book.of[Nibble(p + 8 + i / 32 * 16, i % 32)];
    out[i] = Half(p) * F32(ScaleOfIQ4_XS(p, i / 32)) * F32(number);
  }
}

// The scale is a power of two, half of what doubled numbers would need.
void BlockMXFP4(const std::byte* p, float* out) {
  for (int i = 0; i < 32; ++i) {
    out[i] = std::ldexp(F32(kFp4Book.of[Nibble(p + 1, i)]), Byte(p) - 128);
  }
}

void One(DType type, const std::byte* p, float* out) {
  switch (type) {
    case DType::kF32:
      *out = ReadAs<float>(p);
      return;
    case DType::kF16:
      *out = Half(p);
      return;
    case DType::kBF16:
      *out = F32FromBf16(ReadAs<uint16_t>(p));
      return;
    case DType::kQ8_0:
      return BlockQ8_0(p, out);
    case DType::kQ4_0:
      return BlockQ4_0(p, out);
    case DType::kQ4_1:
      return BlockQ4_1(p, out);
    case DType::kQ5_0:
      return BlockQ5_0(p, out);
    case DType::kQ5_1:
      return BlockQ5_1(p, out);
    case DType::kQ4_K:
      return BlockQ4_K(p, out);
    case DType::kQ5_K:
      return BlockQ5_K(p, out);
    case DType::kQ6_K:
      return BlockQ6_K(p, out);
    case DType::kIQ4_NL:
      return BlockIQ4_NL(p, out);
    case DType::kIQ4_XS:
      return BlockIQ4_XS(p, out);
    case DType::kMXFP4:
      return BlockMXFP4(p, out);
    case DType::kQ3_K:
      return BlockQ3_K(p, out);
    case DType::kQ2_K:
      return BlockQ2_K(p, out);
  }
}

}  // namespace

void Dequantize(DType type, const std::byte* source, int64_t elements,
                float* out) {
  const DTypeInfo& info = InfoOf(type);
  for (int64_t i = 0; i < elements; i += info.block_elements) {
    One(type, source, out + i);
    source += info.block_bytes;
  }
}

}  // namespace tiercel

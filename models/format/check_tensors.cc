#include "models/format/check_tensors.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "lib/status/error.h"

namespace tiercel {
namespace {

// The floats within a block: their kind, which they share, and their offsets.
struct BlockFloats {
  enum Kind { kF32, kF16, kBF16, kExponent } kind;
  int count;
  std::array<int, 2> at;  // bytes from the block's start
};

BlockFloats FloatsOf(DType type) {
  switch (type) {
    case DType::kF32:
      return {BlockFloats::kF32, 1, {0, 0}};
    case DType::kF16:
    case DType::kQ8_0:
    case DType::kQ4_0:
    case DType::kQ5_0:
    case DType::kIQ4_NL:
    case DType::kIQ4_XS:
      return {BlockFloats::kF16, 1, {0, 0}};
    case DType::kBF16:
      return {BlockFloats::kBF16, 1, {0, 0}};
    case DType::kQ4_1:
    case DType::kQ5_1:
    case DType::kQ4_K:
    case DType::kQ5_K:
      return {BlockFloats::kF16, 2, {0, 2}};
    case DType::kQ6_K:
      return {BlockFloats::kF16, 1, {208, 0}};
    case DType::kQ3_K:
      return {BlockFloats::kF16, 1, {108, 0}};
    case DType::kQ2_K:
      return {BlockFloats::kF16, 2, {80, 82}};
    case DType::kMXFP4:
      return {BlockFloats::kExponent, 1, {0, 0}};
  }
  return {BlockFloats::kF32, 0, {0, 0}};
}

// Returns true if a bit of the exponent is clear.
bool IsFinite(const std::byte* at, BlockFloats::Kind kind) {
  if (kind == BlockFloats::kExponent) return *at != std::byte{0xff};
  if (kind == BlockFloats::kF32) {
    uint32_t bits;
    std::memcpy(&bits, at, sizeof(bits));
    return (bits & 0x7f800000u) != 0x7f800000u;
  }
  uint16_t bits;
  std::memcpy(&bits, at, sizeof(bits));
  const uint16_t exponent = kind == BlockFloats::kF16 ? 0x7c00 : 0x7f80;
  return (bits & exponent) != exponent;
}

}  // namespace

absl::StatusOr<std::vector<BadTensor>> CheckTensors(
    const Checkpoint& checkpoint,
    absl::FunctionRef<bool(uint64_t done, uint64_t total)> progress) {
  uint64_t total = 0;
  for (const TensorInfo& tensor : checkpoint.tensors()) total += tensor.bytes;
  uint64_t done = 0;
  std::vector<BadTensor> bad;
  std::vector<std::byte> buffer;
  for (const TensorInfo& tensor : checkpoint.tensors()) {
    const uint64_t block_bytes = InfoOf(tensor.type).block_bytes;
    const BlockFloats floats = FloatsOf(tensor.type);
    const uint64_t piece = (uint64_t{4} << 20) / block_bytes * block_bytes;
    BadTensor found = {tensor.name, -1, 0};
    for (uint64_t begin = 0; begin < tensor.bytes; begin += piece) {
      buffer.resize(std::min(piece, tensor.bytes - begin));
      absl::Status s =
          checkpoint.Read(tensor, begin, {buffer.data(), buffer.size()});
      if (!s.ok()) return s;
      for (uint64_t at = 0; at < buffer.size(); at += block_bytes) {
        bool finite = true;
        for (int i = 0; i < floats.count; ++i) {
          finite &= IsFinite(&buffer[at + floats.at[i]], floats.kind);
        }
        if (finite) continue;
        if (found.blocks++ == 0) {
          found.first_block = static_cast<int64_t>((begin + at) / block_bytes);
        }
      }
      done += buffer.size();
      if (!progress(done, total)) return CancelledError();
    }
    if (found.blocks > 0) bad.push_back(std::move(found));
  }
  return bad;
}

}  // namespace tiercel

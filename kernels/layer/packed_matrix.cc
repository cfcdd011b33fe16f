#include "kernels/layer/packed_matrix.h"

#include <array>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/base/checked.h"
#include "kernels/layer/packed_layout.h"
#include "kernels/number/block_bytes.h"
#include "kernels/number/half.h"
#include "lib/status/error.h"
#include "lib/status/status_macros.h"

namespace tiercel {
namespace {

constexpr int kLanes = kPanelRows;
static_assert(PackedMatrix::kPanelRows == kPanelRows);
constexpr size_t kPanelAlignment = 64;
constexpr uint16_t kHalfSign = 0x8000;

unsigned Bits(const std::byte* p) { return std::to_integer<unsigned>(*p); }

// The codes of one block of 32, one byte each.
using CodeBlock = std::array<uint8_t, 32>;

// The low nibbles of 16 bytes, then the high ones.
CodeBlock Nibbles(const std::byte* p) {
  CodeBlock codes;
  for (size_t i = 0; i < 16; ++i) {
    codes[i] = static_cast<uint8_t>(Bits(p + i) & 15u);
    codes[i + 16] = static_cast<uint8_t>(Bits(p + i) >> 4);
  }
  return codes;
}

void AddFifthBits(uint32_t bits, CodeBlock& codes) {
  for (size_t i = 0; i < 32; ++i) {
    codes[i] = static_cast<uint8_t>(codes[i] | (bits >> i & 1u) << 4);
  }
}

// Sub-block j of the eight in the nibbles of a Q4_K or Q5_K block. 32 bytes
// hold an even sub-block in their low nibbles and the next in their high ones.
CodeBlock NibblesOfK(const std::byte* nibbles, int j) {
  CodeBlock codes;
  for (size_t i = 0; i < 32; ++i) {
    const unsigned byte = Bits(nibbles + j / 2 * 32 + i);
    codes[i] = static_cast<uint8_t>(j % 2 == 0 ? byte & 15u : byte >> 4);
  }
  return codes;
}

CodeBlock CodesOfQ6K(const std::byte* block, int j) {
  const std::byte* low = block + j / 4 * 64 + j % 2 * 32;
  const std::byte* high = block + 128 + j / 4 * 32;
  CodeBlock codes;
  for (size_t i = 0; i < 32; ++i) {
    const unsigned four = j % 4 < 2 ? Bits(low + i) & 15u : Bits(low + i) >> 4;
    const unsigned two = Bits(high + i) >> (j % 4 * 2) & 3u;
    codes[i] = static_cast<uint8_t>(four | two << 4);
  }
  return codes;
}

// The two bits of sub-block j of the eight of a Q2_K or Q3_K block. Four
// sub-blocks share 32 bytes.
CodeBlock TwoBits(const std::byte* bytes, int j) {
  CodeBlock codes;
  for (size_t i = 0; i < 32; ++i) {
    const unsigned byte = Bits(bytes + j / 4 * 32 + i);
    codes[i] = static_cast<uint8_t>(byte >> (j % 4 * 2) & 3u);
  }
  return codes;
}

// The codes of block j of the file's block at `source`; j is 0 but for K types.
CodeBlock ReadCodes(DType type, const std::byte* source, int j) {
  CodeBlock codes = {};
  switch (type) {
    case DType::kQ8_0:
      for (size_t i = 0; i < 32; ++i) {
        codes[i] = static_cast<uint8_t>(Bits(source + 2 + i) ^ 0x80u);
      }
      return codes;
    case DType::kQ4_0:
    case DType::kIQ4_NL:
      return Nibbles(source + 2);
    case DType::kQ4_1:
      return Nibbles(source + 4);
    case DType::kQ5_0:
      codes = Nibbles(source + 6);
      AddFifthBits(ReadAs<uint32_t>(source + 2), codes);
      return codes;
    case DType::kQ5_1:
      codes = Nibbles(source + 8);
      AddFifthBits(ReadAs<uint32_t>(source + 4), codes);
      return codes;
    case DType::kQ4_K:
      return NibblesOfK(source + 16, j);
    case DType::kQ5_K:
      codes = NibblesOfK(source + 48, j);
      for (size_t i = 0; i < 32; ++i) {
        const unsigned bit = Bits(source + 16 + i) >> j & 1u;
        codes[i] = static_cast<uint8_t>(codes[i] | bit << 4);
      }
      return codes;
    case DType::kQ6_K:
      return CodesOfQ6K(source, j);
    case DType::kIQ4_XS:
      return Nibbles(source + 8 + 16 * j);
    case DType::kMXFP4:
      return Nibbles(source + 1);
    case DType::kQ2_K:
      return TwoBits(source + 16, j);
    case DType::kQ3_K:
      codes = TwoBits(source + 32, j);
      for (size_t i = 0; i < 32; ++i) {
        const unsigned bit = Bits(source + i) >> j & 1u;
        codes[i] = static_cast<uint8_t>(codes[i] | bit << 2);
      }
      return codes;
    default:
      return codes;
  }
}

// The codes of a block as words, one per quad. Masks and shifts then work on
// four codes at once, in either byte order, as no bit crosses into a neighbour.
using Quads = std::array<uint32_t, 8>;
constexpr uint32_t kLowFour = 0x0f0f0f0f;
constexpr uint32_t kLowTwo = 0x03030303;

// The offsets of one row in a panel of `blocks` blocks.
struct PanelRow {
  PanelOrder order;
  PackedLayout layout;
  int64_t blocks;
  int row;

  // Offsets are in bytes; those of scales are within their group.
  int64_t Lane(int64_t block) const {
    return block * CodeBytes(layout.codes) + 4 * row;
  }
  int64_t Fragment(int64_t block, int t) const {
    return 4 * FragmentAt(layout.codes, blocks, block, row % 8 * 4 + t);
  }
  int64_t High(int64_t block, int t) const {
    return 4 * HighFragmentAt(layout.codes, block, row % 8 * 4 + t);
  }

  int64_t Group(int64_t block) const {
    return blocks * CodeBytes(layout.codes) +
           block / GroupBlocks(layout.scales) * GroupBytes(layout.scales);
  }
  // The f16 `index` of a group: 0 is d, 1 is m or -dmin.
  int Half(int index) const {
    return order == PanelOrder::kLanes
               ? (index * kLanes + row) * 2
               : HalfScalesAt(layout.scales, row % 8) * 4 + index * 4 +
                     row / 8 * 2;
  }
  // The byte scale `index` (0 or 1; kKS: 0) of block j of a group.
  int Byte(int j, int index) const {
    const bool one = layout.scales == ScaleLayout::kKS;
    if (order == PanelOrder::kLanes) {
      const int first = HasMin(layout.scales) ? 64 : 32;
      return first + (one ? j : 2 * j + index) * kLanes + row;
    }
    const int word = ByteScalesAt(layout.scales, j, row % 8) * 4;
    return HasHalves(layout.scales)
               ? word + row / 8 * 2 + index
               : word + (one ? j % 2 : index) * 2 + row / 8;
  }
};

// The bits of a code at which those of k6's high two, or of k2, begin; and the
// offset in kLanes of their bytes.
int HighBits(CodeLayout layout) { return layout == CodeLayout::k6 ? 4 : 0; }
int HighLanes(CodeLayout layout) { return layout == CodeLayout::k6 ? 256 : 0; }

// Writes the codes of a block in the order kLanes. This lane's first byte is at
// `out`.
void PutLanes(CodeLayout layout, const Quads& quads, std::byte* out) {
  if (layout == CodeLayout::k8) {
    for (size_t j = 0; j < 8; ++j) WriteAs(quads[j], out + 64 * j);
    return;
  }
  for (size_t i = 0; layout != CodeLayout::k2 && i < 4; ++i) {
    const uint32_t even = quads[2 * i] & kLowFour;
    const uint32_t odd = quads[2 * i + 1] & kLowFour;
    WriteAs(even | odd << 4, out + 64 * i);
  }
  if (layout == CodeLayout::k4) return;
  for (size_t i = 0; i < 2; ++i) {
    uint32_t high = 0;
    for (size_t f = 0; f < 4; ++f) {
      high |= (quads[4 * i + f] >> HighBits(layout) & kLowTwo) << (2 * f);
    }
    WriteAs(high, out + HighLanes(layout) + 64 * i);
  }
}

Quads GetLanes(CodeLayout layout, const std::byte* in) {
  Quads quads;
  for (size_t j = 0; j < 8; ++j) {
    if (layout == CodeLayout::k8) {
      quads[j] = ReadAs<uint32_t>(in + 64 * j);
      continue;
    }
    quads[j] =
        layout == CodeLayout::k2
            ? 0
            : ReadAs<uint32_t>(in + 64 * (j / 2)) >> (4 * (j % 2)) & kLowFour;
    if (layout == CodeLayout::k4) continue;
    const uint32_t high =
        ReadAs<uint32_t>(in + HighLanes(layout) + 64 * (j / 4));
    quads[j] |= (high >> (2 * (j % 4)) & kLowTwo) << HighBits(layout);
  }
  return quads;
}

// Writes the codes of a block in the order kFragments. Quads t and t + 4 of a
// row are words i and i + 2 of a lane, with i = row / 8.
void PutFragments(const PanelRow& to, const Quads& quads, int64_t block,
                  std::byte* panel) {
  const int i = to.row / 8;
  for (int t = 0; t < 4; ++t) {
    const uint32_t low = quads[static_cast<size_t>(t)];
    const uint32_t high = quads[static_cast<size_t>(t) + 4];
    std::byte* const out = panel + to.Fragment(block, t) + 4 * i;
    if (to.layout.codes == CodeLayout::k8) {
      WriteAs(low, out);
      WriteAs(high, out + 8);
      continue;
    }
    if (to.layout.codes != CodeLayout::k2) {
      WriteAs((low & kLowFour) | (high & kLowFour) << 4, out);
    }
    if (to.layout.codes == CodeLayout::k4) continue;
    const int first = HighBits(to.layout.codes);
    std::byte* const bits = panel + to.High(block, t);  // shared by both rows
    const uint32_t others =
        ReadAs<uint32_t>(bits) & ~((kLowTwo | kLowTwo << 4) << (2 * i));
    WriteAs(others | (low >> first & kLowTwo) << (2 * i) |
                (high >> first & kLowTwo) << (2 * i + 4),
            bits);
  }
}

Quads GetFragments(const PanelRow& from, int64_t block,
                   const std::byte* panel) {
  const int i = from.row / 8;
  Quads quads;
  for (int t = 0; t < 4; ++t) {
    uint32_t& low = quads[static_cast<size_t>(t)];
    uint32_t& high = quads[static_cast<size_t>(t) + 4];
    const std::byte* const in = panel + from.Fragment(block, t) + 4 * i;
    low = from.layout.codes == CodeLayout::k2 ? 0 : ReadAs<uint32_t>(in);
    if (from.layout.codes == CodeLayout::k8) {
      high = ReadAs<uint32_t>(in + 8);
      continue;
    }
    high = low >> 4 & kLowFour;
    low &= kLowFour;
    if (from.layout.codes == CodeLayout::k4) continue;
    const int first = HighBits(from.layout.codes);
    const uint32_t bits = ReadAs<uint32_t>(panel + from.High(block, t));
    low |= (bits >> (2 * i) & kLowTwo) << first;
    high |= (bits >> (2 * i + 4) & kLowTwo) << first;
  }
  return quads;
}

void PutCodes(const PanelRow& to, const CodeBlock& codes, int64_t block,
              std::byte* panel) {
  const Quads quads = std::bit_cast<Quads>(codes);
  if (to.order == PanelOrder::kFragments) {
    return PutFragments(to, quads, block, panel);
  }
  PutLanes(to.layout.codes, quads, panel + to.Lane(block));
}

CodeBlock GetCodes(const PanelRow& from, int64_t block,
                   const std::byte* panel) {
  return std::bit_cast<CodeBlock>(
      from.order == PanelOrder::kFragments
          ? GetFragments(from, block, panel)
          : GetLanes(from.layout.codes, panel + from.Lane(block)));
}

// The offset of element k of a row of floats in its panel, in elements.
int64_t FloatAt(PanelOrder order, int64_t cols, int64_t k, int row) {
  return order == PanelOrder::kLanes ? k * kLanes + row : row * cols + k;
}

// Packs a row of floats, which have sizeof(Word) bytes each.
template <typename Word>
void PackFloats(PanelOrder order, const std::byte* source, int64_t cols,
                int lane, std::byte* panel) {
  constexpr int64_t kSize = sizeof(Word);
  for (int64_t k = 0; k < cols; ++k) {
    WriteAs(ReadAs<Word>(source + k * kSize),
            panel + FloatAt(order, cols, k, lane) * kSize);
  }
}

// Copies the scales of one block of the file into their group.
void PackScales(DType type, const PanelRow& to, const std::byte* source,
                std::byte* group) {
  switch (to.layout.scales) {
    case ScaleLayout::kNone:
      return;
    case ScaleLayout::kD:
      WriteAs(ReadAs<uint16_t>(source), group + to.Half(0));
      return;
    case ScaleLayout::kDE:
      WriteAs(Bf16OfExponent(ReadAs<uint8_t>(source)), group + to.Half(0));
      return;
    case ScaleLayout::kDM:
      WriteAs(ReadAs<uint16_t>(source), group + to.Half(0));
      WriteAs(ReadAs<uint16_t>(source + 2), group + to.Half(1));
      return;
    case ScaleLayout::kK: {
      const uint16_t dmin = ReadAs<uint16_t>(source + 2);
      WriteAs(ReadAs<uint16_t>(source), group + to.Half(0));
      WriteAs(static_cast<uint16_t>(dmin ^ kHalfSign), group + to.Half(1));
      for (int j = 0; j < 8; ++j) {
        const SixBits six = SixBitsOf(source + 4, j);
        WriteAs(six.scale, group + to.Byte(j, 0));
        WriteAs(six.min, group + to.Byte(j, 1));
      }
      return;
    }
    case ScaleLayout::kK6:
      WriteAs(ReadAs<uint16_t>(source + (type == DType::kQ3_K ? 108 : 208)),
              group + to.Half(0));
      for (int j = 0; j < 16; ++j) {
        WriteAs(type == DType::kQ3_K ? ScaleOfQ3_K(source + 96, j)
                                     : ReadAs<int8_t>(source + 192 + j),
                group + to.Byte(j / 2, j % 2));
      }
      return;
    case ScaleLayout::kK2:
      WriteAs(ReadAs<uint16_t>(source + 80), group + to.Half(0));
      WriteAs(static_cast<uint16_t>(ReadAs<uint16_t>(source + 82) ^ kHalfSign),
              group + to.Half(1));
      for (int j = 0; j < 16; ++j) {
        group[to.Byte(j / 2, j % 2)] = source[j];
      }
      return;
    case ScaleLayout::kKS:
      WriteAs(ReadAs<uint16_t>(source), group + to.Half(0));
      for (int j = 0; j < 8; ++j) {
        WriteAs(ScaleOfIQ4_XS(source, j), group + to.Byte(j, 0));
      }
      return;
  }
}

// Reads the scales of block j of a group.
void UnpackScales(const PanelRow& from, const std::byte* group, int j,
                  WeightBlock& out) {
  const auto half = [&](int index) {
    return F32FromF16(ReadAs<uint16_t>(group + from.Half(index)));
  };
  const ScaleLayout layout = from.layout.scales;
  out.half_scales[0] = out.half_scales[1] = 1;
  out.half_mins[0] = out.half_mins[1] = 1;
  out.has_min = HasMin(layout);
  out.min = 0.0f;
  switch (layout) {
    case ScaleLayout::kNone:
      return;
    case ScaleLayout::kD:
      out.scale = half(0);
      return;
    case ScaleLayout::kDE:
      out.scale = F32FromBf16(ReadAs<uint16_t>(group + from.Half(0)));
      return;
    case ScaleLayout::kDM:
      out.scale = half(0);
      out.min = half(1);
      return;
    case ScaleLayout::kK:
      out.scale = half(0) *
                  static_cast<float>(ReadAs<uint8_t>(group + from.Byte(j, 0)));
      out.min = half(1) *
                static_cast<float>(ReadAs<uint8_t>(group + from.Byte(j, 1)));
      return;
    case ScaleLayout::kK6:
      out.scale = half(0);
      for (int h = 0; h < 2; ++h) {
        out.half_scales[h] = ReadAs<int8_t>(group + from.Byte(j, h));
      }
      return;
    case ScaleLayout::kK2:
      out.scale = half(0);
      out.min = half(1);
      for (int h = 0; h < 2; ++h) {
        const auto byte = ReadAs<uint8_t>(group + from.Byte(j, h));
        out.half_scales[h] = byte & 15;
        out.half_mins[h] = byte >> 4;
      }
      return;
    case ScaleLayout::kKS:
      out.scale =
          half(0) * static_cast<float>(ReadAs<int8_t>(group + from.Byte(j, 0)));
      return;
  }
}

// The bytes of a panel; nullopt if they do not fit 63 bits.
std::optional<uint64_t> PanelBytes(DType type, uint64_t cols) {
  const PackedLayout layout = LayoutOf(type);
  std::optional<uint64_t> bytes;
  if (layout.codes == CodeLayout::kNone) {
    bytes = CheckedMul(
        cols, static_cast<uint64_t>(kLanes) * InfoOf(type).block_bytes);
  } else {
    const uint64_t group_cols = 32u * GroupBlocks(layout.scales);
    const uint64_t group_bytes =
        GroupBlocks(layout.scales) * CodeBytes(layout.codes) +
        GroupBytes(layout.scales);
    bytes = CheckedMul(cols / group_cols, group_bytes);
  }
  return bytes.has_value() ? CheckedAlignUp(*bytes, kPanelAlignment) : bytes;
}

}  // namespace

absl::StatusOr<int64_t> PackedMatrix::BytesOf(DType type, int64_t rows,
                                              int64_t cols) {
  const DTypeInfo& info = InfoOf(type);
  if (rows <= 0 || cols <= 0 || cols % info.block_elements != 0) {
    return InputError(
        "invalid_shape",
        absl::StrCat("PackedMatrix: rows=", rows, ", cols=", cols, ", type ",
                     std::string(info.name),
                     "; need rows positive and cols a positive multiple of ",
                     info.block_elements));
  }
  const std::optional<uint64_t> panel_bytes =
      PanelBytes(type, static_cast<uint64_t>(cols));
  const std::optional<uint64_t> bytes =
      panel_bytes.has_value()
          ? CheckedMul(*panel_bytes,
                       static_cast<uint64_t>(rows - 1) / kLanes + 1)
          : std::nullopt;
  if (!bytes.has_value() || *bytes > PTRDIFF_MAX) {
    return MemoryError("out_of_memory",
                       absl::StrCat("PackedMatrix: no memory for ", rows, " x ",
                                    cols, " of ", std::string(info.name)));
  }
  return static_cast<int64_t>(*bytes);
}

absl::StatusOr<PackedMatrix> PackedMatrix::Create(DType type, int64_t rows,
                                                  int64_t cols,
                                                  DeviceMemory& memory,
                                                  PanelOrder order) {
  ASSIGN_OR_RETURN(const int64_t bytes, BytesOf(type, rows, cols));
  PackedMatrix matrix;
  matrix.type_ = type;
  matrix.order_ = order;
  matrix.rows_ = rows;
  matrix.cols_ = cols;
  matrix.panel_bytes_ = bytes / matrix.panels();
  ASSIGN_OR_RETURN(matrix.data_,
                   DeviceArray<std::byte>::Create(memory, bytes, "weights"));
  std::memset(matrix.data_.data().raw(), 0, matrix.data_.size());
  return matrix;
}

absl::StatusOr<PackedMatrix> PackedMatrix::CopyTo(Stream& stream) const {
  return CopyTo(stream, stream.memory());
}

absl::StatusOr<PackedMatrix> PackedMatrix::CopyTo(Stream& stream,
                                                  DeviceMemory& memory) const {
  ASSIGN_OR_RETURN(DeviceArray<std::byte> data,
                   DeviceArray<std::byte>::Create(
                       memory, static_cast<int64_t>(data_.size()), "weights"));
  absl::Status copied = stream.Copy(data.data(), data_.data(), data_.size());
  if (copied.ok()) copied = stream.Synchronize();
  if (!copied.ok()) return copied;
  PackedMatrix copy = Borrow(0, rows_);
  copy.borrowed_ = nullptr;
  copy.data_ = std::move(data);
  return copy;
}

PackedMatrix PackedMatrix::Borrow(int64_t first, int64_t rows) const {
  PackedMatrix some;
  some.type_ = type_;
  some.order_ = order_;
  some.rows_ = rows;
  some.cols_ = cols_;
  some.panel_bytes_ = panel_bytes_;
  some.borrowed_ = data() + first / kLanes * panel_bytes_;
  return some;
}

PackedMatrix PackedMatrix::At(DevicePtr<const std::byte> data, DType type,
                              int64_t rows, int64_t cols, PanelOrder order) {
  PackedMatrix matrix;
  matrix.type_ = type;
  matrix.order_ = order;
  matrix.rows_ = rows;
  matrix.cols_ = cols;
  matrix.panel_bytes_ =
      static_cast<int64_t>(*PanelBytes(type, static_cast<uint64_t>(cols)));
  matrix.borrowed_ = data;
  return matrix;
}

void PackedMatrix::PackRow(int64_t row, const std::byte* source) {
  std::byte* panel = data_.data().raw() + row / kLanes * panel_bytes_;
  const int lane = static_cast<int>(row % kLanes);
  const PackedLayout layout = LayoutOf(type_);
  const DTypeInfo& info = InfoOf(type_);
  if (type_ == DType::kF32)
    return PackFloats<uint32_t>(order_, source, cols_, lane, panel);
  if (!IsQuantised(type_))
    return PackFloats<uint16_t>(order_, source, cols_, lane, panel);
  const PanelRow to = {order_, layout, cols_ / 32, lane};
  const int group_blocks = GroupBlocks(layout.scales);
  for (int64_t block = 0; block < cols_ / 32; block += group_blocks) {
    for (int j = 0; j < group_blocks; ++j) {
      PutCodes(to, ReadCodes(type_, source, j), block + j, panel);
    }
    PackScales(type_, to, source, panel + to.Group(block));
    source += info.block_bytes;
  }
}

WeightBlock PackedMatrix::UnpackBlock(int64_t row, int64_t block) const {
  const std::byte* panel = data().raw() + row / kLanes * panel_bytes_;
  const PackedLayout layout = LayoutOf(type_);
  const PanelRow from = {order_, layout, cols_ / 32,
                         static_cast<int>(row % kLanes)};
  WeightBlock out;
  CodeBlock codes = GetCodes(from, block, panel);
  if (layout.book != Book::kNone) {
    const PlacedCodes placed = CodesOfBook(layout);
    for (uint8_t& code : codes) code = placed.of[code];
  }
  for (size_t i = 0; i < 32; ++i) out.codes[i] = codes[i] - OffsetOf(layout);
  UnpackScales(from, panel + from.Group(block),
               static_cast<int>(block % GroupBlocks(layout.scales)), out);
  return out;
}

void PackedMatrix::UnpackRow(int64_t row, float* out) const {
  const std::byte* lanes = data().raw() + row / kLanes * panel_bytes_;
  const int lane = static_cast<int>(row % kLanes);
  if (IsQuantised(type_)) {
    for (int64_t block = 0; block < cols_ / 32; ++block) {
      const WeightBlock w = UnpackBlock(row, block);
      for (int i = 0; i < 32; ++i) {
        const int half = i / 16;
        const float value = w.scale * static_cast<float>(w.half_scales[half]) *
                            static_cast<float>(w.codes[i]);
        const float min = w.min * static_cast<float>(w.half_mins[half]);
        *out++ = w.has_min ? value + min : value;
      }
    }
    return;
  }
  for (int64_t k = 0; k < cols_; ++k) {
    const int64_t i = FloatAt(order_, cols_, k, lane);
    out[k] = type_ == DType::kF32 ? ReadAs<float>(lanes + 4 * i)
             : type_ == DType::kF16
                 ? F32FromF16(ReadAs<uint16_t>(lanes + 2 * i))
                 : F32FromBf16(ReadAs<uint16_t>(lanes + 2 * i));
  }
}

}  // namespace tiercel

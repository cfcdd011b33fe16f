#include "offload/prompt_cache/kv_format.h"

#include <xxhash.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <iterator>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "lib/status/error.h"
#include "lib/status/status_macros.h"

namespace tiercel {
namespace {

// A text editor or a transfer as text changes these bytes, and no program takes
// the file for text.
constexpr char kMagic[8] = {'\x89', 'T', 'K', 'V', '\r', '\n', '\x1a', '\n'};
constexpr char kCommitMagic[8] = {'T', 'K', 'V', ' ', 'e', 'n', 'd', '\n'};
constexpr uint32_t kVersion = 1;

// These are far above every known model. Within them no sum or product exceeds
// 63 bits.
constexpr uint64_t kMostPositions = uint64_t{1} << 30;
constexpr uint32_t kMostLayers = 512;
constexpr uint32_t kMostHeads = 1024;
constexpr uint32_t kMostHeadDim = 1024;

// The types of KV, by their numbers in the file.
constexpr DType kTypes[] = {DType::kF32, DType::kF16, DType::kBF16,
                            DType::kQ8_0, DType::kQ4_0};

struct Fixed {
  char magic[8];
  uint32_t version;
  uint32_t byte_order;
  uint64_t file_bytes;
  uint64_t payload_offset;
  uint64_t page_bytes;
  uint64_t positions;
  FileShape shape;
  uint32_t fingerprint_bytes;
  uint32_t title_bytes;
};
static_assert(sizeof(Fixed) == kFixedFrontBytes);

struct Commit {
  char magic[8];
  uint64_t file_bytes;
  uint64_t front_sum;
  uint64_t sum;  // XXH3-64 of the bytes before it
};
static_assert(sizeof(Commit) == kCommitBytes);

absl::Status Damaged(std::string_view what) {
  return InputError("text_damaged", what);
}

// Returns OK if a valid file may have the numbers of `fixed`.
absl::Status Check(const Fixed& fixed, uint64_t file_bytes) {
  if (std::memcmp(fixed.magic, kMagic, sizeof(kMagic)) != 0) {
    return Damaged("it does not begin as a saved text");
  }
  if (fixed.version != kVersion || fixed.byte_order != kFileByteOrder) {
    return InputError(
        "text_version",
        absl::StrCat("version: got ", fixed.version, ", byte order ",
                     absl::Hex(fixed.byte_order), "; need ", kVersion, " and ",
                     absl::Hex(kFileByteOrder)));
  }
  if (fixed.fingerprint_bytes > kMostFileText ||
      fixed.title_bytes > kMostFileText) {
    return Damaged("its front has a number out of range");
  }
  RETURN_IF_ERROR(LayoutOf(fixed.shape, fixed.positions).status());
  if (fixed.file_bytes != file_bytes) {
    return Damaged(
        absl::StrCat("it has ", file_bytes, " bytes, of ", fixed.file_bytes));
  }
  return absl::OkStatus();
}

Fixed FixedOf(std::span<const std::byte> front) {
  Fixed fixed;
  std::memcpy(&fixed, front.data(), sizeof(fixed));
  return fixed;
}

// The bytes before the pages, by a fixed part that Check has seen.
uint64_t FrontBytes(uint64_t fingerprint_bytes, uint64_t title_bytes,
                    uint64_t positions, uint64_t layers) {
  const uint64_t pages = (positions + kPageTokens - 1) / kPageTokens;
  return kFixedFrontBytes + fingerprint_bytes + title_bytes +
         positions * sizeof(int32_t) + layers * pages * sizeof(uint64_t) +
         sizeof(uint64_t);
}

}  // namespace

uint64_t KvFileInfo::FrontBytes() const {
  return tiercel::FrontBytes(fingerprint.size(), title.size(), ids.size(),
                             static_cast<uint64_t>(layers));
}

uint64_t KvFileInfo::PayloadOffset() const { return FileAligned(FrontBytes()); }

uint64_t KvFileInfo::FileBytes() const { return CommitOffset() + kCommitBytes; }

FileShape FileShapeOf(const KvLayout& layout, int layers) {
  const auto number = [](DType type) {
    return static_cast<uint32_t>(
        std::find(std::begin(kTypes), std::end(kTypes), type) -
        std::begin(kTypes));
  };
  return {.page_tokens = kPageTokens,
          .layers = static_cast<uint32_t>(layers),
          .kv_heads = static_cast<uint32_t>(layout.kv_heads),
          .head_dim = static_cast<uint32_t>(layout.head_dim),
          .type_k = number(layout.type_k),
          .type_v = number(layout.type_v)};
}

absl::StatusOr<KvLayout> LayoutOf(const FileShape& shape, uint64_t positions) {
  const auto in = [](uint64_t value, uint64_t most) {
    return value >= 1 && value <= most;
  };
  if (!in(positions, kMostPositions) || !in(shape.layers, kMostLayers) ||
      !in(shape.kv_heads, kMostHeads) || !in(shape.head_dim, kMostHeadDim) ||
      shape.page_tokens != kPageTokens || shape.type_k >= std::size(kTypes) ||
      shape.type_v >= std::size(kTypes)) {
    return Damaged("its front has a number out of range");
  }
  for (const uint32_t type : {shape.type_k, shape.type_v}) {
    const int block = InfoOf(kTypes[type]).block_elements;
    if (shape.head_dim % static_cast<uint32_t>(block) != 0) {
      return Damaged("its rows are no whole blocks of their type");
    }
  }
  return KvLayout{kTypes[shape.type_k], kTypes[shape.type_v],
                  static_cast<int>(shape.kv_heads),
                  static_cast<int>(shape.head_dim)};
}

uint64_t SumOf(const void* bytes, size_t count) {
  return XXH3_64bits(bytes, count);
}

uint64_t LastSumIn(std::span<const std::byte> bytes) {
  uint64_t sum;
  std::memcpy(&sum, bytes.data() + bytes.size() - sizeof(sum), sizeof(sum));
  return sum;
}

std::vector<std::byte> EncodeFront(const KvFileInfo& info) {
  Fixed fixed = {
      .magic = {},
      .version = kVersion,
      .byte_order = kFileByteOrder,
      .file_bytes = info.FileBytes(),
      .payload_offset = info.PayloadOffset(),
      .page_bytes = static_cast<uint64_t>(info.layout.PageBytes()),
      .positions = info.ids.size(),
      .shape = FileShapeOf(info.layout, info.layers),
      .fingerprint_bytes = static_cast<uint32_t>(info.fingerprint.size()),
      .title_bytes = static_cast<uint32_t>(info.title.size())};
  std::memcpy(fixed.magic, kMagic, sizeof(kMagic));
  std::vector<std::byte> front;
  front.reserve(info.FrontBytes());
  AppendBytes(&fixed, 1, &front);
  AppendBytes(info.fingerprint.data(), info.fingerprint.size(), &front);
  AppendBytes(info.title.data(), info.title.size(), &front);
  AppendBytes(info.ids.data(), info.ids.size(), &front);
  AppendBytes(info.sums.data(), info.sums.size(), &front);
  const uint64_t sum = SumOf(front.data(), front.size());
  AppendBytes(&sum, 1, &front);
  return front;
}

std::array<std::byte, kCommitBytes> EncodeCommit(
    std::span<const std::byte> front) {
  Commit commit = {.magic = {},
                   .file_bytes = FixedOf(front).file_bytes,
                   .front_sum = LastSumIn(front),
                   .sum = 0};
  std::memcpy(commit.magic, kCommitMagic, sizeof(kCommitMagic));
  commit.sum = SumOf(&commit, offsetof(Commit, sum));
  std::array<std::byte, kCommitBytes> bytes;
  std::memcpy(bytes.data(), &commit, sizeof(commit));
  return bytes;
}

absl::StatusOr<uint64_t> FrontBytesIn(
    std::span<const std::byte, kFixedFrontBytes> fixed_bytes,
    uint64_t file_bytes) {
  const Fixed fixed = FixedOf(fixed_bytes);
  RETURN_IF_ERROR(Check(fixed, file_bytes));
  const uint64_t bytes = FrontBytes(fixed.fingerprint_bytes, fixed.title_bytes,
                                    fixed.positions, fixed.shape.layers);
  if (bytes > file_bytes) {
    return Damaged(
        absl::StrCat("its front needs ", bytes, " bytes, it has ", file_bytes));
  }
  // The pages must fill the rest of the file, so that a reader never allocates
  // more memory than the file has bytes.
  ASSIGN_OR_RETURN(const KvLayout layout,
                   LayoutOf(fixed.shape, fixed.positions));
  const uint64_t offset = FileAligned(bytes);
  const auto page_bytes = static_cast<uint64_t>(layout.PageBytes());
  const uint64_t pages =
      fixed.shape.layers * ((fixed.positions + kPageTokens - 1) / kPageTokens);
  if (fixed.payload_offset != offset || fixed.page_bytes != page_bytes ||
      offset + kCommitBytes > file_bytes ||
      (file_bytes - offset - kCommitBytes) / page_bytes != pages ||
      (file_bytes - offset - kCommitBytes) % page_bytes != 0) {
    return Damaged("its front contradicts itself");
  }
  return bytes;
}

absl::StatusOr<KvFileInfo> DecodeFront(std::span<const std::byte> front,
                                       uint64_t file_bytes) {
  if (front.size() < kFixedFrontBytes) return Damaged("its front is cut off");
  ASSIGN_OR_RETURN(const uint64_t bytes,
                   FrontBytesIn(front.first<kFixedFrontBytes>(), file_bytes));
  if (bytes != front.size()) return Damaged("its front is cut off");
  if (SumOf(front.data(), front.size() - sizeof(uint64_t)) !=
      LastSumIn(front)) {
    return Damaged("its front does not have its checksum");
  }
  const Fixed fixed = FixedOf(front);
  KvFileInfo info;
  ASSIGN_OR_RETURN(info.layout, LayoutOf(fixed.shape, fixed.positions));
  info.layers = static_cast<int>(fixed.shape.layers);
  const std::byte* at = front.data() + kFixedFrontBytes;
  const auto take = [&at](void* to, size_t count) {
    if (count > 0) std::memcpy(to, at, count);
    at += count;
  };
  info.fingerprint.resize(fixed.fingerprint_bytes);
  take(info.fingerprint.data(), info.fingerprint.size());
  info.title.resize(fixed.title_bytes);
  take(info.title.data(), info.title.size());
  info.ids.resize(fixed.positions);
  take(info.ids.data(), info.ids.size() * sizeof(int32_t));
  info.sums.resize(static_cast<size_t>(info.layers * info.Pages()));
  take(info.sums.data(), info.sums.size() * sizeof(uint64_t));
  return info;
}

absl::Status CheckCommit(std::span<const std::byte, kCommitBytes> bytes,
                         std::span<const std::byte> front) {
  const std::array<std::byte, kCommitBytes> needed = EncodeCommit(front);
  if (std::equal(bytes.begin(), bytes.end(), needed.begin())) {
    return absl::OkStatus();
  }
  return Damaged("it was not finished");
}

}  // namespace tiercel

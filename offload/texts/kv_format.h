#ifndef TIERCEL_OFFLOAD_TEXTS_KV_FORMAT_H_
#define TIERCEL_OFFLOAD_TEXTS_KV_FORMAT_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/kv/kv_layout.h"

namespace tiercel {

// The bytes of a saved text, as offload/KV_FORMAT.md has them under "On disk":
// a front that says all there is to know of it, pages, and a commit record.
// Here they are made and read in memory; nothing is believed of what is read.

struct KvFileInfo {
  // All that the KV follows from but the tokens: who looks for a text of its
  // own compares it letter by letter.
  std::string fingerprint;
  std::string title;  // for people: the model, and what the text is called
  KvLayout layout = {};
  int layers = 0;
  std::vector<int32_t> ids;  // of every position, from position 0 on
  // XXH3-64 of each page [layer][page]; cells behind the last position are 0.
  std::vector<uint64_t> sums;

  int64_t positions() const { return static_cast<int64_t>(ids.size()); }
  int64_t Pages() const {
    return (positions() + kPageTokens - 1) / kPageTokens;
  }
  uint64_t FrontBytes() const;  // without what fills it up to the pages
  uint64_t PayloadOffset() const;
  uint64_t PageOffset(int layer, int64_t page) const {
    return PayloadOffset() +
           static_cast<uint64_t>((layer * Pages() + page) * layout.PageBytes());
  }
  uint64_t CommitOffset() const { return PageOffset(layers, 0); }
  uint64_t FileBytes() const;
};

inline constexpr uint64_t kFixedFrontBytes = 80;
inline constexpr uint64_t kCommitBytes = 32;

// ---- What files of texts and of unfinished prompts share ----

inline constexpr uint32_t kFileByteOrder = 0x01020304;
inline constexpr uint64_t kFileAlignment = 4096;  // of pages and what is large
inline constexpr uint64_t kMostFileText = uint64_t{1} << 20;  // bytes of one

// The shape of a model's pages, as files have it.
struct FileShape {
  uint32_t page_tokens;
  uint32_t layers;
  uint32_t kv_heads;
  uint32_t head_dim;
  uint32_t type_k;
  uint32_t type_v;
};
FileShape FileShapeOf(const KvLayout& layout, int layers);
// The layout of a file of so many positions. Errors: text_damaged, of numbers
// that no file of ours has.
absl::StatusOr<KvLayout> LayoutOf(const FileShape& shape, uint64_t positions);

inline uint64_t FileAligned(uint64_t bytes) {
  return (bytes + kFileAlignment - 1) / kFileAlignment * kFileAlignment;
}

// XXH3-64.
uint64_t SumOf(const void* bytes, size_t count);
uint64_t LastSumIn(std::span<const std::byte> bytes);

// Adds the bytes of `count` values to `out`.
template <typename T>
void AppendBytes(const T* values, size_t count, std::vector<std::byte>* out) {
  const auto* const bytes = reinterpret_cast<const std::byte*>(values);
  out->insert(out->end(), bytes, bytes + count * sizeof(T));
}

// ---- A text's own ----

// FrontBytes(), of an info whose sums are known.
std::vector<std::byte> EncodeFront(const KvFileInfo& info);
std::array<std::byte, kCommitBytes> EncodeCommit(
    std::span<const std::byte> front);

// How long the front is that begins with these bytes, in a file of
// `file_bytes`; it is no longer than that. Errors: text_version, of another
// version of the format or another kind of machine; text_damaged.
absl::StatusOr<uint64_t> FrontBytesIn(
    std::span<const std::byte, kFixedFrontBytes> fixed, uint64_t file_bytes);
// A front that is whole. Errors: the same.
absl::StatusOr<KvFileInfo> DecodeFront(std::span<const std::byte> front,
                                       uint64_t file_bytes);
// Whether the file that begins with `front` was finished. Errors:
// text_damaged.
absl::Status CheckCommit(std::span<const std::byte, kCommitBytes> commit,
                         std::span<const std::byte> front);

}  // namespace tiercel

#endif  // TIERCEL_OFFLOAD_TEXTS_KV_FORMAT_H_

#ifndef TIERCEL_OFFLOAD_PROMPT_CACHE_KV_FORMAT_H_
#define TIERCEL_OFFLOAD_PROMPT_CACHE_KV_FORMAT_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/kv/kv_layout.h"

namespace tiercel {

// The bytes of a text's file in the prompt cache, as offload/KV_FORMAT.md has
// them under "On disk": a front that describes the file, pages, and a commit
// record. They are encoded and decoded in memory here; every number that is
// read is checked.

struct KvFileInfo {
  // All inputs of the KV except the tokens. A reader compares it in full before
  // it uses the file.
  std::string fingerprint;
  // For people: the model's file name, and, after a NUL, the name of the text
  // if it has one.
  std::string title;
  KvLayout layout = {};
  int layers = 0;
  std::vector<int32_t> ids;  // token ids of all positions, from 0 on
  // XXH3-64 of each page [layer][page]; cells after the last position are 0.
  std::vector<uint64_t> sums;

  int64_t positions() const { return static_cast<int64_t>(ids.size()); }
  int64_t Pages() const {
    return (positions() + kPageTokens - 1) / kPageTokens;
  }
  uint64_t FrontBytes() const;  // without the padding before the pages
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

// ---- Shared by files of texts and of unfinished prompts ----

inline constexpr uint32_t kFileByteOrder = 0x01020304;
inline constexpr uint64_t kFileAlignment = 4096;  // for pages, hidden states
inline constexpr uint64_t kMostFileText = uint64_t{1} << 20;  // bytes a string

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
// The layout of a file with this many positions. Errors: text_damaged, for
// numbers that no valid file has.
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

// ---- Files of texts ----

// Returns the FrontBytes() bytes of the front; the sums in `info` must be set.
std::vector<std::byte> EncodeFront(const KvFileInfo& info);
std::array<std::byte, kCommitBytes> EncodeCommit(
    std::span<const std::byte> front);

// The length of the front that begins with these bytes, in a file of
// `file_bytes`; it is no longer than that. Errors: text_version, for another
// version of the format or another byte order; text_damaged.
absl::StatusOr<uint64_t> FrontBytesIn(
    std::span<const std::byte, kFixedFrontBytes> fixed, uint64_t file_bytes);
// Decodes a whole front. Errors: the same.
absl::StatusOr<KvFileInfo> DecodeFront(std::span<const std::byte> front,
                                       uint64_t file_bytes);
// Returns OK if the file that begins with `front` was finished. Errors:
// text_damaged.
absl::Status CheckCommit(std::span<const std::byte, kCommitBytes> commit,
                         std::span<const std::byte> front);

}  // namespace tiercel

#endif  // TIERCEL_OFFLOAD_PROMPT_CACHE_KV_FORMAT_H_

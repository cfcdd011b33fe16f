#ifndef TIERCEL_MODELS_FORMAT_GGUF_H_
#define TIERCEL_MODELS_FORMAT_GGUF_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "models/format/checkpoint.h"
#include "models/format/file.h"

namespace tiercel {

// GGUF, versions 2 and 3, little-endian:
//
//   "GGUF", u32 version, u64 tensors, u64 key-values
//   key-values   string key, u32 type, value
//   tensors      string name, u32 dims, u64 dim[dims], u32 type, u64 offset
//   padding to a multiple of general.alignment, then the tensors' data, each
//   padded likewise; offsets count from the data's start
//
// A string is u64 bytes and the bytes. dim[0] is the contiguous one. A set of
// files "name-00001-of-00003.gguf" is opened by its first.
//
// Format: github.com/ggml-org/ggml, docs/gguf.md. Where that document and its
// reader differ, README.md of this folder says what holds here.

// Limits of a header, checked before anything is allocated.
struct GgufLimits {
  static constexpr uint64_t kKeyValues = 65536;
  static constexpr uint64_t kTensors = 65536;
  static constexpr uint64_t kKeyBytes = 65535;
  static constexpr uint64_t kStringBytes = uint64_t{16} << 20;
  static constexpr uint64_t kArrayElements = uint64_t{1} << 20;
  static constexpr uint64_t kNameBytes = 63;
  static constexpr uint32_t kDims = 4;
  static constexpr uint64_t kAlignment = 65536;
  static constexpr int64_t kParts = 512;
};

// The header of one file.
struct GgufHeader {
  Metadata metadata;
  std::vector<TensorInfo> tensors;  // file = 0
  UnreadTensors unread;
  std::vector<std::string> warnings;
};

// Reads and validates the header. The extent of every tensor lies in the file,
// except for tensors of unsupported types, whose size is unknown; with
// `missing` that is where the first error of that kind goes. Errors, each
// naming the byte: model_truncated, not_gguf, unsupported_version,
// wrong_endianness, limit_exceeded, invalid_key, duplicate_key,
// unsupported_type, invalid_value, invalid_alignment, invalid_name,
// duplicate_tensor, invalid_shape, overflow, invalid_offset; File's.
absl::StatusOr<GgufHeader> ReadGgufHeader(const File& file,
                                          absl::Status* missing = nullptr);

// Opens the file, or the whole set if it is the first of one; `need` as in
// Checkpoint::Open. Errors: those of ReadGgufHeader; invalid_split naming the
// part.
absl::StatusOr<std::unique_ptr<Checkpoint>> OpenGguf(
    const std::string& path, const FileOpener& open,
    Checkpoint::Need need = Checkpoint::Need::kAll);

}  // namespace tiercel

#endif  // TIERCEL_MODELS_FORMAT_GGUF_H_

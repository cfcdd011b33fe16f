#ifndef TIERCEL_MODELS_FORMAT_SAFETENSORS_H_
#define TIERCEL_MODELS_FORMAT_SAFETENSORS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "models/format/checkpoint.h"
#include "models/format/file.h"

namespace tiercel {

// safetensors: u64 N, then N bytes of JSON, then the tensors' data.
//
//   {"name": {"dtype": "F16", "shape": [2, 3], "data_offsets": [0, 12]}, ...,
//    "__metadata__": {"key": "text"}}
//
// Offsets count from the data's start; together the tensors cover the data
// exactly, and the data ends the file. Nothing need be aligned.
//
// Format: github.com/huggingface/safetensors, README.md.

struct SafetensorsLimits {
  static constexpr uint64_t kHeaderBytes = 100'000'000;  // the format's own
  static constexpr size_t kTensors = 65536;
  static constexpr size_t kDims = 8;
  static constexpr uint64_t kSideFileBytes = uint64_t{64} << 20;
  static constexpr size_t kShards = 1024;
};

// The header of one file. The types F32, F16 and BF16 are read.
struct SafetensorsHeader {
  std::vector<TensorInfo> tensors;  // in the order of their data; file = 0
  UnreadTensors unread;
};

// Reads and validates the header. With `missing`, data that is not all there is
// its error instead. Errors: header_truncated, header_too_large, invalid_header
// (not JSON, not of the form above, a name twice), limit_exceeded,
// invalid_offset, overflow, invalid_shape, unsupported_dtype; File's.
absl::StatusOr<SafetensorsHeader> ReadSafetensorsHeader(
    const File& file, absl::Status* missing = nullptr);

// Opens a directory that holds config.json and either model.safetensors or
// model.safetensors.index.json with the shards that it names; `need` as in
// Checkpoint::Open. Errors: those of ReadSafetensorsHeader; not_a_checkpoint;
// invalid_index; invalid_json and limit_exceeded naming config.json or the
// index.
absl::StatusOr<std::unique_ptr<Checkpoint>> OpenSafetensors(
    const std::string& directory, const FileOpener& open,
    Checkpoint::Need need = Checkpoint::Need::kAll);

}  // namespace tiercel

#endif  // TIERCEL_MODELS_FORMAT_SAFETENSORS_H_

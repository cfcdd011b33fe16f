#ifndef TIERCEL_MODELS_FORMAT_CHECKPOINT_H_
#define TIERCEL_MODELS_FORMAT_CHECKPOINT_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/number/dtype.h"
#include "models/format/file.h"
#include "models/format/metadata.h"
#include "nlohmann/json.hpp"

namespace tiercel {

// The place, type and shape of a tensor. Names are the file's own.
struct TensorInfo {
  std::string name;
  DType type;
  std::vector<int64_t> shape;  // outermost first, as PyTorch writes it
  uint64_t bytes;
  int file;         // index into the checkpoint's files
  uint64_t offset;  // absolute, in that file
};

// The names of tensors whose types are not supported, with the type's name.
using UnreadTensors = std::map<std::string, std::string, std::less<>>;

// Files that could not be read, by name, with the reason.
using UnreadFiles = std::map<std::string, absl::Status, std::less<>>;

// A checkpoint on disk, whose headers were read and validated as a whole. Its
// data is read on demand with pread, never mapped. There are two formats: GGUF
// (one file or the first of a split set) and a directory of safetensors.
// Thread-safe after Open.
class Checkpoint {
 public:
  enum class Format { kGguf, kSafetensors };
  enum class Need { kAll, kHeaders };

  // With kHeaders, one whose data is not all there is opened too, to be
  // described by what its headers and config.json say. Errors: those of the
  // format's reader (gguf.h, safetensors.h); io_error; not_a_regular_file;
  // not_a_checkpoint for a directory without config.json.
  static absl::StatusOr<std::unique_ptr<Checkpoint>> Open(
      const std::string& path, Need need = Need::kAll);
  virtual ~Checkpoint() = default;

  virtual Format format() const = 0;
  const std::string& path() const { return path_; }
  const std::vector<TensorInfo>& tensors() const { return tensors_; }
  const TensorInfo* Find(std::string_view name) const;  // null if absent
  uint64_t file_bytes() const { return file_bytes_; }   // sum over all files

  const std::vector<std::unique_ptr<File>>& files() const { return files_; }

  // These are not among tensors(), and cannot be read.
  const UnreadTensors& unread() const { return unread_; }

  // Notes for the user that are not errors.
  const std::vector<std::string>& warnings() const { return warnings_; }

  // Copies bytes [offset, offset + out.size()) of the tensor. Errors: io_error;
  // changed_during_load if size, mtime or inode of the file differ from those
  // at Open.
  virtual absl::Status Read(const TensorInfo& tensor, uint64_t offset,
                            std::span<std::byte> out) const;

  // The first error of data that is not there; success: all is.
  const absl::Status& missing() const { return missing_; }

  // The key-values of GGUF; empty for safetensors.
  const Metadata& metadata() const { return metadata_; }
  // Safetensors directory, by file name: config.json, generation_config.json,
  // tokenizer.json, tokenizer_config.json, special_tokens_map.json,
  // added_tokens.json and chat_template.jinja (as a JSON string); without a
  // tokenizer.json also vocab.json, merges.txt and tokenizer.model (as JSON
  // strings of bytes). A file that is absent has no entry.
  const nlohmann::json& side_files() const { return side_files_; }
  // The side files that are there and are not among side_files(): all but
  // config.json may be broken, as token ids need none. Errors: as File has
  // them; git_lfs_pointer, limit_exceeded, invalid_json; invalid_text for a
  // template that is not UTF-8.
  const UnreadFiles& unread_files() const { return unread_files_; }

 protected:
  explicit Checkpoint(Need need) : need_(need) {}

  // Returns an error of data that is not as it should be, or notes it as
  // missing if headers are enough. A pointer of Git LFS and a failed read are
  // always errors.
  absl::Status Miss(const absl::Status& error);
  // Fills the index of Find, and warns of unread tensors. Errors:
  // duplicate_tensor.
  absl::Status IndexTensors();

  std::string path_;
  std::vector<std::unique_ptr<File>> files_;
  std::vector<TensorInfo> tensors_;  // in file order
  UnreadTensors unread_;
  uint64_t file_bytes_ = 0;
  std::vector<std::string> warnings_;
  Metadata metadata_;
  nlohmann::json side_files_ = nlohmann::json::object();
  UnreadFiles unread_files_;
  const Need need_;
  absl::Status missing_;

 private:
  // The indices in tensors_ by name.
  std::unordered_map<std::string_view, size_t> by_name_;
};

}  // namespace tiercel

#endif  // TIERCEL_MODELS_FORMAT_CHECKPOINT_H_

#include "models/format/checkpoint.h"

#include <sys/stat.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kernels/base/checked.h"
#include "lib/status/error.h"
#include "lib/text/quote.h"
#include "models/format/gguf.h"
#include "models/format/safetensors.h"

namespace tiercel {

absl::StatusOr<std::unique_ptr<Checkpoint>> Checkpoint::Open(
    const std::string& path, Need need) {
  struct stat status;
  const bool is_directory =
      stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
  if (is_directory) return OpenSafetensors(path, File::Open, need);
  if (absl::EndsWith(path, ".safetensors")) {
    return InputError("not_a_checkpoint",
                      absl::StrCat(path,
                                   ": a safetensors file lacks its "
                                   "config.json; give the directory"));
  }
  return OpenGguf(path, File::Open, need);
}

absl::Status Checkpoint::Miss(const absl::Status& error) {
  const bool may_miss = ClassOf(error) == ErrorClass::kInput
                            ? CodeOf(error) != "git_lfs_pointer"
                            : CodeOf(error) == "file_not_found";
  if (error.ok() || need_ == Need::kAll || !may_miss) return error;
  missing_.Update(error);
  return absl::OkStatus();
}

const TensorInfo* Checkpoint::Find(std::string_view name) const {
  const auto it = by_name_.find(name);
  return it == by_name_.end() ? nullptr : &tensors_[it->second];
}

absl::Status Checkpoint::IndexTensors() {
  if (!unread_.empty()) {
    constexpr size_t kShown = 4;
    std::vector<std::string> shown;
    for (const auto& [name, type] : unread_) {
      if (shown.size() == kShown) break;
      shown.push_back(absl::StrCat(Quoted(name), " (", type, ")"));
    }
    warnings_.push_back(absl::StrCat(
        unread_.size(), " tensors are of types that are not read: ",
        absl::StrJoin(shown, ", "), unread_.size() > kShown ? ", ..." : ""));
  }
  by_name_.reserve(tensors_.size());
  for (size_t i = 0; i < tensors_.size(); ++i) {
    const auto [it, is_new] = by_name_.emplace(tensors_[i].name, i);
    if (is_new) continue;
    return InputError(
        "duplicate_tensor",
        absl::StrCat("tensor ", Quoted(tensors_[i].name), " is in ",
                     files_[tensors_[it->second].file]->path(), " and in ",
                     files_[tensors_[i].file]->path()));
  }
  return absl::OkStatus();
}

absl::Status Checkpoint::Read(const TensorInfo& tensor, uint64_t offset,
                              std::span<std::byte> out) const {
  const std::optional<uint64_t> end = CheckedAdd(offset, out.size());
  if (!end.has_value() || *end > tensor.bytes) {
    return InternalError(
        "internal",
        absl::StrCat("Checkpoint::Read: ", tensor.name, " has ", tensor.bytes,
                     " bytes; asked for ", out.size(), " at ", offset));
  }
  return files_[tensor.file]->Read(tensor.offset + offset, out);
}

}  // namespace tiercel

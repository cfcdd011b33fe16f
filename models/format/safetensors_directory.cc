// Opens a directory in the layout of Hugging Face as one checkpoint.

#include <algorithm>
#include <array>
#include <map>
#include <unordered_set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "lib/status/error.h"
#include "lib/status/status_macros.h"
#include "lib/text/quote.h"
#include "models/format/json.h"
#include "models/format/safetensors.h"

namespace tiercel {
namespace {

using nlohmann::json;

constexpr const char* kConfig = "config.json";
constexpr const char* kTokenizer = "tokenizer.json";
constexpr std::array<const char*, 6> kOptionalJson = {
    "generation_config.json",  kTokenizer,          "tokenizer_config.json",
    "special_tokens_map.json", "added_tokens.json", "chat_template.json"};
constexpr const char* kTemplate = "chat_template.jinja";
// The vocabulary where there is no tokenizer.json.
constexpr const char* kVocab = "vocab.json";
constexpr std::array<const char*, 2> kVocabTexts = {"merges.txt",
                                                    "tokenizer.model"};
constexpr const char* kSingle = "model.safetensors";
constexpr const char* kIndex = "model.safetensors.index.json";

// Files named in an index are beside it: any name that could lead elsewhere is
// refused.
bool IsPlainName(std::string_view name) {
  return !name.empty() && name.size() <= 255 && name != "." && name != ".." &&
         name.find_first_of(std::string_view("/\\\0", 3)) == name.npos;
}

class SafetensorsCheckpoint final : public Checkpoint {
 public:
  SafetensorsCheckpoint(const std::string& path, Need need) : Checkpoint(need) {
    path_ = path;
  }
  Format format() const override { return Format::kSafetensors; }

  absl::Status Load(const FileOpener& open) {
    RETURN_IF_ERROR(ReadSideFiles(open));
    absl::Status added = AddFile(kSingle, open, /*listed=*/nullptr);
    if (CodeOf(added) == "file_not_found") added = AddShards(open);
    RETURN_IF_ERROR(Miss(added));
    return IndexTensors();
  }

 private:
  using Names = std::unordered_set<std::string>;

  std::string PathOf(const std::string& name) const {
    return absl::StrCat(path_, absl::EndsWith(path_, "/") ? "" : "/", name);
  }

  // Returns the whole text of a small file.
  absl::StatusOr<std::string> ReadText(const std::string& name,
                                       const FileOpener& open) const {
    ASSIGN_OR_RETURN(const std::unique_ptr<File> file, open(PathOf(name)));
    RETURN_IF_ERROR(CheckIsNoPointer(*file));
    if (file->size() > SafetensorsLimits::kSideFileBytes) {
      return InputError(
          "limit_exceeded",
          absl::StrCat(file->path(), ": ", file->size(), " bytes; at most ",
                       SafetensorsLimits::kSideFileBytes, " are accepted"));
    }
    std::string text(file->size(), '\0');
    const std::span<std::byte> bytes(reinterpret_cast<std::byte*>(text.data()),
                                     text.size());
    RETURN_IF_ERROR(file->Read(0, bytes));
    return text;
  }

  absl::StatusOr<json> ReadJson(const std::string& name,
                                const FileOpener& open) const {
    ASSIGN_OR_RETURN(const std::string text, ReadText(name, open));
    return ParsePythonJson(PathOf(name), text);
  }

  absl::StatusOr<json> ReadObject(const std::string& name,
                                  const FileOpener& open) const {
    ASSIGN_OR_RETURN(json document, ReadJson(name, open));
    if (document.is_object()) return document;
    return InputError("invalid_json",
                      absl::StrCat(PathOf(name), ": got ", document.type_name(),
                                   ", need an object"));
  }

  absl::StatusOr<std::string> ReadTemplate(const FileOpener& open) const {
    ASSIGN_OR_RETURN(std::string text, ReadText(kTemplate, open));
    if (IsValidUtf8(text)) return text;
    return InputError("invalid_text",
                      absl::StrCat(PathOf(kTemplate), ": need UTF-8"));
  }

  absl::Status ReadSideFiles(const FileOpener& open) {
    absl::StatusOr<json> config = ReadJson(kConfig, open);
    if (CodeOf(config.status()) == "file_not_found") {
      return InputError(
          "not_a_checkpoint",
          absl::StrCat(path_, ": the directory has no ", kConfig,
                       "; need a safetensors directory or a GGUF file"));
    }
    if (!config.ok()) return config.status();
    side_files_[kConfig] = *std::move(config);
    for (const char* name : kOptionalJson) {
      KeepIfThere(name, ReadObject(name, open));
    }
    KeepIfThere(kTemplate, ReadTemplate(open));
    if (side_files_.contains(kTokenizer) ||
        unread_files_.contains(kTokenizer)) {
      return absl::OkStatus();
    }
    KeepIfThere(kVocab, ReadObject(kVocab, open));
    for (const char* name : kVocabTexts) {
      KeepIfThere(name, ReadText(name, open));
    }
    return absl::OkStatus();
  }

  // Adds a side file, if there is one.
  template <typename T>
  void KeepIfThere(const char* name, absl::StatusOr<T> content) {
    if (content.ok()) {
      side_files_[name] = *std::move(content);
    } else if (CodeOf(content.status()) != "file_not_found") {
      unread_files_.emplace(name, content.status());
    }
  }

  // Adds the tensors of one file: all of them, or those in `listed`, each of
  // which must exist. The others are spare.
  absl::Status AddFile(const std::string& name, const FileOpener& open,
                       const Names* listed) {
    ASSIGN_OR_RETURN(std::unique_ptr<File> file, open(PathOf(name)));
    RETURN_IF_ERROR(CheckIsNoPointer(*file));
    absl::Status cut;
    ASSIGN_OR_RETURN(
        SafetensorsHeader header,
        ReadSafetensorsHeader(*file, need_ == Need::kAll ? nullptr : &cut));
    RETURN_IF_ERROR(Miss(cut));
    Names missing = listed == nullptr ? Names() : *listed;
    for (TensorInfo& tensor : header.tensors) {
      tensor.file = static_cast<int>(files_.size());
      const bool used = listed == nullptr || missing.erase(tensor.name) != 0;
      (used ? tensors_ : spare_).push_back(std::move(tensor));
    }
    for (const auto& [tensor, type] : header.unread) missing.erase(tensor);
    unread_.merge(header.unread);
    file_bytes_ += file->size();
    files_.push_back(std::move(file));
    if (missing.empty()) return absl::OkStatus();
    return IndexError(absl::StrCat("tensor ", Quoted(*missing.begin()),
                                   " is not in ", Quoted(name)));
  }

  // Adds those tensors of the shards that the index lists for no file at all.
  void AddSpare(const Names& listed) {
    for (TensorInfo& tensor : spare_) {
      const bool used = !listed.contains(tensor.name);
      warnings_.push_back(absl::StrCat(
          files_[static_cast<size_t>(tensor.file)]->path(), ": tensor ",
          Quoted(tensor.name),
          used ? " is used, although " : " is not used: ", kIndex,
          used ? " does not list it" : " does not list it for this file"));
      if (used) tensors_.push_back(std::move(tensor));
    }
    spare_.clear();
    std::stable_sort(tensors_.begin(), tensors_.end(),
                     [](const TensorInfo& a, const TensorInfo& b) {
                       return std::pair(a.file, a.offset) <
                              std::pair(b.file, b.offset);
                     });
  }

  absl::Status IndexError(std::string_view message) const {
    return InputError("invalid_index",
                      absl::StrCat(PathOf(kIndex), ": ", std::string(message)));
  }

  // Returns the index's tensor names by the shard that holds them.
  absl::StatusOr<std::map<std::string, Names>> ReadIndex(
      const FileOpener& open) const {
    const absl::StatusOr<json> index = ReadJson(kIndex, open);
    if (CodeOf(index.status()) == "file_not_found") {
      return InputError("not_a_checkpoint",
                        absl::StrCat(path_, ": the directory has neither ",
                                     kSingle, " nor ", kIndex));
    }
    if (!index.ok()) return index.status();
    if (!index->is_object() || !index->contains("weight_map") ||
        !(*index)["weight_map"].is_object()) {
      return IndexError("need an object \"weight_map\"");
    }
    std::map<std::string, Names> shards;
    for (const auto& [tensor, shard] : (*index)["weight_map"].items()) {
      const auto* name = shard.get_ptr<const std::string*>();
      if (name == nullptr || !IsPlainName(*name)) {
        return IndexError(absl::StrCat("tensor ", Quoted(tensor),
                                       " is in file ", Quoted(WriteJson(shard)),
                                       "; need a plain file name"));
      }
      shards[*name].insert(tensor);
    }
    if (shards.empty()) return IndexError("\"weight_map\" lists no tensors");
    if (shards.size() > SafetensorsLimits::kShards) {
      return InputError(
          "limit_exceeded",
          absl::StrCat(PathOf(kIndex), ": ", shards.size(), " shards; at most ",
                       SafetensorsLimits::kShards, " are accepted"));
    }
    return shards;
  }

  absl::Status AddShards(const FileOpener& open) {
    const absl::StatusOr<std::map<std::string, Names>> shards = ReadIndex(open);
    if (!shards.ok()) return shards.status();
    Names all;
    for (const auto& [name, listed] : *shards) {
      all.insert(listed.begin(), listed.end());
      absl::Status added = AddFile(name, open, &listed);
      if (CodeOf(added) == "file_not_found") {
        added = IndexError(absl::StrCat("shard ", Quoted(name), " is missing"));
      }
      RETURN_IF_ERROR(Miss(added));
    }
    AddSpare(all);
    return absl::OkStatus();
  }

  std::vector<TensorInfo> spare_;  // see AddFile
};

}  // namespace

absl::StatusOr<std::unique_ptr<Checkpoint>> OpenSafetensors(
    const std::string& directory, const FileOpener& open,
    Checkpoint::Need need) {
  auto checkpoint = std::make_unique<SafetensorsCheckpoint>(directory, need);
  RETURN_IF_ERROR(checkpoint->Load(open));
  return checkpoint;
}

}  // namespace tiercel

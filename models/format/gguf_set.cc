// Opens a GGUF file, or a set of them, as one checkpoint.

#include <cinttypes>
#include <cstdio>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "lib/status/error.h"
#include "lib/status/status_macros.h"
#include "lib/text/quote.h"
#include "models/format/gguf.h"

namespace tiercel {
namespace {

constexpr std::string_view kPartKey = "split.no";  // from 0
constexpr std::string_view kCountKey = "split.count";
constexpr std::string_view kTensorsKey = "split.tensors.count";

std::string PartSuffix(int64_t part, int64_t count) {
  char suffix[64];
  std::snprintf(suffix, sizeof(suffix), "-%05" PRId64 "-of-%05" PRId64 ".gguf",
                part + 1, count);
  return suffix;
}

absl::Status SplitError(int64_t part, int64_t count, const std::string& path,
                        std::string_view message) {
  return InputError("invalid_split",
                    absl::StrCat("part ", part + 1, " of ", count, ", ", path,
                                 ": ", std::string(message)));
}

// Checks that `header`, of the file at `path`, is part `part` of the set that
// begins with `first`, and that keys which both have agree.
absl::Status CheckPart(const GgufHeader& first, const GgufHeader& header,
                       int64_t part, int64_t count, const std::string& path) {
  const absl::StatusOr<int64_t> says =
      header.metadata.GetInt(kPartKey, 0, GgufLimits::kParts - 1);
  if (!says.ok()) {
    return SplitError(part, count, path, std::string(says.status().message()));
  }
  if (*says != part) {
    return SplitError(part, count, path,
                      absl::StrCat("the file says it is part ", *says + 1));
  }
  for (const auto& [key, value] : header.metadata.all()) {
    if (key == kPartKey) continue;
    const auto it = first.metadata.all().find(key);
    if (it != first.metadata.all().end() && it->second != value) {
      return SplitError(part, count, path,
                        absl::StrCat(Quoted(key),
                                     " differs from the first part's: the "
                                     "file is of another model"));
    }
  }
  return absl::OkStatus();
}

class GgufCheckpoint final : public Checkpoint {
 public:
  GgufCheckpoint(const std::string& path, Need need) : Checkpoint(need) {
    path_ = path;
  }
  Format format() const override { return Format::kGguf; }

  absl::Status Load(const FileOpener& open) {
    ASSIGN_OR_RETURN(GgufHeader first, AddFile(path_, open));
    const absl::StatusOr<std::optional<int64_t>> count =
        first.metadata.FindInt(kCountKey, 0, GgufLimits::kParts);
    if (!count.ok()) {
      return InputError("invalid_split",
                        absl::StrCat(path_, ": ", count.status().message()));
    }
    if (count->value_or(0) > 1) {
      RETURN_IF_ERROR(Miss(AddParts(first, **count, open)));
    }
    metadata_ = std::move(first.metadata);
    return IndexTensors();
  }

 private:
  absl::StatusOr<GgufHeader> AddFile(const std::string& path,
                                     const FileOpener& open) {
    ASSIGN_OR_RETURN(std::unique_ptr<File> file, open(path));
    RETURN_IF_ERROR(CheckIsNoPointer(*file));
    absl::Status cut;
    ASSIGN_OR_RETURN(
        GgufHeader header,
        ReadGgufHeader(*file, need_ == Need::kAll ? nullptr : &cut));
    RETURN_IF_ERROR(Miss(cut));
    for (TensorInfo& tensor : header.tensors) {
      tensor.file = static_cast<int>(files_.size());
      tensors_.push_back(std::move(tensor));
    }
    unread_.merge(header.unread);
    for (std::string& warning : header.warnings) {
      warnings_.push_back(absl::StrCat(path, ": ", warning));
    }
    file_bytes_ += file->size();
    files_.push_back(std::move(file));
    return header;
  }

  absl::Status AddParts(const GgufHeader& first, int64_t count,
                        const FileOpener& open) {
    if (absl::Status s = CheckPart(first, first, 0, count, path_); !s.ok()) {
      return Annotate(s, "open the set by its first part");
    }
    absl::string_view base = path_;
    if (!absl::ConsumeSuffix(&base, PartSuffix(0, count))) {
      return SplitError(
          0, count, path_,
          absl::StrCat("the file's name must end with ", PartSuffix(0, count)));
    }
    for (int64_t part = 1; part < count; ++part) {
      const std::string path = absl::StrCat(base, PartSuffix(part, count));
      const absl::StatusOr<GgufHeader> header = AddFile(path, open);
      if (!header.ok()) {
        return Annotate(header.status(),
                        absl::StrCat("part ", part + 1, " of ", count));
      }
      RETURN_IF_ERROR(CheckPart(first, *header, part, count, path));
    }
    const absl::StatusOr<std::optional<int64_t>> tensors =
        first.metadata.FindInt(kTensorsKey, 0, INT64_MAX);
    if (!tensors.ok()) {
      return SplitError(0, count, path_,
                        std::string(tensors.status().message()));
    }
    const auto found = static_cast<int64_t>(tensors_.size() + unread_.size());
    if (tensors->value_or(found) != found) {
      return SplitError(0, count, path_,
                        absl::StrCat("the set should hold ", **tensors,
                                     " tensors; its parts hold ", found));
    }
    return absl::OkStatus();
  }
};

}  // namespace

absl::StatusOr<std::unique_ptr<Checkpoint>> OpenGguf(const std::string& path,
                                                     const FileOpener& open,
                                                     Checkpoint::Need need) {
  auto checkpoint = std::make_unique<GgufCheckpoint>(path, need);
  RETURN_IF_ERROR(checkpoint->Load(open));
  return checkpoint;
}

}  // namespace tiercel

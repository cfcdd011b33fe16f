#include "models/decoder/tensor_finder.h"

#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kernels/number/dtype.h"
#include "lib/status/error.h"
#include "lib/status/status_macros.h"

namespace tiercel {
namespace {

// The prefixes of a folder's names: the usual one; of a model saved without its
// head; and of the text's part of one that also sees.
constexpr std::string_view kPrefixes[] = {"model.", "", "language_model.model.",
                                          "model.language_model.",
                                          "language_model."};

// Other names of a folder's tensors: the feed-forward of Granite 4, which is
// the shared expert of its mixtures.
constexpr struct {
  std::string_view usual;
  std::string_view other;
} kOtherNames[] = {{"mlp.gate_up_proj", "shared_mlp.input_linear"},
                   {"mlp.down_proj", "shared_mlp.output_linear"}};

// Returns the prefix with which the checkpoint has its embedding; the usual one
// if there is none.
std::string_view PrefixIn(const Checkpoint& checkpoint) {
  for (const std::string_view prefix : kPrefixes) {
    const std::string name = absl::StrCat(
        std::string(prefix), std::string(kEmbedding.hf), ".weight");
    if (checkpoint.Find(name) != nullptr ||
        checkpoint.unread().count(name) > 0) {
      return prefix;
    }
  }
  return kPrefixes[0];
}

// Lists the types that tensors may have: "F32, F16, ... or Q6_K".
std::string NamesOfTypes() {
  std::vector<std::string> names;
  for (const DTypeInfo& info : kDTypeInfos) {
    names.push_back(absl::AsciiStrToUpper(std::string(info.name)));
  }
  const std::string last = names.back();
  names.pop_back();
  return absl::StrCat(absl::StrJoin(names, ", "), " or ", last);
}

}  // namespace

TensorFinder::TensorFinder(const Checkpoint& checkpoint)
    : checkpoint_(checkpoint), prefix_(PrefixIn(checkpoint)) {}

std::string TensorFinder::NameOf(TensorName name, int layer,
                                 std::string_view suffix) const {
  if (checkpoint_.format() == Checkpoint::Format::kGguf) {
    std::string full;
    if (layer >= 0) full = absl::StrCat("blk.", layer, ".");
    return full.append(name.gguf).append(suffix);
  }
  std::string before(prefix_);
  if (layer >= 0) absl::StrAppend(&before, "layers.", layer, ".");
  const auto named = [&](std::string_view hf) {
    return absl::StrCat(before, std::string(hf), std::string(suffix));
  };
  const std::string full = named(name.hf);
  if (Has(full)) return full;
  for (const auto& [usual, other] : kOtherNames) {
    if (name.hf == usual && Has(named(other))) return named(other);
  }
  if (name.hf != kOutput.hf) return full;
  // The head stands beside the model as a rule, and within what also sees.
  const std::string beside =
      absl::StrCat(std::string(kOutput.hf), std::string(suffix));
  const std::string within = absl::StrCat("language_model.", beside);
  return Has(within) ? within : beside;
}

bool TensorFinder::Has(const std::string& name) const {
  return checkpoint_.Find(name) != nullptr ||
         checkpoint_.unread().count(name) > 0;
}

absl::StatusOr<RowsOfTensor> TensorFinder::FindRows(
    TensorName name, const FusedTensor& fused, int layer,
    std::string_view suffix, std::vector<int64_t> shape, bool required) {
  const std::string own = NameOf(name, layer, suffix);
  if (fused.rows > 0) {
    const std::string all = NameOf(fused.name, layer, suffix);
    const TensorInfo* const tensor = checkpoint_.Find(all);
    const bool fits = tensor != nullptr && !tensor->shape.empty() &&
                      tensor->shape.front() == fused.rows;
    const bool unread = checkpoint_.unread().count(all) > 0;
    // One name may be that of both.
    if ((own == all || !Has(own)) && (fits || unread)) {
      shape.front() = fused.rows;
      ASSIGN_OR_RETURN(const TensorInfo* found, Find(all, shape, required));
      return RowsOfTensor{found, fused.first};
    }
  }
  const std::string all =
      fused.rows > 0 ? NameOf(fused.name, layer, suffix) : own;
  ASSIGN_OR_RETURN(const TensorInfo* found, Find(own, shape, required, all));
  return RowsOfTensor{found, 0};
}

absl::StatusOr<RowsOfTensor> TensorFinder::FindExpert(const ExpertTensor& of,
                                                      int layer, int expert,
                                                      int experts, int64_t rows,
                                                      int64_t cols) {
  if (checkpoint_.format() == Checkpoint::Format::kGguf) {
    ASSIGN_OR_RETURN(const TensorInfo* all,
                     Find(NameOf({of.gguf, {}}, layer, ".weight"),
                          {experts, rows, cols}, /*required=*/true));
    return RowsOfTensor{all, expert * rows};
  }
  const std::string name = NameOf({{}, of.hf_all}, layer, "");
  if (Has(name)) {
    ASSIGN_OR_RETURN(
        const TensorInfo* all,
        Find(name, {experts, of.halves * rows, cols}, /*required=*/true));
    return RowsOfTensor{all, (expert * of.halves + of.half) * rows};
  }
  const std::string own =
      absl::StrCat("mlp.experts.", expert, ".", std::string(of.hf));
  ASSIGN_OR_RETURN(const TensorInfo* found,
                   Find(NameOf({{}, own}, layer, ".weight"), {rows, cols},
                        /*required=*/true, name));
  return RowsOfTensor{found, 0};
}

absl::StatusOr<const TensorInfo*> TensorFinder::Find(
    const std::string& name, const std::vector<int64_t>& shape, bool required,
    std::string_view fused) {
  const TensorInfo* tensor = checkpoint_.Find(name);
  const auto unread = checkpoint_.unread().find(name);
  if (unread != checkpoint_.unread().end()) {
    return InputError("unsupported_type",
                      absl::StrCat(name, ": got type ", unread->second,
                                   ", need ", NamesOfTypes()));
  }
  if (tensor == nullptr) {
    if (!required) return nullptr;
    std::string nor;
    if (!fused.empty() && fused != name) {
      nor = absl::StrCat(", nor in ", std::string(fused));
    }
    return InputError(
        "missing_tensor",
        absl::StrCat(name, ": not in the checkpoint", nor, ", need shape [",
                     absl::StrJoin(shape, ", "), "]"));
  }
  if (tensor->shape != shape) {
    return InputError(
        "invalid_shape",
        absl::StrCat(name, ": got shape [", absl::StrJoin(tensor->shape, ", "),
                     "], need [", absl::StrJoin(shape, ", "), "]"));
  }
  used_.insert(name);
  return tensor;
}

}  // namespace tiercel

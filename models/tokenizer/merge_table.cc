#include "models/tokenizer/merge_table.h"

#include <cstddef>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "kernels/base/error.h"
#include "models/format/quote.h"

namespace tiercel {
namespace {

bool MayBeMerged(TokenType type) {
  return type == TokenType::kNormal || type == TokenType::kUserDefined;
}

}  // namespace

absl::StatusOr<MergeTable> MergeTable::Make(const TokenizerSpec& spec) {
  absl::flat_hash_map<absl::string_view, int32_t> id_of;
  id_of.reserve(spec.tokens.size());
  for (size_t id = 0; id < spec.tokens.size(); ++id) {
    id_of.emplace(spec.tokens[id].text, static_cast<int32_t>(id));
  }

  MergeTable table;
  table.merges_.reserve(spec.merges.size());
  for (size_t rank = 0; rank < spec.merges.size(); ++rank) {
    const auto& [left, right] = spec.merges[rank];
    const auto left_id = id_of.find(left);
    const auto right_id = id_of.find(right);
    const auto merged_id = id_of.find(absl::StrCat(left, right));
    if (left_id == id_of.end() || right_id == id_of.end() ||
        merged_id == id_of.end()) {
      return InputError(
          "invalid_vocab",
          absl::StrCat("tokenizer: merge ", rank, " joins ", Quoted(left),
                       " and ", Quoted(right),
                       "; both and their concatenation must be tokens"));
    }
    if (!MayBeMerged(spec.tokens[merged_id->second].type)) continue;
    table.merges_.insert_or_assign(
        Key(left_id->second, right_id->second),
        Merge{static_cast<uint32_t>(rank), merged_id->second});
  }
  return table;
}

}  // namespace tiercel

#include "models/tokenizer/merge_table.h"

#include <cstddef>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "lib/status/error.h"
#include "lib/text/quote.h"

namespace tiercel {
namespace {

bool MayBeMerged(TokenType type) {
  return type == TokenType::kNormal || type == TokenType::kUserDefined;
}

}  // namespace

absl::StatusOr<MergeTable> MergeTable::Make(const TokenizerSpec& spec) {
  FlatMap<absl::string_view, int32_t> id_of;
  id_of.Reserve(spec.tokens.size());
  for (size_t id = 0; id < spec.tokens.size(); ++id) {
    id_of.Insert(spec.tokens[id].text, static_cast<int32_t>(id));
  }

  MergeTable table;
  table.merges_.Reserve(spec.merges.size());
  for (size_t rank = 0; rank < spec.merges.size(); ++rank) {
    const auto& [left, right] = spec.merges[rank];
    const int32_t* const left_id = id_of.Find(left);
    const int32_t* const right_id = id_of.Find(right);
    const int32_t* const merged_id = id_of.Find(absl::StrCat(left, right));
    if (left_id == nullptr || right_id == nullptr || merged_id == nullptr) {
      return InputError(
          "invalid_vocab",
          absl::StrCat("tokenizer: merge ", rank, " joins ", Quoted(left),
                       " and ", Quoted(right),
                       "; both and their concatenation must be tokens"));
    }
    if (!MayBeMerged(spec.tokens[*merged_id].type)) continue;
    table.merges_.Assign(Key(*left_id, *right_id),
                         Merge{static_cast<uint32_t>(rank), *merged_id});
  }
  return table;
}

}  // namespace tiercel

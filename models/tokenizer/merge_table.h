#ifndef TIERCEL_MODELS_TOKENIZER_MERGE_TABLE_H_
#define TIERCEL_MODELS_TOKENIZER_MERGE_TABLE_H_

#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "models/tokenizer/flat_map.h"
#include "models/tokenizer/merge.h"
#include "models/tokenizer/tokenizer_spec.h"

namespace tiercel {

// A vocabulary's list of merges, by the ids of the two parts.
class MergeTable {
 public:
  // Makes the table. A merge whose result is a control, unknown, unused or byte
  // token is left out, since plain text must not become one. Of two equal
  // merges the later counts. Errors: invalid_vocab if a part or the result is
  // no token.
  static absl::StatusOr<MergeTable> Make(const TokenizerSpec& spec);

  std::optional<Merge> Find(int32_t left, int32_t right) const {
    const Merge* const found = merges_.Find(Key(left, right));
    if (found == nullptr) return std::nullopt;
    return *found;
  }
  bool empty() const { return merges_.empty(); }

 private:
  static uint64_t Key(int32_t left, int32_t right) {
    return static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 |
           static_cast<uint32_t>(right);
  }

  FlatMap<uint64_t, Merge> merges_;
};

}  // namespace tiercel

#endif  // TIERCEL_MODELS_TOKENIZER_MERGE_TABLE_H_

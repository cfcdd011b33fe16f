#ifndef TIERCEL_DRAFTS_CUT_DRAFTER_H_
#define TIERCEL_DRAFTS_CUT_DRAFTER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "drafts/drafter.h"
#include "lib/status/status_macros.h"

namespace tiercel {

// Drafts the blocks of another drafter, each cut at a place that its own tokens
// choose, and those before them. The tokens that are left out have decided
// nothing, so the distribution of the tokens drawn instead of them is the same.
class CutDrafter final : public Drafter {
 public:
  // Returns the number of a block's tokens that are drafted behind `tokens`.
  using Length = std::function<absl::StatusOr<size_t>(
      const std::vector<int32_t>& tokens, const std::vector<int32_t>& block)>;
  // `drafter` outlives it.
  CutDrafter(Drafter& drafter, Length length)
      : drafter_(drafter), length_(std::move(length)) {}

  const char* name() const override { return drafter_.name(); }
  absl::StatusOr<DraftBlock> Draft(const std::vector<int32_t>& tokens,
                                   int64_t most, const DrawKey& key) override {
    absl::StatusOr<DraftBlock> block = drafter_.Draft(tokens, most, key);
    if (!block.ok()) return block;
    ASSIGN_OR_RETURN(const size_t length, length_(tokens, block->tokens));
    block->tokens.resize(length);
    block->distributions.resize(length);
    return block;
  }
  std::vector<DraftLevel> inner_levels() const override {
    return drafter_.inner_levels();
  }

 private:
  Drafter& drafter_;
  const Length length_;
};

}  // namespace tiercel

#endif  // TIERCEL_DRAFTS_CUT_DRAFTER_H_

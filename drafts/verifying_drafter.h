#ifndef TIERCEL_DRAFTS_VERIFYING_DRAFTER_H_
#define TIERCEL_DRAFTS_VERIFYING_DRAFTER_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "drafts/draft_length.h"
#include "drafts/drafter.h"
#include "drafts/verify.h"

namespace tiercel {

// A target that drafts: its tokens are checked again by another target.
class DraftTarget : public Target {
 public:
  // Makes `tokens` the sequence, and removes every trace of what was kept
  // beyond it.
  virtual absl::Status Begin(const std::vector<int32_t>& tokens) = 0;
  // Passes the last token of each branch of `block` that `growing` names, all
  // at once. The rounds since Begin have passed the block, and earlier calls
  // the tokens before the last. Returns the distribution of the token behind
  // each: [growing]. Begin drops their rows.
  virtual absl::StatusOr<std::vector<Distribution>> BehindBranches(
      const DraftBlock& block, absl::Span<const size_t> growing) = 0;
};

// Drafts with a model of its own, `target`, by the same round that will check
// its draft: an inner drafter proposes, `target` decides. So each token has
// exactly the distribution of `target`, and levels nest. Without an inner
// drafter `target` draws token by token.
class VerifyingDrafter final : public Drafter {
 public:
  struct Options {
    const char* name = "";  // the name of `target` in reports
    VerifyMode mode = VerifyMode::kResidual;
    Drafter* inner = nullptr;                    // null: none
    DraftLength gamma1 = DraftLength::Fixed(1);  // tokens of `inner` at a time
    int branches = 0;                            // most of a block
  };
  static constexpr int64_t kBranchTokens = 8;  // the most of a branch

  // `target` and what `options` names must outlive it.
  VerifyingDrafter(DraftTarget& target, const Options& options)
      : target_(target), options_(options) {}

  const char* name() const override { return options_.name; }

  // Drafts exactly `most` tokens, or fewer if none may follow them, and
  // branches where a token is least likely to hold. Errors: those of the target
  // and of the inner drafter.
  absl::StatusOr<DraftBlock> Draft(const std::vector<int32_t>& tokens,
                                   int64_t most, const DrawKey& key) override;

  std::vector<DraftLevel> inner_levels() const override;

 private:
  // Adds tokens until the block has `most`. The target holds `sequence`, which
  // grows with them.
  absl::Status Extend(std::vector<int32_t>* sequence, int64_t most,
                      const DrawKey& key, std::vector<int32_t>* tokens,
                      std::vector<Distribution>* distributions);
  // Adds branches, which the target drafts without the inner drafter: a pass
  // adds a token to each.
  absl::Status AddBranches(const DrawKey& key, DraftBlock* block);

  DraftTarget& target_;
  Options options_;
  DraftLevel inner_level_;
};

}  // namespace tiercel

#endif  // TIERCEL_DRAFTS_VERIFYING_DRAFTER_H_

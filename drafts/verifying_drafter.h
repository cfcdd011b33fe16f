#ifndef TIERCEL_DRAFTS_VERIFYING_DRAFTER_H_
#define TIERCEL_DRAFTS_VERIFYING_DRAFTER_H_

#include <cstdint>
#include <vector>

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
  };

  // `target` and what `options` names must outlive it.
  VerifyingDrafter(DraftTarget& target, const Options& options)
      : target_(target), options_(options) {}

  const char* name() const override { return options_.name; }

  // Drafts exactly `most` tokens. Errors: those of the target and of the inner
  // drafter.
  absl::StatusOr<DraftBlock> Draft(const std::vector<int32_t>& tokens,
                                   int64_t most, const DrawKey& key) override;

  std::vector<DraftLevel> inner_levels() const override;

 private:
  DraftTarget& target_;
  Options options_;
  DraftLevel inner_level_;
};

}  // namespace tiercel

#endif  // TIERCEL_DRAFTS_VERIFYING_DRAFTER_H_

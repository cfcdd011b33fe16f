#include "drafts/verify.h"

#include <utility>

#include "drafts/verdict.h"
#include "lib/status/status_macros.h"

namespace tiercel {
namespace {

// Noise that follows from the key and the position alone.
class Noise {
 public:
  Noise(VerifyMode mode, const DrawKey& key)
      : start_(key.start),
        accept_(key.SeedFor(Purpose::kAccept)),
        draw_(mode == VerifyMode::kCoupled ? key.seed
                                           : key.SeedFor(Purpose::kReplace)) {}

  bool Accept(float probability, size_t i) const {
    const auto at = static_cast<uint64_t>(Position(i));
    const auto words = Philox(
        {static_cast<uint32_t>(at), static_cast<uint32_t>(at >> 32), 0, 0},
        accept_);
    // A probability of 0 never accepts, one of 1 always does.
    return OpenUniform(words[0]) < static_cast<double>(probability);
  }
  int32_t Draw(const Distribution& distribution, size_t i) const {
    return tiercel::Draw(distribution, draw_, Position(i));
  }

 private:
  int64_t Position(size_t i) const { return start_ + static_cast<int64_t>(i); }

  const int64_t start_;
  const uint64_t accept_;
  const uint64_t draw_;
};

}  // namespace

absl::StatusOr<VerifiedBlock> VerifyRound(const std::vector<int32_t>& tokens,
                                          int64_t most, VerifyMode mode,
                                          const DrawKey& key, Drafter* drafter,
                                          Target& target) {
  DraftBlock draft;
  if (most > 0) {
    ASSIGN_OR_RETURN(draft, drafter->Draft(tokens, most, key));
  }
  ASSIGN_OR_RETURN(std::vector<Distribution> distributions,
                   target.Distributions(draft.tokens));
  Noise noise(mode, key);
  const Verdict verdict = mode == VerifyMode::kCoupled
                              ? JudgeCoupled(draft.tokens, distributions, noise)
                              : JudgeResidual(draft.tokens, draft.distributions,
                                              distributions, noise);
  RETURN_IF_ERROR(target.Keep(verdict.accepted, verdict.next));

  VerifiedBlock block;
  block.drafted = draft.tokens.size();
  block.accepted = verdict.accepted;
  block.tokens = std::move(draft.tokens);
  block.tokens.resize(verdict.accepted);
  block.tokens.push_back(verdict.next);
  block.distributions = std::move(distributions);
  block.distributions.resize(block.tokens.size());
  return block;
}

}  // namespace tiercel

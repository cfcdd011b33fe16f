#include "runtime/drafting/proposer.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "drafts/cut_drafter.h"
#include "drafts/ngram.h"
#include "lib/status/status_macros.h"
#include "runtime/drafting/model_target.h"
#include "runtime/drafting/retrieval_kv.h"

namespace tiercel {

namespace {

// The number of a block's tokens that the mask allows behind `tokens`.
absl::StatusOr<size_t> AllowedOf(const std::vector<int32_t>& block,
                                 std::vector<int32_t> tokens,
                                 const TokenMask& mask, int64_t vocab) {
  for (size_t i = 0; i < block.size(); ++i) {
    ASSIGN_OR_RETURN(const TokenSet allowed, mask.Allowed(tokens, vocab));
    if (!allowed.Has(block[i])) return i;
    tokens.push_back(block[i]);
  }
  return block.size();
}

}  // namespace

DistributionParams DraftDistribution(DistributionParams distribution) {
  distribution.min_p = std::max(distribution.min_p, 1e-8f);
  distribution.keeps_logits = false;
  return distribution;
}

InnermostDrafter::InnermostDrafter(Session& session,
                                   const DistributionParams& distribution,
                                   const ProposerParams& params)
    : shared_(params.shared) {
  const DistributionParams drafts = DraftDistribution(distribution);
  const char* name = "";
  switch (params.kind) {
    case Proposer::kNone:
      return;
    case Proposer::kNgram:
      drafter_ = std::make_unique<NgramDrafter>();
      if (distribution.mask == nullptr) return;
      unmasked_ = std::move(drafter_);
      drafter_ = std::make_unique<CutDrafter>(
          *unmasked_,
          [mask = distribution.mask, vocab = session.model().config.vocab](
              const std::vector<int32_t>& tokens,
              const std::vector<int32_t>& block) {
            return AllowedOf(block, tokens, *mask, vocab);
          });
      return;
    case Proposer::kSelf:
      name = "self";
      target_ = std::make_unique<ModelTarget>(
          session, drafts,
          std::make_unique<RetrievalKv>(
              session, RetrievalKv::Options{
                           .layers = params.draft_layers,
                           .window = session.draft_view().size().window}));
      break;
    case Proposer::kSmall:
      name = "small";
      target_ = std::make_unique<ModelTarget>(
          *params.draft_session, drafts,
          std::make_unique<DraftWindowKv>(*params.draft_session,
                                          params.draft_window, *shared_,
                                          session.sequence().answer_begin()),
          &shared_->never());
      break;
  }
  drafter_ = std::make_unique<VerifyingDrafter>(
      *target_, VerifyingDrafter::Options{.name = name, .mode = params.verify});
}

}  // namespace tiercel

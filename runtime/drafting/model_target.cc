#include "runtime/drafting/model_target.h"

#include "lib/status/status_macros.h"

namespace tiercel {

absl::StatusOr<std::vector<Distribution>> ModelTarget::Distributions(
    const std::vector<int32_t>& block) {
  before_ = kv_->tokens().size();
  ASSIGN_OR_RETURN(const float* logits, kv_->Pass(block));
  return DistributionsOf(session_, logits, kv_->tokens(), before_,
                         distribution_);
}

absl::StatusOr<std::vector<Distribution>> DistributionsOf(
    Session& session, const float* logits, const std::vector<int32_t>& tokens,
    size_t before, const DistributionParams& distribution) {
  return MakeDistributions(
      session.runner().stream(),
      {.logits = logits,
       .rows = static_cast<int64_t>(tokens.size() - before + 1),
       .vocab = session.model().config.vocab,
       .tokens = tokens.data(),
       .before = static_cast<int64_t>(before),
       .distribution = distribution,
       .answer_begin = session.sequence().answer_begin()});
}

}  // namespace tiercel

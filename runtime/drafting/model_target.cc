#include "runtime/drafting/model_target.h"

#include "lib/status/status_macros.h"

namespace tiercel {

absl::StatusOr<std::vector<Distribution>> ModelTarget::Distributions(
    const std::vector<int32_t>& block) {
  before_ = kv_->tokens().size();
  ASSIGN_OR_RETURN(const float* logits, kv_->Pass(block, /*branches=*/{}));
  return DistributionsOf(session_, logits, kv_->tokens(), before_,
                         distribution_, never_);
}

absl::StatusOr<Target::TreeDistributions> ModelTarget::OfTree(
    const DraftBlock& block) {
  TreeDistributions tree;
  before_ = kv_->tokens().size();
  ASSIGN_OR_RETURN(const float* logits,
                   kv_->Pass(block.tokens, block.branches));
  ASSIGN_OR_RETURN(tree.block, DistributionsOf(session_, logits, kv_->tokens(),
                                               before_, distribution_, never_));
  for (size_t i = 0; i < block.branches.size(); ++i) {
    const DraftBranch& branch = block.branches[i];
    tree.branches.emplace_back();
    ASSIGN_OR_RETURN(const float* own, kv_->BranchLogits(i));
    if (own == nullptr) continue;
    const size_t shared = before_ + branch.at;
    std::vector<int32_t> tokens(
        kv_->tokens().begin(),
        kv_->tokens().begin() + static_cast<std::ptrdiff_t>(shared));
    tokens.insert(tokens.end(), branch.tokens.begin(), branch.tokens.end());
    ASSIGN_OR_RETURN(tree.branches.back(),
                     DistributionsOf(session_, own, tokens, shared + 1,
                                     distribution_, never_));
  }
  return tree;
}

absl::StatusOr<std::vector<Distribution>> DistributionsOf(
    Session& session, const float* logits, const std::vector<int32_t>& tokens,
    size_t before, const DistributionParams& distribution,
    const std::vector<int32_t>* never) {
  return MakeDistributions(
      session.runner().stream(),
      {.logits = logits,
       .rows = static_cast<int64_t>(tokens.size() - before + 1),
       .vocab = session.model().config.vocab,
       .tokens = tokens.data(),
       .before = static_cast<int64_t>(before),
       .distribution = distribution,
       .answer_begin = session.sequence().answer_begin(),
       .never = never});
}

}  // namespace tiercel

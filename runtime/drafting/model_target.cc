#include "runtime/drafting/model_target.h"

#include "lib/status/status_macros.h"

namespace tiercel {

absl::StatusOr<std::vector<Distribution>> ModelTarget::Distributions(
    const std::vector<int32_t>& block) {
  before_ = kv_->tokens().size();
  ASSIGN_OR_RETURN(const float* logits, kv_->Pass(block, /*branches=*/{}));
  return DistributionsOf(session_, logits, kv_->tokens(), before_,
                         distribution_, kv_->text(), never_);
}

absl::StatusOr<Target::TreeDistributions> ModelTarget::OfTree(
    const DraftBlock& block) {
  TreeDistributions tree;
  before_ = kv_->tokens().size();
  ASSIGN_OR_RETURN(const float* logits,
                   kv_->Pass(block.tokens, block.branches));
  ASSIGN_OR_RETURN(tree.block,
                   DistributionsOf(session_, logits, kv_->tokens(), before_,
                                   distribution_, kv_->text(), never_));
  // Tokens up to the branch, and its own instead of those behind.
  const auto with = [&](const std::vector<int32_t>& all,
                        const DraftBranch& branch) {
    const size_t shared = all.size() - block.tokens.size() + branch.at;
    std::vector<int32_t> tokens(
        all.begin(), all.begin() + static_cast<std::ptrdiff_t>(shared));
    tokens.insert(tokens.end(), branch.tokens.begin(), branch.tokens.end());
    return tokens;
  };
  for (size_t i = 0; i < block.branches.size(); ++i) {
    const DraftBranch& branch = block.branches[i];
    tree.branches.emplace_back();
    ASSIGN_OR_RETURN(const float* own, kv_->BranchLogits(i));
    if (own == nullptr) continue;
    ASSIGN_OR_RETURN(tree.branches.back(),
                     DistributionsOf(session_, own, with(kv_->tokens(), branch),
                                     before_ + branch.at + 1, distribution_,
                                     with(kv_->text(), branch), never_));
  }
  return tree;
}

absl::StatusOr<std::vector<Distribution>> DistributionsOf(
    Session& session, const float* logits, const std::vector<int32_t>& tokens,
    size_t before, const DistributionParams& distribution,
    const std::vector<int32_t>& text, const std::vector<int32_t>* never) {
  const size_t block = tokens.size() - before;
  return MakeDistributions(
      session.runner().stream(),
      {.logits = logits,
       .rows = static_cast<int64_t>(block + 1),
       .vocab = session.model().config.vocab,
       .tokens = tokens.data(),
       .before = static_cast<int64_t>(before),
       .distribution = distribution,
       .answer_begin = session.sequence().answer_begin(),
       .never = never,
       .text = text.data(),
       .text_before = static_cast<int64_t>(text.size() - block)});
}

}  // namespace tiercel

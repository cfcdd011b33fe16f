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
  for (size_t i = 0; i < block.branches.size(); ++i) {
    const DraftBranch& branch = block.branches[i];
    tree.branches.emplace_back();
    ASSIGN_OR_RETURN(const float* own, kv_->BranchLogits(i));
    if (own == nullptr) continue;
    ASSIGN_OR_RETURN(tree.branches.back(),
                     BehindBranch(own, block, branch, /*first=*/1));
  }
  return tree;
}

absl::StatusOr<std::vector<Distribution>> ModelTarget::BehindBranches(
    const DraftBlock& block, absl::Span<const size_t> growing) {
  ASSIGN_OR_RETURN(const float* logits, kv_->PassBranches(block, growing));
  std::vector<Distribution> behind;
  for (const size_t i : growing) {
    const DraftBranch& branch = block.branches[i];
    ASSIGN_OR_RETURN(std::vector<Distribution> last,
                     BehindBranch(logits, block, branch, branch.tokens.size()));
    behind.push_back(std::move(last.front()));
    logits += session_.model().config.vocab;
  }
  return behind;
}

// Returns the distributions of the tokens after the first `first` of the branch
// and after each that follows, by their logits. The KV's tokens end with the
// block's.
absl::StatusOr<std::vector<Distribution>> ModelTarget::BehindBranch(
    const float* logits, const DraftBlock& block, const DraftBranch& branch,
    size_t first) {
  const auto with_branch = [&](const std::vector<int32_t>& all) {
    const size_t shared = all.size() - block.tokens.size() + branch.at;
    std::vector<int32_t> tokens(
        all.begin(), all.begin() + static_cast<std::ptrdiff_t>(shared));
    tokens.insert(tokens.end(), branch.tokens.begin(), branch.tokens.end());
    return tokens;
  };
  const std::vector<int32_t> tokens = with_branch(kv_->tokens());
  const size_t before = tokens.size() - branch.tokens.size() + first;
  return DistributionsOf(session_, logits, tokens, before, distribution_,
                         with_branch(kv_->text()), never_);
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

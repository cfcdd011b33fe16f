#ifndef TIERCEL_RUNTIME_DRAFTING_MODEL_TARGET_H_
#define TIERCEL_RUNTIME_DRAFTING_MODEL_TARGET_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "drafts/verifying_drafter.h"
#include "kernels/token/distribution.h"
#include "lib/status/error.h"
#include "runtime/session/session.h"

namespace tiercel {

// The KV that a target's rows read and write, with the tokens that it belongs
// to.
class TargetKv {
 public:
  virtual ~TargetKv() = default;

  // As DraftTarget::Begin.
  virtual absl::Status Begin(const std::vector<int32_t>& tokens) = 0;
  virtual const std::vector<int32_t>& tokens() const = 0;
  // The whole text, where the KV is that of a part: it ends with the same
  // number of tokens.
  virtual const std::vector<int32_t>& text() const { return tokens(); }
  // Appends `block`, and passes the rows that the KV lacks. Returns the logits
  // of the token after the last one before the block, and after each of the
  // block's: [block size + 1, vocab], valid until the next call. Errors: those
  // of the session. `branches` of the block may be passed, too.
  virtual absl::StatusOr<const float*> Pass(
      const std::vector<int32_t>& block,
      absl::Span<const DraftBranch> branches) = 0;
  // The logits of the token after each of a branch of the last Pass: [tokens,
  // vocab], valid until the next call; null: it was not passed.
  virtual absl::StatusOr<const float*> BranchLogits(size_t /*branch*/) {
    return nullptr;
  }
  // Keeps the first `length` tokens with their rows, and appends `next`.
  virtual absl::Status Keep(size_t length, absl::Span<const int32_t> next) = 0;
  // Passes rows as DraftTarget::BehindBranches says. Returns the logits behind
  // each: [growing, vocab], valid until the next call.
  virtual absl::StatusOr<const float*> PassBranches(
      const DraftBlock& /*block*/, absl::Span<const size_t> /*growing*/) {
    return InternalError("internal", "no draft over this KV has branches");
  }
};

// A session's model as a target, over the KV that it is given. Over all of the
// session's KV (SessionKv) its distribution is the one promised to the user.
class ModelTarget final : public DraftTarget {
 public:
  // The session outlives it, as do the tokens that it may `never` draw (null:
  // none).
  ModelTarget(Session& session, const DistributionParams& distribution,
              std::unique_ptr<TargetKv> kv,
              const std::vector<int32_t>* never = nullptr)
      : session_(session),
        distribution_(distribution),
        kv_(std::move(kv)),
        never_(never) {}

  absl::Status Begin(const std::vector<int32_t>& tokens) override {
    return kv_->Begin(tokens);
  }
  absl::StatusOr<std::vector<Distribution>> Distributions(
      const std::vector<int32_t>& block) override;
  absl::StatusOr<TreeDistributions> OfTree(const DraftBlock& block) override;
  absl::StatusOr<std::vector<Distribution>> BehindBranches(
      const DraftBlock& block, absl::Span<const size_t> growing) override;
  absl::Status Keep(size_t count, absl::Span<const int32_t> next) override {
    return kv_->Keep(before_ + count, next);
  }

 private:
  absl::StatusOr<std::vector<Distribution>> BehindBranch(
      const float* logits, const DraftBlock& block, const DraftBranch& branch,
      size_t first);

  Session& session_;
  const DistributionParams distribution_;
  std::unique_ptr<TargetKv> kv_;
  const std::vector<int32_t>* const never_;
  size_t before_ = 0;  // number of tokens before the block
};

// The distributions [rows] of the tokens after the first `before` of `tokens`
// and after each that follows, by their logits [rows, vocab] from the session's
// model. `text` is what the mask sees: the whole text, which ends as `tokens`
// do. Those of `never` (null: none) have no probability. Errors: those of
// MakeDistributions.
absl::StatusOr<std::vector<Distribution>> DistributionsOf(
    Session& session, const float* logits, const std::vector<int32_t>& tokens,
    size_t before, const DistributionParams& distribution,
    const std::vector<int32_t>& text,
    const std::vector<int32_t>* never = nullptr);

}  // namespace tiercel

#endif  // TIERCEL_RUNTIME_DRAFTING_MODEL_TARGET_H_

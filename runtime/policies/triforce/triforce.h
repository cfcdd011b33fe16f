#ifndef TIERCEL_RUNTIME_POLICIES_TRIFORCE_TRIFORCE_H_
#define TIERCEL_RUNTIME_POLICIES_TRIFORCE_TRIFORCE_H_

#include <cstdint>
#include <optional>
#include <utility>

#include "drafts/verifying_drafter.h"
#include "runtime/drafting/model_target.h"
#include "runtime/drafting/proposer.h"
#include "runtime/drafting/rounds.h"
#include "runtime/policies/policy.h"
#include "runtime/policies/policy_kind.h"
#include "runtime/policies/policy_parts.h"

namespace tiercel {

// TriForce (arXiv 2404.11912, section 4): the target over its retrieval view
// checks the proposed tokens, and its output is in turn a draft for the target
// over all of the KV. After each sweep the view is chosen anew.
class TriForcePolicy final : public Policy {
 public:
  explicit TriForcePolicy(PolicyParts parts) : parts_(std::move(parts)) {}

  absl::Status Begin(const DistributionParams& distribution,
                     uint64_t seed) override;
  absl::StatusOr<VerifiedBlock> NextBlock() override { return rounds_->Next(); }
  RoundsReport report() const override { return rounds_->report(); }
  void Rest() override {
    if (rounds_.has_value()) rounds_->Rest();
    Policy::Rest();
  }

 private:
  const PolicyParts parts_;
  std::optional<InnermostDrafter> proposer_;
  std::optional<ModelTarget> middle_;
  std::optional<VerifyingDrafter> drafter_;
  std::optional<ModelTarget> target_;
  std::optional<Rounds> rounds_;
};

class TriForceKind final : public PolicyKind {
 public:
  std::string_view name() const override { return "triforce"; }
  std::string_view help() const override {
    return "the model guesses from the parts of the text that matter now, and "
           "checks against all of it";
  }
  bool has_branches() const override { return true; }
  bool drafts_ahead() const override { return true; }
  absl::Status Read(const PolicyRequest& request,
                    PolicyParams* params) const override;
  absl::StatusOr<std::unique_ptr<Policy>> Make(
      PolicyParts parts) const override {
    return std::make_unique<TriForcePolicy>(std::move(parts));
  }
};

}  // namespace tiercel

#endif  // TIERCEL_RUNTIME_POLICIES_TRIFORCE_TRIFORCE_H_

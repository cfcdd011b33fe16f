#ifndef TIERCEL_RUNTIME_POLICIES_FULL_FULL_H_
#define TIERCEL_RUNTIME_POLICIES_FULL_FULL_H_

#include <cstdint>
#include <optional>
#include <utility>

#include "runtime/drafting/model_target.h"
#include "runtime/drafting/proposer.h"
#include "runtime/drafting/rounds.h"
#include "runtime/policies/policy.h"
#include "runtime/policies/policy_kind.h"
#include "runtime/policies/policy_parts.h"

namespace tiercel {

// Every step reads all of the KV, and the target checks proposed tokens, if
// any, at once: speculative decoding (Leviathan et al. 2023).
class FullPolicy final : public Policy {
 public:
  explicit FullPolicy(PolicyParts parts) : parts_(std::move(parts)) {}

  absl::Status Begin(const DistributionParams& distribution,
                     uint64_t seed) override;
  absl::StatusOr<VerifiedBlock> NextBlock() override { return rounds_->Next(); }
  RoundsReport report() const override { return rounds_->report(); }

 private:
  const PolicyParts parts_;
  std::optional<InnermostDrafter> proposer_;
  std::optional<ModelTarget> target_;
  std::optional<Rounds> rounds_;
};

class FullKind final : public PolicyKind {
 public:
  std::string_view name() const override { return "full"; }
  std::string_view help() const override { return "the whole text"; }
  absl::Status Read(const PolicyRequest& request,
                    PolicyParams* params) const override;
  std::optional<RetrievalSize> RetrievalView(
      const PolicyParams& params) const override;
  BlockDistributions Distributions(const PolicyParams& params) const override;
  bool HasTimes() const override { return false; }
  absl::StatusOr<std::unique_ptr<Policy>> Make(
      PolicyParts parts) const override {
    return std::make_unique<FullPolicy>(std::move(parts));
  }
};

}  // namespace tiercel

#endif  // TIERCEL_RUNTIME_POLICIES_FULL_FULL_H_

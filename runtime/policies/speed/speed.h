#ifndef TIERCEL_RUNTIME_POLICIES_SPEED_SPEED_H_
#define TIERCEL_RUNTIME_POLICIES_SPEED_SPEED_H_

#include <cstdint>
#include <optional>
#include <utility>

#include "runtime/drafting/rounds.h"
#include "runtime/drafting/step_target.h"
#include "runtime/policies/policy.h"
#include "runtime/policies/policy_kind.h"
#include "runtime/policies/policy_parts.h"
#include "runtime/policies/speed/speed_params.h"

namespace tiercel {

// SPEED, shallow prefill and deep decode (arXiv 2605.06105). In the plain form
// the rows of prompts end below a layer, the cut. A step reads the whole text
// below it, and above it only the answer and the anchor, which is the first
// tokens of the text.
//
// The verified form is TriForcePolicy with a view that above the cut shows the
// anchor and the answer alone; its prompts go through all layers.
class SpeedPlain final : public Policy {
 public:
  explicit SpeedPlain(PolicyParts parts) : parts_(std::move(parts)) {}

  absl::Status Begin(const DistributionParams& distribution,
                     uint64_t seed) override;
  absl::StatusOr<VerifiedBlock> NextBlock() override { return rounds_->Next(); }
  RoundsReport report() const override;
  StepTarget* steps() override { return &*steps_; }

 private:
  class Steps final : public StepTarget {
   public:
    using StepTarget::StepTarget;

   private:
    absl::StatusOr<Speed> Step() override;
    void Advance(int32_t /*id*/) override {}
  };

  const PolicyParts parts_;
  std::optional<Steps> steps_;
  std::optional<Rounds> rounds_;
};

class SpeedKind final : public PolicyKind {
 public:
  std::string_view name() const override { return "speed"; }
  std::string_view help() const override {
    return "as triforce, from parts that the upper layers do not see";
  }
  bool has_plain() const override { return true; }
  std::vector<PolicyKey> keys() const override;
  absl::Status Read(const PolicyRequest& request,
                    PolicyParams* params) const override;
  absl::Status Check(const Model& target,
                     const PolicyParams& params) const override;
  std::vector<std::string> UnusedKeys(
      const PolicyParams& params) const override;
  std::optional<RetrievalSize> RetrievalView(
      const PolicyParams& params) const override;
  void AddNeeds(const Model& target, const PolicyParams& params,
                SessionOptions* options) const override;
  double DraftSeconds(const PolicyParams& params, const SessionSite& site,
                      const Rates& rates, int64_t length) const override;
  absl::StatusOr<std::unique_ptr<Policy>> Make(
      PolicyParts parts) const override;
};

}  // namespace tiercel

#endif  // TIERCEL_RUNTIME_POLICIES_SPEED_SPEED_H_

#ifndef TIERCEL_RUNTIME_POLICY_FULL_H_
#define TIERCEL_RUNTIME_POLICY_FULL_H_

#include <cstdint>
#include <optional>
#include <utility>

#include "runtime/drafting/proposer.h"
#include "runtime/drafting/rounds.h"
#include "runtime/drafting/sweep_target.h"
#include "runtime/policy/policy.h"
#include "runtime/policy/policy_parts.h"

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
  std::optional<SweepTarget> target_;
  std::optional<Rounds> rounds_;
};

}  // namespace tiercel

#endif  // TIERCEL_RUNTIME_POLICY_FULL_H_

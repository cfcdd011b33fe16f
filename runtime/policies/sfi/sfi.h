#ifndef TIERCEL_RUNTIME_POLICIES_SFI_SFI_H_
#define TIERCEL_RUNTIME_POLICIES_SFI_SFI_H_

#include <cstdint>
#include <optional>
#include <utility>

#include "drafts/cut_drafter.h"
#include "drafts/verifying_drafter.h"
#include "runtime/drafting/model_target.h"
#include "runtime/drafting/proposer.h"
#include "runtime/drafting/rounds.h"
#include "runtime/drafting/step_target.h"
#include "runtime/policies/policy.h"
#include "runtime/policies/policy_kind.h"
#include "runtime/policies/policy_parts.h"
#include "runtime/policies/sfi/sfi_params.h"
#include "runtime/policies/sfi/sfi_schedule.h"

namespace tiercel {

// The plain form of Slow-Fast Inference (arXiv 2603.12038): fast steps read the
// first positions, the selected ones and the newest. A slow step, at the end of
// a sentence or after an interval, reads everything and selects anew.
class SfiPlain final : public Policy {
 public:
  SfiPlain(PolicyParts parts, SfiSchedule::Options options)
      : parts_(std::move(parts)), options_(std::move(options)) {}

  absl::Status Begin(const DistributionParams& distribution,
                     uint64_t seed) override;
  absl::StatusOr<VerifiedBlock> NextBlock() override { return rounds_->Next(); }
  RoundsReport report() const override;
  StepTarget* steps() override { return &*steps_; }

 private:
  class Steps final : public StepTarget {
   public:
    Steps(Session& session, const DistributionParams& distribution,
          const SfiSchedule& schedule)
        : StepTarget(session, distribution), schedule_(schedule) {}
    const ScheduleReport& report() const { return report_; }

   private:
    absl::StatusOr<Speed> Step() override;
    void Advance(int32_t id) override;

    SfiSchedule schedule_;
    int64_t tokens_ = 0;  // tokens of the text so far
    ScheduleReport report_;
  };

  const PolicyParts parts_;
  const SfiSchedule::Options options_;
  std::optional<Steps> steps_;
  std::optional<Rounds> rounds_;
};

// The verified form of Slow-Fast Inference: the model drafts over the view to
// the end of a sentence, and a sweep checks the block. The sweep's first row,
// which always holds, selects the next view. So the text is the model's own.
class SfiVerified final : public Policy {
 public:
  SfiVerified(PolicyParts parts, SfiSchedule::Options options)
      : parts_(std::move(parts)), options_(std::move(options)) {}

  absl::Status Begin(const DistributionParams& distribution,
                     uint64_t seed) override;
  absl::StatusOr<VerifiedBlock> NextBlock() override;
  RoundsReport report() const override;

 private:
  const PolicyParts parts_;
  const SfiSchedule::Options options_;
  std::optional<SfiSchedule> schedule_;  // has seen the session's tokens
  int64_t tokens_ = 0;                   // tokens of the text so far
  ScheduleReport report_;
  std::optional<ModelTarget> target_;
  std::optional<InnermostDrafter> proposer_;
  std::optional<ModelTarget> middle_;
  std::optional<VerifyingDrafter> retrieval_;
  std::optional<CutDrafter> drafter_;
  std::optional<Rounds> rounds_;
};

class SfiKind final : public PolicyKind {
 public:
  std::string_view name() const override { return "sfi"; }
  std::string_view help() const override {
    return "as triforce, from single tokens, to the end of each sentence";
  }
  bool has_plain() const override { return true; }
  std::vector<std::string_view> plain_sizes() const override {
    return {"budget", "chunk", "sink", "window"};
  }
  std::vector<PolicyKey> keys() const override;
  absl::Status Read(const PolicyRequest& request,
                    PolicyParams* params) const override;
  absl::Status Check(const Model& target,
                     const PolicyParams& params) const override {
    return SfiOptionsOf(target, params.Own<SfiParams>(), params.form).status();
  }
  std::vector<std::string> UnusedKeys(
      const PolicyParams& params) const override;
  std::optional<RetrievalSize> RetrievalView(
      const PolicyParams& params) const override {
    return params.Own<SfiParams>().View(
        /*plain=*/params.form == PolicyForm::kPlain);
  }
  FastSteps PlannedSteps(const PolicyParams& params) const override {
    return params.Own<SfiParams>().PlannedSteps();
  }
  absl::StatusOr<std::unique_ptr<Policy>> Make(
      PolicyParts parts) const override;
};

}  // namespace tiercel

#endif  // TIERCEL_RUNTIME_POLICIES_SFI_SFI_H_

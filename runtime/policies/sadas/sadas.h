#ifndef TIERCEL_RUNTIME_POLICIES_SADAS_SADAS_H_
#define TIERCEL_RUNTIME_POLICIES_SADAS_SADAS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "drafts/cut_drafter.h"
#include "drafts/forced_target.h"
#include "drafts/verifying_drafter.h"
#include "runtime/drafting/model_target.h"
#include "runtime/drafting/proposer.h"
#include "runtime/drafting/rounds.h"
#include "runtime/drafting/step_target.h"
#include "runtime/drafting/window_drafter.h"
#include "runtime/policies/policy.h"
#include "runtime/policies/policy_kind.h"
#include "runtime/policies/policy_parts.h"
#include "runtime/policies/sadas/sadas_params.h"
#include "runtime/policies/sadas/think_schedule.h"

namespace tiercel {

// Follows the text of one generation: knows whether it thinks, and reports it.
class ThinkTrack {
 public:
  // The text begins after `session`'s tokens, which may end in `header`.
  ThinkTrack(const ThinkSchedule::Options& options, const Session& session,
             const std::vector<int32_t>& header);

  void Advance(int32_t id);
  const ThinkSchedule& schedule() const { return schedule_; }
  int64_t prompt() const { return prompt_; }  // tokens before the text
  // Returns the next block of the text, made by `rounds`. Errors: those of
  // Rounds::Next.
  absl::StatusOr<VerifiedBlock> Next(Rounds& rounds);
  const ScheduleReport& report() const { return report_; }

 private:
  const int64_t prompt_;
  ThinkSchedule schedule_;
  int64_t tokens_ = 0;  // tokens of the text so far
  ScheduleReport report_;
};

// The thinking options of a text, and the ids with which the model's template
// begins a turn, which may hold a tag. The header is empty without a template.
struct ThinkParts {
  ThinkSchedule::Options options;
  std::vector<int32_t> header;
};

// SADAS, State-Aware Dynamic Attention Scheduling, section 3: a model reads a
// window of the newest positions while it thinks, and everything once it
// answers. This is the plain form, the paper's: rows computed over the window
// are kept. It saves time, and loses what the window does not show.
class SadasPlain final : public Policy {
 public:
  SadasPlain(PolicyParts parts, ThinkParts think)
      : parts_(std::move(parts)), think_(std::move(think)) {}

  absl::Status Begin(const DistributionParams& distribution,
                     uint64_t seed) override;
  absl::StatusOr<VerifiedBlock> NextBlock() override { return rounds_->Next(); }
  RoundsReport report() const override;
  StepTarget* steps() override { return &*steps_; }

 private:
  // Steps over the window or over everything, as the schedule says.
  class Steps final : public StepTarget {
   public:
    Steps(const SadasPlain& policy, Session& session,
          const DistributionParams& distribution, ThinkTrack& track)
        : StepTarget(session, distribution), policy_(policy), track_(track) {}

   private:
    absl::StatusOr<Speed> Step() override;
    void Advance(int32_t id) override { track_.Advance(id); }

    const SadasPlain& policy_;
    ThinkTrack& track_;
  };

  const PolicyParts parts_;
  const ThinkParts think_;
  std::optional<ThinkTrack> track_;
  std::optional<Steps> steps_;
  std::optional<ForcedTarget<ThinkSchedule>> target_;
  std::optional<Rounds> rounds_;
};

// The verified form of SADAS: the model drafts over the window while the text
// thinks and over the retrieval view while it answers, and a sweep checks each
// block. So the text is the model's own. The baseline is this form without
// drafts.
class SadasVerified final : public Policy {
 public:
  SadasVerified(PolicyParts parts, ThinkParts think)
      : parts_(std::move(parts)), think_(std::move(think)) {}

  absl::Status Begin(const DistributionParams& distribution,
                     uint64_t seed) override;
  absl::StatusOr<VerifiedBlock> NextBlock() override;
  RoundsReport report() const override;

 private:
  // The number of tokens of a drafted block that share the mode of its
  // beginning; it stops at a token that the schedule forces.
  size_t WithinMode(const std::vector<int32_t>& block) const;

  const PolicyParts parts_;
  const ThinkParts think_;
  std::optional<ThinkTrack> track_;
  std::optional<ModelTarget> sweeps_;
  std::optional<ForcedTarget<ThinkSchedule>> target_;
  std::optional<InnermostDrafter> proposer_;
  // These draft while the text thinks.
  std::optional<WindowDrafter> window_;
  std::optional<CutDrafter> thinking_;
  std::optional<Rounds> think_rounds_;
  // These draft while the text answers.
  std::optional<ModelTarget> middle_;
  std::optional<VerifyingDrafter> retrieval_;
  std::optional<CutDrafter> answering_;
  std::optional<Rounds> answer_rounds_;
};

class SadasKind final : public PolicyKind {
 public:
  std::string_view name() const override { return "sadas"; }
  std::string_view help() const override {
    return "while the answer thinks, from the newest tokens alone";
  }
  bool has_plain() const override { return true; }
  std::vector<std::string_view> plain_sizes() const override {
    return {"sink", "window"};
  }
  std::vector<PolicyKey> keys() const override;
  absl::Status Read(const PolicyRequest& request,
                    PolicyParams* params) const override;
  absl::Status Check(const Model& target,
                     const PolicyParams& params) const override;
  std::vector<std::string> UnusedKeys(
      const PolicyParams& params) const override;
  // Warns if the schedule waits for a tag that the model may never write.
  std::string Warning(const Model& target,
                      const PolicyParams& params) const override;
  std::optional<RetrievalSize> RetrievalView(
      const PolicyParams& params) const override;
  void AddNeeds(const Model& target, const PolicyParams& params,
                SessionOptions* options) const override;
  FastSteps PlannedSteps(const PolicyParams& params) const override {
    return params.Own<SadasParams>().PlannedSteps();
  }
  double DraftSeconds(const PolicyParams& params, const SessionSite& site,
                      const Rates& rates, int64_t length) const override;
  bool HasBaseline() const override { return true; }
  absl::StatusOr<std::unique_ptr<Policy>> Make(
      PolicyParts parts) const override;
};

}  // namespace tiercel

#endif  // TIERCEL_RUNTIME_POLICIES_SADAS_SADAS_H_

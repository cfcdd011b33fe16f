#include "runtime/policy/speed.h"

#include "lib/status/status_macros.h"

namespace tiercel {

absl::Status SpeedPlain::Begin(const DistributionParams& distribution,
                               uint64_t seed) {
  steps_.emplace(parts_.session, distribution);
  rounds_.emplace(parts_.session, *steps_, Rounds::Options{.seed = seed});
  return steps_->Begin();
}

absl::StatusOr<StepTarget::Speed> SpeedPlain::Steps::Step() {
  RETURN_IF_ERROR(session().CatchUp(Phase::kFast));
  return Speed::kFast;
}

RoundsReport SpeedPlain::report() const {
  RoundsReport report = rounds_->report();
  steps_->AddTo(&report);
  return report;
}

}  // namespace tiercel

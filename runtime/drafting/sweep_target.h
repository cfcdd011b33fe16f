#ifndef TIERCEL_RUNTIME_DRAFTING_SWEEP_TARGET_H_
#define TIERCEL_RUNTIME_DRAFTING_SWEEP_TARGET_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "drafts/verify.h"
#include "kernels/token/distribution.h"
#include "runtime/sequence/session.h"

namespace tiercel {

// The target whose distribution is promised to the user: a session's model over
// all of its KV, in one sweep for each block.
class SweepTarget final : public Target {
 public:
  SweepTarget(Session& session, const DistributionParams& distribution)
      : session_(session), distribution_(distribution) {}

  absl::StatusOr<std::vector<Distribution>> Distributions(
      const std::vector<int32_t>& block) override;
  absl::Status Keep(size_t count, int32_t next) override;

 private:
  Session& session_;
  const DistributionParams distribution_;
  size_t before_ = 0;   // number of tokens before the block
  bool swept_ = false;  // the rows of a sweep wait for Keep
};

}  // namespace tiercel

#endif  // TIERCEL_RUNTIME_DRAFTING_SWEEP_TARGET_H_

#ifndef TIERCEL_RUNTIME_DRAFTING_WINDOW_DRAFTER_H_
#define TIERCEL_RUNTIME_DRAFTING_WINDOW_DRAFTER_H_

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "drafts/verifying_drafter.h"
#include "kernels/token/distribution.h"
#include "offload/kv/view.h"
#include "runtime/sequence/session.h"

namespace tiercel {

// The session's own model over a view of its KV store, read in place. The rows
// that it writes are provisional.
class WindowTarget final : public DraftTarget {
 public:
  WindowTarget(Session& session, const DistributionParams& distribution,
               View view)
      : session_(session),
        distribution_(distribution),
        view_(std::move(view)) {}

  // `tokens` are the session's; only the last one's row is not computed yet.
  absl::Status Begin(const std::vector<int32_t>& tokens) override;
  absl::StatusOr<std::vector<Distribution>> Distributions(
      const std::vector<int32_t>& block) override;
  absl::Status Keep(size_t count, int32_t next) override;

 private:
  Session& session_;
  const DistributionParams distribution_;
  const View view_;
  size_t before_ = 0;  // number of tokens before the block
};

// Drafts with a WindowTarget, and leaves the session as it found it.
class WindowDrafter final : public Drafter {
 public:
  // The session and `options.inner` outlive it.
  WindowDrafter(Session& session, const DistributionParams& distribution,
                View view, const VerifyingDrafter::Options& options)
      : session_(session),
        target_(session, distribution, std::move(view)),
        drafter_(target_, options) {}

  const char* name() const override { return drafter_.name(); }
  absl::StatusOr<DraftBlock> Draft(const std::vector<int32_t>& tokens,
                                   int64_t most, const DrawKey& key) override;
  std::vector<DraftLevel> inner_levels() const override {
    return drafter_.inner_levels();
  }

 private:
  Session& session_;
  WindowTarget target_;
  VerifyingDrafter drafter_;
};

}  // namespace tiercel

#endif  // TIERCEL_RUNTIME_DRAFTING_WINDOW_DRAFTER_H_

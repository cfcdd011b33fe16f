#ifndef TIERCEL_RUNTIME_DRAFTING_WINDOW_DRAFTER_H_
#define TIERCEL_RUNTIME_DRAFTING_WINDOW_DRAFTER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "drafts/verifying_drafter.h"
#include "kernels/token/distribution.h"
#include "offload/kv/view.h"
#include "runtime/drafting/model_target.h"
#include "runtime/session/session.h"

namespace tiercel {

// A session's own tokens and KV under a view, read in place. The rows are
// provisional.
class WindowKv final : public TargetKv {
 public:
  // The session outlives it.
  WindowKv(Session& session, View view)
      : session_(session), view_(std::move(view)) {}

  // `tokens` are the session's, which may hold more; of them only the last
  // one's row is not computed yet.
  absl::Status Begin(const std::vector<int32_t>& tokens) override;
  const std::vector<int32_t>& tokens() const override {
    return session_.sequence().tokens();
  }
  absl::StatusOr<const float*> Pass(
      const std::vector<int32_t>& block,
      absl::Span<const DraftBranch> branches) override;
  absl::Status Keep(size_t length, absl::Span<const int32_t> next) override;

 private:
  Session& session_;
  const View view_;
};

// Drafts with the session's own model over a view of its KV, read in place, and
// leaves the session as it found it.
class WindowDrafter final : public Drafter {
 public:
  // The session and `options.inner` outlive it.
  WindowDrafter(Session& session, const DistributionParams& distribution,
                View view, const VerifyingDrafter::Options& options)
      : session_(session),
        target_(session, distribution,
                std::make_unique<WindowKv>(session, std::move(view))),
        drafter_(target_, options) {}

  const char* name() const override { return drafter_.name(); }
  absl::StatusOr<DraftBlock> Draft(const std::vector<int32_t>& tokens,
                                   int64_t most, const DrawKey& key) override;
  std::vector<DraftLevel> inner_levels() const override {
    return drafter_.inner_levels();
  }

 private:
  Session& session_;
  ModelTarget target_;
  VerifyingDrafter drafter_;
};

}  // namespace tiercel

#endif  // TIERCEL_RUNTIME_DRAFTING_WINDOW_DRAFTER_H_

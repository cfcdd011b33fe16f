#ifndef TIERCEL_RUNTIME_DRAFTING_SESSION_KV_H_
#define TIERCEL_RUNTIME_DRAFTING_SESSION_KV_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime/drafting/model_target.h"
#include "runtime/session/session.h"

namespace tiercel {

// A session's own tokens and all of their KV, read in place. The rows of a
// block go in one sweep. So do those of its branches, over copies of the KV
// that end with the sweep: the tokens of a branch that holds are computed again
// in the next one, where a few rows more cost little.
class SessionKv : public TargetKv {
 public:
  // The session outlives it.
  explicit SessionKv(Session& session) : session_(session) {}

  // `tokens` are the session's, which may hold more.
  absl::Status Begin(const std::vector<int32_t>& tokens) override;
  const std::vector<int32_t>& tokens() const override {
    return session_.sequence().tokens();
  }
  absl::StatusOr<const float*> Pass(
      const std::vector<int32_t>& block,
      absl::Span<const DraftBranch> branches) override;
  absl::StatusOr<const float*> BranchLogits(size_t branch) override;
  absl::Status Keep(size_t length, absl::Span<const int32_t> next) override;

 protected:
  Session& session() { return session_; }

 private:
  Session& session_;
  // The rows of a branch in the last sweep: `skipped` that the block has, too,
  // then those of its own tokens.
  struct BranchRows {
    int64_t first = -1;  // -1: it was not passed
    int64_t skipped = 0;
    int64_t count = 0;
  };
  bool swept_ = false;   // the rows of a sweep wait for Keep
  int64_t pending_ = 1;  // tokens that the last Keep appended
  std::vector<BranchRows> branches_;
};

}  // namespace tiercel

#endif  // TIERCEL_RUNTIME_DRAFTING_SESSION_KV_H_

#ifndef TIERCEL_RUNTIME_DRAFTING_RETRIEVAL_TARGET_H_
#define TIERCEL_RUNTIME_DRAFTING_RETRIEVAL_TARGET_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "drafts/verifying_drafter.h"
#include "kernels/token/law.h"
#include "runtime/sequence/session.h"

namespace tiercel {

// The session's own model over its retrieval view: the middle level of TriForce
// (arXiv 2404.11912, section 4). With fewer layers or a window it is the
// proposer of that level, or of the sweep itself. All of them write the same
// few provisional rows of the view, each over what the levels within it left.
class RetrievalTarget final : public DraftTarget {
 public:
  struct Options {
    LawParams law;
    int layers = 0;      // the first so many; 0: all
    int64_t window = 0;  // of the view the sinks and so many newest; 0: all
  };

  // The session keeps a view.
  RetrievalTarget(Session& session, const Options& options);

  absl::Status Begin(const std::vector<int32_t>& tokens) override;
  absl::StatusOr<std::vector<Law>> Laws(
      const std::vector<int32_t>& block) override;
  absl::Status Keep(size_t count, int32_t next) override;

 private:
  Session& session_;
  const Options options_;
  std::vector<int32_t> tokens_;
  size_t before_ = 0;  // of them, the block not counted
  int64_t end_ = 0;    // of their K and V in the view
};

}  // namespace tiercel

#endif  // TIERCEL_RUNTIME_DRAFTING_RETRIEVAL_TARGET_H_

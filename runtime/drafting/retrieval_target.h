#ifndef TIERCEL_RUNTIME_DRAFTING_RETRIEVAL_TARGET_H_
#define TIERCEL_RUNTIME_DRAFTING_RETRIEVAL_TARGET_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "drafts/verifying_drafter.h"
#include "kernels/token/distribution.h"
#include "runtime/sequence/session.h"

namespace tiercel {

// The session's own model over its retrieval view: the middle level of TriForce
// (arXiv 2404.11912, section 4). With fewer layers or a window it proposes to
// that level, or to the sweep itself. All these levels write the same few
// provisional rows of the view, each over the rows that its inner levels left.
class RetrievalTarget final : public DraftTarget {
 public:
  struct Options {
    DistributionParams distribution;
    int layers = 0;      // it runs the first so many; 0: all
    int64_t window = 0;  // newest positions to read, with the sinks; 0: all
  };

  // The session keeps a view.
  RetrievalTarget(Session& session, const Options& options);

  absl::Status Begin(const std::vector<int32_t>& tokens) override;
  absl::StatusOr<std::vector<Distribution>> Distributions(
      const std::vector<int32_t>& block) override;
  absl::Status Keep(size_t count, int32_t next) override;

 private:
  Session& session_;
  const Options options_;
  std::vector<int32_t> tokens_;
  size_t before_ = 0;  // number of tokens before the block
  int64_t end_ = 0;    // position up to which the view has their K and V
};

}  // namespace tiercel

#endif  // TIERCEL_RUNTIME_DRAFTING_RETRIEVAL_TARGET_H_

#ifndef TIERCEL_RUNTIME_DRAFTING_RETRIEVAL_KV_H_
#define TIERCEL_RUNTIME_DRAFTING_RETRIEVAL_KV_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime/drafting/model_target.h"
#include "runtime/session/session.h"

namespace tiercel {

// A session's retrieval view, and a draft's tokens beside those of the session:
// the middle level of TriForce (arXiv 2404.11912, section 4). With fewer layers
// or a window it serves proposals to that level, or to the sweep itself. All
// these levels write the same few provisional rows of the view, each over the
// rows that its inner levels left.
class RetrievalKv final : public TargetKv {
 public:
  struct Options {
    int layers = 0;      // rows go through the first so many; 0: all
    int64_t window = 0;  // newest positions to read, with the sinks; 0: all
  };

  // The session keeps a view, and outlives it.
  RetrievalKv(Session& session, const Options& options)
      : session_(session), options_(options) {}

  absl::Status Begin(const std::vector<int32_t>& tokens) override;
  const std::vector<int32_t>& tokens() const override { return tokens_; }
  absl::StatusOr<const float*> Pass(
      const std::vector<int32_t>& block,
      absl::Span<const DraftBranch> branches) override;
  absl::StatusOr<const float*> PassBranches(
      const DraftBlock& block, absl::Span<const size_t> growing) override;
  absl::Status Keep(size_t length, absl::Span<const int32_t> next) override;

 private:
  Session& session_;
  const Options options_;
  std::vector<int32_t> tokens_;
  int64_t end_ = 0;  // position up to which the view has their K and V
};

}  // namespace tiercel

#endif  // TIERCEL_RUNTIME_DRAFTING_RETRIEVAL_KV_H_

#include "runtime/drafting/retrieval_target.h"

#include "kernels/token/distribution.h"
#include "lib/status/status_macros.h"

namespace tiercel {

RetrievalTarget::RetrievalTarget(Session& session, const Options& options)
    : session_(session), options_(options) {}

absl::Status RetrievalTarget::Begin(const std::vector<int32_t>& tokens) {
  tokens_ = tokens;
  end_ = session_.draft_view().end();
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Distribution>> RetrievalTarget::Distributions(
    const std::vector<int32_t>& block) {
  session_.draft_view().Truncate(end_);
  before_ = tokens_.size();
  tokens_.insert(tokens_.end(), block.begin(), block.end());
  const auto known =
      static_cast<size_t>(end_ - session_.sequence().first_position());
  const size_t rows = tokens_.size() - known;
  const int all = session_.model().config.layers;
  session_.draft_view().SetWindow(options_.window);
  const absl::Status status = session_.draft_view().Forward(
      tokens_.data() + known, static_cast<int64_t>(rows),
      options_.layers > 0 ? options_.layers : all);
  session_.draft_view().SetWindow(0);
  if (!status.ok()) return status;
  const int64_t vocab = session_.model().config.vocab;
  const size_t wanted = block.size() + 1;
  ASSIGN_OR_RETURN(const float* logits, session_.runner().RowLogits(
                                            static_cast<int64_t>(rows - wanted),
                                            static_cast<int64_t>(wanted)));
  return MakeDistributions(
      session_.runner().stream(),
      {.logits = logits,
       .rows = static_cast<int64_t>(wanted),
       .vocab = vocab,
       .tokens = tokens_.data(),
       .before = static_cast<int64_t>(before_),
       .distribution = options_.distribution,
       .answer_begin = session_.sequence().answer_begin()});
}

absl::Status RetrievalTarget::Keep(size_t count, int32_t next) {
  tokens_.resize(before_ + count);
  end_ = session_.sequence().first_position() +
         static_cast<int64_t>(tokens_.size());
  session_.draft_view().Truncate(end_);
  tokens_.push_back(next);
  return absl::OkStatus();
}

}  // namespace tiercel

#ifndef TIERCEL_RUNTIME_SESSION_DRAFT_VIEW_H_
#define TIERCEL_RUNTIME_SESSION_DRAFT_VIEW_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "offload/retrieval/retrieval.h"

namespace tiercel {

class Session;

// The retrieval view of a session, as drafts read it: passes of the model, or
// of its first layers, that read and write the view alone, beside the sequence.
// Each rank has the part of its heads; all are the same but for that.
class DraftView {
 public:
  // The session keeps a view if any of these is called.
  explicit DraftView(Session& session) : session_(session) {}

  // Each does what the function of Retrieval of its name does, for the views
  // of all ranks.
  bool HasRoom(int64_t rows) const;
  void KeepPlaces();
  void Truncate(int64_t end);
  void SetWindow(int64_t positions);
  std::optional<double> coverage() const;
  int64_t end() const { return first().kv().end(); }
  const RetrievalSize& size() const { return first().size(); }
  // Rank 0's view; with one rank there is no other.
  Retrieval& first() const;

  // Computes the KV of the session's newest tokens, as Session::CatchUp does,
  // and leaves the view in a state that depends on the tokens alone.
  absl::Status CatchUp(Phase phase);
  // Passes `ids`, at most kMaxStepRows, which follow the positions in the view,
  // through the first `layers` layers; Runner::RowLogits gives their logits.
  // Errors: copy_failed, cancelled.
  absl::Status Forward(const int32_t* ids, int64_t rows, int layers);
  // Passes one row of each branch of a draft, all at once, beside the rows of
  // the view; Runner::RowLogits gives their logits, in this order. Errors:
  // those of Forward.
  struct BranchRow {
    int32_t id;
    BranchPlace place;
  };
  absl::Status ForwardBranches(const std::vector<BranchRow>& rows);
  // A CatchUp for the one token that the KV lacks, whose row reads the view,
  // which has the types of the store; its K and V go to both. Errors: also
  // those of KvStore::BeginStep.
  absl::Status Step(Phase phase);
  // Chooses the positions anew, by the last row of the last Sweep that was
  // kept. Errors: copy_failed, cancelled.
  absl::Status Refresh();

 private:
  void Extend(int64_t rows);

  Session& session_;
};

}  // namespace tiercel

#endif  // TIERCEL_RUNTIME_SESSION_DRAFT_VIEW_H_

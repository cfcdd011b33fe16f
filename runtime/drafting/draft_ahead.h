#ifndef TIERCEL_RUNTIME_DRAFTING_DRAFT_AHEAD_H_
#define TIERCEL_RUNTIME_DRAFTING_DRAFT_AHEAD_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "drafts/drafter.h"
#include "drafts/verify.h"
#include "runtime/session/runner.h"
#include "runtime/session/session.h"
#include "runtime/session/shared_passes.h"
#include "runtime/session/strand.h"

namespace tiercel {

// Drafts over a session's view as another drafter does, one block ahead: while
// a sweep checks a block, the next one is drafted as if all of that would hold,
// and as if its own guess of the token behind it were right. If so, the next
// block is there when the sweep ends; if not, it is dropped.
//
// The sweep is a strand: before each of its layers, which the link brings
// meanwhile, drafts pass some layers of the view. The last block that was
// drafted ahead tells how many layers that takes in all; they are spread evenly
// over the sweep, so that the link never waits for long. Layer by layer the
// sweep writes its rows over those of the block's draft.
//
// It is for coupled rounds, whose text is the same whatever was drafted: on a
// GPU time decides, too, which of the view's rows a draft finds replaced.
class DraftAhead final : public Drafter, private SharedPasses {
 public:
  // `drafter` drafts over `session`'s view; both outlive it. Errors: those of
  // Runner::Fork.
  static absl::StatusOr<std::unique_ptr<DraftAhead>> Create(Session& session,
                                                            Drafter& drafter);
  ~DraftAhead() override { Rest(); }

  const char* name() const override { return drafter_.name(); }
  // The block that was drafted ahead, if it follows `tokens`; else a new one.
  absl::StatusOr<DraftBlock> Draft(const std::vector<int32_t>& tokens,
                                   int64_t most, const DrawKey& key) override;
  std::vector<DraftLevel> inner_levels() const override {
    return drafter_.inner_levels();
  }
  // Target::OfTree for the block of the last Draft, which follows the session's
  // tokens; with drafting beside it, unless other sessions share the sweep, or
  // there is no memory for it. Errors: also those of the drafter.
  absl::StatusOr<Target::TreeDistributions> Check(Target& target,
                                                  const DraftBlock& block);
  // The number of blocks that were drafted ahead and used.
  int64_t used() const { return used_; }
  // Frees its memory for other sessions.
  void Rest();

 private:
  DraftAhead(Session& session, Drafter& drafter, std::unique_ptr<Runner> sweeps,
             std::unique_ptr<Runner> drafts);

  // ---- SharedPasses: called by the session's runner during Check ----
  absl::Status Pass(absl::Span<JointStep> steps, Cancelled cancelled) override;
  bool OthersWait() const override { return false; }
  bool OthersMayCome() const override { return false; }
  absl::Status LetOthers() override { return absl::OkStatus(); }
  absl::StatusOr<const float*> RowLogits(int64_t first, int64_t count) override;

  absl::Status Sweep(absl::Span<JointStep> steps, Cancelled cancelled);
  // Lets the sweep pass its next layer, or end; throws what it throws.
  void ResumeSweep();
  // Drafts the next block while the sweep waits. An error is kept in failed_.
  void DraftNext();

  Session& session_;
  Drafter& drafter_;
  const std::unique_ptr<Runner> sweeps_;
  const std::unique_ptr<Runner> drafts_;

  int64_t most_ = 0;  // the most that the last Draft was to draft
  DrawKey key_;       // its key; during a sweep, that of the draft ahead
  // The block that is drafted ahead: the tokens before it, the most that is to
  // be drafted, and its tokens, whose first is a guess of the token that the
  // sweep adds. There are none if none was drafted.
  std::vector<int32_t> supposed_;
  int64_t next_most_ = 0;
  DraftBlock next_;
  std::unique_ptr<Strand> sweep_;  // null: none is on its way
  int64_t view_end_ = 0;           // the view ends there for the sweep
  absl::Status failed_;            // the error of drafting ahead
  bool lacks_memory_ = false;      // it is not tried again
  int64_t drafted_layers_ = 0;     // the last draft ahead has passed them
  int64_t layers_in_turn_ = 1;     // a draft passes them for one of the sweep
  std::vector<float> logits_;      // [rows of the last sweep, vocab]
  bool drafts_last_ = false;       // the last pass was a draft's
  int64_t used_ = 0;
};

}  // namespace tiercel

#endif  // TIERCEL_RUNTIME_DRAFTING_DRAFT_AHEAD_H_

#include "runtime/drafting/rounds.h"

#include <algorithm>
#include <iterator>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "lib/status/error.h"
#include "lib/status/status_macros.h"

namespace tiercel {

RoundsReport& RoundsReport::operator+=(const RoundsReport& other) {
  levels.insert(levels.end(), other.levels.begin(), other.levels.end());
  verify += other.verify;
  fast += other.fast;
  draft += other.draft;
  refresh += other.refresh;
  return *this;
}

absl::StatusOr<std::vector<Distribution>> Rounds::TimedTarget::Distributions(
    const std::vector<int32_t>& block) {
  const absl::Cleanup count = [this, start = session_.Elapsed()] {
    spent_ += session_.Elapsed() - start;
  };
  return target_.Distributions(block);
}

absl::StatusOr<Target::TreeDistributions> Rounds::TimedTarget::OfTree(
    const DraftBlock& block) {
  const absl::Cleanup count = [this, start = session_.Elapsed()] {
    spent_ += session_.Elapsed() - start;
  };
  return ahead_ != nullptr ? ahead_->Check(target_, block)
                           : target_.OfTree(block);
}

absl::Status Rounds::TimedTarget::Keep(size_t count,
                                       absl::Span<const int32_t> next) {
  const absl::Cleanup spent = [this, start = session_.Elapsed()] {
    spent_ += session_.Elapsed() - start;
  };
  return target_.Keep(count, next);
}

Rounds::Rounds(Session& session, Target& target, const Options& options)
    : session_(session),
      options_(options),
      target_(session, target),
      length_(options.length) {
  if (options_.drafter == nullptr) return;
  level_.drafter = options_.drafter->name();
  level_.cost_ratio = length_.cost_ratio();
}

// A sweep that waits for pages leaves the device to drafts. Several ranks, or
// weights that come by the same link, would wait for each other.
bool Rounds::CanDraftAhead() const {
  if (!options_.ahead || !session_.kv().IsAlone()) return false;
  const RankKv& kv = session_.kv().first();
  const bool waits = kv.tier != nullptr &&
                     kv.plan.shape.resident_pages < kv.plan.shape.context_pages;
  return waits && session_.model().streamed == nullptr;
}

absl::Status Rounds::Begin() {
  if (CanDraftAhead()) {
    ASSIGN_OR_RETURN(ahead_, DraftAhead::Create(session_, *options_.drafter));
    target_.DraftsAhead(ahead_.get());
  }
  return options_.over_view ? session_.draft_view().CatchUp(Phase::kVerify)
                            : absl::OkStatus();
}

// A block is not cut short at the end of the output: the tokens must not depend
// on where that is.
int64_t Rounds::MostToDraft() const {
  // The first token of a text needs no sweep. Later ones follow one token that
  // the KV lacks, or those of a branch that held.
  const int64_t pending = session_.sequence().pending();
  if (options_.drafter == nullptr || pending == 0) return 0;
  const int64_t most = std::min(
      {length_.Next(), session_.sequence().room() - 1, kMaxStepRows - pending});
  const bool fits =
      !options_.over_view || session_.draft_view().HasRoom(most + pending);
  return fits ? std::max<int64_t>(most, 0) : 0;
}

absl::StatusOr<VerifiedBlock> Rounds::Next() {
  const TimeSpent start = session_.Elapsed();
  const TimeSpent swept = target_.spent();
  const int64_t end = session_.sequence().first_position() +
                      std::ssize(session_.sequence().tokens());
  Drafter* const drafter = ahead_ != nullptr ? ahead_.get() : options_.drafter;
  absl::StatusOr<VerifiedBlock> block = VerifyRound(
      session_.sequence().tokens(), MostToDraft(),
      options_.drafter != nullptr ? options_.verify : VerifyMode::kCoupled,
      {.seed = options_.seed, .start = end}, drafter, target_);
  if (!block.ok()) return block;
  if (block->tokens.empty()) {
    return InternalError(
        "nothing_allowed",
        absl::StrCat("mask: it allows no token at position ", end,
                     ", need one or more; an output that may end there needs a "
                     "token that ends it"));
  }
  length_.Count(static_cast<int64_t>(block->drafted),
                static_cast<int64_t>(block->accepted));
  level_.Count(block->drafted, block->accepted);
  level_.branches += static_cast<int64_t>(block->branches);
  level_.branch_accepted += static_cast<int64_t>(block->branch_accepted);
  const TimeSpent decided = session_.Elapsed();
  const TimeSpent sweep = target_.spent() - swept;
  verify_ += sweep;
  if (options_.drafter != nullptr) draft_ += decided - start - sweep;
  if (options_.over_view) {
    RETURN_IF_ERROR(session_.draft_view().Refresh());
    refresh_ += session_.Elapsed() - decided;
  }
  return block;
}

absl::StatusOr<VerifiedBlock> Rounds::Next(int64_t at,
                                           ScheduleReport* schedule) {
  const TimeSpent drafts = draft_;
  const TimeSpent sweeps = verify_;
  const int64_t held = session_.sequence().kv_length();
  absl::StatusOr<VerifiedBlock> block = Next();
  if (!block.ok()) return block;
  schedule->NoteBlock(at, static_cast<int64_t>(block->drafted),
                      /*swept=*/session_.sequence().kv_length() > held,
                      (draft_ - drafts).seconds, (verify_ - sweeps).seconds);
  return block;
}

RoundsReport Rounds::report() const {
  RoundsReport report = {.levels = {},
                         .verify = verify_,
                         .fast = {},
                         .draft = draft_,
                         .refresh = refresh_};
  if (options_.drafter == nullptr) return report;
  report.levels = options_.drafter->inner_levels();
  report.levels.push_back(level_);
  if (ahead_ != nullptr) report.levels.back().ahead = ahead_->used();
  return report;
}

}  // namespace tiercel

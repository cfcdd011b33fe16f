#include "runtime/session/runner.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "lib/status/error.h"
#include "lib/status/status_macros.h"

namespace tiercel {

absl::StatusOr<std::unique_ptr<Runner>> Runner::Create(
    const Model& model, const SessionOptions& options) {
  ASSIGN_OR_RETURN(const std::vector<WeightSizes> sizes, model.MeasureRanks());
  std::vector<std::unique_ptr<Stream>> streams;
  int threads = std::numeric_limits<int>::max();
  for (int rank = 0; rank < model.ranks(); ++rank) {
    ASSIGN_OR_RETURN(std::unique_ptr<Stream> stream,
                     model.machine_of(rank).NewStream());
    threads = std::min(threads, stream->pool().num_threads());
    streams.push_back(std::move(stream));
  }
  std::shared_ptr<WorkspacePool> workspaces = model.Workspaces();
  std::vector<int64_t> taken;  // [rank]
  taken.reserve(model.ranks());
  for (int rank = 0; rank < model.ranks(); ++rank) {
    taken.push_back(model.machine_of(rank).memory().used());
  }
  // This comes before the plan, which then sees the GPU memory that a library
  // takes.
  ASSIGN_OR_RETURN(std::shared_ptr<RunnerRanks> together,
                   RunnerRanks::Create(model, streams));
  std::vector<SessionSite> sites;
  for (int rank = 0; rank < model.ranks(); ++rank) {
    const auto at = static_cast<size_t>(rank);
    WeightSizes weights = sizes[at];
    weights.bytes = taken[at];
    sites.push_back(SiteOf(model, weights, options, threads, rank));
  }
  ASSIGN_OR_RETURN(const std::vector<TierPlan> plans,
                   PlanRanks(sites, options.context));
  std::unique_ptr<Runner> runner(
      new Runner(model, std::move(together), std::move(workspaces)));
  for (size_t i = 0; i < sites.size(); ++i) {
    runner->ranks_.push_back(std::make_unique<RunnerRank>(
        model, std::make_shared<RankPlan>(RankPlan{sites[i], plans[i]}),
        std::move(streams[i]), runner->together_, threads));
  }
  return runner;
}

Runner::Runner(const Model& model, std::shared_ptr<RunnerRanks> together,
               std::shared_ptr<WorkspacePool> workspaces)
    : model_(model),
      together_(std::move(together)),
      workspaces_(std::move(workspaces)),
      kept_row_(Vocab()) {}

absl::StatusOr<std::unique_ptr<Runner>> Runner::Fork() const {
  std::unique_ptr<Runner> copy(new Runner(model_, together_, workspaces_));
  for (const auto& rank : ranks_) {
    ASSIGN_OR_RETURN(std::unique_ptr<RunnerRank> forked, rank->Fork());
    copy->ranks_.push_back(std::move(forked));
  }
  if (keeps_row_) {
    std::copy_n(KeptRow().data(), Vocab(), copy->kept_row_.data());
    copy->keeps_row_ = true;
  }
  return copy;
}

std::vector<std::shared_ptr<const RankPlan>> Runner::plans() const {
  std::vector<std::shared_ptr<const RankPlan>> plans;
  for (const auto& rank : ranks_) plans.push_back(rank->planned);
  return plans;
}

// ---- Memory ----

absl::Status Runner::PromiseWorkspace() {
  bool larger = false;
  for (size_t rank = 0; rank < ranks_.size(); ++rank) {
    const WorkspaceSize size = ranks_[rank]->Needs();
    const WorkspaceSize there = workspaces_->Promised(rank);
    larger = larger || there.Or(size).DeviceBytes() > there.DeviceBytes();
    workspaces_->Promise(rank, size);
  }
  if (workspaces_->InUse() && !larger) return absl::OkStatus();
  absl::Status status = TakeWorkspace();
  for (const auto& rank : ranks_) {
    if (status.ok()) status = rank->ReserveAll();
  }
  Rest();
  return status;
}

absl::Status Runner::TakeWorkspace() {
  if (workspace_ != nullptr) return absl::OkStatus();
  workspace_ = workspaces_->Take();
  absl::Cleanup undo = [this] { LeaveWorkspace(); };
  for (size_t rank = 0; rank < ranks_.size(); ++rank) {
    ranks_[rank]->Use(std::move(workspace_->ranks[rank]));
  }
  host_logits_ = std::move(workspace_->host_logits);
  if (!stream().on_host()) {
    host_logits_.resize(static_cast<size_t>(LogitRows()) * Vocab());
  }
  if (keeps_row_) {
    RETURN_IF_ERROR(first().ReserveLogits());
    std::copy_n(kept_row_.data(), Vocab(), HostLogits());
  }
  std::move(undo).Cancel();
  return absl::OkStatus();
}

// Others' passes leave the workspace at rest.
absl::Status Runner::ReadyKeptRow() {
  return others_ == nullptr ? TakeWorkspace() : absl::OkStatus();
}

void Runner::Rest() {
  if (workspace_ == nullptr) return;
  if (keeps_row_) std::copy_n(HostLogits(), Vocab(), kept_row_.data());
  LeaveWorkspace();
}

void Runner::LeaveWorkspace() {
  for (size_t rank = 0; rank < ranks_.size(); ++rank) {
    workspace_->ranks[rank] = ranks_[rank]->Release();
  }
  workspace_->host_logits = std::move(host_logits_);
  workspaces_->GiveBack(std::move(workspace_));
}

// ---- Steps ----

absl::Status Runner::EachRank(
    absl::FunctionRef<absl::Status(RunnerRank&)> part) {
  RETURN_IF_ERROR(TakeWorkspace());
  return together_->gather->Run([&](int index) {
    RunnerRank& rank = *ranks_[static_cast<size_t>(index)];
    if (absl::Status s = part(rank); !s.ok() || rank.alone()) return s;
    // A GPU failure must show here, since other ranks may wait for it.
    return together_->gather->Finish(*rank.stream, index);
  });
}

absl::Status Runner::EachRankOf(
    SequenceKv& kv,
    absl::FunctionRef<absl::Status(RunnerRank&, RankKv&)> part) {
  absl::Status status = EachRank([&](RunnerRank& rank) {
    return part(rank, *kv.ranks()[static_cast<size_t>(rank.site.rank)]);
  });
  if (!status.ok()) kv.DropViews();
  return status;
}

// Returns true if a prompt's rows have the bits of other rows, and may be
// passed with these.
bool Runner::CanSharePrompts() const {
  return !stream().fast_prompts() && stream().blas() == nullptr;
}

int64_t Runner::PromptSlice() const {
  constexpr int64_t kAlone = 1024;  // rows that share their pass with no others
  constexpr int64_t kFirst = 256;   // ... if no other waits for it yet
  if (others_ == nullptr) return 0;
  if (others_->OthersWait()) return CanSharePrompts() ? kMaxStepRows : kAlone;
  if (!others_->OthersMayCome()) return 0;
  return CanSharePrompts() ? kFirst : kAlone;
}

// Prepares a step that no others pass: they go on first.
absl::Status Runner::BeginAlone() {
  shared_last_ = false;
  if (others_ == nullptr) return absl::OkStatus();
  RETURN_IF_ERROR(stream().Synchronize());
  Rest();
  return others_->LetOthers();
}

absl::Status Runner::Pass(const SequenceRows& own, const Step& step,
                          PassProgress progress, Cancelled cancelled,
                          Stop* stop) {
  const bool resumes = step.resume_at.has_value();
  const bool joins = others_ != nullptr && own.count <= kMaxStepRows &&
                     !resumes &&
                     (step.phase != Phase::kPrefill || CanSharePrompts());
  if (joins) {
    RETURN_IF_ERROR(
        PassFew(own, {.phase = step.phase}, step.certain, cancelled));
    const auto all = static_cast<uint64_t>(own.count * model_.config.layers);
    return progress(all, all) ? absl::OkStatus() : CancelledError();
  }
  RETURN_IF_ERROR(BeginAlone());
  std::vector<std::optional<PassPoint>> points(ranks_.size());
  const absl::Status status =
      EachRankOf(own.kv, [&](RunnerRank& rank, RankKv& kv) -> absl::Status {
        const RankRows some = {kv, own.ids, own.count};
        PassPoint point = step.resume_at.value_or(PassPoint());
        if (resumes) {
          // With several ranks none may stop half-way, since they would differ.
          const absl::Status resumed =
              rank.Resume(some, [&] { return rank.alone() && cancelled(); });
          if (ClassOf(resumed) == ErrorClass::kCancelled && rank.alone()) {
            stop->unchanged = true;
          }
          RETURN_IF_ERROR(resumed);
        } else {
          const auto begun = [&] {
            return rank.site.rank == 0 ? step.begun(&point) : absl::OkStatus();
          };
          RETURN_IF_ERROR(rank.Begin(some, step.phase, own.view, step.certain,
                                     cancelled, begun));
        }
        // A prompt that was stopped between two layers may not have saved the
        // first.
        if (point.layer > 0 && point.row == 0) {
          step.after_layer(point.layer - 1);
        }
        const absl::Cleanup came = [&] {
          points[static_cast<size_t>(rank.site.rank)] = point;
        };
        return rank.RunLayers(some, progress, cancelled, step.after_layer,
                              &point);
      });
  const bool alike =
      std::all_of(points.begin(), points.end(), [&](const auto& point) {
        return point.has_value() && point == points.front();
      });
  if (alike) stop->point = points.front();
  return status;
}

absl::Status Runner::PassTogether(absl::Span<JointStep> steps,
                                  Cancelled cancelled) {
  const bool few = std::all_of(
      steps.begin(), steps.end(),
      [](const JointStep& step) { return step.rows.count <= kMaxStepRows; });
  if (others_ != nullptr && few) {
    // They pass it on a stream of their own, in the same workspace.
    shared_last_ = true;
    RETURN_IF_ERROR(stream().Synchronize());
    Rest();
    return others_->Pass(steps, cancelled);
  }
  RETURN_IF_ERROR(BeginAlone());
  absl::Status status = EachRank(
      [&](RunnerRank& rank) { return rank.PassTogether(steps, cancelled); });
  for (const JointStep& step : steps) {
    const bool failed = !status.ok() || !step.status.ok();
    if (failed && !step.waits) step.rows.kv.DropViews();
  }
  return status;
}

int64_t Runner::MostRowsTogether() const {
  int64_t most = std::numeric_limits<int64_t>::max();
  for (const auto& rank : ranks_) {
    most = std::min({most, rank->site.RowsTogether(), rank->plan.state_rows});
  }
  return most;
}

absl::Status Runner::PassFew(const SequenceRows& own, const StepKind& kind,
                             bool certain, Cancelled cancelled) {
  JointStep step = {.rows = own, .kind = kind, .certain = certain};
  RETURN_IF_ERROR(PassTogether({&step, 1}, cancelled));
  return step.status;
}

absl::Status Runner::RefreshViews(SequenceKv& kv, Cancelled cancelled) {
  return EachRankOf(kv, [&](RunnerRank& rank, RankKv& own) {
    return own.retrieval->Refresh(*rank.stream, cancelled);
  });
}

absl::Status Runner::Fill(SequenceKv& kv, int64_t rows, uint64_t seed,
                          PassProgress progress, Cancelled cancelled) {
  return EachRankOf(kv, [&](RunnerRank& rank, RankKv& own) {
    return rank.Fill(own, rows, seed, progress, cancelled);
  });
}

absl::Status Runner::Suspend(SequenceKv& kv, int64_t rows,
                             const PassPoint& point) {
  const bool others = workspaces_.use_count() > 1;
  return EachRankOf(kv, [&](RunnerRank& rank, RankKv& own) {
    return rank.Suspend(own, rows, point, others);
  });
}

// ---- Logits ----

// Puts the logits of `count` rows of the last step one after the other, from
// row `row` on.
absl::Status Runner::LogitsInto(int64_t first_row, int64_t count, int64_t row) {
  if (absl::Status s = EachRank([&](RunnerRank& rank) {
        return rank.LogitsInto(first_row, count, row);
      });
      !s.ok() || stream().on_host()) {
    return s;
  }
  // One copy and one wait bring the step's results to the host.
  const int64_t vocab = model().config.vocab;
  RETURN_IF_ERROR(stream().Copy(host_logits_.data() + row * vocab,
                                first().logits.data() + row * vocab,
                                count * vocab * sizeof(float)));
  return stream().Synchronize();
}

absl::StatusOr<const float*> Runner::RowLogits(int64_t first, int64_t count) {
  if (shared_last_) return others_->RowLogits(first, count);
  if (workspace_ == nullptr) {
    return InternalError("internal", "no step's rows are there");
  }
  RETURN_IF_ERROR(LogitsInto(first, count, /*row=*/1));
  return HostLogits() + Vocab();
}

absl::Status AppendLogits(Runner& runner, PositionRange rows,
                          std::vector<float>* logits) {
  const int64_t vocab = runner.model().config.vocab;
  for (int64_t row = rows.begin; row < rows.end; row += kMaxStepRows) {
    const int64_t count = std::min(rows.end - row, kMaxStepRows);
    ASSIGN_OR_RETURN(const float* some, runner.RowLogits(row, count));
    logits->insert(logits->end(), some, some + count * vocab);
  }
  return absl::OkStatus();
}

absl::Status Runner::KeepRow(int64_t row) {
  if (shared_last_) {
    ASSIGN_OR_RETURN(const float* logits, others_->RowLogits(row, 1));
    std::copy_n(logits, Vocab(),
                workspace_ != nullptr ? HostLogits() : kept_row_.data());
  } else {
    RETURN_IF_ERROR(LogitsInto(row, 1, /*row=*/0));
  }
  keeps_row_ = true;
  return absl::OkStatus();
}

}  // namespace tiercel

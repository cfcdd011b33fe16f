#include "apps/serve/generations.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "apps/cli/error.h"
#include "apps/commands/command.h"
#include "apps/commands/text_length.h"
#include "apps/terminal/output.h"
#include "lib/status/status_macros.h"

namespace tiercel::serve {
namespace {

using cli::Exit;

constexpr size_t kMostSlots = 63;  // the library's most forks
constexpr int64_t kLeastForkTokens = 512;
constexpr size_t kFirstStep = 2048;  // tokens of a prompt

size_t SharedBeginning(const std::vector<int32_t>& a,
                       const std::vector<int32_t>& b) {
  const auto ends = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
  return static_cast<size_t>(ends.first - a.begin());
}

bool LacksMemory(const absl::Status& status) {
  return !status.ok() && !cli::IsInterrupted(status) &&
         cli::ExitOf(status) == Exit::kMemory;
}

// SPEED takes the end of what a session reads for the beginning of an answer,
// so that a prompt must be read in one piece.
bool ReadsInOnePiece(const cli::SamplingOptions& sampling) {
  return sampling.policy == "speed";
}

}  // namespace

// ---- Opening ----

absl::StatusOr<std::unique_ptr<Generations>> Generations::Open(
    const cli::Options& options, const cli::Model& model, size_t parallel) {
  std::unique_ptr<Generations> made(new Generations(options, model));
  ASSIGN_OR_RETURN(made->draft_, cli::OpenDraftModel(options, model));
  RETURN_IF_ERROR(cli::MeasureRates(options, model, /*job_s=*/nullptr,
                                    cli::kOnStderrAlone));
  RETURN_IF_ERROR(made->OpenSessions(parallel));
  ASSIGN_OR_RETURN(made->queue_, cli::Queue::Create(model, made->parallel_));
  made->thread_ = std::thread([raw = made.get()] { raw->Work(); });
  return made;
}

absl::Status Generations::OpenSessions(size_t parallel) {
  ASSIGN_OR_RETURN(const int64_t most, cli::MostTokens(options_, model_));
  const cli::Model* const draft = draft_.has_value() ? &*draft_ : nullptr;
  sized_ = std::make_unique<cli::Options>(options_);
  cli::SessionOptions& session = sized_->session;
  const auto opens = [&](size_t at_once, size_t sessions,
                         int64_t fork_tokens) -> absl::StatusOr<bool> {
    session.forks = static_cast<int64_t>(sessions) - 1;
    session.fork_tokens = session.forks > 0 ? fork_tokens : 0;
    session.context = sessions > 1 ? most : options_.session.context;
    const cli::SessionParams params(*sized_, draft);
    if (sessions > 1) {
      ASSIGN_OR_RETURN(const Json plan, model_.Plan(params.session));
      if (!plan.at("fits").get<bool>()) return false;
    }
    absl::StatusOr<cli::Session> opened =
        cli::Session::Create(model_, params.session);
    if (sessions > 1 && LacksMemory(opened.status())) return false;
    RETURN_IF_ERROR(opened.status());
    root_ = *std::move(opened);
    parallel_ = at_once;
    return true;
  };
  // At best as many sessions again stay for later prompts, and each holds all
  // of a context; else those that are made share the tokens that fit.
  ASSIGN_OR_RETURN(bool opened,
                   opens(parallel, std::min(2 * parallel, kMostSlots), most));
  for (size_t at_once = parallel; !opened; at_once /= 2) {
    int64_t fork_tokens = most;
    do {
      ASSIGN_OR_RETURN(opened, opens(at_once, at_once, fork_tokens));
      fork_tokens /= 2;
    } while (!opened && fork_tokens >= kLeastForkTokens);
  }
  if (parallel_ < parallel) {
    cli::WriteNote(absl::StrCat(
        parallel_, parallel_ == 1 ? " request" : " requests",
        " at a time: memory has no room for more beside a context of ", most,
        " tokens; -c makes it smaller\n"));
  }
  most_slots_ = std::min(2 * parallel_, kMostSlots);
  ASSIGN_OR_RETURN(const Json report, root_->Report());
  cli::WriteWarnings(report.at("warnings").get<std::vector<std::string>>());
  context_ = report.at("context").get<int64_t>();
  planned_tokens_ =
      static_cast<size_t>(context_ + session.forks * session.fork_tokens);
  return absl::OkStatus();
}

Generations::~Generations() {
  CancelAll();
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

// ---- From any thread ----

std::optional<Generations::Id> Generations::Add(Job job, size_t most_waiting) {
  auto task = std::make_unique<Task>();
  task->job = std::move(job);
  const std::lock_guard<std::mutex> lock(mutex_);
  if (ends_ || running_.size() + waiting_.size() >= parallel_ + most_waiting) {
    return std::nullopt;
  }
  const Id id = task->id = ++last_id_;
  waiting_.push_back(std::move(task));
  changed_.notify_all();
  return id;
}

void Generations::Cancel(Id id) {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const auto& task : waiting_) {
    if (task->id == id) task->cancelled = true;
  }
  for (const auto& task : running_) {
    if (task->id != id) continue;
    task->cancelled = true;
    if (task->in_queue) task->slot->session.Cancel();
  }
  changed_.notify_all();
}

void Generations::CancelAll() {
  std::vector<Id> all;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (const auto& task : waiting_) all.push_back(task->id);
    for (const auto& task : running_) all.push_back(task->id);
  }
  for (const Id id : all) Cancel(id);
}

size_t Generations::running() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return running_.size();
}

size_t Generations::waiting() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return waiting_.size();
}

// ---- On its thread ----

void Generations::Work() {
  std::unique_lock<std::mutex> lock(mutex_);
  const auto cancelled = [this] {
    return std::find_if(waiting_.begin(), waiting_.end(),
                        [](const auto& task) { return task->cancelled; });
  };
  for (;;) {
    const auto may_begin = [this] {
      return !waiting_.empty() && !stalled_ && running_.size() < parallel_;
    };
    changed_.wait(lock, [&] {
      return !ended_.empty() || may_begin() || cancelled() != waiting_.end() ||
             (ends_ && waiting_.empty() && running_.empty());
    });
    if (const auto found = cancelled(); found != waiting_.end()) {
      const std::unique_ptr<Task> task = std::move(*found);
      waiting_.erase(found);
      lock.unlock();
      task->job.on_end(cli::Interrupted(), Json());
      lock.lock();
    } else if (!ended_.empty()) {
      Task* const task = ended_.back();
      ended_.pop_back();
      lock.unlock();
      const absl::StatusOr<bool> goes_on = GoOn(*task);
      lock.lock();
      if (goes_on.ok() && *goes_on) continue;
      if (!goes_on.ok()) task->status = goes_on.status();
      const auto place =
          std::find_if(running_.begin(), running_.end(),
                       [&](const auto& one) { return one.get() == task; });
      std::unique_ptr<Task> owned = std::move(*place);
      running_.erase(place);
      stalled_ = false;
      lock.unlock();
      End(std::move(owned));
      lock.lock();
    } else if (may_begin()) {
      running_.push_back(std::move(waiting_.front()));
      waiting_.pop_front();
      Task& task = *running_.back();
      lock.unlock();
      const bool begun = Begin(task);
      lock.lock();
      if (begun) continue;
      const auto place =
          std::find_if(running_.begin(), running_.end(),
                       [&](const auto& one) { return one.get() == &task; });
      waiting_.push_front(std::move(*place));
      running_.erase(place);
      // Another may have ended meanwhile, and given its memory back.
      stalled_ = ended_.empty() && !running_.empty();
    } else {
      return;
    }
  }
}

size_t Generations::MostTokens(const Task& task) const {
  const int64_t most = task.job.sampling.max_tokens;
  const auto context = static_cast<size_t>(context_);
  return most < 0 ? context
                  : std::min(context, task.job.prompt.size() +
                                          static_cast<size_t>(most));
}

bool Generations::Begin(Task& task) {
  for (;;) {
    absl::StatusOr<Slot*> slot = ChooseSlot(task);
    absl::Status status = slot.status();
    if (slot.ok()) {
      task.slot = *slot;
      MakeRoom(task, *slot);
      status = AddToQueue(task);
      if (status.ok()) return true;
      task.slot->busy = false;
      task.slot = nullptr;
    }
    if (LacksMemory(status)) {
      if (FreeOldest(nullptr)) continue;
      const std::lock_guard<std::mutex> lock(mutex_);
      if (running_.size() > 1) return false;
    }
    const std::lock_guard<std::mutex> lock(mutex_);
    task.status = status;
    ended_.push_back(&task);
    return true;
  }
}

absl::StatusOr<Generations::Slot*> Generations::ChooseSlot(const Task& task) {
  const std::vector<int32_t>& prompt = task.job.prompt;
  Slot* best = nullptr;  // holds the longest beginning
  Slot* oldest = nullptr;
  size_t longest = 0;
  for (Slot& slot : slots_) {
    if (slot.busy) continue;
    if (oldest == nullptr || slot.used < oldest->used) oldest = &slot;
    const size_t shared = SharedBeginning(slot.held, prompt);
    if (shared <= longest) continue;
    longest = shared;
    best = &slot;
  }
  if (ReadsInOnePiece(options_.sampling)) best = nullptr;
  if (best != nullptr && longest == best->held.size()) return best;
  // A fork leaves the text that the prompt does not go on with.
  if (slots_.size() >= most_slots_ && best != nullptr && FreeOldest(best)) {
    oldest = nullptr;
  }
  if (slots_.size() < most_slots_) {
    absl::StatusOr<Slot*> added =
        AddSlot(best != nullptr ? best->session : *root_);
    if (added.ok() || !LacksMemory(added.status())) {
      if (added.ok() && best != nullptr) (*added)->held = best->held;
      return added;
    }
    if (best == nullptr && oldest == nullptr) return added;
  }
  return best != nullptr ? best : oldest;
}

absl::StatusOr<Generations::Slot*> Generations::AddSlot(
    const cli::Session& from) {
  ASSIGN_OR_RETURN(cli::Session fork, from.Fork());
  slots_.push_back({std::move(fork)});
  return &slots_.back();
}

void Generations::MakeRoom(const Task& task, const Slot* chosen) {
  for (;;) {
    size_t tokens = MostTokens(task);
    for (const Slot& slot : slots_) {
      if (!slot.busy && &slot != chosen) tokens += slot.held.size();
    }
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      for (const auto& other : running_) {
        if (other.get() != &task) tokens += MostTokens(*other);
      }
    }
    if (tokens <= planned_tokens_ || !FreeOldest(chosen)) return;
  }
}

bool Generations::FreeOldest(const Slot* but) {
  auto oldest = slots_.end();
  for (auto slot = slots_.begin(); slot != slots_.end(); ++slot) {
    if (slot->busy || &*slot == but) continue;
    if (oldest == slots_.end() || slot->used < oldest->used) oldest = slot;
  }
  if (oldest == slots_.end()) return false;
  slots_.erase(oldest);
  return true;
}

absl::Status Generations::AddToQueue(Task& task) {
  Slot& slot = *task.slot;
  const std::vector<int32_t>& prompt = task.job.prompt;
  slot.busy = true;
  slot.used = ++uses_;
  const bool whole = ReadsInOnePiece(options_.sampling);
  task.kept = whole ? 0 : SharedBeginning(slot.held, prompt);
  // An answer begins behind tokens that were read, so one is.
  if (task.kept == prompt.size()) --task.kept;
  if (task.kept < slot.held.size()) {
    RETURN_IF_ERROR(slot.session.Truncate(task.kept));
    slot.held.resize(task.kept);
  }
  if (!task.found.has_value()) {
    task.found = task.kept;
    task.job.on_read(task.kept, 0);
  }
  // Each step doubles what is held: behind a link, and in the prompt cache, a
  // step costs the bytes of all.
  const size_t step = std::max(kFirstStep, task.kept);
  const bool last = whole || prompt.size() - task.kept <= step;
  task.read_to = last ? prompt.size() : task.kept + step;
  const auto layers =
      static_cast<uint64_t>(std::max<int32_t>(model_.info().layers, 1));
  task.results.on_read = [&task, layers](uint64_t done, uint64_t total) {
    const auto rest = static_cast<size_t>(total / layers);
    const size_t read = task.read_to - std::min(task.read_to, rest) +
                        static_cast<size_t>(done / layers);
    task.job.on_read(*task.found, read - std::min(read, *task.found));
  };
  task.results.on_token = [&task](const Token& token) {
    HoldPrompt(task);
    task.slot->held.push_back(token.id);
    if (task.read_to < task.job.prompt.size()) return;  // a step's own token
    task.began = true;
    task.job.on_token(token);
  };
  task.results.on_end = [this, &task](absl::Status status) {
    const std::lock_guard<std::mutex> lock(mutex_);
    task.in_queue = false;
    task.status = std::move(status);
    ended_.push_back(&task);
    changed_.notify_all();
  };
  tiercel_sampling sampling = cli::ToApi(
      task.job.sampling, task.job.sampling.seed.value_or(0), &task.texts);
  if (!last) {
    // The token of a step is no part of the answer.
    sampling.max_tokens = 1;
    sampling.mask = nullptr;
  }
  const std::vector<int32_t> read(
      prompt.begin(), prompt.begin() + static_cast<ptrdiff_t>(task.read_to));
  const std::lock_guard<std::mutex> lock(mutex_);
  slot.session.ClearCancel();
  RETURN_IF_ERROR(queue_->Add(slot.session, &read, sampling, &task.results));
  task.in_queue = true;
  if (task.cancelled) slot.session.Cancel();
  return absl::OkStatus();
}

void Generations::HoldPrompt(Task& task) {
  std::vector<int32_t>& held = task.slot->held;
  if (held.size() >= task.read_to) return;
  const auto begin = task.job.prompt.begin();
  held.assign(begin, begin + static_cast<ptrdiff_t>(task.read_to));
}

void Generations::NoteFound(Task& task, const Json& report) {
  // A text that is cut short computes its last token again.
  const size_t found = *task.found + report.at("cached_tokens").get<size_t>();
  task.found = found - std::min(found, task.kept);
}

absl::StatusOr<bool> Generations::GoOn(Task& task) {
  if (!task.status.ok() || task.read_to == task.job.prompt.size()) return false;
  HoldPrompt(task);  // the step's token may have ended the text
  ASSIGN_OR_RETURN(const Json report, task.slot->session.Report());
  NoteFound(task, report);
  RETURN_IF_ERROR(AddToQueue(task));
  return true;
}

void Generations::End(std::unique_ptr<Task> task) {
  Slot* const slot = std::exchange(task->slot, nullptr);
  if (slot == nullptr) {  // it had not begun
    task->job.on_end(task->status, Json());
    return;
  }
  slot->session.ClearCancel();
  if (LacksMemory(task->status) && !task->began) {
    // The sessions that wait make room, or else those that run, by their end.
    bool room = false;
    while (FreeOldest(slot)) room = true;
    absl::Status forgotten = slot->session.Truncate(0);
    slot->held.clear();
    slot->busy = false;
    task->found.reset();
    const std::lock_guard<std::mutex> lock(mutex_);
    if (forgotten.ok() && (room || !running_.empty())) {
      stalled_ = !room && ended_.empty();
      waiting_.push_front(std::move(task));
      return;
    }
  }
  Json report;
  if (task->status.ok() || cli::IsInterrupted(task->status)) {
    absl::StatusOr<Json> made = slot->session.Report();
    if (made.ok()) {
      report = *std::move(made);
      NoteFound(*task, report);
      report["cached_tokens"] = *task->found;
    } else {
      task->status.Update(made.status());
    }
  }
  if (!task->began) {
    absl::StatusOr<std::vector<int32_t>> held = slot->session.Ids();
    slot->held = held.ok() ? *std::move(held) : std::vector<int32_t>();
  }
  slot->busy = false;
  task->job.on_end(task->status, report);
}

}  // namespace tiercel::serve

#include "apps/commands/part_maker.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "apps/cli/error.h"
#include "apps/commands/command.h"
#include "apps/commands/sampling.h"
#include "apps/commands/sections.h"
#include "apps/commands/supported.h"
#include "apps/terminal/output.h"
#include "apps/terminal/signals.h"
#include "lib/reader/parts.h"
#include "lib/status/status_macros.h"

namespace tiercel::cli {

// ---- Events ----

void PartMaker::Mail::Put(Event event) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    events_.push_back(std::move(event));
  }
  came_.notify_one();
}

std::deque<PartMaker::Event> PartMaker::Mail::Wait() {
  std::unique_lock<std::mutex> lock(mutex_);
  came_.wait(lock, [this] { return !events_.empty(); });
  return std::exchange(events_, {});
}

std::deque<PartMaker::Event> PartMaker::Mail::Take() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return std::exchange(events_, {});
}

// ---- All parts ----

absl::Status PartMaker::Make(NextFn next, MadeFn made) {
  if (together_.has_value()) {
    together_->options->sampling.max_tokens = options_.sampling.max_tokens;
  }
  const absl::Status ended = MakeAll(next, made);
  if (ended.ok()) return ended;
  queue_.reset();  // ends those that were begun
  if (!IsInterrupted(ended)) return ended;
  for (Event& event : mail_.Take()) events_.push_back(std::move(event));
  for (Event& event : events_) {
    absl::Status failed;  // the interruption is told instead
    Handle(std::move(event), made, &failed).IgnoreError();
  }
  return ended;
}

absl::Status PartMaker::MakeAll(NextFn next, MadeFn made) {
  absl::Status failed;  // a part's error
  for (;;) {
    if (SignalReceived() != 0) return Interrupted();
    if (failed.ok() && running_ < most_) {
      ASSIGN_OR_RETURN(std::optional<Task> task, Take(next));
      if (task.has_value()) {
        RETURN_IF_ERROR(Begin(*std::move(task), made, &failed));
        continue;
      }
    }
    if (running_ == 0) return failed;
    RETURN_IF_ERROR(Await(made, &failed));
  }
}

absl::StatusOr<std::optional<PartMaker::Task>> PartMaker::Take(NextFn next) {
  if (!again_.empty()) {
    Task task = std::move(again_.front());
    again_.pop_front();
    return task;
  }
  ASSIGN_OR_RETURN(std::optional<Part> part, next());
  if (!part.has_value()) return std::nullopt;
  auto lines = std::make_shared<Lines>(Lines{part->level, part->index});
  lines_.push_back(lines);
  return Task{*std::move(part), std::move(lines)};
}

absl::Status PartMaker::Open(const Part& first) {
  RETURN_IF_ERROR(LoadModel(options_, model_));
  ASSIGN_OR_RETURN(together_, OpenTogether(options_, *model_, shape_.sizes));
  Generator& generator = together_->generator;
  RETURN_IF_ERROR(generator.SayWarnings());
  slots_.push_back({&generator});
  if (together_->most > 1) {
    RETURN_IF_ERROR(ReadRequest(first, generator));
    RETURN_IF_ERROR(AddSlots());
  }
  progress_ = std::make_unique<Progress>(options_.progress, "reading", "tokens",
                                         "tok/s");
  return absl::OkStatus();
}

// Adds as many slots as there is room for, and a queue that makes their parts.
absl::Status PartMaker::AddSlots() {
  absl::StatusOr<Queue> queue = Queue::Create(*model_, together_->most);
  if (ExitOf(queue.status()) == Exit::kMemory) return absl::OkStatus();
  RETURN_IF_ERROR(queue.status());
  while (slots_.size() < together_->most) {
    absl::StatusOr<Generator> fork = together_->generator.Fork();
    if (ExitOf(fork.status()) == Exit::kMemory) break;
    RETURN_IF_ERROR(fork.status());
    forks_.push_back(*std::move(fork));
    slots_.push_back({&forks_.back()});
  }
  for (Slot& slot : slots_) {
    slot.results.on_token = [this, &slot](const Token& token) {
      mail_.Put({&slot, token.id, std::string(token.text),
                 std::string(token.thought)});
    };
    slot.results.on_end = [this, &slot](absl::Status status) {
      mail_.Put({.slot = &slot, .end = std::move(status)});
    };
  }
  most_ = slots_.size();
  queue_ = *std::move(queue);
  decode_seconds_ = 0;
  return absl::OkStatus();
}

const PartMaker::Slot* PartMaker::First() const {
  const Slot* first = nullptr;
  for (const Slot& slot : slots_) {
    if (slot.task.has_value() &&
        (first == nullptr || slot.task->part.index < first->task->part.index)) {
      first = &slot;
    }
  }
  return first;
}

int32_t PartMaker::KeptLayers() const {
  const Slot* const first = First();
  return first == nullptr ? 0 : first->generator->KeptLayers();
}

// ---- One part ----

absl::Status PartMaker::Begin(Task task, MadeFn made, absl::Status* failed) {
  if (!together_.has_value()) RETURN_IF_ERROR(Open(task.part));
  Slot* free = nullptr;
  for (Slot& slot : slots_) {
    if (slot.task.has_value()) continue;
    if (free == nullptr) {
      free = &slot;
    } else if (lacks_memory_) {
      RETURN_IF_ERROR(slot.generator->Forget());
    }
  }
  Slot& slot = *free;
  slot.task = std::move(task);
  slot.read = 0;
  slot.said.clear();
  slot.pieces.clear();
  slot.ends.clear();
  at_once_ = std::max(at_once_, ++running_);
  Show(&slot);
  absl::Status status = Read(slot);
  Show(nullptr);
  if (queue_.has_value() && status.ok()) {
    status = slot.generator->ContinueIn(*queue_, seed(), &slot.results);
    if (status.ok()) return absl::OkStatus();
  } else if (status.ok()) {
    status = slot.generator
                 ->ContinueUnseen(seed(),
                                  [&](const Token& token) {
                                    return Wrote(slot, token.id, token.text,
                                                 token.thought);
                                  })
                 .status();
  }
  return End(slot, status, made, failed);
}

absl::Status PartMaker::Await(MadeFn made, absl::Status* failed) {
  if (events_.empty()) {
    const auto begin = std::chrono::steady_clock::now();
    queue_->CancelOnSignalIn([&] { events_ = mail_.Wait(); });
    *decode_seconds_ +=
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin)
            .count();
  }
  while (!events_.empty()) {
    Event event = std::move(events_.front());
    events_.pop_front();
    const bool ends = event.end.has_value();
    RETURN_IF_ERROR(Handle(std::move(event), made, failed));
    if (ends) break;  // another part may begin
  }
  return absl::OkStatus();
}

absl::Status PartMaker::Handle(Event event, MadeFn made, absl::Status* failed) {
  return event.end.has_value()
             ? End(*event.slot, *event.end, made, failed)
             : Wrote(*event.slot, event.id, event.text, event.thought);
}

absl::Status PartMaker::End(Slot& slot, const absl::Status& status, MadeFn made,
                            absl::Status* failed) {
  absl::StatusOr<MadePart> part =
      status.ok() ? Finish(slot) : absl::StatusOr<MadePart>(status);
  if (IsInterrupted(part.status())) return part.status();
  --running_;
  Task task = *std::exchange(slot.task, std::nullopt);
  if (ExitOf(part.status()) == Exit::kMemory && most_ > 1) {
    most_ = std::max<size_t>(running_, 1);
    lacks_memory_ = true;
    WriteNote(absl::StrCat("memory has no room for more than ", most_,
                           most_ == 1 ? " part" : " parts", " at a time\n"));
    again_.push_back(std::move(task));
    return absl::OkStatus();
  }
  if (!part.ok()) {
    failed->Update(part.status());
    return absl::OkStatus();
  }
  work_->done += task.part.prompt.size() + shape_.answer;
  if (shape_.sections) {
    work_->done += task.part.bare.size() + 2 * shape_.answer;
  }
  Show(nullptr);
  task.lines->ended = true;
  RETURN_IF_ERROR(WriteLines());
  return made(task.part, *std::move(part));
}

absl::StatusOr<MadePart> PartMaker::Finish(Slot& slot) {
  MadePart made;
  ASSIGN_OR_RETURN(made.report, slot.generator->Report());
  ASSIGN_OR_RETURN(made.token_seconds, slot.generator->TokenSeconds());
  const Json& output = made.report.at("output").at(0);
  made.writing = {std::string(absl::StripAsciiWhitespace(slot.said)),
                  output.at("tokens").get<std::vector<int32_t>>(),
                  output.at("finish_reason") == "length",
                  std::move(slot.pieces)};
  made.in_thought =
      made.writing.text.empty() && output.value("reasoning", "") != "";
  if (shape_.sections && !made.writing.tokens.empty()) {
    RETURN_IF_ERROR(KeepSupported(slot, &made.writing));
  } else if (made.writing.cut) {
    made.writing.text = std::string(reader::WholeSentences(made.writing.text));
  }
  return made;
}

absl::Status PartMaker::ReadRequest(const Part& part,
                                    Generator& generator) const {
  // SPEED takes the end of what a session reads for the beginning of an answer,
  // so the prompt must be read in one piece.
  if (options_.sampling.policy == "speed") return generator.Forget();
  const auto [end, ignored] =
      std::mismatch(part.bare.begin(), part.bare.end(), part.prompt.begin(),
                    part.prompt.end());
  if (end == part.bare.begin()) return generator.Forget();
  return generator.Read({part.bare.begin(), end}, nullptr);
}

absl::Status PartMaker::Read(Slot& slot) {
  const Part& part = slot.task->part;
  if (!options_.session.prompt_cache_dir.empty()) {
    RETURN_IF_ERROR(ReadRequest(part, *slot.generator));
  }
  return slot.generator->Read(part.prompt, [&](uint64_t done, uint64_t) {
    slot.read = done;
    Progressed();
  });
}

absl::Status PartMaker::Wrote(Slot& slot, int32_t id, std::string_view text,
                              std::string_view thought) {
  slot.said.append(text);
  slot.ends.push_back(slot.said.size());
  slot.pieces.push_back({std::string(text), std::string(thought)});
  Progressed();
  Lines& lines = *slot.task->lines;
  // A part that is made again has the same tokens.
  if (!options_.stream || slot.ends.size() <= lines.tokens) {
    return absl::OkStatus();
  }
  AddLine(id, slot.pieces.back(), &lines);
  return WriteLines();
}

void PartMaker::AddLine(int32_t id, const reader::Writing::Piece& piece,
                        Lines* lines) {
  ++lines->tokens;
  lines->waiting.push_back({{"token", id},
                            {"text", piece.text},
                            {"level", lines->level},
                            {"number", lines->index}});
  Json& line = lines->waiting.back();
  if (!piece.thought.empty()) line["reasoning"] = piece.thought;
  if (shape_.index.has_value()) line["index"] = *shape_.index;
}

absl::Status PartMaker::Replay(size_t level, size_t index,
                               const reader::Writing& writing) {
  if (!options_.stream) return absl::OkStatus();
  lines_.push_back(std::make_shared<Lines>(Lines{level, index}));
  Lines& lines = *lines_.back();
  const size_t count = std::min(writing.tokens.size(), writing.pieces.size());
  for (size_t i = 0; i < count; ++i) {
    AddLine(writing.tokens[i], writing.pieces[i], &lines);
    lines.waiting.back()["kept"] = true;
  }
  lines.ended = true;
  return WriteLines();
}

absl::Status PartMaker::WriteLines() {
  while (!lines_.empty()) {
    Lines& lines = *lines_.front();
    for (const Json& line : std::exchange(lines.waiting, {})) {
      RETURN_IF_ERROR(WriteJson(line));
    }
    if (!lines.ended) break;
    lines_.pop_front();
  }
  return absl::OkStatus();
}

// ---- Sentences ----

absl::StatusOr<Generator*> PartMaker::ScorerFor(Slot& slot) {
  if (scorer_.has_value()) return &*scorer_;
  // With --plain or SPEED the session's rows are not the full model's.
  if (!options_.sampling.plain && options_.sampling.policy != "speed") {
    return slot.generator;
  }
  scoring_ = BaselineOf(options_, {{"context", options_.session.context}});
  scoring_.sampling.policy = "full";
  scoring_.sampling.settings.clear();
  scoring_.sampling.baseline = false;
  ASSIGN_OR_RETURN(Generator scorer,
                   Generator::Open(scoring_, *model_, shape_.context));
  scorer_.emplace(std::move(scorer));
  return &*scorer_;
}

absl::Status PartMaker::KeepSupported(Slot& slot, reader::Writing* writing) {
  const Part& part = slot.task->part;
  ASSIGN_OR_RETURN(Generator * scorer, ScorerFor(slot));
  ASSIGN_OR_RETURN(const std::vector<double> with,
                   scorer->LogProbabilities(part.prompt, writing->tokens));
  ASSIGN_OR_RETURN(const std::vector<double> without,
                   scorer->LogProbabilities(part.bare, writing->tokens));
  std::vector<double> gains;
  for (size_t i = 0; i < with.size(); ++i) {
    gains.push_back(with[i] - without[i]);
  }
  gains.resize(slot.ends.size());  // a --stop leaves tokens without words
  writing->text = SupportedSentences(slot.said, slot.ends, gains);
  ASSIGN_OR_RETURN(writing->tokens,
                   model_->Tokenize(writing->text, /*flags=*/0, /*limits=*/{}));
  // An answer of kSectionAnswer tokens has the three sentences that are kept,
  // so its cut loses none; a shorter one, by -n, may lose some.
  writing->cut = writing->cut && shape_.answer < kSectionAnswer;
  return absl::OkStatus();
}

// ---- Progress ----

void PartMaker::Show(const Slot* reads) {
  if (reads != nullptr) {
    const Part& part = reads->task->part;
    progress_->SetPart(part.name, part.place, "reading");
    return;
  }
  const Slot* const first = First();
  if (first == nullptr) return;
  const Part& part = first->task->part;
  const bool alone = running_ == 1;
  progress_->SetPart(
      alone ? part.name
            : absl::StrCat(part.name, " and ", running_ - 1, " more"),
      alone ? part.place : "", "writing");
}

void PartMaker::Progressed() const {
  const ProgressFn draw = progress_->Callback();
  if (!draw) return;
  size_t done = work_->done;
  for (const Slot& slot : slots_) {
    if (slot.task.has_value()) done += slot.read + slot.ends.size();
  }
  draw(std::min(done, work_->total), work_->total);
}

}  // namespace tiercel::cli

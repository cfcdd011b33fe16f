#ifndef TIERCEL_APPS_COMMANDS_PART_MAKER_H_
#define TIERCEL_APPS_COMMANDS_PART_MAKER_H_

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "apps/cli/options.h"
#include "apps/commands/at_once.h"
#include "apps/commands/generation.h"
#include "apps/commands/model.h"
#include "apps/commands/queue.h"
#include "apps/notes/journal.h"
#include "apps/terminal/progress.h"

namespace tiercel::cli {

// The tokens that a reading reads and writes, for its progress.
struct Work {
  size_t total = 0;
  size_t done = 0;  // the share of parts that are finished
};

// A text that is to be made.
struct Part {
  size_t level;
  size_t index;                 // in its level
  std::string name;             // "part 3 of 48"
  std::string place;            // in the book; empty: there are no places
  std::vector<int32_t> prompt;  // a request about a text
  std::vector<int32_t> bare;    // the request without the text
};

// The text of a part, and the session's report of it.
struct MadePart {
  reader::Writing writing;
  Json report;
  std::vector<double> token_seconds;
  bool in_thought = false;  // it ended before its answer began
};

// Makes the parts of a book, several side by side: each has a session, a fork
// of one that holds the request. Prompts are read one after the other, so that
// each may go on behind a layer and is kept as that of a single text; the
// answers share their passes. A part has the bytes that it has alone, whatever
// is made beside it.
class PartMaker {
 public:
  struct Shape {
    TextSizes sizes;
    size_t context;  // tokens
    size_t answer;   // most tokens of a text, on every level
    // Texts are cut to the sentences that their part supports
    // (SupportedSentences).
    bool sections;
    // The place in "output" of what is made of the parts; absent: it is alone.
    std::optional<size_t> index;
  };

  // All but `shape` must outlive it. The most tokens of a text are those of
  // `options` when Make is called.
  PartMaker(const Options& options, Model* model, const Shape& shape,
            Work* work)
      : options_(options), model_(model), shape_(shape), work_(work) {}

  // The next part to make; none if there are no more.
  using NextFn = absl::FunctionRef<absl::StatusOr<std::optional<Part>>()>;
  // Takes a part as soon as it is made, in any order.
  using MadeFn = absl::FunctionRef<absl::Status(const Part&, MadePart)>;
  // Makes all parts; loads the model before the first. Where memory does not do
  // for one beside the others it is made after them. If a part fails, those
  // that were begun are still made; an interruption ends them, and those that
  // were whole are given to `made`. Errors: those of opening a session, of a
  // part, and of the functions.
  absl::Status Make(NextFn next, MadeFn made);
  // Shows the tokens of a part that was kept where --stream shows those of one
  // that is made; called by `next` in the order of the parts.
  absl::Status Replay(size_t level, size_t index,
                      const reader::Writing& writing);

  // The most parts that were made at once; 0: none was made.
  size_t at_once() const { return at_once_; }
  // The seconds in which any part decoded; absent: they were made one by one.
  std::optional<double> decode_seconds() const { return decode_seconds_; }
  // The layers on disk of the first part that an interruption ended.
  int32_t KeptLayers() const;
  // Writes a note above the progress, where that is drawn.
  void Say(const std::string& note) { progress_->Say(note); }

 private:
  // The tokens of a part that --stream shows.
  struct Lines {
    size_t level;
    size_t index;
    size_t tokens = 0;  // also those that were written
    std::vector<Json> waiting = {};
    bool ended = false;
  };
  struct Task {
    Part part;
    std::shared_ptr<Lines> lines;
  };
  struct Slot {
    Generator* generator;
    std::optional<Task> task = {};  // absent: it is idle
    Queue::Results results = {};
    size_t read = 0;  // tokens of the prompt
    std::string said = {};
    std::vector<reader::Writing::Piece> pieces = {};
    std::vector<size_t> ends = {};  // `said` behind each token
  };
  // A token of a slot, or its end.
  struct Event {
    Slot* slot;
    int32_t id = 0;
    std::string text = {};
    std::string thought = {};
    std::optional<absl::Status> end = {};
  };
  // Events from the queue's thread.
  class Mail {
   public:
    void Put(Event event);
    // Takes the events that came; waits for one if none did.
    std::deque<Event> Wait();
    std::deque<Event> Take();

   private:
    std::mutex mutex_;
    std::condition_variable came_;
    std::deque<Event> events_;
  };

  absl::Status MakeAll(NextFn next, MadeFn made);
  // Opens the sessions, which hold the request of `first`.
  absl::Status Open(const Part& first);
  absl::Status AddSlots();
  absl::StatusOr<std::optional<Task>> Take(NextFn next);
  // Begins a part, and without a queue ends it, too. Sets `failed` to a part's
  // error.
  absl::Status Begin(Task task, MadeFn made, absl::Status* failed);
  // Handles what the queue did, up to the end of a part, and waits if it did
  // nothing yet.
  absl::Status Await(MadeFn made, absl::Status* failed);
  absl::Status Handle(Event event, MadeFn made, absl::Status* failed);
  // Ends the part of a slot, which generated with `status`.
  absl::Status End(Slot& slot, const absl::Status& status, MadeFn made,
                   absl::Status* failed);
  absl::StatusOr<MadePart> Finish(Slot& slot);
  // Makes a session hold the request of a part alone. So every run reads the
  // rest behind the same tokens, and finds a prompt that another run has left
  // on disk.
  absl::Status ReadRequest(const Part& part, Generator& generator) const;
  absl::Status Read(Slot& slot);
  // Takes a token, with its parts of the answer and of the thought.
  absl::Status Wrote(Slot& slot, int32_t id, std::string_view text,
                     std::string_view thought);
  // Adds the line of a token.
  void AddLine(int32_t id, const reader::Writing::Piece& piece, Lines* lines);
  // Writes the lines of parts in the order of these: all of those that have
  // ended, and what there is of the next.
  absl::Status WriteLines();
  // The session that scores words by the full model, so that every policy keeps
  // the same sentences of a text.
  absl::StatusOr<Generator*> ScorerFor(Slot& slot);
  // Cuts the writing of a slot to the sentences that its part supports.
  absl::Status KeepSupported(Slot& slot, reader::Writing* writing);
  // The slot of the first part that is being made; null: none is.
  const Slot* First() const;
  // Shows the part that is read, or null: those that are written.
  void Show(const Slot* reads);
  void Progressed() const;
  uint64_t seed() const { return options_.sampling.seed.value_or(0); }

  const Options& options_;
  Model* const model_;
  const Shape shape_;
  Work* const work_;
  std::optional<Together> together_;  // absent: no part was made yet
  std::deque<Generator> forks_;
  Options scoring_;                  // the scorer's
  std::optional<Generator> scorer_;  // absent: the parts' own sessions score
  std::deque<Slot> slots_;
  std::deque<Task> again_;  // parts that found no memory beside others
  std::deque<std::shared_ptr<Lines>> lines_;  // not all written
  bool lacks_memory_ = false;
  size_t most_ = 1;
  size_t running_ = 0;  // slots with a task
  size_t at_once_ = 0;
  std::optional<double> decode_seconds_;
  std::unique_ptr<Progress> progress_;
  Mail mail_;
  std::deque<Event> events_;    // taken, not handled
  std::optional<Queue> queue_;  // absent: parts are made one by one
};

}  // namespace tiercel::cli

#endif  // TIERCEL_APPS_COMMANDS_PART_MAKER_H_

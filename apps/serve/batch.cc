#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <ctime>
#include <deque>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "apps/cli/error.h"
#include "apps/cli/numbers.h"
#include "apps/commands/book.h"
#include "apps/commands/command.h"
#include "apps/commands/readings.h"
#include "apps/commands/requests.h"
#include "apps/notes/journal.h"
#include "apps/serve/batch_files.h"
#include "apps/serve/commands.h"
#include "apps/serve/generations.h"
#include "apps/serve/grammars.h"
#include "apps/serve/log_probs.h"
#include "apps/serve/refusal.h"
#include "apps/serve/reply.h"
#include "apps/serve/request.h"
#include "apps/serve/stopwatch.h"
#include "apps/terminal/output.h"
#include "apps/terminal/progress.h"
#include "apps/terminal/signals.h"
#include "lib/reader/text.h"
#include "lib/status/status_macros.h"

namespace tiercel::serve {
namespace {

using cli::Exit;
using cli::Options;

// A fingerprint of all that texts depend on beside the requests.
absl::StatusOr<std::string> JobOf(const Options& options,
                                  const cli::Model& model) {
  ASSIGN_OR_RETURN(const Json described, model.Describe());
  const std::string& draft = options.sampling.draft_path;
  const Json key = {
      {"version", cli::VersionNumber()},
      {"model", cli::ContentsOf(options.model.path)},
      {"draft_model", draft.empty() ? Json() : cli::ContentsOf(draft)},
      {"header", reader::Hex(reader::Fingerprint(cli::Dump(described)))},
      {"settings", cli::SettingsKey(options)}};
  return reader::Hex(reader::Fingerprint(cli::Dump(key)));
}

// Counts of a batch.
struct Counts {
  size_t requests = 0;
  size_t skipped = 0;  // the output had an answer
  size_t answered = 0;
  size_t failed = 0;
  int64_t prompt_tokens = 0;
  int64_t cached_tokens = 0;
  int64_t output_tokens = 0;

  size_t ended() const { return skipped + answered + failed; }
};

// A batch while it is made: requests go to the generations a few ahead of those
// that run, and what these give comes back to the thread of Make.
class Maker {
 public:
  Maker(const Options& options, const cli::Model& model,
        const BatchInput& input, Generations& generations, BatchOutput& output,
        std::string job, Counts* counts)
      : options_(options),
        model_(model),
        grammars_(model),
        input_(input),
        generations_(generations),
        output_(output),
        job_(std::move(job)),
        counts_(counts),
        progress_(options.progress, "answering", "requests", "") {}

  // Answers all lines that have none. A signal ends those that are made, and
  // their answers are not written. Errors: interrupted; those of the output.
  absl::Status Make();

 private:
  // A line whose answer is being made.
  struct Job {
    const BatchLine* line;
    Request request;
    LogProbs log_probs;
    Stopwatch watch = {};
    Answer answer = {};
    absl::Status status = {};
  };

  // Begins to answer a line; one that cannot be is answered with the error.
  absl::Status Begin(const BatchLine& line);
  absl::StatusOr<Request> ReadLine(const BatchLine& line);
  absl::Status PutDocument(Request* request);
  absl::Status Handle(const Job& job);
  absl::Status WriteError(const BatchLine& line, const absl::Status& error);
  // Takes a job that has ended; null: a signal came first.
  std::unique_ptr<Job> Await();
  void Show();

  const Options& options_;
  const cli::Model& model_;
  Grammars grammars_;
  const BatchInput& input_;
  Generations& generations_;
  BatchOutput& output_;
  const std::string job_;
  Counts* const counts_;
  cli::Progress progress_;
  std::string document_path_;  // the last that was opened
  std::string document_text_;
  size_t running_ = 0;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::unique_ptr<Job>> ended_;  // the lock guards it
};

absl::Status Maker::Make() {
  const size_t most = 2 * generations_.parallel();
  auto next = input_.lines().begin();
  absl::Status made;
  Show();
  for (;;) {
    while (made.ok() && next != input_.lines().end() && running_ < most) {
      if (cli::SignalReceived() != 0) made = cli::Interrupted();
      const BatchLine& line = *next++;
      if (!line.answered && made.ok()) made = Begin(line);
    }
    if (running_ == 0) return made;
    if (!made.ok()) generations_.CancelAll();
    const std::unique_ptr<Job> job = Await();
    if (job == nullptr) {
      made.Update(cli::Interrupted());
      generations_.CancelAll();
      continue;
    }
    --running_;
    if (cli::IsInterrupted(job->status)) {
      made.Update(job->status);
    } else if (made.ok() || cli::IsInterrupted(made)) {
      // An answer that ended by itself is kept.
      if (absl::Status s = Handle(*job); !s.ok()) made = s;
    }
  }
}

std::unique_ptr<Maker::Job> Maker::Await() {
  constexpr auto kMoment = std::chrono::milliseconds(50);
  std::unique_lock<std::mutex> lock(mutex_);
  bool told = cli::SignalReceived() != 0;  // the caller knows already
  while (ended_.empty()) {
    changed_.wait_for(lock, kMoment);
    if (!told && cli::SignalReceived() != 0) return nullptr;
  }
  std::unique_ptr<Job> job = std::move(ended_.front());
  ended_.pop_front();
  return job;
}

absl::StatusOr<Request> Maker::ReadLine(const BatchLine& line) {
  ASSIGN_OR_RETURN(const Body body, input_.ReadBody(line));
  ASSIGN_OR_RETURN(Request request, ReadRequest(line.endpoint, body, options_));
  if (request.stream) {
    return Refuse("stream", "unsupported_parameter",
                  "stream: a batch has whole answers alone");
  }
  RETURN_IF_ERROR(grammars_.Compile(&request));
  if (!request.document.empty()) RETURN_IF_ERROR(PutDocument(&request));
  return request;
}

// Puts the text of the document before the last message of the user.
absl::Status Maker::PutDocument(Request* request) {
  const auto last =
      std::find_if(request->messages.rbegin(), request->messages.rend(),
                   [](const Message& one) { return one.role == "user"; });
  if (last == request->messages.rend()) {
    return Refuse("tiercel.document", "unsupported_parameter",
                  "tiercel.document: need a message of a user, behind whose "
                  "text the question stands");
  }
  if (reader::IsBlank(last->content)) {
    return Refuse("tiercel.document", "invalid_request",
                  "tiercel.document: need a question in the last message of a "
                  "user, which is blank");
  }
  const std::string path = input_.PathOf(request->document);
  if (path != document_path_) {
    Options opened = options_;
    opened.document = path;
    ASSIGN_OR_RETURN(const document::Document book, cli::OpenBook(opened));
    document_text_ = book.text;
    document_path_ = path;
  }
  last->content =
      cli::TextPreface(options_.book, document_text_) + last->content;
  return absl::OkStatus();
}

absl::Status Maker::Begin(const BatchLine& line) {
  absl::StatusOr<Request> request = ReadLine(line);
  absl::StatusOr<std::vector<int32_t>> prompt;
  if (request.ok()) {
    prompt = PromptTokens(model_, *request, generations_.context());
  } else {
    prompt = request.status();
  }
  if (cli::IsInterrupted(prompt.status())) return prompt.status();
  if (!prompt.ok()) return WriteError(line, prompt.status());
  LogProbs log_probs(*request, SpellerOf(model_));
  auto owned = std::make_unique<Job>(
      Job{&line, *std::move(request), std::move(log_probs)});
  auto job = std::make_shared<std::unique_ptr<Job>>(std::move(owned));
  Job* const raw = job->get();
  Generations::Job made;
  made.prompt = *std::move(prompt);
  made.sampling = raw->request.sampling;
  made.on_read = [raw](size_t, size_t) { raw->watch.Begin(); };
  made.on_token = [raw](const Token& token) {
    raw->watch.Token();
    raw->log_probs.Add(token);
    raw->answer.text.append(token.text);
    raw->answer.thought.append(token.thought);
  };
  made.on_end = [this, job](const absl::Status& status, const Json& report) {
    std::unique_ptr<Job> done = std::move(*job);
    done->status = status;
    done->watch.End();
    done->answer.log_probs = done->log_probs.Whole();
    if (report.is_object()) AddReport(report, &done->answer);
    const std::lock_guard<std::mutex> lock(mutex_);
    ended_.push_back(std::move(done));
    changed_.notify_all();
  };
  // As many wait as run, so none is refused.
  if (generations_.Add(std::move(made), /*most_waiting=*/SIZE_MAX / 2)
          .has_value()) {
    ++running_;
  }
  return absl::OkStatus();
}

absl::Status Maker::WriteError(const BatchLine& line,
                               const absl::Status& error) {
  ++counts_->failed;
  Show();
  progress_.Say(absl::StrCat("request '", line.custom_id,
                             "': ", std::string(error.message()), "\n"));
  return output_.Add(line, HttpStatusOf(error), ErrorDocument(error));
}

absl::Status Maker::Handle(const Job& job) {
  if (!job.status.ok()) return WriteError(*job.line, job.status);
  Answer answer = job.answer;
  answer.prompt_ms = job.watch.prompt_ms();
  answer.output_ms = job.watch.output_ms();
  ++counts_->answered;
  counts_->prompt_tokens += answer.prompt_tokens;
  counts_->cached_tokens += answer.cached_tokens;
  counts_->output_tokens += answer.output_tokens;
  Show();
  const Reply reply(job.request, BatchRequestId(job_, *job.line),
                    std::time(nullptr),
                    job.request.model.empty() ? ModelName(options_.model.path)
                                              : job.request.model);
  return output_.Add(*job.line, 200, reply.Whole(answer));
}

void Maker::Show() {
  progress_.Show(static_cast<int64_t>(counts_->ended()),
                 static_cast<int64_t>(counts_->requests));
}

// Says what was done, on stdout.
absl::Status WriteSummary(const Options& options, const Counts& counts,
                          double seconds) {
  if (options.json) {
    return cli::WriteJson({{"tiercel", cli::VersionNumber()},
                           {"model", options.model.path},
                           {"input", options.document},
                           {"output", options.requests.output},
                           {"requests", counts.requests},
                           {"answered", counts.answered},
                           {"skipped", counts.skipped},
                           {"failed", counts.failed},
                           {"prompt_tokens", counts.prompt_tokens},
                           {"cached_tokens", counts.cached_tokens},
                           {"output_tokens", counts.output_tokens},
                           {"seconds", seconds}});
  }
  return cli::WriteProse(absl::StrCat(
      counts.requests, " requests: ", counts.answered, " answered now, ",
      counts.skipped, " before, ", counts.failed, " failed; ",
      counts.prompt_tokens, " tokens of prompts, ", counts.cached_tokens,
      " of them found, ", counts.output_tokens, " of answers, ",
      cli::Fixed(seconds, 1), " s\n"));
}

// Checks that the answers would not overwrite the requests.
absl::Status CheckApart(const Options& options) {
  std::error_code ignored;
  for (const std::string& read : {options.document, options.model.path}) {
    if (std::filesystem::equivalent(options.requests.output, read, ignored)) {
      return cli::UsageError(
          absl::StrCat("-o,--output: '", options.requests.output,
                       "' is what is read; need another file"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status Batch(const Options& options) {
  RETURN_IF_ERROR(CheckApart(options));
  ASSIGN_OR_RETURN(BatchInput input, BatchInput::Open(options.document));
  ASSIGN_OR_RETURN(cli::Model model, cli::OpenTalker(options));
  ASSIGN_OR_RETURN(const std::string job, JobOf(options, model));
  ASSIGN_OR_RETURN(
      BatchOutput output,
      BatchOutput::Open(options.requests.output, job, &input.lines()));
  Counts counts;
  counts.requests = input.lines().size();
  for (const BatchLine& line : input.lines()) {
    counts.skipped += line.answered ? 1 : 0;
  }
  const auto begin = std::chrono::steady_clock::now();
  absl::Status made;
  if (counts.skipped < counts.requests) {
    RETURN_IF_ERROR(cli::LoadModel(options, &model));
    const auto parallel = static_cast<size_t>(options.requests.parallel);
    ASSIGN_OR_RETURN(const auto generations,
                     Generations::Open(options, model, parallel));
    const cli::KeepOnSignal keep;
    made =
        Maker(options, model, input, *generations, output, job, &counts).Make();
  }
  if (!made.ok() && !cli::IsInterrupted(made)) return made;
  const std::chrono::duration<double> took =
      std::chrono::steady_clock::now() - begin;
  RETURN_IF_ERROR(WriteSummary(options, counts, took.count()));
  if (!made.ok()) {
    cli::NoteKept(true);
    return options.json ? cli::InterruptedInOutput() : made;
  }
  if (counts.failed == 0) return absl::OkStatus();
  // The JSON document has said it already, and only one may be written.
  return cli::Error(
      Exit::kFailed, "requests_failed",
      options.json ? ""
                   : absl::StrCat(counts.failed, " of ", counts.requests,
                                  " requests failed; the same command tries "
                                  "them again"));
}

}  // namespace tiercel::serve

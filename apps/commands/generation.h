#ifndef TIERCEL_APPS_COMMANDS_GENERATION_H_
#define TIERCEL_APPS_COMMANDS_GENERATION_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "apps/cli/options.h"
#include "apps/commands/model.h"
#include "apps/commands/queue.h"
#include "apps/commands/sampling.h"
#include "apps/commands/session.h"
#include "apps/commands/watched.h"

namespace tiercel::cli {

class Generator;

struct Prompt {
  std::vector<int32_t> tokens;
  std::string question;  // question of `ask`; empty: no question
  // Once the prompt is answered, returns the passages that the answer read, for
  // "read_here" of the output; may be empty. Errors: an interruption.
  std::function<absl::StatusOr<Json>(Generator&)> read_here = nullptr;
};

// The tokens of the longest prompt.
size_t LongestOf(const std::vector<Prompt>& prompts);

// One session that reads prompts and continues them. A beginning that a prompt
// shares with the tokens held is not read again.
class Generator {
 public:
  // Opens a session for prompts of up to `prompt_tokens`. Both references must
  // outlive it. Errors: OpenSession's and OpenDraftModel's.
  static absl::StatusOr<Generator> Open(const Options& options,
                                        const Model& model,
                                        size_t prompt_tokens);

  // Makes the session hold `prompt`, with progress. After an error it holds the
  // beginning that the prompt shares with the tokens held before.
  absl::Status Read(const std::vector<int32_t>& prompt);
  // Does the same, but reports the tokens to `progress` instead of drawing.
  absl::Status Read(const std::vector<int32_t>& prompt,
                    const ProgressFn& progress);

  // Makes the session hold nothing.
  absl::Status Forget() { return session_.Truncate(0); }

  // Continues the last prompt, writes the text as it comes (under `question`,
  // if there is one), says the session's warnings and where an answer was cut,
  // and returns the session's report. After an error the text so far counts.
  // `index`: its place among several texts.
  absl::StatusOr<Json> Continue(const std::string& question, uint64_t seed,
                                std::optional<size_t> index = {});
  // A copy that holds the same tokens. Errors: out_of_memory.
  absl::StatusOr<Generator> Fork() const;
  // One of several texts that are made at once.
  struct AtOnce {
    Generator& generator;
    const Prompt& prompt;
    bool reads;  // else the generator has read it
    uint64_t seed;
    size_t index;                          // its place among all texts
    absl::StatusOr<Json> report = Json();  // the session's, or an error
  };
  // Reads, where need be, and continues the prompts of all at once, and writes
  // the texts in order, each as Continue does, but for SayCuts. Errors: those
  // before any begins; those of writing.
  static absl::Status ContinueAtOnce(std::vector<AtOnce>& texts);
  // Says where the text of `report` was cut.
  void SayCuts(const Json& report);
  // Continues without writing; `on_token` gets each token as it comes.
  absl::StatusOr<Json> ContinueUnseen(uint64_t seed, const TokenFn& on_token);
  // Begins to continue the last prompt in a queue, without writing. Until the
  // end the generator may not be used.
  absl::Status ContinueIn(Queue& queue, uint64_t seed, Queue::Results* results);
  // The natural logarithms of the probabilities of `ids`, each behind `prompt`
  // and the ids before it. Changes the tokens that the session holds.
  absl::StatusOr<std::vector<double>> LogProbabilities(
      const std::vector<int32_t>& prompt, const std::vector<int32_t>& ids);
  // Says the session's warnings, once; Continue does so, too.
  absl::Status SayWarnings();
  const std::string& text() const { return text_; }  // the last Continue's
  // Its thought, which is no part of the text.
  const std::string& thought() const { return thought_; }
  // The number of layers of the last prompt that are on disk; a later run can
  // go on behind them.
  int32_t KeptLayers() const { return session_.KeptLayers(); }
  // The shares of a text in what a question attends to
  // (tiercel_session_attended_beside).
  absl::StatusOr<tiercel::Attention> Attended(const tiercel::Reading& reading);
  size_t Length() const { return session_.Length(); }
  // Warnings that were said when it was opened, and are in no report.
  const std::vector<std::string>& warnings() const { return warnings_; }
  // The report of the last Continue, also where it failed.
  absl::StatusOr<Json> Report() const { return session_.Report(); }
  // The seconds of each token of the last Continue since the one before it.
  absl::StatusOr<std::vector<double>> TokenSeconds() const {
    return session_.TokenSeconds();
  }

 private:
  Generator(const Options& options, const Model& model,
            std::optional<Model> draft, Session session);
  Generator(Session fork, const Generator& of);
  absl::StatusOr<Json> Decode(uint64_t seed, const TokenFn& on_token);

  const Options* options_;
  std::optional<Model> draft_;  // absent: no model drafts
  Session session_;
  bool as_ids_;  // no tokenizer: ids are written
  int32_t layers_;
  int64_t vocab_;
  size_t prompt_ = 0;  // tokens of the session that are the prompt
  ApiTexts in_queue_;  // the queue asks its mask
  std::string text_;
  std::string thought_;
  bool began_ = false;  // a text that is made at once has a token
  std::vector<std::string> warnings_;
  bool warned_ = false;
  std::string said_cut_;  // the last warning of an answer without its end
};

// Continues each prompt for every seed of `options` in one session, and writes
// the texts, or the JSON document. In JSON `output` has one entry for each run,
// with its times if there are several; decode_tok_s then is that of all, and
// the rest is the first run's, with its warnings behind `warnings`. With
// --verify-against full it then does all of that again in the baseline's
// session, which reads the prompts itself and does not count in the times.
// After a signal the document holds the text generated so far. `complete` gets
// the whole document, even if it is not written, and may add to it.
using CompleteFn = std::function<absl::Status(Json& document)>;
absl::Status RunGeneration(const Options& options, const Model& model,
                           const std::vector<Prompt>& prompts,
                           std::vector<std::string> warnings,
                           const CompleteFn& complete = nullptr);

// Returns a document: the fields that only the command line knows, then
// `report`.
Json DocumentOf(const Options& options, uint64_t seed, const Json& report);

}  // namespace tiercel::cli

#endif  // TIERCEL_APPS_COMMANDS_GENERATION_H_

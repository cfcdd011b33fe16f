#ifndef TIERCEL_APPS_COMMANDS_GENERATION_H_
#define TIERCEL_APPS_COMMANDS_GENERATION_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "apps/cli/options.h"
#include "apps/commands/api.h"

namespace tiercel::cli {

class Generator;

struct Prompt {
  std::vector<int32_t> tokens;
  std::string question;  // what `ask` was asked; empty: no question
  // Finds where the text was read, for "read_here" of the output, once the
  // prompt was answered; may be empty. Errors: an interruption.
  std::function<absl::StatusOr<Json>(Generator&)> read_here = nullptr;
};

// One session that reads prompts and continues them. What a prompt begins with
// as the tokens held do is not read again.
class Generator {
 public:
  // It reads prompts of up to `prompt_tokens`. Both references must outlive it.
  // Errors: OpenSession's and OpenDraftModel's.
  static absl::StatusOr<Generator> Open(const Options& options,
                                        const Model& model,
                                        size_t prompt_tokens);

  // Makes the session hold `prompt`, with progress. After an error it holds
  // what the prompt has in common with what was held.
  absl::Status Read(const std::vector<int32_t>& prompt);
  // Does the same, and tells `progress` of the tokens instead of drawing any.
  absl::Status Read(const std::vector<int32_t>& prompt,
                    const ProgressFn& progress);

  // Makes the session hold nothing.
  absl::Status Forget() { return session_.Truncate(0); }

  // Continues what was read last, writes the text as it comes (under
  // `question`, where there is one), says what warnings the session has and
  // where an answer was cut, and returns the session's report. After an error
  // the text so far counts.
  absl::StatusOr<Json> Continue(const std::string& question, uint64_t seed);
  // Continues without writing; `on_token` gets each token as it comes.
  absl::StatusOr<Json> ContinueUnseen(uint64_t seed, const TokenFn& on_token);
  // How likely each of the tokens `ids` is behind `prompt` and those before it,
  // as natural logarithms; the session then holds something else.
  absl::StatusOr<std::vector<double>> LogProbabilities(
      const std::vector<int32_t>& prompt, const std::vector<int32_t>& ids);
  // Says what warnings the session has, once; Continue does so.
  absl::Status SayWarnings();
  const std::string& text() const { return text_; }  // of the last Continue
  // Layers of what was read last that are on disk, to go on behind.
  int32_t KeptLayers() const { return session_.KeptLayers(); }
  // Where in the prompt, of which tokens [begin, end) are a text and those from
  // `asked` on ask about it, the answer looked: tiercel_attended.
  absl::StatusOr<std::vector<float>> Attended(size_t begin, size_t end,
                                              size_t asked, size_t answer);
  // Warnings that were said when it was opened, which no report has.
  const std::vector<std::string>& warnings() const { return warnings_; }
  // The report of the last Continue, also where it failed.
  absl::StatusOr<Json> Report() const { return session_.Report(); }
  // How many seconds each token of the last Continue came after the one before.
  absl::StatusOr<std::vector<double>> TokenSeconds() const {
    return session_.TokenSeconds();
  }

 private:
  Generator(const Options& options, const Model& model,
            std::optional<Model> draft, Session session);
  absl::StatusOr<Json> Decode(uint64_t seed, const TokenFn& on_token);

  const Options* options_;
  std::optional<Model> draft_;  // absent: no model drafts
  Session session_;
  bool as_ids_;  // no tokenizer: ids are written
  int32_t layers_;
  int64_t vocab_;
  size_t prompt_ = 0;  // of the session's tokens, those that were read
  std::string text_;
  std::vector<std::string> warnings_;
  bool warned_ = false;
  std::string full_;  // what was said last of a full context
};

// Continues each prompt for every seed of `options` in one session, and writes
// the texts, or the JSON document. In JSON `output` has one entry for each run,
// with its times where there are several; the rest is the first run's, its
// warnings behind `warnings`. With --verify-against full it then does all of
// that again in the baseline's session, which reads the prompts itself and is
// no part of the times. After a signal the document
// holds what was generated until then. `complete` gets the whole document,
// also where it is not written, and may add to it.
using CompleteFn = std::function<absl::Status(Json& document)>;
absl::Status RunGeneration(const Options& options, const Model& model,
                           const std::vector<Prompt>& prompts,
                           std::vector<std::string> warnings,
                           const CompleteFn& complete = nullptr);

// The fields of a document that only the command line knows, before `report`.
Json DocumentOf(const Options& options, uint64_t seed, const Json& report);

}  // namespace tiercel::cli

#endif  // TIERCEL_APPS_COMMANDS_GENERATION_H_

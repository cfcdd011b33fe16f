#ifndef TIERCEL_APPS_COMMANDS_COMMAND_H_
#define TIERCEL_APPS_COMMANDS_COMMAND_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "apps/cli/options.h"
#include "apps/commands/model.h"
#include "apps/commands/session.h"

namespace tiercel::cli {

// Each command takes a checked command line and writes its result.
absl::Status Summarize(const Options& options);
absl::Status Ask(const Options& options);
absl::Status Chat(const Options& options);
absl::Status Generate(const Options& options);
absl::Status Eval(const Options& options);
absl::Status Tokenize(const Options& options);
absl::Status Detokenize(const Options& options);
absl::Status Text(const Options& options);
absl::Status Inspect(const Options& options);
absl::Status Plan(const Options& options);
absl::Status Bench(const Options& options);
absl::Status Cache(const Options& options);

// ---- Shared by the commands ----
// A warning is said at once, and added to `warnings` for the document; pass
// kOnStderrAlone if the output has no place for it.
inline constexpr std::vector<std::string>* kOnStderrAlone = nullptr;

// Opens the model of `options`, with progress while it is read, and the header
// of the draft model, if there is one. Errors: also kUsage, if RoPE scaling is
// asked for and neither the flags nor the checkpoint give a scale, and for more
// draft layers than the model has; those of tiercel_check_draft.
absl::StatusOr<Model> OpenModel(const Options& options, tiercel_load load);

// Opens the model's header for a conversation; a note says if its template has
// no use for --think. Errors: those of OpenModel.
absl::StatusOr<Model> OpenTalker(const Options& options);

// Checks that a session of `options` can be planned, even if it does not fit.
// Errors: those of tiercel_plan.
absl::Status CheckSession(const Options& options, const Model& model);

// Loads the weights of a model that was opened by its header; commands check
// their text before that. Errors: also those of CheckSession.
absl::Status LoadModel(const Options& options, Model* model);

// Opens the draft model of `model`, with its weights; none if the options name
// none. It computes as `model` does, but with the RoPE of its own checkpoint.
// Errors: those of opening it and of tiercel_check_draft.
absl::StatusOr<std::optional<Model>> OpenDraftModel(const Options& options,
                                                    const Model& model);

// The session parameters of `options`, which must outlive them, and of the
// draft model, for a plan opened by its header; null: there is none.
struct SessionParams {
  SessionParams(const Options& options, const Model* draft);
  SessionParams(const SessionParams&) = delete;
  SessionParams& operator=(const SessionParams&) = delete;

  tiercel_session_params session = defaults<tiercel_session_params>();
  tiercel_policy policy = defaults<tiercel_policy>();  // for `session`
};

// Measures the machine's rates for `model`, with progress, if none are kept.
// Call it before the sessions and plans that predict by them. If other work
// disturbed a measurement, now or before, they are measured again, but for no
// longer than the job that waits takes: `job_s` then returns its seconds by the
// rates so far; null: it takes none. A warning says so if they cannot be
// measured or kept; sessions and plans warn if they are not steady. Errors:
// those of tiercel_measure, except kIo, kMemory and unsupported_device.
using JobSecondsFn = std::function<double()>;
absl::Status MeasureRates(const Options& options, const Model& model,
                          const JobSecondsFn& job_s,
                          std::vector<std::string>* warnings);

// The most tokens that a session of `options` holds.
int64_t ContextOf(const Options& options, const Model& model);

// Returns the options of a session for a text that grows to `tokens` tokens.
// Without -c, the session of a model whose RoPE depends on a session's length
// is not longer than the text needs: as long as the original context, or, for
// "dynamic", as the text beyond it.
absl::StatusOr<Options> ForLength(const Options& options, const Model& model,
                                  int64_t tokens);

// Returns ForLength of the longest of some prompts and its answer; `options` as
// they are if an answer may fill the context.
absl::StatusOr<Options> ForPrompts(const Options& options, const Model& model,
                                   size_t longest);

// Opens a session for `prompt_tokens` tokens, which `draft` must outlive.
// Errors: CheckLength's, before memory is taken; the library's.
absl::StatusOr<Session> OpenSession(const Options& options, const Model& model,
                                    const std::optional<Model>& draft,
                                    size_t prompt_tokens);

// The number in tiercel_version(), "0.1.0".
std::string VersionNumber();

}  // namespace tiercel::cli

#endif  // TIERCEL_APPS_COMMANDS_COMMAND_H_

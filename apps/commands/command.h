#ifndef TIERCEL_APPS_COMMANDS_COMMAND_H_
#define TIERCEL_APPS_COMMANDS_COMMAND_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "apps/cli/options.h"
#include "apps/commands/api.h"

namespace tiercel::cli {

// The commands. Each takes a checked command line and writes its result.
absl::Status Summarize(const Options& options);
absl::Status Ask(const Options& options);
absl::Status Chat(const Options& options);
absl::Status Generate(const Options& options);
absl::Status Eval(const Options& options);
absl::Status Tokenize(const Options& options);
absl::Status Detokenize(const Options& options);
absl::Status Inspect(const Options& options);
absl::Status Plan(const Options& options);
absl::Status Bench(const Options& options);
absl::Status Cache(const Options& options);

// ---- What commands share ----
// A warning is said at once, and added to `warnings` for the document; to
// kOnStderrAlone where what is written has no place for it.
inline constexpr std::vector<std::string>* kOnStderrAlone = nullptr;

// The model of `options`, with progress while it is read, and with the header
// of the model that drafts for it, if one does. Errors: also kUsage, where
// positions are to be stretched by a scale that nobody gives, and for more
// draft layers than the model has, with both counts; those of
// tiercel_check_draft.
absl::StatusOr<Model> OpenModel(const Options& options, tiercel_load load);

// Whether a session of `options` can be planned, however much it takes. Errors:
// the library's of tiercel_plan.
absl::Status CheckSession(const Options& options, const Model& model);

// The weights of one that was opened by its header, so that all that may be
// wrong with a text is known before they are read. Errors: also those of
// CheckSession.
absl::Status LoadModel(const Options& options, Model* model);

// The model that drafts for `model`, beside it and with its weights; none where
// nobody asked for one. It computes as `model` does, but with the RoPE of its
// own checkpoint. Errors: the library's, of opening it and of
// tiercel_check_draft.
absl::StatusOr<std::optional<Model>> OpenDraftModel(const Options& options,
                                                    const Model& model);

// The session parameters of `options`, which outlive them, and of the model
// that drafts, by its header for a plan; null: none does.
struct SessionParams {
  SessionParams(const Options& options, const Model* draft);
  SessionParams(const SessionParams&) = delete;
  SessionParams& operator=(const SessionParams&) = delete;

  tiercel_session_params session = Defaults<tiercel_session_params>();
  tiercel_policy policy = Defaults<tiercel_policy>();  // of `session`
};

// Has the machine's rates for `model` measured where none are kept, with
// progress: before the sessions and plans that predict by them. Where other
// work disturbed that, now or before, they are measured again, but for no
// longer than the job that waits: `job_s`, called then, is how many seconds
// that takes by the rates there are; null: it takes none. Where they cannot be
// measured or kept, a warning says so; where they are not steady, those
// sessions and plans do. Errors: the library's of tiercel_measure, but for kIo
// and kMemory.
using JobSecondsFn = std::function<double()>;
absl::Status MeasureRates(const Options& options, const Model& model,
                          const JobSecondsFn& job_s,
                          std::vector<std::string>* warnings);

// Most tokens a session of `options` holds.
int64_t ContextOf(const Options& options, const Model& model);

// A session for `prompt_tokens`, which the draft model outlives. Errors, before
// memory is taken: CheckLength's; the library's.
absl::StatusOr<Session> OpenSession(const Options& options, const Model& model,
                                    const std::optional<Model>& draft,
                                    size_t prompt_tokens);

// "0.1.0" of tiercel_version().
std::string VersionNumber();

}  // namespace tiercel::cli

#endif  // TIERCEL_APPS_COMMANDS_COMMAND_H_

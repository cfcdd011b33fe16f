#ifndef TIERCEL_RUNTIME_GENERATE_GENERATE_H_
#define TIERCEL_RUNTIME_GENERATE_GENERATE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/token/distribution.h"
#include "runtime/generate/report.h"
#include "runtime/generate/transcript.h"
#include "runtime/policies/policy.h"
#include "runtime/session/session.h"

namespace tiercel {

struct GenerateParams {
  int64_t max_tokens = 0;  // 0: to the end of the context
  uint64_t seed = 0;
  DistributionParams distribution;
  bool ignore_eos = false;
  // Texts that end the output. One that is the text of a control token stands
  // for that token, too.
  std::vector<std::string> stops;
  std::vector<int32_t> stop_ids =
      {};                      // tokens that end it, whatever ignore_eos
  bool within_text = false;    // the text goes on from the tokens before
  bool split_thought = false;  // a thought is told from the answer
  // Absent: tokens are given out without log-probabilities; else with those of
  // so many of the most likely.
  std::optional<int64_t> top_log_probs = {};
  static constexpr int64_t kMostTopLogProbs = 20;
  // Masks the output's tokens, with split_thought those of its answer alone
  // (AnswerMask); null: none.
  TokenMask::Rule mask = nullptr;
};

// Each of these functions fails at once if the session is already cancelled.

// Appends `ids` and computes their KV. An error leaves the session as it was.
absl::StatusOr<PrefillReport> Prefill(Session& session, const int32_t* ids,
                                      size_t count, Session::Progress progress);

// For measurements: appends `ids` and computes only the KV of the last
// kMaxStepRows; that of the others is drawn from `seed`. `progress(done,
// count)` counts tokens, and is called at the end too. All `ids` count as
// cached. An error leaves the session as it was: those of Prefill and of
// Session::Fill.
absl::StatusOr<PrefillReport> FillPrompt(Session& session, const int32_t* ids,
                                         size_t count, uint64_t seed,
                                         Session::Progress progress);

// Continues the session's text with the blocks of `policy`, which was made for
// the session. However it ends, the session then holds the tokens that were
// given out, and the report lists them. `prefill` is the session's last. Errors
// (Report::status): invalid_sampling, invalid_stop, before anything begins;
// empty_prompt, non_finite, cancelled, copy_failed, out_of_memory, and those of
// the drafter; nothing_allowed, and those of the mask.
Report Generate(Session& session, Policy& policy, const PrefillReport& prefill,
                const GenerateParams& params,
                const Transcript::OnToken& on_token);

// Appends `ids`, `rows_per_step` at a time (0: our choice), and gives on_row
// the logits [vocab] of the token after each, with its index in `ids`; if it
// returns false that cancels. An error leaves the session as it was.
absl::Status Score(Session& session, const int32_t* ids, size_t count,
                   size_t rows_per_step,
                   absl::FunctionRef<bool(size_t, const float*)> on_row);
// Like Score, by the steps of `policy`, which has the plain form.
absl::Status ScoreSteps(Session& session, Policy& policy, const int32_t* ids,
                        size_t count,
                        absl::FunctionRef<bool(size_t, const float*)> on_row);

}  // namespace tiercel

#endif  // TIERCEL_RUNTIME_GENERATE_GENERATE_H_

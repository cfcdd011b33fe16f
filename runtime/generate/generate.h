#ifndef TIERCEL_RUNTIME_GENERATE_GENERATE_H_
#define TIERCEL_RUNTIME_GENERATE_GENERATE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "drafts/draft_length.h"
#include "drafts/verify.h"
#include "kernels/token/law.h"
#include "runtime/generate/transcript.h"
#include "runtime/sequence/session.h"

namespace tiercel {

inline constexpr size_t kMostStops = 64;

struct GenerateParams {
  int64_t max_tokens = 0;  // 0: to the end of the context
  uint64_t seed = 0;
  LawParams law;
  bool ignore_eos = false;
  std::vector<std::string> stops;
  Drafter* drafter = nullptr;  // null: the target draws every token itself
  DraftLength draft_length = DraftLength::Fixed(8);  // most at a time
  bool over_view = false;  // it drafts over the session's retrieval view
  VerifyMode verify = VerifyMode::kResidual;
};

// Appends `ids` and computes their KV. Errors leave the session as it was.
absl::Status Prefill(Session& session, const int32_t* ids, size_t count,
                     Session::Progress progress);

// Continues the session's text. Fills the session's report, also when it ends
// early; the session then holds the tokens that were given out.
// Errors: invalid_sampling, invalid_stop, empty_prompt, non_finite, cancelled,
// copy_failed, out_of_memory, and those of the drafter.
absl::Status Generate(Session& session, const GenerateParams& params,
                      const Transcript::OnToken& on_token);

// Appends `ids`, `rows_per_step` at a time (0: our choice), and gives the
// logits [vocab] of the token after each, with its index in `ids`; false from
// on_row cancels. Errors leave the session as it was.
absl::Status Score(Session& session, const int32_t* ids, size_t count,
                   size_t rows_per_step,
                   absl::FunctionRef<bool(size_t, const float*)> on_row);

}  // namespace tiercel

#endif  // TIERCEL_RUNTIME_GENERATE_GENERATE_H_

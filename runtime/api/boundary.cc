#include "runtime/api/boundary.h"

#include <cstddef>

#include "include/tiercel_lab.h"
#include "include/tiercel_queue.h"

namespace tiercel {

// Structs grow at their end, where padding would be garbage to a newer library.
TIERCEL_ENDS_WITH(tiercel_error, message);
TIERCEL_ENDS_WITH(tiercel_model_params, log_user_data);
TIERCEL_ENDS_WITH(tiercel_model_info, num_end_ids);
TIERCEL_ENDS_WITH(tiercel_text_limits, user_data);
TIERCEL_ENDS_WITH(tiercel_message, reasoning_bytes);
TIERCEL_ENDS_WITH(tiercel_chat_settings, continue_last);
TIERCEL_ENDS_WITH(tiercel_policy, draft_ahead);
TIERCEL_ENDS_WITH(tiercel_session_params, fork_tokens);
TIERCEL_ENDS_WITH(tiercel_measurement, again_seconds);
TIERCEL_ENDS_WITH(tiercel_token, top_log_probs);
TIERCEL_ENDS_WITH(tiercel_sampling, top_log_probs);
TIERCEL_ENDS_WITH(tiercel_generation, simulated);
TIERCEL_ENDS_WITH(tiercel_reading, excess);
TIERCEL_ENDS_WITH(tiercel_batch_entry, progress);
TIERCEL_ENDS_WITH(tiercel_queue_params, at_once);
TIERCEL_ENDS_WITH(tiercel_simulation, strict_seed);
TIERCEL_ENDS_WITH(tiercel_machine_params, threads);

absl::Status NeedTokenizer(const tiercel_model* model) {
  RETURN_IF_ERROR(NeedArgument("model", model));
  if (model->model->tokenizer != nullptr) return absl::OkStatus();
  const absl::Status& why = model->model->tokenizer_status;
  if (!why.ok() && CodeOf(why) != "no_tokenizer") return why;
  return InputError("no_tokenizer",
                    "the checkpoint has no tokenizer; give token ids");
}

}  // namespace tiercel

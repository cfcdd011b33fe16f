#include "runtime/api/boundary.h"

#include <cstddef>

namespace tiercel {

// Structs grow at their end, where padding would be garbage to a newer library.
TIERCEL_ENDS_WITH(tiercel_error, message);
TIERCEL_ENDS_WITH(tiercel_model_params, host_layers);
TIERCEL_ENDS_WITH(tiercel_model_info, sliding_window);
TIERCEL_ENDS_WITH(tiercel_text_limits, user_data);
TIERCEL_ENDS_WITH(tiercel_message, reasoning_bytes);
TIERCEL_ENDS_WITH(tiercel_chat_settings, template_kwargs);
TIERCEL_ENDS_WITH(tiercel_policy, branches);
TIERCEL_ENDS_WITH(tiercel_session_params, fork_tokens);
TIERCEL_ENDS_WITH(tiercel_measurement, again_seconds);
TIERCEL_ENDS_WITH(tiercel_token, thought_bytes);
TIERCEL_ENDS_WITH(tiercel_sampling, split_thought);
TIERCEL_ENDS_WITH(tiercel_generation, simulated);
TIERCEL_ENDS_WITH(tiercel_batch_entry, progress);

}  // namespace tiercel

#ifndef TIERCEL_RUNTIME_SEQUENCE_INTERRUPTED_PROMPT_H_
#define TIERCEL_RUNTIME_SEQUENCE_INTERRUPTED_PROMPT_H_

#include <cstdint>
#include <vector>

#include "offload/kv/view.h"
#include "runtime/pass/pass.h"

namespace tiercel {

// A prompt that was stopped on its way through the layers. The KV store keeps
// its pages and hidden states (KvStore::Suspend); this is the call that must be
// repeated to go on with them.
struct InterruptedPrompt {
  std::vector<int32_t> tokens;  // the whole sequence, with the prompt
  int64_t rows = 0;             // the prompt's
  View view;
  PassPoint point;

  bool IsFor(const std::vector<int32_t>& asked_tokens, int64_t asked_rows,
             const View& asked_view) const {
    return rows == asked_rows && tokens == asked_tokens && view == asked_view;
  }
};

}  // namespace tiercel

#endif  // TIERCEL_RUNTIME_SEQUENCE_INTERRUPTED_PROMPT_H_

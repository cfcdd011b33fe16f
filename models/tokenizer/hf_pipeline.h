#ifndef TIERCEL_MODELS_TOKENIZER_HF_PIPELINE_H_
#define TIERCEL_MODELS_TOKENIZER_HF_PIPELINE_H_

#include <vector>

#include "absl/status/status.h"
#include "models/tokenizer/tokenizer_spec.h"
#include "nlohmann/json.hpp"

namespace tiercel {

// Flattens a stage of tokenizer.json to a list: empty for null, the members of
// a Sequence (under `key`), nested ones in place; else the stage alone.
std::vector<const nlohmann::json*> StagesOf(const nlohmann::json& value,
                                            const char* key);

// Reads the stages through which text passes before and after the merges
// (normalizer, pre_tokenizer, decoder) into a spec whose kind has been read.
// Any other pipeline than those that `spec` can say is unsupported_tokenizer,
// naming the stage.
absl::Status ReadHfPipeline(const nlohmann::json& file, TokenizerSpec* spec);

}  // namespace tiercel

#endif  // TIERCEL_MODELS_TOKENIZER_HF_PIPELINE_H_

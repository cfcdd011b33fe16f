#ifndef TIERCEL_MODELS_TOKENIZER_HF_JSON_H_
#define TIERCEL_MODELS_TOKENIZER_HF_JSON_H_

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "nlohmann/json.hpp"

namespace tiercel {

// Views of tokenizer.json that take any value, of any type, and its errors.

absl::Status InvalidJsonVocab(std::string_view message);
absl::Status UnsupportedJson(std::string_view message);

// Returns the member of `object`; JSON null if there is none.
const nlohmann::json& Member(const nlohmann::json& object, const char* key);

bool IsString(const nlohmann::json& value, std::string_view text);
bool IsTrue(const nlohmann::json& value);

// The "type" of a stage: whether it is `type`, and its name for errors.
bool IsType(const nlohmann::json& value, std::string_view type);
std::string TypeOf(const nlohmann::json& value);

}  // namespace tiercel

#endif  // TIERCEL_MODELS_TOKENIZER_HF_JSON_H_

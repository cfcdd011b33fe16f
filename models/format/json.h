#ifndef TIERCEL_MODELS_FORMAT_JSON_H_
#define TIERCEL_MODELS_FORMAT_JSON_H_

#include <string_view>

#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"

namespace tiercel {

// Parses untrusted text: depth at most 64, no duplicate keys, valid UTF-8,
// nothing after the document. The library's own parser accepts deeper documents
// than its destructor and writer survive, and lets the last of two equal keys
// win. `who` names the text in errors (invalid_json).
absl::StatusOr<nlohmann::json> ParseJson(std::string_view who,
                                         std::string_view text);

// As ParseJson, but the members of objects keep their order, and an integer of
// more than 64 bits is an error instead of the nearest fraction.
absl::StatusOr<nlohmann::ordered_json> ParseOrderedJson(std::string_view who,
                                                        std::string_view text);

// As ParseJson, but NaN, Infinity and -Infinity, which Python writes as
// numbers, are accepted as values. They become strings, so that a reader that
// needs a number there refuses them.
absl::StatusOr<nlohmann::json> ParsePythonJson(std::string_view who,
                                               std::string_view text);

// Returns the document as text; invalid UTF-8 in strings becomes U+FFFD.
std::string WriteJson(const nlohmann::json& document);

}  // namespace tiercel

#endif  // TIERCEL_MODELS_FORMAT_JSON_H_

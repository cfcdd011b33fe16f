#ifndef TIERCEL_LIB_GRAMMAR_SCHEMA_CHECK_H_
#define TIERCEL_LIB_GRAMMAR_SCHEMA_CHECK_H_

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "lib/grammar/grammar.h"
#include "nlohmann/json.hpp"

namespace tiercel {

// Returns OK if a grammar obeys all of this JSON schema. Errors:
// invalid_grammar.
absl::Status CheckSchema(const GrammarSource& source,
                         const nlohmann::json& schema);

// The checks of a source share these: an error of it, and the check of a
// regular expression.
absl::Status InvalidGrammar(const GrammarSource& source,
                            const std::string& problem);
absl::Status CheckPattern(const GrammarSource& source,
                          std::string_view pattern);

}  // namespace tiercel

#endif  // TIERCEL_LIB_GRAMMAR_SCHEMA_CHECK_H_

#ifndef TIERCEL_APPS_CLI_SUGGESTION_H_
#define TIERCEL_APPS_CLI_SUGGESTION_H_

#include <string>
#include <string_view>
#include <vector>

namespace tiercel::cli {

// "; did you mean WORD?" with the one of `known` that `typed` is nearest to:
// fewest characters put in, left out, changed or swapped with a neighbour, one
// for every three that were typed, three at most; or which begins with it, of
// four characters or more. Empty where none is so near.
std::string Suggestion(std::string_view typed,
                       const std::vector<std::string>& known);

}  // namespace tiercel::cli

#endif  // TIERCEL_APPS_CLI_SUGGESTION_H_

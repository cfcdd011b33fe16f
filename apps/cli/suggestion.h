#ifndef TIERCEL_APPS_CLI_SUGGESTION_H_
#define TIERCEL_APPS_CLI_SUGGESTION_H_

#include <string>
#include <string_view>
#include <vector>

namespace tiercel::cli {

// Returns "; did you mean WORD?" with the word of `known` nearest to `typed`:
// the one with the fewest characters put in, left out, changed or swapped with
// a neighbour, at most one for every three that were typed, and three in all;
// or one that begins with `typed`, if that has four characters or more. Empty
// if none is so near.
std::string Suggestion(std::string_view typed,
                       const std::vector<std::string>& known);

}  // namespace tiercel::cli

#endif  // TIERCEL_APPS_CLI_SUGGESTION_H_

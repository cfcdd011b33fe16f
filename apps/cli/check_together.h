#ifndef TIERCEL_APPS_CLI_CHECK_TOGETHER_H_
#define TIERCEL_APPS_CLI_CHECK_TOGETHER_H_

#include <string>

#include "absl/status/status.h"
#include "apps/cli/options.h"

namespace tiercel::cli {

// Checks the flags against each other, and settles what depends on two of them:
// the model of `inspect MODEL`, the format of `bench`. A flag that has no
// effect beside the others is refused, or, if many scripts pass it, warned of.
// Errors: kUsage.
absl::Status CheckTogether(Options* options);

// Returns true if the path names stdin, as - and /dev/stdin do. A command reads
// either a text or typed lines from there, not both.
bool IsStdin(const std::string& path);

}  // namespace tiercel::cli

#endif  // TIERCEL_APPS_CLI_CHECK_TOGETHER_H_

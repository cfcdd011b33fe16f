#ifndef TIERCEL_APPS_CLI_CHECK_TOGETHER_H_
#define TIERCEL_APPS_CLI_CHECK_TOGETHER_H_

#include <string>

#include "absl/status/status.h"
#include "apps/cli/options.h"

namespace tiercel::cli {

// Checks what no single flag can tell, and settles what depends on two of them:
// the model of `inspect MODEL`, the format of `bench`. A flag that has no
// effect beside the others is refused, or, where scripts are full of it, warned
// of. Errors: kUsage.
absl::Status CheckTogether(Options* options);

// Whether a path names what stdin is, as - and /dev/stdin do: a text is read
// from there, or what somebody types, not both.
bool IsStdin(const std::string& path);

}  // namespace tiercel::cli

#endif  // TIERCEL_APPS_CLI_CHECK_TOGETHER_H_

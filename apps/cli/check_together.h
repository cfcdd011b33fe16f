#ifndef TIERCEL_APPS_CLI_CHECK_TOGETHER_H_
#define TIERCEL_APPS_CLI_CHECK_TOGETHER_H_

#include "absl/status/status.h"
#include "apps/cli/options.h"

namespace tiercel::cli {

// Checks what no single flag can tell, and settles what depends on two of them:
// the model of `inspect MODEL`, the format of `bench`. A flag that has no
// effect beside the others is refused, or, where scripts are full of it, warned
// of. Errors: kUsage.
absl::Status CheckTogether(Options* options);

}  // namespace tiercel::cli

#endif  // TIERCEL_APPS_CLI_CHECK_TOGETHER_H_

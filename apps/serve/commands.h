#ifndef TIERCEL_APPS_SERVE_COMMANDS_H_
#define TIERCEL_APPS_SERVE_COMMANDS_H_

#include "absl/status/status.h"
#include "apps/cli/options.h"

namespace tiercel::serve {

// The command that answers a file of requests in OpenAI's form.
absl::Status Batch(const cli::Options& options);

}  // namespace tiercel::serve

#endif  // TIERCEL_APPS_SERVE_COMMANDS_H_

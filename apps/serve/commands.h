#ifndef TIERCEL_APPS_SERVE_COMMANDS_H_
#define TIERCEL_APPS_SERVE_COMMANDS_H_

#include "absl/status/status.h"
#include "apps/cli/options.h"

namespace tiercel::serve {

// The commands that answer requests in OpenAI's form: over HTTP, until a signal
// comes; and in a file.
absl::Status Serve(const cli::Options& options);
absl::Status Batch(const cli::Options& options);

}  // namespace tiercel::serve

#endif  // TIERCEL_APPS_SERVE_COMMANDS_H_

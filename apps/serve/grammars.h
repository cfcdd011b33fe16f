#ifndef TIERCEL_APPS_SERVE_GRAMMARS_H_
#define TIERCEL_APPS_SERVE_GRAMMARS_H_

#include <memory>
#include <mutex>

#include "absl/status/status.h"
#include "apps/commands/model.h"
#include "apps/serve/request.h"
#include "lib/grammar/grammar.h"

namespace tiercel::serve {

// Compiles the grammars of requests for a model's vocabulary, which is read for
// the first of them. Thread-safe.
class Grammars {
 public:
  explicit Grammars(const cli::Model& model) : model_(model) {}

  // Puts the grammar of the request, if it names one, into its sampling.
  // Errors: invalid_request, which names the member; those of cli::GrammarsOf.
  absl::Status Compile(Request* request);

 private:
  const cli::Model& model_;
  std::mutex mutex_;
  std::unique_ptr<GrammarCompiler> compiler_;  // the lock guards it
};

}  // namespace tiercel::serve

#endif  // TIERCEL_APPS_SERVE_GRAMMARS_H_

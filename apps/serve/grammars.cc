#include "apps/serve/grammars.h"

#include <string>

#include "apps/commands/grammars.h"
#include "apps/serve/refusal.h"
#include "lib/status/error.h"
#include "lib/status/status_macros.h"

namespace tiercel::serve {

absl::Status Grammars::Compile(Request* request) {
  if (!request->grammar.has_value()) return absl::OkStatus();
  const std::lock_guard<std::mutex> lock(mutex_);
  if (compiler_ == nullptr) {
    ASSIGN_OR_RETURN(compiler_, cli::GrammarsOf(model_));
  }
  absl::StatusOr<std::shared_ptr<const Grammar>> compiled =
      compiler_->Compile(*request->grammar);
  if (!compiled.ok() &&
      tiercel::CodeOf(compiled.status()) == "invalid_grammar") {
    return Refuse(request->grammar->name, "invalid_request",
                  std::string(compiled.status().message()));
  }
  RETURN_IF_ERROR(compiled.status());
  request->sampling.grammar = *std::move(compiled);
  return absl::OkStatus();
}

}  // namespace tiercel::serve

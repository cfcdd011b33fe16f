#include "apps/commands/watched.h"

#include "apps/cli/error.h"
#include "apps/terminal/signals.h"

namespace tiercel::cli {

bool GoesOn(const absl::Status& status) {
  if (!status.ok()) throw Stopped(status);
  if (SignalReceived() != 0) throw Stopped(Interrupted());
  return true;
}

tiercel::Progress Watched(const ProgressFn& progress) {
  return [&progress](uint64_t done, uint64_t total) {
    if (progress) progress(done, total);
    return GoesOn();
  };
}

OnToken Watched(const TokenFn& on_token) {
  return [&on_token](const Token& token) { return GoesOn(on_token(token)); };
}

OnRow Watched(const RowFn& on_row) {
  return [&on_row](size_t index, const float* logits) {
    return GoesOn(on_row(index, logits));
  };
}

TextLimits Watched(const TextLimits& limits) {
  return {limits.most_tokens, [&limits](uint64_t done, uint64_t total) {
            return (!limits.progress || limits.progress(done, total)) &&
                   GoesOn();
          }};
}

absl::StatusOr<Json> Parsed(const std::string& json) {
  Json parsed = Json::parse(json, nullptr, /*allow_exceptions=*/false);
  if (parsed.is_discarded()) {
    return Error(Exit::kFailed, "internal", "the library returned bad JSON");
  }
  return parsed;
}

}  // namespace tiercel::cli

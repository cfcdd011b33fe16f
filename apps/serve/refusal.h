#ifndef TIERCEL_APPS_SERVE_REFUSAL_H_
#define TIERCEL_APPS_SERVE_REFUSAL_H_

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "apps/terminal/output.h"

namespace tiercel::serve {

using cli::Json;

// Errors of requests: a status, as everywhere, that also knows how HTTP and
// OpenAI's clients name it.

// A request that cannot be served as it is. `field` is the member of the body
// at fault; empty: none alone is.
absl::Status Refuse(std::string_view field, std::string_view code,
                    std::string_view message);
// An error with an HTTP status of its own.
absl::Status HttpError(int http_status, std::string_view code,
                       std::string_view message);
// A prompt that the context does not hold; `counted` is false if it has more
// than `tokens`.
absl::Status TooLong(size_t tokens, bool counted, int64_t context);

// The HTTP status of an error: its own; else 400 for what the request is to
// blame for, 503 for a lack of memory and for an end of the program, and 500.
int HttpStatusOf(const absl::Status& status);

// {"error": {"message", "type", "param", "code"}}, and of a prompt that is too
// long "n_prompt_tokens" and "n_ctx".
Json ErrorDocument(const absl::Status& status);

}  // namespace tiercel::serve

#endif  // TIERCEL_APPS_SERVE_REFUSAL_H_

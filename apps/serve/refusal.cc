#include "apps/serve/refusal.h"

#include "absl/strings/cord.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "apps/cli/error.h"

namespace tiercel::serve {
namespace {

using cli::Exit;

constexpr absl::string_view kField = "tiercel/field";
constexpr absl::string_view kHttp = "tiercel/http";
constexpr absl::string_view kPromptTokens = "tiercel/prompt_tokens";
constexpr absl::string_view kContext = "tiercel/context";

// The payload `name` of a status; empty: it has none.
std::string PayloadOf(const absl::Status& status, absl::string_view name) {
  const absl::optional<absl::Cord> payload = status.GetPayload(name);
  return payload.has_value() ? std::string(*payload) : "";
}

const char* TypeOf(int http_status) {
  switch (http_status) {
    case 401:
      return "authentication_error";
    case 403:
      return "permission_error";
    case 404:
      return "not_found_error";
    case 429:
      return "rate_limit_error";
    default:
      return http_status < 500 ? "invalid_request_error" : "server_error";
  }
}

}  // namespace

absl::Status Refuse(std::string_view field, std::string_view code,
                    std::string_view message) {
  absl::Status status = cli::Error(Exit::kUsage, code, message);
  if (!field.empty()) {
    status.SetPayload(kField, absl::Cord(std::string(field)));
  }
  return status;
}

absl::Status HttpError(int http_status, std::string_view code,
                       std::string_view message) {
  absl::Status status = cli::Error(Exit::kFailed, code, message);
  status.SetPayload(kHttp, absl::Cord(absl::StrCat(http_status)));
  return status;
}

absl::Status TooLong(size_t tokens, bool counted, int64_t context) {
  absl::Status status =
      cli::Error(Exit::kInput, "context_length_exceeded",
                 absl::StrCat("the prompt has ", counted ? "" : "more than ",
                              tokens, " tokens, the context holds ", context,
                              static_cast<int64_t>(tokens) == context
                                  ? " and leaves no room for an answer"
                                  : ""));
  status.SetPayload(kPromptTokens, absl::Cord(absl::StrCat(tokens)));
  status.SetPayload(kContext, absl::Cord(absl::StrCat(context)));
  return status;
}

int HttpStatusOf(const absl::Status& status) {
  int http_status = 0;
  if (absl::SimpleAtoi(PayloadOf(status, kHttp), &http_status)) {
    return http_status;
  }
  if (cli::IsInterrupted(status)) return 503;
  switch (cli::ExitOf(status)) {
    case Exit::kUsage:
    case Exit::kInput:
      return 400;
    case Exit::kMemory:
      return 503;
    default:
      return 500;
  }
}

Json ErrorDocument(const absl::Status& status) {
  const std::string field = PayloadOf(status, kField);
  Json error = {{"message", std::string(status.message())},
                {"type", TypeOf(HttpStatusOf(status))},
                {"param", field.empty() ? Json() : Json(field)},
                {"code", cli::CodeOf(status)}};
  int64_t tokens = 0;
  int64_t context = 0;
  if (absl::SimpleAtoi(PayloadOf(status, kPromptTokens), &tokens) &&
      absl::SimpleAtoi(PayloadOf(status, kContext), &context)) {
    error["n_prompt_tokens"] = tokens;
    error["n_ctx"] = context;
  }
  return {{"error", std::move(error)}};
}

}  // namespace tiercel::serve

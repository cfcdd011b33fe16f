#include "apps/cli/error.h"

#include <cerrno>
#include <cstring>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"

namespace tiercel::cli {
namespace {

constexpr absl::string_view kPayload = "tiercel/exit";  // "<digit><code>"

absl::string_view Abseil(std::string_view text) {
  return {text.data(), text.size()};
}

std::string PayloadOf(const absl::Status& status) {
  const absl::optional<absl::Cord> payload = status.GetPayload(kPayload);
  return payload.has_value() ? std::string(*payload) : "1internal";
}

}  // namespace

absl::Status Error(Exit exit, std::string_view code, std::string_view message) {
  absl::Status status(absl::StatusCode::kUnknown, Abseil(message));
  status.SetPayload(
      kPayload, absl::Cord(absl::StrCat(static_cast<int>(exit), Abseil(code))));
  return status;
}

absl::Status UsageError(std::string_view message) {
  return Error(Exit::kUsage, "usage", message);
}

absl::Status SystemError(std::string_view what) {
  return Error(Exit::kIo, "io_error",
               absl::StrCat(Abseil(what), ": ", std::strerror(errno)));
}

absl::Status Interrupted() { return absl::CancelledError("interrupted"); }

absl::Status InterruptedInOutput() { return absl::CancelledError(""); }

bool IsInterrupted(const absl::Status& status) {
  return absl::IsCancelled(status);
}

absl::Status ReaderGone() { return absl::AbortedError("stdout was closed"); }

bool IsReaderGone(const absl::Status& status) {
  return absl::IsAborted(status);
}

Exit ExitOf(const absl::Status& status) {
  if (status.ok() || IsReaderGone(status)) return Exit::kOk;
  return static_cast<Exit>(PayloadOf(status)[0] - '0');
}

std::string CodeOf(const absl::Status& status) {
  if (IsInterrupted(status)) return "interrupted";
  return PayloadOf(status).substr(1);
}

}  // namespace tiercel::cli

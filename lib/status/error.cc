#include "lib/status/error.h"

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"

namespace tiercel {
namespace {

constexpr absl::string_view kCodePayload = "tiercel/code";

absl::string_view Abseil(std::string_view text) {
  return absl::string_view(text.data(), text.size());
}

absl::Status Make(absl::StatusCode status_code, std::string_view code,
                  std::string_view message) {
  absl::Status status(status_code, Abseil(message));
  status.SetPayload(kCodePayload, absl::Cord(Abseil(code)));
  return status;
}

}  // namespace

absl::Status UsageError(std::string_view code, std::string_view message) {
  return Make(absl::StatusCode::kInvalidArgument, code, message);
}
absl::Status InputError(std::string_view code, std::string_view message) {
  return Make(absl::StatusCode::kDataLoss, code, message);
}
absl::Status MemoryError(std::string_view code, std::string_view message) {
  return Make(absl::StatusCode::kResourceExhausted, code, message);
}
absl::Status DeviceError(std::string_view code, std::string_view message) {
  return Make(absl::StatusCode::kUnavailable, code, message);
}
absl::Status IoError(std::string_view code, std::string_view message) {
  return Make(absl::StatusCode::kAborted, code, message);
}
absl::Status CancelledError() {
  return Make(absl::StatusCode::kCancelled, "cancelled", "cancelled");
}
absl::Status InternalError(std::string_view code, std::string_view message) {
  return Make(absl::StatusCode::kInternal, code, message);
}

ErrorClass ClassOf(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return ErrorClass::kOk;
    case absl::StatusCode::kInvalidArgument:
      return ErrorClass::kUsage;
    case absl::StatusCode::kDataLoss:
      return ErrorClass::kInput;
    case absl::StatusCode::kResourceExhausted:
      return ErrorClass::kMemory;
    case absl::StatusCode::kUnavailable:
      return ErrorClass::kDevice;
    case absl::StatusCode::kAborted:
      return ErrorClass::kIo;
    case absl::StatusCode::kCancelled:
      return ErrorClass::kCancelled;
    default:
      return ErrorClass::kFailed;
  }
}

std::string CodeOf(const absl::Status& status) {
  const absl::optional<absl::Cord> code = status.GetPayload(kCodePayload);
  return code.has_value() ? std::string(*code) : "internal";
}

absl::Status Annotate(const absl::Status& status, std::string_view where) {
  if (status.ok()) return status;
  absl::Status annotated(status.code(),
                         absl::StrCat(Abseil(where), ": ", status.message()));
  const absl::optional<absl::Cord> code = status.GetPayload(kCodePayload);
  if (code.has_value()) annotated.SetPayload(kCodePayload, *code);
  return annotated;
}

}  // namespace tiercel

#include "lib/c_api/border.h"

namespace tiercel {
namespace {

constexpr std::string_view kTooSmall = "buffer_too_small";

// The size of tiercel_error in the oldest header: a program made with it gets
// its text from any later library.
constexpr size_t kFirstErrorSize = sizeof(size_t) + 48 + 1024;

tiercel_status StatusOf(const absl::Status& status) {
  if (CodeOf(status) == kTooSmall) return TIERCEL_BUFFER_TOO_SMALL;
  switch (ClassOf(status)) {
    case ErrorClass::kOk:
      return TIERCEL_OK;
    case ErrorClass::kFailed:
      return TIERCEL_FAILED;
    case ErrorClass::kUsage:
      return TIERCEL_USAGE;
    case ErrorClass::kInput:
      return TIERCEL_INVALID_INPUT;
    case ErrorClass::kMemory:
      return TIERCEL_OUT_OF_MEMORY;
    case ErrorClass::kDevice:
      return TIERCEL_NO_DEVICE;
    case ErrorClass::kIo:
      return TIERCEL_IO;
    case ErrorClass::kCancelled:
      return TIERCEL_CANCELLED;
  }
  return TIERCEL_FAILED;
}

// Copies as much of `text` as fits, never part of a UTF-8 sequence.
void Copy(std::string_view text, char* out, size_t capacity) {
  size_t n = std::min(text.size(), capacity - 1);
  while (n > 0 && n < text.size() && (text[n] & 0xC0) == 0x80) --n;
  std::memcpy(out, text.data(), n);
  out[n] = '\0';
}

}  // namespace

absl::Status BufferTooSmall(size_t got, size_t needed) {
  return UsageError(kTooSmall, absl::StrCat("the buffer holds ", got,
                                            ", needed are ", needed));
}

tiercel_status ReportError(tiercel_status status, std::string_view code,
                           std::string_view message, tiercel_error* error) {
  if (error != nullptr && error->struct_size >= kFirstErrorSize) {
    Copy(code, error->code, sizeof(error->code));
    Copy(message, error->message, sizeof(error->message));
  }
  return status;
}

tiercel_status ReportStatus(const absl::Status& status, tiercel_error* error) {
  if (status.ok()) return ReportError(TIERCEL_OK, "", "", error);
  const absl::string_view message = status.message();
  return ReportError(StatusOf(status), CodeOf(status),
                     {message.data(), message.size()}, error);
}

}  // namespace tiercel

#include "models/tokenizer/encode_watch.h"

#include "absl/strings/str_cat.h"
#include "lib/status/error.h"

namespace tiercel {

absl::Status EncodeWatch::Begin(size_t run_bytes, size_t text_bytes,
                                size_t ids) {
  run_begin_ += run_bytes_;
  run_bytes_ = run_bytes;
  text_bytes_ = text_bytes;
  next_report_ = 0;
  return Look(0, ids);
}

absl::Status EncodeWatch::Report(size_t at, size_t ids) {
  constexpr size_t kBytesBetweenReports = size_t{1} << 16;  // milliseconds
  next_report_ = at + kBytesBetweenReports;
  const double share = text_bytes_ > 0 ? static_cast<double>(at) /
                                             static_cast<double>(text_bytes_)
                                       : 1;
  const auto done = run_begin_ + static_cast<uint64_t>(
                                     share * static_cast<double>(run_bytes_));
  if (limits_.progress && !limits_.progress(done, total_)) {
    return CancelledError();
  }
  if (ids <= limits_.most_ids) return absl::OkStatus();
  return InputError("too_long",
                    absl::StrCat("tokenizer: the text has more than ",
                                 limits_.most_ids, " tokens"));
}

}  // namespace tiercel

#ifndef TIERCEL_MODELS_TOKENIZER_ENCODE_WATCH_H_
#define TIERCEL_MODELS_TOKENIZER_ENCODE_WATCH_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>

#include "absl/status/status.h"

namespace tiercel {

// Limits of an Encode.
struct EncodeLimits {
  // The most ids, including those that were there before.
  size_t most_ids = std::numeric_limits<int32_t>::max();
  // Called with the bytes done and the bytes in all; a return of false stops.
  // May be empty.
  std::function<bool(uint64_t done, uint64_t total)> progress = nullptr;
};

// Ends an Encode that exceeds its limit of ids, or whose caller stops it.
class EncodeWatch {
 public:
  // `total` bytes are to be encoded. `limits` must outlive this.
  EncodeWatch(const EncodeLimits& limits, uint64_t total)
      : limits_(limits), total_(total) {}

  // Begins a run of `run_bytes` of the bytes, which normalization made a text
  // of `text_bytes`. Errors: those of Look.
  absl::Status Begin(size_t run_bytes, size_t text_bytes, size_t ids);

  // Checks the limits when `at` bytes of the run's text are done, with `ids`
  // ids in all. Errors: too_long, cancelled.
  absl::Status Look(size_t at, size_t ids) {
    if (ids <= limits_.most_ids && at < next_report_) return absl::OkStatus();
    return Report(at, ids);
  }

 private:
  absl::Status Report(size_t at, size_t ids);

  const EncodeLimits& limits_;
  const uint64_t total_;
  uint64_t run_begin_ = 0;  // offset in all the bytes
  size_t run_bytes_ = 0;
  size_t text_bytes_ = 0;
  size_t next_report_ = 0;
};

}  // namespace tiercel

#endif  // TIERCEL_MODELS_TOKENIZER_ENCODE_WATCH_H_

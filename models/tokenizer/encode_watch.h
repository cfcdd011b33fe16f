#ifndef TIERCEL_MODELS_TOKENIZER_ENCODE_WATCH_H_
#define TIERCEL_MODELS_TOKENIZER_ENCODE_WATCH_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>

#include "absl/status/status.h"

namespace tiercel {

// When to give up on a text.
struct EncodeLimits {
  // Ids at most, those that were there before included.
  size_t most_ids = std::numeric_limits<int32_t>::max();
  // Called with bytes done of the bytes there are; false stops. May be empty.
  std::function<bool(uint64_t done, uint64_t total)> progress = nullptr;
};

// Ends an Encode that has given too many ids, or whose caller asks for its end.
class EncodeWatch {
 public:
  // `total` bytes are to be encoded. `limits` must outlive this.
  EncodeWatch(const EncodeLimits& limits, uint64_t total)
      : limits_(limits), total_(total) {}

  // The next run has `run_bytes` of these bytes, which became a text of
  // `text_bytes`. Errors: those of Look.
  absl::Status Begin(size_t run_bytes, size_t text_bytes, size_t ids);

  // `at` bytes of the run's text have given all of `ids` ids. Errors: too_long,
  // cancelled.
  absl::Status Look(size_t at, size_t ids) {
    if (ids <= limits_.most_ids && at < next_report_) return absl::OkStatus();
    return Report(at, ids);
  }

 private:
  absl::Status Report(size_t at, size_t ids);

  const EncodeLimits& limits_;
  const uint64_t total_;
  uint64_t run_begin_ = 0;  // in all the bytes
  size_t run_bytes_ = 0;
  size_t text_bytes_ = 0;
  size_t next_report_ = 0;
};

}  // namespace tiercel

#endif  // TIERCEL_MODELS_TOKENIZER_ENCODE_WATCH_H_

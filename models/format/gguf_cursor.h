#ifndef TIERCEL_MODELS_FORMAT_GGUF_CURSOR_H_
#define TIERCEL_MODELS_FORMAT_GGUF_CURSOR_H_

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "lib/status/error.h"
#include "lib/status/status_macros.h"
#include "models/format/file.h"

namespace tiercel {

static_assert(std::endian::native == std::endian::little,
              "GGUF numbers are read as the machine's own");

// Walks through a file from front to back. Every size is checked against the
// bytes left before memory is allocated for it.
class GgufCursor {
 public:
  explicit GgufCursor(const File& file)
      : file_(file), buffer_(std::min<uint64_t>(kBufferBytes, file.size())) {}

  uint64_t position() const { return position_; }
  uint64_t left() const { return file_.size() - position_; }

  // Returns an error at the field that was read last.
  absl::Status Fail(std::string_view code, std::string_view message) const {
    return InputError(
        code, absl::StrCat("byte ", field_, ": ", std::string(message)));
  }

  // Fails with model_truncated if fewer than `bytes` are left.
  absl::Status Need(std::string_view what, uint64_t bytes) const {
    if (bytes <= left()) return absl::OkStatus();
    return Fail("model_truncated",
                absl::StrCat(std::string(what), " needs ", bytes,
                             " bytes; the file has ", left(), " more"));
  }

  // Reads the next field; `what` names it in errors.
  absl::Status Bytes(std::string_view what, std::span<std::byte> out) {
    field_ = position_;
    return Copy(what, out);
  }

  template <typename T>
  absl::Status Number(std::string_view what, T* out) {
    static_assert(std::is_arithmetic_v<T>);
    return Bytes(what, {reinterpret_cast<std::byte*>(out), sizeof(T)});
  }

  absl::Status String(std::string_view what, uint64_t most, std::string* out) {
    uint64_t bytes;
    RETURN_IF_ERROR(Number(what, &bytes));
    RETURN_IF_ERROR(Need(what, bytes));
    if (bytes > most) {
      return Fail("limit_exceeded",
                  absl::StrCat(std::string(what), " has ", bytes,
                               " bytes; at most ", most, " are accepted"));
    }
    out->resize(bytes);
    return Copy(what, {reinterpret_cast<std::byte*>(out->data()), bytes});
  }

  // Reads the number of items that follow, each of which takes `bytes_each` or
  // more.
  absl::Status Count(std::string_view what, uint64_t most, uint64_t bytes_each,
                     uint64_t* count) {
    RETURN_IF_ERROR(Number(what, count));
    if (*count > most) {
      return Fail("limit_exceeded",
                  absl::StrCat(std::string(what), ": ", *count,
                               " of them; at most ", most, " are accepted"));
    }
    return Need(what, *count * bytes_each);  // `most` is far from 2^64
  }

 private:
  static constexpr uint64_t kBufferBytes = uint64_t{1} << 18;

  absl::Status Copy(std::string_view what, std::span<std::byte> out) {
    RETURN_IF_ERROR(Need(what, out.size()));
    size_t done = 0;
    while (done < out.size()) {
      if (position_ < buffer_begin_ || position_ >= buffer_end_) {
        RETURN_IF_ERROR(Fill());
      }
      const size_t count =
          std::min<uint64_t>(out.size() - done, buffer_end_ - position_);
      std::memcpy(out.data() + done,
                  buffer_.data() + (position_ - buffer_begin_), count);
      done += count;
      position_ += count;
    }
    return absl::OkStatus();
  }

  absl::Status Fill() {
    const uint64_t count = std::min<uint64_t>(buffer_.size(), left());
    RETURN_IF_ERROR(file_.Read(position_, {buffer_.data(), count}));
    buffer_begin_ = position_;
    buffer_end_ = position_ + count;
    return absl::OkStatus();
  }

  const File& file_;
  std::vector<std::byte> buffer_;  // the file's [buffer_begin_, buffer_end_)
  uint64_t buffer_begin_ = 0;
  uint64_t buffer_end_ = 0;
  uint64_t position_ = 0;
  uint64_t field_ = 0;  // start of the field that was read last
};

}  // namespace tiercel

#endif  // TIERCEL_MODELS_FORMAT_GGUF_CURSOR_H_

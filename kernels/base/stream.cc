#include "kernels/base/stream.h"

#include <algorithm>
#include <utility>

namespace tiercel {

absl::StatusOr<std::unique_ptr<Stream>> Stream::Create(const Options& options) {
  const absl::StatusOr<Isa> isa = ChooseIsa();
  if (!isa.ok()) return isa.status();
  return std::unique_ptr<Stream>(new Stream(options, *isa));
}

Stream::Stream(const Options& options, Isa isa)
    : device_(options.device),
      isa_(isa),
      pool_(options.threads > 0 ? options.threads : AllowedCpus()),
      memory_(options.memory != nullptr ? *options.memory : SystemMemory()) {}

absl::StatusOr<std::byte*> Stream::Scratch(size_t bytes) {
  if (bytes <= scratch_.size()) return scratch_.data();
  // Growing by half at least keeps a slowly rising need from asking often.
  const size_t wanted = std::max(bytes, scratch_.size() + scratch_.size() / 2);
  scratch_ = {};  // its contents are nobody's: both need not fit at once
  absl::StatusOr<DeviceArray<std::byte>> grown = DeviceArray<std::byte>::Create(
      memory_, static_cast<int64_t>(wanted), "scratch");
  if (!grown.ok()) return grown.status();
  scratch_ = *std::move(grown);
  return scratch_.data();
}

}  // namespace tiercel

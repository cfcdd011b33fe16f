#include "kernels/base/stream.h"

#include <algorithm>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "kernels/base/error.h"

namespace tiercel {
namespace {
constexpr size_t kAlignment = 64;
}  // namespace

absl::StatusOr<std::unique_ptr<Stream>> Stream::Create(const Options& options) {
  const absl::StatusOr<Isa> isa = ChooseIsa();
  if (!isa.ok()) return isa.status();
  const int threads = options.threads > 0 ? options.threads : AllowedCpus();
  return std::unique_ptr<Stream>(new Stream(options.device, *isa, threads));
}

Stream::Stream(Device device, Isa isa, int threads)
    : device_(device), isa_(isa), pool_(threads) {}

Stream::~Stream() { std::free(scratch_); }

absl::StatusOr<std::byte*> Stream::Scratch(size_t bytes) {
  if (bytes <= scratch_bytes_) return scratch_;
  // Growing by half at least keeps a slowly rising need from copying often.
  const size_t wanted = std::max(bytes, scratch_bytes_ + scratch_bytes_ / 2);
  const size_t rounded = (wanted + kAlignment - 1) / kAlignment * kAlignment;
  void* grown = std::aligned_alloc(kAlignment, rounded);
  if (grown == nullptr) {
    return MemoryError("out_of_memory",
                       absl::StrCat("scratch memory: need ", rounded,
                                    " bytes, the system gave none"));
  }
  std::free(scratch_);
  scratch_ = static_cast<std::byte*>(grown);
  scratch_bytes_ = rounded;
  return scratch_;
}

}  // namespace tiercel

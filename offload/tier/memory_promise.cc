#include "offload/tier/memory_promise.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "lib/status/error.h"

namespace tiercel {
namespace {

std::atomic<int64_t> unwritten_of_process{0};
std::mutex admission;

}  // namespace

int64_t MemoryAccount::Unwritten() { return unwritten_of_process; }

std::mutex& MemoryAccount::Admission() { return admission; }

void MemoryAccount::Add(int64_t promised, int64_t unwritten) {
  promised_ += promised;
  unwritten_of_process += unwritten;
}

void MemoryPromise::Resize(int64_t bytes) {
  if (account_ == nullptr) return;
  const int64_t promised = kind_ == Kind::kTaken ? 0 : bytes - bytes_;
  const int64_t before = Unwritten();
  bytes_ = bytes;
  account_->Add(promised, Unwritten() - before);
}

absl::Status MemoryPromise::Grow(int64_t more, std::string_view what) {
  if (account_ == nullptr) return absl::OkStatus();
  const std::lock_guard<std::mutex> lock(MemoryAccount::Admission());
  const int64_t room = account_->room();
  if (more > room) {
    return MemoryError(
        "out_of_memory",
        absl::StrCat(std::string(what), ": need ", more, " bytes more, ", room,
                     " of this machine's memory are free"));
  }
  Resize(bytes_ + more);
  return absl::OkStatus();
}

void MemoryPromise::NoteWritten(int64_t bytes) {
  if (account_ == nullptr) return;
  const int64_t before = Unwritten();
  written_ = bytes;
  account_->Add(0, Unwritten() - before);
}

}  // namespace tiercel

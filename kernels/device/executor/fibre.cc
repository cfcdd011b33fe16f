#include "kernels/device/executor/fibre.h"

#include <boost/context/protected_fixedsize_stack.hpp>
#include <cstdint>
#include <iterator>
#include <memory>
#include <mutex>
#include <utility>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#endif

namespace tiercel {
namespace {

namespace context = boost::context;

context::protected_fixedsize_stack Stacks() {
  return context::protected_fixedsize_stack(128 << 10);
}

thread_local Fibre* running = nullptr;

// Lets a stack begin at another offset in its page than its neighbours do. A
// cache holds few stacks that all begin at one offset.
context::preallocated Placed(const context::stack_context& stack) {
  constexpr uintptr_t kPage = 4096;
  constexpr uintptr_t kPlaces = 32;
  const uintptr_t at = reinterpret_cast<uintptr_t>(stack.sp) / kPage % kPlaces *
                       (kPage / kPlaces);
  return {static_cast<std::byte*>(stack.sp) - at, stack.size - at, stack};
}

constexpr int kSignals[] = {SIGSEGV, SIGBUS};
std::mutex catching;                           // guards the two below
int caught_by = 0;                             // number of Catch that live
struct sigaction former[std::size(kSignals)];  // actions before the first Catch

}  // namespace

Fibre::Fibre(absl::FunctionRef<void()> body)
    : body_(body),
      stack_(Stacks().allocate()),
      inside_(
          std::allocator_arg, Placed(stack_), Stacks(),
          [this](context::fiber&& caller) { return Run(std::move(caller)); }) {}

Fibre::~Fibre() {
  abandoned_ = true;
  if (inside_) Resume();
#ifdef __SANITIZE_ADDRESS__
  // Another stack may use its pages next.
  __asan_unpoison_memory_region(
      static_cast<std::byte*>(stack_.sp) - stack_.size, stack_.size);
#endif
}

context::fiber Fibre::Run(context::fiber&& caller) {
  Arrive();
  caller_ = std::move(caller);
  try {
    if (!abandoned_) body_();
  } catch (const Abandoned&) {
  }
  Leave();
  return std::move(caller_);
}

void Fibre::Resume() {
#ifdef __SANITIZE_ADDRESS__
  __sanitizer_start_switch_fiber(
      &saved_caller_, static_cast<std::byte*>(stack_.sp) - stack_.size,
      stack_.size);
#endif
  running = this;
  inside_ = std::move(inside_).resume();
  running = nullptr;
#ifdef __SANITIZE_ADDRESS__
  __sanitizer_finish_switch_fiber(saved_caller_, nullptr, nullptr);
#endif
}

void Fibre::Suspend() {
  Leave();
  caller_ = std::move(caller_).resume();
  Arrive();
  if (abandoned_) throw Abandoned{};
}

void Fibre::OnBadAddress(int signal, siginfo_t* info, void* /*context*/) {
  if (running != nullptr) {
    running->bad_address_ = info->si_addr;
    siglongjmp(running->before_, 1);
  }
  // The fault is not a fibre's, so the former action gets it: now if the signal
  // was sent, else when the instruction faults again.
  sigaction(signal, &former[signal == SIGBUS ? 1 : 0], nullptr);
  if (info->si_code <= 0) raise(signal);
}

Fibre::Catch::Catch() {
  const std::lock_guard<std::mutex> lock(catching);
  if (caught_by++ > 0) return;
  struct sigaction action = {};
  action.sa_sigaction = OnBadAddress;
  action.sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK;
  for (size_t i = 0; i < std::size(kSignals); ++i) {
    sigaction(kSignals[i], &action, &former[i]);
  }
}

Fibre::Catch::~Catch() {
  const std::lock_guard<std::mutex> lock(catching);
  if (--caught_by > 0) return;
  for (size_t i = 0; i < std::size(kSignals); ++i) {
    sigaction(kSignals[i], &former[i], nullptr);
  }
}

std::optional<const void*> Fibre::Try(absl::FunctionRef<void()> work) {
  if (sigsetjmp(before_, /*savemask=*/0) != 0) return bad_address_;
  work();
  return std::nullopt;
}

void Fibre::Leave() {
#ifdef __SANITIZE_ADDRESS__
  __sanitizer_start_switch_fiber(&saved_, caller_stack_, caller_bytes_);
#endif
}

void Fibre::Arrive() {
#ifdef __SANITIZE_ADDRESS__
  __sanitizer_finish_switch_fiber(saved_, &caller_stack_, &caller_bytes_);
#endif
}

}  // namespace tiercel

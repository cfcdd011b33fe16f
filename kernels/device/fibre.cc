#include "kernels/device/fibre.h"

#include <boost/context/protected_fixedsize_stack.hpp>
#include <memory>
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

}  // namespace

Fibre::Fibre(absl::FunctionRef<void()> body)
    : body_(body),
      stack_(Stacks().allocate()),
      inside_(
          std::allocator_arg,
          context::preallocated(stack_.sp, stack_.size, stack_), Stacks(),
          [this](context::fiber&& caller) { return Run(std::move(caller)); }) {}

Fibre::~Fibre() {
  abandoned_ = true;
  if (inside_) Resume();
#ifdef __SANITIZE_ADDRESS__
  // Its pages may be another's next.
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
  inside_ = std::move(inside_).resume();
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

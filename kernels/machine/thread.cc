#include "kernels/machine/thread.h"

#include <cstdlib>

namespace tiercel {
namespace {

// A module is not unloaded before what a thread has of it is destroyed.
struct Kept {
  ~Kept() { asm volatile("" ::: "memory"); }  // is not left out
};

}  // namespace

void KeepCodeForThread() {
  // The system ends the process where it has no memory to note a destructor in.
  // More than it needs shows that there is some.
  constexpr size_t kEnough = 4096;
  void* const room = std::malloc(kEnough);
  if (room == nullptr) return;
  std::free(room);
  thread_local Kept kept;
  asm volatile("" ::"r"(&kept));
}

}  // namespace tiercel

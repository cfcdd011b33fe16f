#include "kernels/system/thread.h"

#include <cstdlib>

namespace tiercel {
namespace {

// A thread_local of this type keeps its module loaded: the system unloads none
// before the destructors of its thread_locals have run.
struct Kept {
  ~Kept() { asm volatile("" ::: "memory"); }  // keeps the destructor
};

}  // namespace

void KeepCodeForThread() {
  // The system aborts the process if it has no memory to register a destructor.
  // Allocating more than it needs shows that there is some.
  constexpr size_t kEnough = 4096;
  void* const room = std::malloc(kEnough);
  if (room == nullptr) return;
  std::free(room);
  thread_local Kept kept;
  asm volatile("" ::"r"(&kept));
}

}  // namespace tiercel

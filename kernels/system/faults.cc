#include "kernels/system/faults.h"

#include <mutex>
#include <shared_mutex>
#include <utility>
#include <vector>

namespace tiercel {
namespace {

struct Registry {
  std::shared_mutex mutex;  // shared while a function is called
  std::vector<const Faults*> all;
};

// It outlives static objects that ask at the end of the program.
Registry& TheRegistry() {
  static auto* const registry = new Registry;
  return *registry;
}

}  // namespace

namespace faults_internal {

std::atomic<int> alive{0};

int Ask(const Operation& operation) {
  Registry& registry = TheRegistry();
  const std::shared_lock lock(registry.mutex);
  for (const Faults* faults : registry.all) {
    if (faults->of_ != operation.of) continue;
    if (const int error = faults->fault_(operation); error != 0) return error;
  }
  return 0;
}

}  // namespace faults_internal

Faults::Faults(Callee of, Function fault) : of_(of), fault_(std::move(fault)) {
  Registry& registry = TheRegistry();
  const std::unique_lock lock(registry.mutex);
  registry.all.push_back(this);
  ++faults_internal::alive;
}

Faults::~Faults() {
  Registry& registry = TheRegistry();
  const std::unique_lock lock(registry.mutex);
  --faults_internal::alive;
  std::erase(registry.all, this);
}

}  // namespace tiercel

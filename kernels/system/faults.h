#ifndef TIERCEL_KERNELS_SYSTEM_FAULTS_H_
#define TIERCEL_KERNELS_SYSTEM_FAULTS_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <utility>

namespace tiercel {

// The one seam for faults. Before an operation that the system, the hardware or
// a library may refuse, its code asks
//
//   if (const int error = FaultAt({.of = Callee::kDisk, .call = "write"})) ...
//
// and fails with `error` as if that had been the answer. Only tests inject
// faults; where none does, asking costs the read of one variable.

// The side that does an operation. The comments list its calls, and the errors
// that a fault may name.
enum class Callee {
  kMemory,  // device memory of a stated size: "allocate"; any
  kLink,    // a simulated link: "copy"; any
  kHost,    // pages of the host tier: "pin"; any
  kRank,    // a rank among others: "gather"; any
  kDevice,  // the driver of a simulated device: "create", "check", "free",
            // "allocate", "pin", "see", "copy", "launch", "mark", "wait"; a
            // cudaError_t
  kDisk,    // files of KV: "open" (to read), "create" (to write), "close",
            // "allocate", "sync", "lock", "read", "write", "rename", "remove";
            // an errno
  kBlasLt,  // a simulated cuBLASLt, by the names of BlasLtFunctions; its status
  kNccl,    // a simulated NCCL, by the names of NcclFunctions, and "deliver",
            // when a message leaves; an ncclResult_t
};

// An operation that may fail, as its code tells it to a fault.
struct Operation {
  Callee of = Callee::kMemory;
  std::string_view call;
  int64_t bytes = 0;  // 0: none, or not known
  int device = -1;    // number of the device, or of the rank; -1: not known
  int peer = -1;      // the rank to which a message goes; -1: none
  const void* object = nullptr;  // the disk, as there may be several
};

namespace faults_internal {
extern std::atomic<int> alive;
int Ask(const Operation& operation);
}  // namespace faults_internal

// The error with which the operation fails, or 0: it goes on. Thread-safe.
inline int FaultAt(const Operation& operation) {
  return faults_internal::alive.load(std::memory_order_acquire) == 0
             ? 0
             : faults_internal::Ask(operation);
}

// ---- For tests ----

// Calls a function before each operation of one callee, as long as it lives;
// the operation fails with the result if that is not 0. The function is called
// on the thread that does the operation, maybe on several at once, and may
// sleep. Of several Faults the older is asked first, until one answers.
class Faults {
 public:
  using Function = std::function<int(const Operation&)>;

  Faults(Callee of, Function fault);
  // Returns once no thread is in the function.
  ~Faults();
  Faults(const Faults&) = delete;
  Faults& operator=(const Faults&) = delete;

 private:
  friend int faults_internal::Ask(const Operation&);

  const Callee of_;
  const Function fault_;
};

// Counts an event that goes wrong at the n-th time, and tells when that is.
// Thread-safe.
class FailAt {
 public:
  static constexpr int64_t kAll = std::numeric_limits<int64_t>::max();

  // From now on the n-th time, counted from 1, goes wrong, and the `times` - 1
  // after it.
  void Arm(int64_t n, int64_t times = 1) {
    times_ = times;
    happened_ = false;
    left_ = n;
  }
  void Disarm() { left_ = kAll; }
  // Counts once. Returns true if this time goes wrong.
  bool operator()() {
    const int64_t left = --left_;
    if (left > 0 || left <= -times_) return false;
    happened_ = true;
    return true;
  }
  bool happened() const { return happened_; }

 private:
  std::atomic<int64_t> left_{kAll};
  std::atomic<int64_t> times_{1};
  std::atomic<bool> happened_{false};
};

// A call that fails when it is armed.
class FailingCall : public FailAt {
 public:
  FailingCall(Callee of, std::string call, int error = 1)
      : faults_(of, [this, call = std::move(call),
                     error](const Operation& operation) {
          return operation.call == call && (*this)() ? error : 0;
        }) {}

 private:
  const Faults faults_;
};

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_SYSTEM_FAULTS_H_

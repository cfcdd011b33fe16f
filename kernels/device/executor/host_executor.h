#ifndef TIERCEL_KERNELS_DEVICE_EXECUTOR_HOST_EXECUTOR_H_
#define TIERCEL_KERNELS_DEVICE_EXECUTOR_HOST_EXECUTOR_H_

// Runs the source of a kernel on the CPU, and finds faults that show on a GPU
// by chance only. Included by device_lang.h, which documents the functions.
//
// Each thread of a block is a fibre. All run on the calling thread, one at a
// time, each until it has to wait, in an order that tests choose. So extreme
// orders that a GPU may take occur in every run:
//
// 1. Functions that threads call together are told apart by their place in the
//    source. All threads must come to the same place with the same mask. If one
//    ends, or waits elsewhere, and no thread can go on, that is an error that
//    names both.
// 2. Shared memory starts as bytes of 0xff (NaN) and ends at a page that
//    faults. An address that faults is an error.
// 3. An asynchronous copy fills its target with 0xff when it is queued, and
//    copies at the wait. A thread must wait for its copies before it ends.
// 4. Packets must be aligned to 16 bytes; indices of an Array must be in range.
//
// The bits of floats are those of a GPU: IEEE, without contraction. It cannot
// find errors in the order among blocks, bank conflicts, or an error in the
// layout of matrices that a kernel has in common with MmaS8 here.

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <experimental/source_location>
#include <functional>
#include <memory>
#include <string>

#include "absl/functional/function_ref.h"
#include "kernels/device/device_types.h"
#include "kernels/number/half.h"

namespace tiercel {

// The order in which blocks and threads run.
enum class Order { kAscending, kDescending, kMixed };

class HostExecutor {
 public:
  // The shared memory that a block may have: by default on every GPU, on
  // consumer GPUs since Ampere, and on an H100.
  static constexpr size_t kSharedLimits[] = {48 << 10, 99 << 10, 227 << 10};

  // The function of a thread, called with its index, block and shared memory.
  using Kernel = absl::FunctionRef<void(int, int64_t, void*)>;

  explicit HostExecutor(Order order, size_t shared_limit = kSharedLimits[1]);
  ~HostExecutor();

  // Both return 0, or a cudaError_t, whose message TakeFault then returns.
  // Checks that a GPU accepts the launch's numbers of threads and bytes.
  int Check(const LaunchShape& shape, int max_threads) const;
  // Calls `kernel` for all threads; the first fault ends the launch.
  int Run(const LaunchShape& shape, Kernel kernel);

  // Returns the last fault on this thread of the CPU, and clears it.
  static std::string TakeFault();

 private:
  class Block;
  const size_t shared_limit_;
  const std::unique_ptr<Block> block_;
};

}  // namespace tiercel

// The struct that CUDA declares and does not define: here a stream is this.
struct CUstream_st {  // NOLINT(readability-identifier-naming)
  tiercel::HostExecutor executor;
  // Queues a launch; null: launches run at once.
  std::function<int(std::function<int()>)> keep = nullptr;
};

namespace tiercel {

template <typename Kernel>
int Launch(CUstream_st* stream, LaunchShape shape, const Kernel& kernel) {
  shape.shared_bytes = SharedBytes<Kernel>(shape);
  const int error = stream->executor.Check(shape, Kernel::kMaxThreads);
  if (error != 0) return error;
  const auto run = [stream, shape, kernel] {
    return stream->executor.Run(shape, [&](int index, int64_t block, void* at) {
      kernel({index, shape.threads, block, shape.blocks},
             *static_cast<typename Kernel::Shared*>(at));
    });
  };
  return stream->keep == nullptr ? run() : stream->keep(run);
}

// The following functions are called by the thread that runs, and concern it.
using Place = std::experimental::source_location;
int OwnLane();
[[noreturn]] void FailIndex(int i, int size);
inline void CheckIndex(int i, int size) {
  if (i < 0 || i >= size) FailIndex(i, size);
}
void CheckPacket(const void* packet, const Place& at);
// Returns the `bits` of lane `lane` of `mask`.
uint32_t ShuffleBits(uint32_t mask, uint32_t bits, int lane, const Place& at);

void Barrier(const Place& at = Place::current());
void WarpBarrier(const Place& at = Place::current());

template <typename T>
T Shuffle(uint32_t mask, T value, int lane, int width = kWarpLanes,
          const Place& at = Place::current()) {
  return std::bit_cast<T>(ShuffleBits(mask, std::bit_cast<uint32_t>(value),
                                      OwnLane() / width * width + lane % width,
                                      at));
}
// A lane whose source is beyond its group gets its own value.
template <typename T>
T ShuffleDown(uint32_t mask, T value, int lanes, int width = kWarpLanes,
              const Place& at = Place::current()) {
  const int lane = OwnLane() % width + lanes;
  return Shuffle(mask, value, lane < width ? lane : OwnLane(), width, at);
}
template <typename T>
T ShuffleXor(uint32_t mask, T value, int bits, int width = kWarpLanes,
             const Place& at = Place::current()) {
  return Shuffle(mask, value, OwnLane() ^ bits, width, at);
}
uint32_t Ballot(uint32_t mask, bool vote, const Place& at = Place::current());
void MmaS8(int32_t (&sums)[4], const uint32_t (&a)[4], const uint32_t (&b)[2],
           const Place& at = Place::current());
// The products of a sum are added in double and rounded once.
void MmaF16(float (&sums)[4], const uint32_t (&a)[4], const uint32_t (&b)[2],
            const Place& at = Place::current());
void LoadMatrices(uint32_t (&words)[4], const void* row,
                  const Place& at = Place::current());
void LoadTransposed(uint32_t (&words)[4], const void* row,
                    const Place& at = Place::current());
inline float Exp2(float x) { return std::exp2(x); }
inline uint32_t PackHalves(float low, float high) {
  return static_cast<uint32_t>(F16FromF32(high)) << 16 | F16FromF32(low);
}

inline uint32_t AtomicAdd(uint32_t* sum, uint32_t value) {
  *sum += value;
  return *sum - value;
}
inline uint32_t BytePermute(uint32_t a, uint32_t b, uint32_t places) {
  const uint64_t bytes = uint64_t{b} << 32 | a;
  uint32_t chosen = 0;
  for (uint32_t i = 0; i < 4; ++i) {
    const uint32_t place = places >> 4 * i & 7u;
    chosen |= static_cast<uint32_t>(bytes >> 8 * place & 0xffu) << 8 * i;
  }
  return chosen;
}
template <typename T>
Packet<T> Load16(const T* from, const Place& at = Place::current()) {
  CheckPacket(from, at);
  return *reinterpret_cast<const Packet<T>*>(from);
}
template <typename T>
void Store16(const Packet<T>& packet, T* to,
             const Place& at = Place::current()) {
  CheckPacket(to, at);
  *reinterpret_cast<Packet<T>*>(to) = packet;
}
void CopyAsync16(void* to, const void* from,
                 const Place& at = Place::current());
void CopyCommit();
void CopyWaitFor(int pending);
template <int kPending>
void CopyWait() {
  CopyWaitFor(kPending);
}

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_DEVICE_EXECUTOR_HOST_EXECUTOR_H_

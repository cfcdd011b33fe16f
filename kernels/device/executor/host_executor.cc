#include "kernels/device/executor/host_executor.h"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <numeric>
#include <random>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/device/cuda/cuda_error.h"
#include "kernels/device/executor/fibre.h"

namespace tiercel {
namespace {

constexpr int kPoison = 0xff;
constexpr size_t kSharedRoom = 256 << 10;
constexpr size_t kGuard = 64 << 10;

thread_local std::string last_fault;

struct Fault {  // thrown through a kernel
  std::string what;
};

std::string NameOf(const std::string& file, uint_least32_t line) {
  return absl::StrCat(file.substr(file.rfind('/') + 1), ":", line);
}

[[noreturn]] void Fail(const std::string& what, const Place& at) {
  throw Fault{absl::StrCat(what, " at ", NameOf(at.file_name(), at.line()))};
}

// The words that a lane passes to others at a meeting.
using Words = std::array<uint32_t, 6>;

// A place at which threads wait for each other.
struct Meeting {
  const char* what;
  uint32_t mask;     // lanes of a warp; 0: all of the block
  const char* file;  // compared as a pointer: one per place in the source
  uint_least32_t line;

  bool operator==(const Meeting&) const = default;
  bool Expects(int64_t thread) const {
    return mask == 0 || (mask >> thread % kWarpLanes & 1u) != 0;
  }
  std::string Name() const {
    return absl::StrCat(
        "waits in ", what, " at ", NameOf(file, line),
        mask == 0 ? "" : absl::StrCat(" for lanes ", absl::Hex(mask)));
  }
};

struct Copy {  // a pending copy of 16 bytes
  void* to;
  const void* from;
  int group;
};

enum class State { kReady, kWaits, kEnded };

// The work of all threads of a block.
struct Task {
  const HostExecutor::Kernel* kernel;
  int64_t block;
  std::byte* shared;
  const std::byte* guard;  // the page after shared memory
};

// A thread of a block. When it has ended it serves the next block.
struct HostThread {
  HostThread(int thread, const Task* does) : index(thread), task(does) {}
  HostThread(const HostThread&) = delete;

  void Run();  // runs it in all its blocks
  // Called by the thread itself, which continues when it is made ready again.
  void Pause(State why) {
    state = why;
    fibre.Suspend();
  }
  bool IsAt(const Meeting& where) const {
    return state == State::kWaits && meeting == where;
  }

  const int index;
  const Task* const task;
  State state = State::kEnded;
  Meeting meeting = {};  // valid while it waits
  Words brought = {};    // passed to the meeting
  std::vector<Copy> copies;
  int groups = 0;  // committed groups of copies
  std::string fault;

  std::function<void()> run = [this] { Run(); };
  Fibre fibre{run};  // last, so that it ends before the members it uses
};

thread_local HostThread* running = nullptr;

void HostThread::Run() {
  for (;; Pause(State::kEnded)) {
    try {
      const auto bad = fibre.Try(
          [this] { (*task->kernel)(index, task->block, task->shared); });
      if (bad.has_value()) {
        const auto* const at = static_cast<const std::byte*>(*bad);
        throw Fault{at >= task->guard && at < task->guard + kGuard
                        ? absl::StrCat("touched byte ", at - task->shared,
                                       " of shared memory, past its end")
                        : "touched an address where nothing is"};
      }
      if (!copies.empty()) throw Fault{"ended with copies under way"};
    } catch (Fault& found) {
      fault = std::move(found.what);
    }
  }
}

// The words that the lanes passed to the last meeting. All of them read it
// before another lane of their warp meets again.
thread_local std::array<Words, kWarpLanes> met;

void Meet(const char* what, uint32_t mask, const Words& brought,
          const Place& at) {
  running->meeting = {what, mask, at.file_name(), at.line()};
  running->brought = brought;
  running->Pause(State::kWaits);
}

uint32_t WordOf(int lane, int word) {
  return met[static_cast<size_t>(lane)][static_cast<size_t>(word)];
}

// Waits for the lanes of `mask`; `met` then holds the words of each of them.
void MeetLanes(const char* what, uint32_t mask, const Words& brought,
               const Place& at) {
  if ((mask >> OwnLane() & 1u) == 0) {
    Fail(absl::StrCat(what, " for lanes ", absl::Hex(mask),
                      ", its own is not among them,"),
         at);
  }
  Meet(what, mask, brought, at);
}

}  // namespace

// The block that runs. Its threads serve the next block too.
class HostExecutor::Block {
 public:
  explicit Block(Order order)
      : order_(order),
        guard_(static_cast<std::byte*>(
                   mmap(nullptr, kSharedRoom + kGuard, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) +
               kSharedRoom) {
    mprotect(guard_, kGuard, PROT_NONE);
  }
  ~Block() { munmap(guard_ - kSharedRoom, kSharedRoom + kGuard); }

  // The numbers 0 to n - 1 in the executor's order.
  std::vector<int64_t> InOrder(int64_t n) {
    std::vector<int64_t> all(static_cast<size_t>(n));
    std::iota(all.begin(), all.end(), 0);
    if (order_ == Order::kDescending) std::reverse(all.begin(), all.end());
    if (order_ == Order::kMixed) std::shuffle(all.begin(), all.end(), random_);
    return all;
  }

  // Runs a block. Returns its first fault, or "". A warp goes as far as it can
  // before another has its turn.
  std::string Run(const Kernel& kernel, int64_t block, const LaunchShape& s) {
    std::byte* const shared = guard_ - (s.shared_bytes + 15) / 16 * 16;
    std::memset(shared, kPoison, static_cast<size_t>(guard_ - shared));
    task_ = {&kernel, block, shared, guard_};
    count_ = s.threads;
    for (int i = static_cast<int>(threads_.size()); i < s.threads; ++i) {
      threads_.push_back(std::make_unique<HostThread>(i, &task_));
    }
    for (int i = 0; i < s.threads; ++i) At(i)->state = State::kReady;
    const std::vector<int64_t> lanes = InOrder(kWarpLanes);
    const std::vector<int64_t> warps = InOrder((count_ - 1) / kWarpLanes + 1);
    do {
      for (const int64_t warp : warps) {
        do {
          for (const int64_t lane : lanes) {
            HostThread* const thread = At(warp * kWarpLanes + lane);
            if (thread == nullptr || thread->state != State::kReady) continue;
            running = thread;
            thread->fibre.Resume();
            if (thread->fault.empty()) continue;
            return absl::StrCat("thread ", thread->index, ": ", thread->fault);
          }
        } while (MeetInWarp(warp * kWarpLanes));
      }
    } while (At(0)->meeting.mask == 0 && Meet(*At(0)));
    return WhyStuck();
  }

  // Drops all threads, some of which are inside of the kernel after a fault.
  void Forget() { threads_.clear(); }

 private:
  // Completes the meetings of a warp for which all lanes have come. Returns
  // true if there was one.
  bool MeetInWarp(int64_t first) {
    bool any = false;
    for (int64_t i = first; i < std::min(first + kWarpLanes, count_); ++i) {
      if (At(i)->meeting.mask == 0 || !Meet(*At(i))) continue;
      if (At(i)->meeting.mask == kAllLanes) return true;
      any = true;
    }
    return any;
  }

  // If all threads that `thread` waits for have come, makes them and itself
  // ready and returns true.
  bool Meet(const HostThread& thread) {
    if (thread.state != State::kWaits || Missing(thread) >= 0) return false;
    const Meeting meeting = thread.meeting;
    const auto [first, end] = Around(thread);
    for (int64_t i = first; i < end; ++i) {
      if (!meeting.Expects(i)) continue;
      met[static_cast<size_t>(i % kWarpLanes)] = At(i)->brought;
      At(i)->state = State::kReady;
    }
    return true;
  }

  // The first thread that `thread` waits for and that has not come; -1: none.
  int64_t Missing(const HostThread& thread) const {
    const auto [first, end] = Around(thread);
    for (int64_t i = first; i < end; ++i) {
      if (!thread.meeting.Expects(i)) continue;
      if (At(i) == nullptr || !At(i)->IsAt(thread.meeting)) return i;
    }
    return -1;
  }

  // The range of threads, a block or a warp, among which `thread` waits.
  std::pair<int64_t, int64_t> Around(const HostThread& thread) const {
    if (thread.meeting.mask == 0) return {0, count_};
    const int64_t first = thread.index / kWarpLanes * kWarpLanes;
    return {first, first + kWarpLanes};
  }

  // Describes why the block cannot go on; "" if all threads have ended.
  std::string WhyStuck() const {
    for (int64_t i = 0; i < count_; ++i) {
      if (At(i)->state != State::kWaits) continue;
      const int64_t missing = Missing(*At(i));
      const HostThread* const other = At(missing);
      return absl::StrCat("deadlock: thread ", i, " ", At(i)->meeting.Name(),
                          ", thread ", missing, " ",
                          other == nullptr ? "is not there"
                          : other->state == State::kEnded
                              ? "has ended"
                              : other->meeting.Name());
    }
    return "";
  }

  HostThread* At(int64_t i) const {
    return i < count_ ? threads_[static_cast<size_t>(i)].get() : nullptr;
  }

  const Order order_;
  std::byte* const guard_;  // the end of shared memory
  std::mt19937_64 random_{1};
  Task task_ = {};
  std::vector<std::unique_ptr<HostThread>> threads_;
  int64_t count_ = 0;  // the number of threads that run
};

HostExecutor::HostExecutor(Order order, size_t shared_limit)
    : shared_limit_(shared_limit), block_(std::make_unique<Block>(order)) {}
HostExecutor::~HostExecutor() = default;

int HostExecutor::Check(const LaunchShape& s, int max_threads) const {
  if (s.blocks > 0 && s.blocks <= INT32_MAX && s.threads > 0 &&
      s.threads <= max_threads && max_threads <= 1024 &&
      s.shared_bytes <= shared_limit_) {
    return kCudaSuccess;
  }
  last_fault = absl::StrCat("blocks=", s.blocks, ", threads=", s.threads,
                            ", shared_bytes=", s.shared_bytes,
                            "; need 1 to 2^31 - 1, 1 to ", max_threads,
                            ", at most ", shared_limit_);
  return kCudaInvalidConfiguration;
}

int HostExecutor::Run(const LaunchShape& shape, Kernel kernel) {
  last_fault.clear();
  const Fibre::Catch faults;
  for (const int64_t block : block_->InOrder(shape.blocks)) {
    const std::string fault = block_->Run(kernel, block, shape);
    if (fault.empty()) continue;
    block_->Forget();
    last_fault = absl::StrCat("block ", block, ", ", fault);
    return kCudaLaunchFailure;
  }
  return kCudaSuccess;
}

std::string HostExecutor::TakeFault() { return std::exchange(last_fault, ""); }

// ---- Functions that kernels call ----

int OwnLane() { return running->index % kWarpLanes; }

void FailIndex(int i, int size) {
  throw Fault{absl::StrCat("element ", i, " of an array of ", size)};
}

void CheckPacket(const void* packet, const Place& at) {
  const uintptr_t past = reinterpret_cast<uintptr_t>(packet) % 16;
  if (past != 0) Fail(absl::StrCat("a packet ", past, " past alignment"), at);
}

void Barrier(const Place& at) { Meet("Barrier", /*mask=*/0, {}, at); }

void WarpBarrier(const Place& at) {
  MeetLanes("WarpBarrier", kAllLanes, {}, at);
}

uint32_t ShuffleBits(uint32_t mask, uint32_t bits, int lane, const Place& at) {
  if ((mask >> lane & 1u) == 0) {
    Fail(absl::StrCat("Shuffle from lane ", lane, ", not one of ",
                      absl::Hex(mask), ","),
         at);
  }
  MeetLanes("Shuffle", mask, {bits}, at);
  return met[static_cast<size_t>(lane)][0];
}

uint32_t Ballot(uint32_t mask, bool vote, const Place& at) {
  MeetLanes("Ballot", mask, {vote ? 1u : 0u}, at);
  uint32_t votes = 0;
  for (size_t i = 0; i < kWarpLanes; ++i) {
    if (mask >> i & 1u) votes |= met[i][0] << i;
  }
  return votes;
}

void MmaS8(int32_t (&sums)[4], const uint32_t (&a)[4], const uint32_t (&b)[2],
           const Place& at) {
  MeetLanes("MmaS8", kAllLanes, {a[0], a[1], a[2], a[3], b[0], b[1]}, at);
  const auto byte = [](int lane, int word, int i) {
    return static_cast<int8_t>(WordOf(lane, word) >> (8 * i) & 0xffu);
  };
  for (int i = 0; i < 4; ++i) {
    const int row = OwnLane() / 4 + i / 2 * 8;
    const int column = OwnLane() % 4 * 2 + i % 2;
    for (int k = 0; k < 32; ++k) {
      const int t = k / 4 % 4;
      sums[i] += byte(row % 8 * 4 + t, row / 8 + k / 16 * 2, k % 4) *
                 byte(column * 4 + t, 4 + k / 16, k % 4);
    }
  }
}

void MmaF16(float (&sums)[4], const uint32_t (&a)[4], const uint32_t (&b)[2],
            const Place& at) {
  MeetLanes("MmaF16", kAllLanes, {a[0], a[1], a[2], a[3], b[0], b[1]}, at);
  const auto half = [](int lane, int word, int i) {
    const uint32_t bits = WordOf(lane, word) >> (16 * i);
    return double{F32FromF16(static_cast<uint16_t>(bits))};
  };
  for (int i = 0; i < 4; ++i) {
    const int row = OwnLane() / 4 + i / 2 * 8;
    const int column = OwnLane() % 4 * 2 + i % 2;
    double sum = sums[i];
    for (int k = 0; k < 16; ++k) {
      const int t = k / 2 % 4;
      sum += half(row % 8 * 4 + t, row / 8 + k / 8 * 2, k % 2) *
             half(column * 4 + t, 4 + k / 8, k % 2);
    }
    sums[i] = static_cast<float>(sum);
  }
}

namespace {

// Element (row, column) of matrix `m`, to whose rows the lanes have brought the
// addresses.
uint32_t MatrixElement(int m, int row, int column) {
  const int lane = 8 * m + row;
  const uint64_t address = uint64_t{WordOf(lane, 1)} << 32 | WordOf(lane, 0);
  uint16_t element;
  std::memcpy(&element, std::bit_cast<const std::byte*>(address) + 2 * column,
              sizeof(element));
  return element;
}

// Loads the matrices of whose rows each lane brings the address of one.
void LoadFour(const char* name, bool transposed, uint32_t (&words)[4],
              const void* row, const Place& at) {
  CheckPacket(row, at);
  const auto address = std::bit_cast<uint64_t>(row);
  MeetLanes(
      name, kAllLanes,
      {static_cast<uint32_t>(address), static_cast<uint32_t>(address >> 32)},
      at);
  const int g = OwnLane() / 4;
  const int t = OwnLane() % 4;
  for (int m = 0; m < 4; ++m) {
    const auto half = [&](int i) {
      return transposed ? MatrixElement(m, 2 * t + i, g)
                        : MatrixElement(m, g, 2 * t + i);
    };
    words[m] = half(0) | half(1) << 16;
  }
}

}  // namespace

void LoadMatrices(uint32_t (&words)[4], const void* row, const Place& at) {
  LoadFour("LoadMatrices", /*transposed=*/false, words, row, at);
}
void LoadTransposed(uint32_t (&words)[4], const void* row, const Place& at) {
  LoadFour("LoadTransposed", /*transposed=*/true, words, row, at);
}

void CopyAsync16(void* to, const void* from, const Place& at) {
  CheckPacket(to, at);
  CheckPacket(from, at);
  std::memset(to, kPoison, 16);
  running->copies.push_back({to, from, running->groups});
}

void CopyCommit() { ++running->groups; }

void CopyWaitFor(int pending) {
  std::erase_if(running->copies, [&](const Copy& copy) {
    if (copy.group >= running->groups - pending) return false;
    std::memcpy(copy.to, copy.from, 16);
    return true;
  });
}

}  // namespace tiercel

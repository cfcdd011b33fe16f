#include "kernels/device/host_executor.h"

#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <numeric>
#include <random>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/device/fibre.h"

namespace tiercel {
namespace {

constexpr int kInvalidConfiguration = 9;  // cudaErrorInvalidConfiguration
constexpr int kLaunchFailure = 719;       // cudaErrorLaunchFailure
constexpr int kPoison = 0xff;
constexpr size_t kSharedRoom = 256 << 10;
constexpr size_t kGuard = 64 << 10;

thread_local std::string last_fault;

struct Fault {  // thrown through a kernel
  std::string what;
};

std::string NameOf(const Place& at) {
  const std::string_view file = at.file_name();
  return absl::StrCat(std::string(file.substr(file.rfind('/') + 1)), ":",
                      at.line());
}

// What a lane brings to others and takes away.
using Words = std::array<uint32_t, 10>;
using Combine = void(Words (&lanes)[kWarpLanes], uint32_t mask);

struct Wait {
  const char* what;
  uint32_t mask;
  Combine* combine;  // null: all of the block wait for each other
  Place at;

  bool Meets(const Wait& other) const {
    return mask == other.mask && combine == other.combine &&
           at.line() == other.at.line() &&
           std::strcmp(at.file_name(), other.at.file_name()) == 0;
  }
  std::string Name() const {
    const std::string lanes =
        combine == nullptr ? "" : absl::StrCat(" for lanes ", absl::Hex(mask));
    return absl::StrCat("waits in ", what, " at ", NameOf(at), lanes);
  }
};

enum class State { kReady, kWaits, kEnded };

// A thread of a block, and of the next block after it.
class HostThread {
 public:
  using Kernel = absl::FunctionRef<void(int, int64_t, void*)>;

  // `guard` follows on shared memory.
  HostThread(int index, const std::byte* guard)
      : index_(index), guard_(guard) {}
  HostThread(const HostThread&) = delete;

  // Makes it the thread of another block, once it has ended in the last.
  void Begin(const Kernel& kernel, int64_t block, std::byte* shared) {
    kernel_ = &kernel;
    block_ = block;
    shared_ = shared;
    groups_ = 0;
    state_ = State::kReady;
  }
  void Resume();
  // From inside: goes on when it has been made ready again.
  void WaitFor(const Wait& wait) {
    wait_ = wait;
    state_ = State::kWaits;
    fibre_.Suspend();
  }
  // From inside, where the kernel touched what is not there.
  [[noreturn]] void OnBadAddress(const void* address) {
    bad_address_ = address;
    siglongjmp(before_, 1);
  }

  int index() const { return index_; }
  bool Is(State state) const { return state_ == state; }
  const Wait& wait() const { return wait_; }
  void SetReady() { state_ = State::kReady; }
  Words& words() { return words_; }
  const std::string& fault() const { return fault_; }

  void AddCopy(void* to, const void* from) {
    std::memset(to, kPoison, 16);
    copies_.push_back({to, from, groups_});
  }
  void Commit() { ++groups_; }
  void DoCopies(int pending) {
    std::erase_if(copies_, [&](const Copy& copy) {
      if (copy.group >= groups_ - pending) return false;
      std::memcpy(copy.to, copy.from, 16);
      return true;
    });
  }

 private:
  struct Copy {
    void* to;
    const void* from;
    int group;
  };

  void RunKernels();
  // Whether no address faulted.
  bool RunKernel() {
    if (sigsetjmp(before_, /*savemask=*/0) != 0) return false;
    (*kernel_)(index_, block_, shared_);
    return true;
  }

  const int index_;
  const std::byte* const guard_;
  const Kernel* kernel_ = nullptr;
  int64_t block_ = 0;
  std::byte* shared_ = nullptr;

  State state_ = State::kEnded;
  Wait wait_ = {};
  Words words_ = {};
  std::vector<Copy> copies_;
  int groups_ = 0;  // of copies, committed
  std::string fault_;
  const void* bad_address_ = nullptr;
  sigjmp_buf before_ = {};

  std::function<void()> body_ = [this] { RunKernels(); };
  Fibre fibre_{body_};  // ends before what it uses
};

thread_local HostThread* running = nullptr;

void HostThread::Resume() {
  running = this;
  fibre_.Resume();
  running = nullptr;
}

void HostThread::RunKernels() {
  for (;;) {
    try {
      if (!RunKernel()) {
        const auto* bad = static_cast<const std::byte*>(bad_address_);
        throw Fault{bad >= guard_ && bad < guard_ + kGuard
                        ? absl::StrCat("touched byte ", bad - shared_,
                                       " of shared memory, past its end")
                        : "touched an address where nothing is"};
      }
      if (!copies_.empty()) throw Fault{"ended with copies under way"};
    } catch (Fault& fault) {
      fault_ = std::move(fault.what);
    }
    state_ = State::kEnded;
    fibre_.Suspend();
  }
}

constexpr int kSignals[] = {SIGSEGV, SIGBUS};
struct sigaction before_launch[std::size(kSignals)];

void OnSignal(int signal, siginfo_t* info, void*) {
  if (running != nullptr) running->OnBadAddress(info->si_addr);
  // Not a kernel's: who was there before has it when it faults again.
  sigaction(signal, &before_launch[signal == SIGBUS ? 1 : 0], nullptr);
}

class CatchesSignals {
 public:
  CatchesSignals() {
    struct sigaction action = {};
    action.sa_sigaction = OnSignal;
    action.sa_flags = SA_SIGINFO | SA_NODEFER;
    for (int i : {0, 1}) sigaction(kSignals[i], &action, &before_launch[i]);
  }
  ~CatchesSignals() {
    for (int i : {0, 1}) sigaction(kSignals[i], &before_launch[i], nullptr);
  }
  CatchesSignals(const CatchesSignals&) = delete;
};

}  // namespace

class HostExecutor::Body {
 public:
  Body(Order order, size_t shared_limit)
      : order_(order),
        shared_limit_(shared_limit),
        room_(static_cast<std::byte*>(
            mmap(nullptr, kSharedRoom + kGuard, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {
    mprotect(room_ + kSharedRoom, kGuard, PROT_NONE);
  }
  ~Body() { munmap(room_, kSharedRoom + kGuard); }
  Body(const Body&) = delete;

  // The first fault, or nothing.
  std::string Run(const Shape& shape, const HostThread::Kernel& kernel) {
    const CatchesSignals signals;
    const size_t bytes = (shape.shared_bytes + 15) / 16 * 16;
    std::byte* const shared = room_ + kSharedRoom - bytes;
    for (auto i = std::ssize(threads_); i < shape.threads; ++i) {
      threads_.push_back(std::make_unique<HostThread>(static_cast<int>(i),
                                                      room_ + kSharedRoom));
    }
    count_ = shape.threads;
    for (const int64_t block : InOrder(shape.blocks)) {
      std::memset(shared, kPoison, bytes);
      for (int i = 0; i < count_; ++i) At(i)->Begin(kernel, block, shared);
      const std::string fault = RunBlock();
      if (fault.empty()) continue;
      threads_.clear();  // some stand in the middle of it
      return absl::StrCat("block ", block, ", ", fault);
    }
    return "";
  }

  std::string CheckShape(const Shape& s) const {
    if (s.blocks > 0 && s.blocks <= INT32_MAX && s.threads > 0 &&
        s.threads <= s.max_threads && s.max_threads <= 1024 &&
        s.shared_bytes <= shared_limit_) {
      return "";
    }
    return absl::StrCat("blocks=", s.blocks, ", threads=", s.threads,
                        ", shared_bytes=", s.shared_bytes,
                        "; need 1 to 2^31 - 1, 1 to ", s.max_threads,
                        ", at most ", shared_limit_);
  }

 private:
  // A warp goes as far as it can before another has its turn.
  std::string RunBlock() {
    const std::vector<int64_t> lanes = InOrder(kWarpLanes);
    const std::vector<int64_t> warps = InOrder((count_ - 1) / kWarpLanes + 1);
    do {
      for (const int64_t warp : warps) {
        do {
          for (const int64_t lane : lanes) {
            HostThread* const thread = At(warp * kWarpLanes + lane);
            if (thread == nullptr || !thread->Is(State::kReady)) continue;
            thread->Resume();
            if (!thread->fault().empty()) {
              return absl::StrCat("thread ", thread->index(), ": ",
                                  thread->fault());
            }
          }
        } while (MeetInWarp(warp * kWarpLanes));
      }
    } while (MeetInBlock());
    return WhyStuck();
  }

  // Lets lanes go on that all came to where they wait for each other.
  bool MeetInWarp(int64_t first) {
    bool any = false;
    for (int lane = 0; lane < kWarpLanes; ++lane) {
      const HostThread* const thread = At(first + lane);
      if (thread == nullptr || !thread->Is(State::kWaits) ||
          thread->wait().combine == nullptr || Missing(*thread) >= 0) {
        continue;
      }
      any = true;
      const Wait wait = thread->wait();
      Words words[kWarpLanes] = {};
      for (int i = 0; i < kWarpLanes; ++i) {
        if (wait.mask >> i & 1u) words[i] = At(first + i)->words();
      }
      wait.combine(words, wait.mask);
      for (int i = 0; i < kWarpLanes; ++i) {
        if ((wait.mask >> i & 1u) == 0) continue;
        At(first + i)->words() = words[i];
        At(first + i)->SetReady();
      }
    }
    return any;
  }

  bool MeetInBlock() {
    if (!At(0)->Is(State::kWaits) || At(0)->wait().combine != nullptr ||
        Missing(*At(0)) >= 0) {
      return false;
    }
    for (int i = 0; i < count_; ++i) At(i)->SetReady();
    return true;
  }

  // The first thread that `thread` waits for in vain; -1: there is none.
  int64_t Missing(const HostThread& thread) const {
    const Wait& wait = thread.wait();
    const bool block = wait.combine == nullptr;
    const int first = block ? 0 : thread.index() / kWarpLanes * kWarpLanes;
    for (int i = 0; i < (block ? count_ : kWarpLanes); ++i) {
      if (!block && (wait.mask >> i & 1u) == 0) continue;
      const HostThread* other = At(first + i);
      if (other == nullptr || !other->Is(State::kWaits) ||
          !other->wait().Meets(wait)) {
        return first + i;
      }
    }
    return -1;
  }

  // Nothing where all have ended.
  std::string WhyStuck() const {
    for (int i = 0; i < count_; ++i) {
      if (!At(i)->Is(State::kWaits)) continue;
      const int64_t missing = Missing(*At(i));
      const HostThread* const other = At(missing);
      return absl::StrCat("deadlock: thread ", i, " ", At(i)->wait().Name(),
                          ", thread ", missing, " ",
                          other == nullptr           ? "is not there"
                          : other->Is(State::kEnded) ? "has ended"
                                                     : other->wait().Name());
    }
    return "";
  }

  HostThread* At(int64_t i) const {
    return i < count_ ? threads_[static_cast<size_t>(i)].get() : nullptr;
  }

  // 0 to n - 1.
  std::vector<int64_t> InOrder(int64_t n) {
    std::vector<int64_t> all(static_cast<size_t>(n));
    std::iota(all.begin(), all.end(), 0);
    if (order_ == Order::kDescending) std::reverse(all.begin(), all.end());
    if (order_ == Order::kMixed) std::shuffle(all.begin(), all.end(), random_);
    return all;
  }

  const Order order_;
  const size_t shared_limit_;
  std::byte* const room_;  // shared memory ends where its guard begins
  std::mt19937_64 random_{1};
  std::vector<std::unique_ptr<HostThread>> threads_;
  int count_ = 0;  // of the block that runs
};

HostExecutor::HostExecutor(Order order, size_t shared_limit)
    : body_(std::make_unique<Body>(order, shared_limit)) {}
HostExecutor::~HostExecutor() = default;

int HostExecutor::Run(const Shape& shape, HostThread::Kernel thread) {
  last_fault = body_->CheckShape(shape);
  if (!last_fault.empty()) return kInvalidConfiguration;
  last_fault = body_->Run(shape, thread);
  return last_fault.empty() ? 0 : kLaunchFailure;
}

std::string HostExecutor::TakeFault() { return std::exchange(last_fault, ""); }

// ---- what kernels call ----

namespace {

[[noreturn]] void Fail(const std::string& what, const Place& at) {
  throw Fault{absl::StrCat(what, " at ", NameOf(at))};
}

void Meet(const char* what, uint32_t mask, Combine* combine, Words& words,
          const Place& at) {
  if ((mask >> OwnLane() & 1u) == 0) {
    Fail(absl::StrCat(what, " for lanes ", absl::Hex(mask),
                      ", its own is not among them,"),
         at);
  }
  running->words() = words;
  running->WaitFor({what, mask, combine, at});
  words = running->words();
}

}  // namespace

int OwnLane() { return running->index() % kWarpLanes; }

void CheckIndex(int i, int size) {
  if (i >= 0 && i < size) return;
  throw Fault{absl::StrCat("element ", i, " of an array of ", size)};
}

void CheckPacket(const void* packet, const Place& at) {
  const uintptr_t past = reinterpret_cast<uintptr_t>(packet) % 16;
  if (past != 0) Fail(absl::StrCat("a packet ", past, " past alignment"), at);
}

void Barrier(const Place& at) { running->WaitFor({"Barrier", 0, nullptr, at}); }

uint32_t Exchange(const char* what, uint32_t mask, uint32_t bits, int source,
                  const Place& at) {
  if ((mask >> source & 1u) == 0) {
    Fail(absl::StrCat(what, " from lane ", source, ", not one of ",
                      absl::Hex(mask), ","),
         at);
  }
  Words words = {bits, static_cast<uint32_t>(source)};
  const auto combine = [](Words(&lanes)[kWarpLanes], uint32_t) {
    for (Words& lane : lanes) lane[2] = lanes[lane[1]][0];
  };
  Meet(what, mask, combine, words, at);
  return words[2];
}

uint32_t Ballot(uint32_t mask, bool vote, const Place& at) {
  Words words = {vote ? 1u : 0u};
  const auto combine = [](Words(&lanes)[kWarpLanes], uint32_t) {
    uint32_t votes = 0;
    for (int i = 0; i < kWarpLanes; ++i) votes |= lanes[i][0] << i;
    for (Words& lane : lanes) lane[0] = votes;
  };
  Meet("Ballot", mask, combine, words, at);
  return words[0];
}

void LoadMatrix(uint32_t (&out)[4], const void* row, const Place& at) {
  CheckPacket(row, at);
  Words words = {};
  std::memcpy(words.data(), &row, sizeof(row));
  const auto combine = [](Words(&lanes)[kWarpLanes], uint32_t) {
    uint32_t rows[kWarpLanes][4];
    for (int i = 0; i < kWarpLanes; ++i) {
      const void* from = nullptr;
      std::memcpy(&from, lanes[i].data(), sizeof(from));
      std::memcpy(rows[i], from, sizeof(rows[i]));
    }
    for (int i = 0; i < kWarpLanes; ++i) {
      for (int m = 0; m < 4; ++m) lanes[i][m] = rows[8 * m + i / 4][i % 4];
    }
  };
  Meet("LoadMatrix", kAllLanes, combine, words, at);
  std::copy_n(words.begin(), 4, out);
}

void MmaS8(int32_t (&sums)[4], const uint32_t (&a)[4], const uint32_t (&b)[2],
           const Place& at) {
  Words words = {};
  std::copy_n(a, 4, words.begin());
  std::copy_n(b, 2, words.begin() + 4);
  const auto combine = [](Words(&lanes)[kWarpLanes], uint32_t) {
    const auto byte = [&](int lane, int word, int i) {
      return static_cast<int8_t>(lanes[lane][word] >> (8 * i) & 0xffu);
    };
    for (int row = 0; row < 16; ++row) {
      for (int column = 0; column < 8; ++column) {
        int32_t sum = 0;
        for (int k = 0; k < 32; ++k) {
          const int t = k / 4 % 4;
          sum += byte(row % 8 * 4 + t, row / 8 + k / 16 * 2, k % 4) *
                 byte(column * 4 + t, 4 + k / 16, k % 4);
        }
        lanes[row % 8 * 4 + column / 2][6 + row / 8 * 2 + column % 2] =
            static_cast<uint32_t>(sum);
      }
    }
  };
  Meet("MmaS8", kAllLanes, combine, words, at);
  for (int i = 0; i < 4; ++i) sums[i] += static_cast<int32_t>(words[6 + i]);
}

void CopyAsync16(void* to, const void* from, const Place& at) {
  CheckPacket(to, at);
  CheckPacket(from, at);
  running->AddCopy(to, from);
}
void CopyCommit() { running->Commit(); }
void CopyWaitFor(int pending) { running->DoCopies(pending); }

}  // namespace tiercel

#include "runtime/machine/machine.h"

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <limits>
#include <memory>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/system/clock_for_test.h"
#include "kernels/system/resource_limits.h"
#include "lib/status/error.h"
#include "tests/golden.h"

namespace tiercel {
namespace {

Machine::Options Simulated(int64_t bytes) {
  return {.threads = 2, .simulation = {{.bytes = bytes, .link = {3e9, 1e-5}}}};
}

TEST(MachineTest, InPlaceIsTheMachineItself) {
  Machine machine({.threads = 3, .device_memory_bytes = 1'000'000});
  EXPECT_TRUE(machine.device().in_place());
  EXPECT_FALSE(machine.device().simulated());
  EXPECT_FALSE(machine.device().link().has_value());
  EXPECT_EQ(machine.threads(), 3);
  EXPECT_EQ(Machine({}).threads(), AllowedCpus());
  EXPECT_EQ(machine.DeviceBudget(), 1'000'000);
  EXPECT_EQ(machine.MemoryBudget(), 1'000'000);
  const Machine all({});
  EXPECT_GT(all.DeviceBudget(), 1'000'000);
  EXPECT_GT(all.MemoryBudget(), 1'000'000);
  // A limit above the memory there is has no effect.
  const Machine boastful(
      {.device_memory_bytes = std::numeric_limits<int64_t>::max()});
  EXPECT_LT(boastful.MemoryBudget(), int64_t{1} << 60);
}

TEST(MachineTest, NamesTheArithmeticOfPrompts) {
  EXPECT_EQ(Machine({.fast_prompts = true}).PromptArithmetic(), "exact");
  EXPECT_EQ(Machine({.device = DeviceKind::kCuda}).PromptArithmetic(), "exact");
  // This machine may have no GPU, whose kind is then 0.
  const Machine fast({.device = DeviceKind::kCuda, .fast_prompts = true});
  EXPECT_EQ(fast.PromptArithmetic().substr(0, 6), "fast, ");
  // A library's products have bits of their own, but it is asked on GPUs alone.
  setenv("TIERCEL_CUBLASLT", "1", 1);
  EXPECT_EQ(fast.PromptArithmetic().substr(0, 16), "fast, cublaslt, ");
  EXPECT_EQ(
      Machine({.device = DeviceKind::kCuda}).PromptArithmetic().substr(0, 10),
      "cublaslt, ");
  EXPECT_EQ(Machine({}).PromptArithmetic(), "exact");
  unsetenv("TIERCEL_CUBLASLT");
}

// Both tiers of a simulated device lie in this machine's memory.
TEST(MachineTest, AWishBoundsTheSimulatedDeviceAndItsHost) {
  Machine::Options options = Simulated(1 << 20);
  options.device_memory_bytes = (1 << 20) + 1000;
  Machine machine(options);
  EXPECT_EQ(machine.DeviceBudget(), 1 << 20);
  EXPECT_EQ(machine.MemoryBudget(), (1 << 20) + 1000);
  ASSERT_TRUE(machine.TakeMemory().ok());
  const auto some = DeviceArray<char>::Create(machine.memory(), 1 << 19, "x");
  ASSERT_TRUE(some.ok());
  EXPECT_EQ(machine.MemoryBudget(), (1 << 20) + 1000);
}

TEST(MachineTest, WhatIsTakenIsOfTheBudget) {
  // Most of the memory there is, which is taken but not written.
  const int64_t most = Machine(Simulated(1)).MemoryBudget() / 4 * 3;
  Machine machine(Simulated(most));
  const absl::Status status = machine.TakeMemory();
  ASSERT_TRUE(status.ok()) << status;
  const auto taken = DeviceArray<char>::Create(machine.memory(), most, "x");
  ASSERT_TRUE(taken.ok()) << taken.status();
  EXPECT_GT(machine.MemoryBudget(), most / 5 * 6);
}

// Memory that sessions of one machine may still take is not free for another
// machine; the system's count of free memory shows what they have written.
TEST(MachineTest, WhatIsPromisedElsewhereIsNotFree) {
  Machine one({});
  const Machine other({});
  const int64_t all = other.MemoryBudget();
  MemoryPromise promise(one.kv_account(), all / 4 * 3);
  EXPECT_LT(other.MemoryBudget(), all / 2);
  EXPECT_GT(one.MemoryBudget(), all / 2);  // its own promises are in its budget
  EXPECT_LT(one.MemoryBudget() - one.Committed(), all / 2);
  promise.NoteWritten(all / 4 * 3);
  EXPECT_GT(other.MemoryBudget(), all / 2);
  // A bounded host tier limits the KV, but nothing else.
  Machine::Options options = Simulated(1 << 20);
  options.host_memory_bytes = 1000;
  Machine simulated(options);
  const MemoryPromise kv(simulated.kv_account(), 900);
  EXPECT_EQ(simulated.kv_account()->room(), 100);
  EXPECT_GT(simulated.account()->room(), 1000);
}

TEST(MachineTest, ASimulatedDeviceIsAsLargeAsItSays) {
  Machine machine(Simulated(1 << 20));
  EXPECT_FALSE(machine.device().in_place());
  EXPECT_TRUE(machine.device().simulated());
  EXPECT_EQ(machine.device().link()->bytes_per_s, 3e9);
  EXPECT_EQ(machine.device().link()->latency_s, 1e-5);
  EXPECT_EQ(machine.DeviceBudget(), 1 << 20);
  EXPECT_GT(machine.MemoryBudget(), 1 << 20);
  ASSERT_TRUE(machine.TakeMemory().ok());
  DeviceMemory& memory = machine.memory();
  const auto most = DeviceArray<char>::Create(memory, 1 << 20, "all");
  ASSERT_TRUE(most.ok());
  EXPECT_EQ(CodeOf(DeviceArray<char>::Create(memory, 1, "more").status()),
            "out_of_memory");
  // A second call leaves the memory as it is.
  ASSERT_TRUE(machine.TakeMemory().ok());
  EXPECT_EQ(&machine.memory(), &memory);
  EXPECT_EQ(memory.used(), 1 << 20);
}

// Pages and weights have links of their own, over one wire.
TEST(MachineTest, LinksShareTheSimulatedWire) {
  constexpr int64_t kBytes = 3 << 20;
  ManualClock clock;
  Machine::Options options = Simulated(1 << 20);
  options.simulation->link = {.bytes_per_s = 1 << 20, .latency_s = 0};
  options.clock = &clock;
  Machine machine(options);
  HostRegion region = *HostRegion::Reserve(kBytes);
  std::vector<std::byte> device(kBytes);
  const Clock::Time start = clock.Now();
  const std::atomic<bool> goes_on{false};
  for (int i = 0; i < 2; ++i) {
    const auto link = machine.NewLink(nullptr);
    ASSERT_TRUE(link.ok());
    // Both are asked for at the start.
    const auto moved = (*link)->Copy({.direction = Direction::kHostToDevice,
                                      .host = &region,
                                      .device = InPlace(device.data()),
                                      .bytes = kBytes},
                                     start, goes_on);
    ASSERT_TRUE(moved.ok());
    EXPECT_EQ(moved->seconds, 3);
    EXPECT_EQ(SecondsBetween(start, clock.Now()), 3 * (i + 1));
    (*link)->Forget(region);
  }
}

TEST(MachineTest, StreamsShareItsThreads) {
  Machine machine({.threads = 2});
  const auto one = machine.NewStream();
  const auto other = machine.NewStream(SystemMemory());
  ASSERT_TRUE(one.ok() && other.ok());
  EXPECT_EQ(&(*one)->pool(), &(*other)->pool());
  EXPECT_EQ((*one)->pool().num_threads(), 2);
  EXPECT_EQ(&(*one)->memory(), &machine.memory());
  EXPECT_EQ(&(*other)->memory(), &SystemMemory());
}

TEST(MachineTest, UsesFewerThreadsOnRequest) {
  Machine machine({.threads = 3});
  for (const int wrong : {-1, 0, 4}) {
    EXPECT_EQ(CodeOf(machine.UseThreads(wrong)), "invalid_threads");
  }
  EXPECT_EQ(machine.threads_in_use(), 3);
  ASSERT_TRUE(machine.UseThreads(1).ok());
  const auto stream = machine.NewStream();
  ASSERT_TRUE(stream.ok());
  const ThreadPool& pool = (*stream)->pool();
  EXPECT_EQ(pool.threads_in_use(), 1);
  ASSERT_TRUE(machine.UseThreads(2).ok());
  EXPECT_EQ(pool.threads_in_use(), 2);
  EXPECT_EQ(machine.threads_in_use(), 2);
  EXPECT_EQ(machine.threads(), 3);

  Machine second({.threads = 5}, /*rank=*/1, /*ranks=*/2);
  ASSERT_TRUE(second.UseThreads(5).ok());
  EXPECT_EQ(second.threads_in_use(), 2);
  ASSERT_TRUE(second.UseThreads(1).ok());
  EXPECT_EQ(second.threads_in_use(), 1);
}

// Threads of this process.
std::ptrdiff_t CountThreads() {
  const std::filesystem::directory_iterator threads("/proc/self/task");
  return std::distance(begin(threads), end(threads));
}

TEST(MachineTest, AForkedProcessHasThreadsOfItsOwn) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "ThreadSanitizer starts no threads after a fork";
#endif
  auto machine = std::make_unique<Machine>(Machine::Options{.threads = 3});
  const auto parents = machine->NewStream();
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    alarm(60);
    bool good = CountThreads() == 1;
    const auto own = machine->NewStream();
    good = good && own.ok() && CountThreads() == 3;
    _exit(good ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

TEST(MachineTest, ModelsOpenedOnItShareItsBudget) {
  const auto one = OpenModel({.path = CheckpointPath("llama_chat.gguf"),
                              .machine = Simulated(64 << 20)});
  const int64_t weights = one->machine->memory().used();
  EXPECT_GT(weights, 0);
  const auto other = OpenModel(
      {.path = CheckpointPath("llama_chat.gguf"), .beside = one->machine});
  EXPECT_EQ(one->machine, other->machine);
  EXPECT_EQ(one->machine->memory().used(), 2 * weights);
}

}  // namespace
}  // namespace tiercel

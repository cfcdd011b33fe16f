#include "offload/disk/read_queue.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace tiercel {
namespace {

// Returns the open files of this process that are rings.
std::set<int> RingFiles() {
  std::set<int> files;
  for (const auto& entry :
       std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    const auto target = std::filesystem::read_symlink(entry.path(), gone);
    if (target.string().find("io_uring") == std::string::npos) continue;
    files.insert(std::stoi(entry.path().filename()));
  }
  return files;
}

// A ring, and reads of pipes through it, which are under way until Write: a
// short one, and a long one, which a thread of the system does.
class ReadQueueTest : public testing::Test {
 protected:
  void SetUp() override {
    const std::set<int> others = RingFiles();
    ring_ = NewRingQueue(static_cast<int>(kReads));
    if (ring_ == nullptr) GTEST_SKIP() << "the system has no ring for us";
    for (const int file : RingFiles()) {
      if (others.count(file) == 0) ring_file_ = file;
    }
    ASSERT_GE(ring_file_, 0);
    for (size_t i = 0; i < kReads; ++i) {
      ASSERT_EQ(pipe2(pipes_[i].data(), O_CLOEXEC), 0);
      ASSERT_EQ(ring_->Start({.file = pipes_[i][0],
                              .to = memory_[i].data(),
                              .bytes = memory_[i].size(),
                              .tag = i}),
                0);
    }
  }
  ~ReadQueueTest() override {
    for (const auto& ends : pipes_) {
      for (const int end : ends) {
        if (end >= 0) close(end);
      }
    }
  }

  // Puts another file in the place of the ring's, so that the system refuses to
  // wait.
  void ShutRing() {
    const int other = open("/dev/null", O_RDONLY | O_CLOEXEC);
    ASSERT_EQ(dup3(other, ring_file_, O_CLOEXEC), ring_file_);
    close(other);
  }
  void Write() {
    for (const auto& ends : pipes_) EXPECT_EQ(write(ends[1], "x", 1), 1);
  }
  // Ends the queue while a thread writes to the pipes, and expects it to wait
  // for that: no read may write to memory later.
  void EndIt() {
    std::atomic<bool> written = false;
    std::thread writer([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      written = true;
      Write();
    });
    ring_.reset();
    EXPECT_TRUE(written);
    for (const auto& read : memory_) EXPECT_EQ(read[0], std::byte{'x'});
    writer.join();
  }

  static constexpr size_t kReads = 2;
  std::array<std::array<int, 2>, kReads> pipes_ = {{{-1, -1}, {-1, -1}}};
  std::array<std::vector<std::byte>, kReads> memory_ = {
      std::vector<std::byte>(64), std::vector<std::byte>(kLongRead)};
  std::unique_ptr<ReadQueue> ring_;
  int ring_file_ = -1;
};

TEST_F(ReadQueueTest, ReadsAreDoneInAnyOrder) {
  Write();
  std::array<int64_t, kReads> results = {};
  for (size_t i = 0; i < kReads; ++i) {
    ReadQueue::Done done;
    ASSERT_EQ(ring_->Wait(&done), 0);
    results.at(done.tag) += done.result;
  }
  for (size_t i = 0; i < kReads; ++i) {
    EXPECT_EQ(results[i], 1);
    EXPECT_EQ(memory_[i][0], std::byte{'x'});
  }
}

TEST_F(ReadQueueTest, NothingIsUnderWayWhenItIsGone) { EndIt(); }

TEST_F(ReadQueueTest, NothingIsUnderWayThoughTheSystemDoesNotWait) {
  ShutRing();
  ReadQueue::Done done;
  ASSERT_LT(ring_->Wait(&done), 0);
  EndIt();
}

}  // namespace
}  // namespace tiercel

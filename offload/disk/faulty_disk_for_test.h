#ifndef TIERCEL_OFFLOAD_DISK_FAULTY_DISK_FOR_TEST_H_
#define TIERCEL_OFFLOAD_DISK_FAULTY_DISK_FOR_TEST_H_

// A disk whose calls fail when a test says so, folders for it, and pages to
// write there.

#include <fcntl.h>
#include <stdlib.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <filesystem>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/system/faults.h"
#include "offload/disk/disk_calls.h"
#include "offload/kv/held_pages.h"

namespace tiercel {

inline constexpr auto kGoOn = [] { return false; };

// The calls of this machine, with short reads and writes. Thread-safe.
class DiskForTest : public DiskCalls {
 public:
  // The most bytes that one read or write does; 0: all.
  size_t at_once = 0;
  bool has_ring = false;

  ssize_t Read(int file, std::byte* to, size_t bytes,
               uint64_t offset) override {
    return DiskCalls::Read(file, to, Part(bytes), offset);
  }
  ssize_t Write(int file, const std::byte* from, size_t bytes,
                uint64_t offset) override {
    return DiskCalls::Write(file, from, Part(bytes), offset);
  }
  // Does not sync: no test loses power, and waiting for the disk would take
  // minutes.
  int TrySync(int /*file*/) override { return Fails("sync") ? -1 : 0; }
  std::unique_ptr<ReadQueue> NewRing(int depth) override {
    return has_ring ? DiskCalls::NewRing(depth) : nullptr;
  }

 private:
  size_t Part(size_t bytes) const {
    return at_once == 0 ? bytes : std::min(bytes, at_once);
  }
};

// A disk some of whose counted calls fail, or damage what they read.
class FaultyDisk : public DiskForTest {
 public:
  // Counted call number `fail_at` (from 0) and the `more` calls after it fail
  // with `error`.
  int64_t fail_at = std::numeric_limits<int64_t>::max();
  int64_t more = 0;
  int error = EIO;
  bool counts_reads = true;
  bool counts_writes = true;
  bool counts_renames = true;  // with the writes
  // A read that would fail returns wrong bytes instead.
  bool damages = false;

  int64_t calls() const { return calls_; }
  bool failed() const { return calls_ > fail_at; }

  ssize_t Read(int file, std::byte* to, size_t bytes,
               uint64_t offset) override {
    const bool damaged = damages && counts_reads && CountFails();
    const ssize_t got = DiskForTest::Read(file, to, bytes, offset);
    for (ssize_t i = 0; damaged && i < got; ++i) to[i] ^= std::byte{1};
    return got;
  }

 private:
  // Returns true if calls of this name are counted as they are made.
  bool Counts(std::string_view call) const {
    if (call == "lock" || call == "remove") return false;
    if (call == "close") return counts_reads && counts_writes;
    if (call == "open") return counts_reads;
    if (call == "read") return counts_reads && !damages;  // else by Read
    return counts_writes && (counts_renames || call != "rename");
  }
  // Counts a call. Returns true if it fails.
  bool CountFails() {
    const int64_t call = calls_++;
    return call >= fail_at && call <= fail_at + more;
  }
  int ErrorOf(const Operation& operation) {
    const bool fails =
        operation.object == this && Counts(operation.call) && CountFails();
    return fails ? error : 0;
  }

  std::atomic<int64_t> calls_{0};
  const Faults faults_{Callee::kDisk, [this](const Operation& operation) {
                         return ErrorOf(operation);
                       }};
};

// A disk on which another process removes a file between its opening and its
// locking, once.
class RemovingDisk : public DiskForTest {
 public:
  explicit RemovingDisk(std::string folder) : folder_(std::move(folder)) {}
  bool has_removed() const { return has_removed_; }

 protected:
  int TryLock(int file, int operation) override {
    if (!std::exchange(has_removed_, true)) {
      const std::string link = "/proc/self/fd/" + std::to_string(file);
      const std::filesystem::path name = std::filesystem::read_symlink(link);
      EXPECT_EQ(name.parent_path(), std::filesystem::canonical(folder_));
      std::filesystem::remove(name);
    }
    return DiskForTest::TryLock(file, operation);
  }

 private:
  std::string folder_;
  bool has_removed_ = false;
};

// Returns a disk that never fails.
inline DiskCalls& GoodDisk() {
  static DiskForTest disk;
  return disk;
}

// A folder that is removed when the test ends.
class FolderForTest {
 public:
  FolderForTest() { EXPECT_NE(mkdtemp(path_.data()), nullptr); }
  ~FolderForTest() { std::filesystem::remove_all(path_); }
  FolderForTest(const FolderForTest&) = delete;
  FolderForTest& operator=(const FolderForTest&) = delete;

  const std::string& path() const { return path_; }
  std::vector<std::string> Names() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(path_)) {
      names.push_back(entry.path().filename());
    }
    std::sort(names.begin(), names.end());
    return names;
  }

 private:
  std::string path_ = testing::TempDir() + "/prompt_cache_XXXXXX";
};

// Returns pages of positions [0, end), whose bytes differ from page to page.
inline std::unique_ptr<HeldPages> PagesForTest(const KvLayout& layout,
                                               int layers, int64_t end) {
  auto pool = std::make_shared<PagePool>(layout, layers, /*slots=*/64);
  std::vector<int64_t> slots;
  for (int64_t at = 0; at < end; at += kPageTokens) {
    slots.push_back(*pool->Take());
    for (int layer = 0; layer < layers; ++layer) {
      std::byte* const page = pool->HostPage(layer, slots.back());
      for (int64_t i = 0; i < layout.PageBytes(); ++i) {
        page[i] = static_cast<std::byte>((i * 31 + at * 7 + layer * 13) % 251);
      }
    }
  }
  return std::make_unique<PoolPages>(std::move(pool), slots, end);
}

}  // namespace tiercel

#endif  // TIERCEL_OFFLOAD_DISK_FAULTY_DISK_FOR_TEST_H_

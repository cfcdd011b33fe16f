#ifndef TIERCEL_OFFLOAD_DISK_FAULTY_DISK_FOR_TEST_H_
#define TIERCEL_OFFLOAD_DISK_FAULTY_DISK_FOR_TEST_H_

// A disk whose calls fail when a test says so, folders for it, and pages to
// write there.

#include <fcntl.h>
#include <stdlib.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "offload/disk/disk_calls.h"
#include "offload/kv/held_pages.h"

namespace tiercel {

inline constexpr auto kGoOn = [] { return false; };

// The calls of this machine, some of which fail. Thread-safe.
class FaultyDisk : public DiskCalls {
 public:
  // Counted call number `fail_at` (from 0) and the `more` calls after it fail
  // with `error`.
  int64_t fail_at = std::numeric_limits<int64_t>::max();
  int64_t more = 0;
  int error = EIO;
  bool counts_reads = true;
  bool counts_writes = true;
  // A read that would fail returns wrong bytes instead.
  bool damages = false;
  // The most bytes that one read or write does; 0: all.
  size_t at_once = 0;
  bool has_ring = false;

  int64_t calls() const { return calls_; }
  bool failed() const { return calls_ > fail_at; }

  int TryOpen(int folder, const char* name, int flags, mode_t mode) override {
    const bool writes = (flags & O_ACCMODE) != O_RDONLY;
    if (Fails(writes ? counts_writes : counts_reads)) return -1;
    return DiskCalls::TryOpen(folder, name, flags, mode);
  }
  ssize_t Read(int file, std::byte* to, size_t bytes,
               uint64_t offset) override {
    const bool fails = Fails(counts_reads);
    if (fails && !damages) return -1;
    const ssize_t got = DiskCalls::Read(file, to, Part(bytes), offset);
    for (ssize_t i = 0; fails && i < got; ++i) to[i] ^= std::byte{1};
    return got;
  }
  ssize_t Write(int file, const std::byte* from, size_t bytes,
                uint64_t offset) override {
    if (Fails(counts_writes)) return -1;
    return DiskCalls::Write(file, from, Part(bytes), offset);
  }
  int TryAllocate(int file, uint64_t bytes) override {
    return Fails(counts_writes) ? -1 : DiskCalls::TryAllocate(file, bytes);
  }
  // Does not sync: no test loses power, and waiting for the disk would take
  // minutes.
  int TrySync(int /*file*/) override { return Fails(counts_writes) ? -1 : 0; }
  int TryClose(int file) override {
    // Like close(2), this closes the file even if it fails.
    const int closed = DiskCalls::TryClose(file);
    return Fails(counts_writes && counts_reads) ? -1 : closed;
  }
  int Rename(int folder, const char* from, const char* to) override {
    return Fails(counts_writes) ? -1 : DiskCalls::Rename(folder, from, to);
  }
  std::unique_ptr<ReadQueue> NewRing(int depth) override {
    return has_ring ? DiskCalls::NewRing(depth) : nullptr;
  }

 private:
  bool Fails(bool counts) {
    if (!counts) return false;
    const int64_t call = calls_++;
    if (call < fail_at || call > fail_at + more) return false;
    errno = error;
    return true;
  }
  size_t Part(size_t bytes) const {
    return at_once == 0 ? bytes : std::min(bytes, at_once);
  }

  std::atomic<int64_t> calls_{0};
};

// Returns a disk that never fails.
inline DiskCalls& GoodDisk() {
  static FaultyDisk disk;
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
      std::byte* const page = pool->Page(layer, slots.back());
      for (int64_t i = 0; i < layout.PageBytes(); ++i) {
        page[i] = static_cast<std::byte>((i * 31 + at * 7 + layer * 13) % 251);
      }
    }
  }
  return std::make_unique<PoolPages>(std::move(pool), slots, end);
}

}  // namespace tiercel

#endif  // TIERCEL_OFFLOAD_DISK_FAULTY_DISK_FOR_TEST_H_

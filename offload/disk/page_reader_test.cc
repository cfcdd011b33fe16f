#include "offload/disk/page_reader.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <deque>
#include <fstream>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "lib/status/error.h"
#include "offload/disk/faulty_disk_for_test.h"

namespace tiercel {
namespace {

constexpr size_t kRun = 5000;
constexpr size_t kRuns = 100;

// A simulated ring that finishes reads in another order than they were started,
// and whose reads are short and fail as those of a real one may.
class FakeRing final : public ReadQueue {
 public:
  struct Manner {
    size_t at_once = kRun;  // most bytes of a read
    int refusals = 0;       // times that each read fails before it succeeds
    int refusal = -EAGAIN;  // the result when it fails
    int starts = 1 << 30;   // calls of Start before the queue fails
    int waits = 1 << 30;    // calls of Wait before it fails
    int* under_way = nullptr;
  };
  explicit FakeRing(Manner manner) : manner_(manner) {}
  ~FakeRing() override {
    if (manner_.under_way != nullptr) *manner_.under_way -= Count();
  }

  int Start(const Request& request) override {
    if (manner_.starts-- == 0) return -ENOSYS;
    requests_.push_back(request);
    if (manner_.under_way != nullptr) ++*manner_.under_way;
    return 0;
  }
  int Wait(Done* done) override {
    if (manner_.waits-- == 0) return -EBADF;
    const Request last = requests_.back();  // the newest first
    requests_.pop_back();
    if (manner_.under_way != nullptr) --*manner_.under_way;
    done->tag = last.tag;
    if (refused_[last.offset]++ < manner_.refusals) {
      done->result = manner_.refusal;
    } else {
      done->result =
          pread(last.file, last.to, std::min(last.bytes, manner_.at_once),
                static_cast<off_t>(last.offset));
    }
    return 0;
  }

 private:
  int Count() const { return static_cast<int>(requests_.size()); }

  Manner manner_;
  std::deque<Request> requests_;
  std::map<uint64_t, int> refused_;
};

class FakeRingDisk : public FaultyDisk {
 public:
  explicit FakeRingDisk(FakeRing::Manner manner) : manner_(manner) {}
  std::unique_ptr<ReadQueue> NewRing(int /*depth*/) override {
    return std::make_unique<FakeRing>(manner_);
  }

 private:
  const FakeRing::Manner manner_;
};

// Records the reads that the system is told of in advance.
struct HearingDisk : FaultyDisk {
  std::map<uint64_t, uint64_t> announced;  // offset, bytes
  size_t ahead = 0;                        // announced before the first read
  void Announce(int, uint64_t offset, uint64_t bytes) override {
    EXPECT_TRUE(announced.emplace(offset, bytes).second);
  }
  ssize_t Read(int file, std::byte* to, size_t bytes,
               uint64_t offset) override {
    if (ahead == 0) ahead = announced.size();
    return FaultyDisk::Read(file, to, bytes, offset);
  }
};

class PageReaderTest : public testing::Test {
 protected:
  PageReaderTest() {
    const std::string path = folder_.path() + "/file";
    for (size_t i = 0; i < kRun * kRuns; ++i) {
      bytes_.push_back(static_cast<char>(i * i % 253));
    }
    std::ofstream(path, std::ios::binary) << bytes_;
    file_ = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    runs_ = {.file = file_, .name = "file", .bytes = kRun, .offsets = {}};
    for (size_t i = 0; i < kRuns; ++i) {
      runs_.offsets.push_back((i * 37 % kRuns) * kRun);
    }
  }
  ~PageReaderTest() override { close(file_); }

  // Reads all runs, and expects each to come once, with the right bytes and in
  // its place.
  absl::Status Read(DiskCalls& disk, DiskUse* use) {
    std::vector<int> seen(kRuns);
    const absl::Status status = ReadPages(
        disk, runs_,
        [&](size_t run, const std::byte* bytes) {
          ++seen[run];
          if (!runs_.places.empty() && runs_.places[run] != nullptr) {
            EXPECT_EQ(bytes, runs_.places[run]);
          }
          EXPECT_EQ(
              std::memcmp(bytes, bytes_.data() + runs_.offsets[run], kRun), 0)
              << run;
          return absl::OkStatus();
        },
        kGoOn, use);
    if (status.ok()) {
      EXPECT_EQ(seen, std::vector<int>(kRuns, 1));
      EXPECT_EQ(use->read_pages, static_cast<int64_t>(kRuns));
    }
    return status;
  }

  FolderForTest folder_;
  std::string bytes_;
  int file_;
  PageRuns runs_;
};

TEST_F(PageReaderTest, TheRingAndTheCallsGiveTheSame) {
  FaultyDisk disk;
  for (const bool ring : {true, false}) {
    disk.has_ring = ring;
    DiskUse use;
    EXPECT_TRUE(Read(disk, &use).ok());
    EXPECT_EQ(use.read_bytes, kRun * kRuns);
  }
  EXPECT_EQ(disk.calls(), static_cast<int64_t>(kRuns));
}

// Neighbours in the file are read together; here the first run and the last
// have none.
TEST_F(PageReaderTest, NeighboursAreReadTogether) {
  for (size_t i = 0; i < kRuns; ++i) runs_.offsets[i] = i * kRun;
  std::swap(runs_.offsets.front(), runs_.offsets.back());
  for (const bool ring : {true, false}) {
    FaultyDisk calls;
    calls.has_ring = false;
    FakeRingDisk fake({.at_once = size_t{8} << 20});
    DiskUse use;
    DiskCalls& disk = ring ? static_cast<DiskCalls&>(fake) : calls;
    EXPECT_TRUE(Read(disk, &use).ok());
    EXPECT_EQ(use.read_bytes, kRun * kRuns);
    if (!ring) {
      EXPECT_EQ(calls.calls(), 3);
    }
  }
}

// Runs that have a place are read there, together if their places follow each
// other, too; the other runs are read to buffers.
TEST_F(PageReaderTest, RunsAreReadToTheirPlaces) {
  std::vector<std::byte> memory((kRuns + 1) * kRun);
  for (size_t i = 0; i < kRuns; ++i) {
    runs_.offsets[i] = i * kRun;
    runs_.places.push_back(memory.data() + (i < 60 ? i : i + 1) * kRun);
  }
  for (size_t i = 20; i < 30; ++i) runs_.places[i] = nullptr;
  for (const bool ring : {true, false}) {
    std::fill(memory.begin(), memory.end(), std::byte{0xFF});
    FaultyDisk calls;
    calls.has_ring = false;
    // Short reads are continued in the run's place, too.
    FakeRingDisk fake({.at_once = 3 * kRun / 2});
    DiskUse use;
    DiskCalls& disk = ring ? static_cast<DiskCalls&>(fake) : calls;
    EXPECT_TRUE(Read(disk, &use).ok());
    EXPECT_EQ(use.read_bytes, kRun * kRuns);
    if (!ring) {
      EXPECT_EQ(calls.calls(), 4);  // 20 runs, 10 without places, 30, and 40
    }
    for (size_t i = 0; i < kRuns; ++i) {
      if (runs_.places[i] == nullptr) continue;
      EXPECT_EQ(std::memcmp(runs_.places[i], bytes_.data() + i * kRun, kRun), 0)
          << i;
    }
    // No other byte of the memory was written.
    const auto untouched = [&](size_t from, size_t to) {
      return std::all_of(
          memory.begin() + static_cast<std::ptrdiff_t>(from * kRun),
          memory.begin() + static_cast<std::ptrdiff_t>(to * kRun),
          [](std::byte b) { return b == std::byte{0xFF}; });
    };
    EXPECT_TRUE(untouched(20, 30));
    EXPECT_TRUE(untouched(60, 61));
  }
}

// 419 runs are less than 2 MiB, 420 are more. A long read that continues
// another is not announced, as the system reads ahead by itself; others are.
TEST_F(PageReaderTest, MuchIsSeveralReads) {
  const std::string path = folder_.path() + "/long";
  std::ofstream(path, std::ios::binary) << std::string(900 * kRun, 'x');
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  PageRuns runs = {.file = file, .name = "long", .bytes = kRun, .offsets = {}};
  for (size_t i = 0; i < 840; ++i) runs.offsets.push_back(i * kRun);
  const std::vector<std::byte> run(kRun, std::byte{'x'});
  for (const bool ring : {true, false}) {
    HearingDisk disk;
    disk.has_ring = ring;
    if (ring && disk.NewRing(1) == nullptr) continue;  // refused by a sandbox
    DiskUse use;
    std::vector<int> seen(840);
    EXPECT_TRUE(ReadPages(
                    disk, runs,
                    [&](size_t index, const std::byte* bytes) {
                      ++seen[index];
                      EXPECT_TRUE(std::equal(run.begin(), run.end(), bytes));
                      return absl::OkStatus();
                    },
                    kGoOn, &use)
                    .ok());
    EXPECT_EQ(seen, std::vector<int>(840, 1));
    EXPECT_EQ(use.read_bytes, 840 * kRun);
    EXPECT_EQ(use.read_pages, 840);
    EXPECT_EQ(disk.calls(), ring ? 0 : 3);
    const std::map<uint64_t, uint64_t> first_and_last = {
        {0, 419 * kRun}, {838 * kRun, 2 * kRun}};
    if (!ring) {
      EXPECT_EQ(disk.announced, first_and_last);
    }
  }
  close(file);
}

// Without a ring the system is told of every read once, before it is waited
// for, and of several reads in advance.
TEST_F(PageReaderTest, CallsAreAnnounced) {
  HearingDisk disk;
  DiskUse use;
  EXPECT_TRUE(Read(disk, &use).ok());
  EXPECT_EQ(disk.announced.size(), kRuns);
  for (const auto& [offset, bytes] : disk.announced) {
    EXPECT_EQ(bytes, kRun) << offset;
  }
  EXPECT_EQ(disk.ahead, ReadsAtOnce(kRun));
}

TEST_F(PageReaderTest, ShortReadsAreContinued) {
  for (const size_t at_once : {size_t{1}, kRun / 2, kRun - 1}) {
    FaultyDisk calls;
    calls.at_once = at_once;
    FakeRingDisk ring({.at_once = at_once});
    for (DiskCalls* disk :
         {static_cast<DiskCalls*>(&calls), static_cast<DiskCalls*>(&ring)}) {
      DiskUse use;
      const absl::Status status = Read(*disk, &use);
      EXPECT_TRUE(status.ok()) << status;
      EXPECT_EQ(use.read_bytes, kRun * kRuns);
    }
  }
}

TEST_F(PageReaderTest, InterruptionsAreSatOut) {
  for (const int error : {EAGAIN, EINTR}) {
    FaultyDisk calls;
    calls.fail_at = 3;
    calls.more = 100;
    calls.error = error;
    DiskUse use;
    EXPECT_TRUE(Read(calls, &use).ok());
    FakeRingDisk ring({.refusals = 100, .refusal = -error});
    use = {};
    EXPECT_TRUE(Read(ring, &use).ok());
    EXPECT_EQ(ring.calls(), 0);
    // The tries are limited.
    calls.more = 1 << 30;
    EXPECT_EQ(CodeOf(Read(calls, &use)), "io_error");
  }
}

TEST_F(PageReaderTest, WhatARingCannotIsDoneWithout) {
  int under_way = 0;
  const FakeRing::Manner manners[] = {
      {.refusals = 1, .refusal = -EINVAL, .under_way = &under_way},
      {.refusals = 1, .refusal = -EOPNOTSUPP, .under_way = &under_way},
      {.refusals = 1, .refusal = -ECANCELED, .under_way = &under_way},
      {.refusals = 1 << 30, .refusal = -EAGAIN, .under_way = &under_way},
      {.starts = 0, .under_way = &under_way},
      {.starts = 50, .under_way = &under_way},
      {.waits = 0, .under_way = &under_way},
      {.at_once = 100, .waits = 777, .under_way = &under_way}};
  for (const FakeRing::Manner& manner : manners) {
    FakeRingDisk disk(manner);
    DiskUse use;
    const absl::Status status = Read(disk, &use);
    EXPECT_TRUE(status.ok()) << status;
    EXPECT_GT(disk.calls(), 0);
    EXPECT_EQ(under_way, 0);
  }
}

TEST_F(PageReaderTest, AnErrorNamesThePlace) {
  for (int64_t at = 0; at < static_cast<int64_t>(kRuns); ++at) {
    FaultyDisk disk;
    disk.fail_at = at;
    DiskUse use;
    const absl::Status status = Read(disk, &use);
    EXPECT_EQ(CodeOf(status), "io_error");
    EXPECT_NE(std::string(status.message())
                  .find("file: cannot read 5000 bytes "
                        "at byte "),
              std::string::npos)
        << status;
  }
  runs_.offsets.back() = kRun * kRuns - 1;
  for (const bool ring : {true, false}) {
    FaultyDisk disk;
    disk.has_ring = ring;
    DiskUse use;
    const absl::Status status = ReadPages(
        disk, runs_, [](size_t, const std::byte*) { return absl::OkStatus(); },
        kGoOn, &use);
    EXPECT_NE(std::string(status.message()).find("the file ends there"),
              std::string::npos)
        << status;
  }
}

TEST_F(PageReaderTest, ItEndsWhenItIsToldTo) {
  FaultyDisk disk;
  int asked = 0;
  DiskUse use;
  int seen = 0;
  const auto count = [&](size_t, const std::byte*) {
    ++seen;
    return absl::OkStatus();
  };
  EXPECT_EQ(CodeOf(ReadPages(
                disk, runs_, count, [&] { return ++asked > 7; }, &use)),
            "cancelled");
  EXPECT_EQ(seen, 7);
  EXPECT_EQ(CodeOf(ReadPages(
                disk, runs_,
                [](size_t, const std::byte*) {
                  return InputError("wrong", "a page");
                },
                kGoOn, &use)),
            "wrong");
}

}  // namespace
}  // namespace tiercel

#include "offload/tier/host_memory.h"

#include <sys/resource.h>

#include <filesystem>
#include <fstream>
#include <limits>
#include <string>

#include "gtest/gtest.h"

namespace tiercel {
namespace {

namespace fs = std::filesystem;

// A root with the files that were written.
class HostMemoryTest : public testing::Test {
 protected:
  HostMemoryTest() : root_(testing::TempDir() + "/host_memory_test") {
    fs::remove_all(root_);
    Write("/proc/self/status", "Name:\tx\nVmSize:\t  1024 kB\n");
    Write("/proc/meminfo", "MemTotal: 99 kB\nMemAvailable:     2000 kB\n");
    Write("/proc/self/cgroup", "1:name=systemd:/x\n0::/a/b\n");
  }
  ~HostMemoryTest() override { fs::remove_all(root_); }

  void Write(const std::string& path, const std::string& text) {
    fs::create_directories(fs::path(root_ + path).parent_path());
    std::ofstream(root_ + path) << text;
  }

  const std::string root_;
};

TEST_F(HostMemoryTest, WhatTheSystemHas) {
  EXPECT_EQ(FreeHostMemory(root_), 2000 * 1024);
}

TEST_F(HostMemoryTest, NothingTells) {
  fs::remove_all(root_);
  EXPECT_EQ(FreeHostMemory(root_), std::numeric_limits<int64_t>::max());
}

TEST_F(HostMemoryTest, TheTightestGroupCounts) {
  Write("/sys/fs/cgroup/a/b/memory.max", "max\n");
  Write("/sys/fs/cgroup/a/b/memory.current", "5\n");
  EXPECT_EQ(FreeHostMemory(root_), 2000 * 1024);
  Write("/sys/fs/cgroup/a/memory.max", "1000000\n");
  Write("/sys/fs/cgroup/a/memory.current", "600000\n");
  EXPECT_EQ(FreeHostMemory(root_), 400000);
  Write("/sys/fs/cgroup/a/memory.stat", "anon 1\ninactive_file 50000\n");
  EXPECT_EQ(FreeHostMemory(root_), 450000);
  Write("/sys/fs/cgroup/memory.max", "70000\n");
  Write("/sys/fs/cgroup/memory.current", "80000\n");
  EXPECT_EQ(FreeHostMemory(root_), 0);
}

TEST_F(HostMemoryTest, TheAddressSpaceCounts) {
  rlimit before = {};
  ASSERT_EQ(getrlimit(RLIMIT_AS, &before), 0);
  rlimit limit = before;
  limit.rlim_cur = rlim_t{1} << 60;
  if (limit.rlim_cur > before.rlim_max) GTEST_SKIP() << "a lower hard limit";
  fs::remove(root_ + "/proc/meminfo");
  ASSERT_EQ(setrlimit(RLIMIT_AS, &limit), 0);
  const int64_t free = FreeHostMemory(root_);
  ASSERT_EQ(setrlimit(RLIMIT_AS, &before), 0);
  EXPECT_EQ(free, (int64_t{1} << 60) - 1024 * 1024);
}

}  // namespace
}  // namespace tiercel

#include "kernels/system/resource_limits.h"

#include <sched.h>
#include <sys/resource.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string>
#include <thread>

#include "gtest/gtest.h"

namespace tiercel {
namespace {

namespace fs = std::filesystem;

// A root folder with the files that Write made.
class ResourceLimitsTest : public testing::Test {
 protected:
  ResourceLimitsTest() : root_(testing::TempDir() + "/allowance_test") {
    fs::remove_all(root_);
    Write("/proc/self/status", "Name:\tx\nVmSize:\t  1024 kB\n");
    Write("/proc/meminfo", "MemTotal: 99 kB\nMemAvailable:     2000 kB\n");
    Write("/proc/self/cgroup", "1:name=systemd:/x\n0::/a/b\n");
  }
  ~ResourceLimitsTest() override { fs::remove_all(root_); }

  void Write(const std::string& path, const std::string& text) {
    fs::create_directories(fs::path(root_ + path).parent_path());
    std::ofstream(root_ + path) << text;
  }

  const std::string root_;
};

TEST_F(ResourceLimitsTest, CpusAreThoseItMayRunOn) {
  const int cpus = AllowedCpus(root_);
  EXPECT_GE(cpus, 1);
  EXPECT_LE(cpus, static_cast<int>(std::thread::hardware_concurrency()));
  cpu_set_t before;
  ASSERT_EQ(sched_getaffinity(0, sizeof(before), &before), 0);
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(sched_getcpu(), &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
  EXPECT_EQ(AllowedCpus(root_), 1);
  ASSERT_EQ(sched_setaffinity(0, sizeof(before), &before), 0);
  EXPECT_EQ(AllowedCpus(root_), cpus);
}

// A quota of either version counts, in the group or in one around it. It is
// rounded up to whole CPUs.
TEST_F(ResourceLimitsTest, CpusAreThoseItHasTimeFor) {
  const int all = AllowedCpus(root_);
  Write("/sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
  EXPECT_EQ(AllowedCpus(root_), all);
  Write("/sys/fs/cgroup/a/cpu.max", "100001 100000\n");
  EXPECT_EQ(AllowedCpus(root_), std::min(all, 2));
  Write("/sys/fs/cgroup/a/cpu.max", "100000 100000\n");
  EXPECT_EQ(AllowedCpus(root_), 1);
  Write("/sys/fs/cgroup/a/cpu.max", "1000 100000\n");
  EXPECT_EQ(AllowedCpus(root_), 1);

  Write("/proc/self/cgroup", "7:cpuset:/x\n3:cpu,cpuacct:/c/d\n0::/\n");
  Write("/sys/fs/cgroup/cpu/x/cpu.cfs_quota_us", "1\n");
  Write("/sys/fs/cgroup/cpu/x/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(AllowedCpus(root_), all);
  Write("/sys/fs/cgroup/cpu/c/d/cpu.cfs_quota_us", "-1\n");
  Write("/sys/fs/cgroup/cpu/c/d/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(AllowedCpus(root_), all);
  Write("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "90000\n");
  Write("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(AllowedCpus(root_), 1);
}

TEST_F(ResourceLimitsTest, WhatTheSystemHas) {
  EXPECT_EQ(FreeHostMemory(root_), 2000 * 1024);
}

TEST_F(ResourceLimitsTest, NothingTells) {
  fs::remove_all(root_);
  EXPECT_EQ(FreeHostMemory(root_), std::numeric_limits<int64_t>::max());
}

TEST_F(ResourceLimitsTest, TheTightestGroupCounts) {
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

// A container of version 1 may see its own group as the root of the tree.
TEST_F(ResourceLimitsTest, GroupsOfVersion1Count) {
  Write("/proc/self/cgroup", "4:memory:/of/the/host\n0::/\n");
  const std::string group = "/sys/fs/cgroup/memory";
  Write(group + "/memory.limit_in_bytes", "1000000\n");
  Write(group + "/memory.usage_in_bytes", "700000\n");
  Write(group + "/memory.stat", "inactive_file 1\ntotal_inactive_file 20000\n");
  EXPECT_EQ(FreeHostMemory(root_), 320000);
  Write(group + "/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_EQ(FreeHostMemory(root_), 2000 * 1024);
}

TEST_F(ResourceLimitsTest, TheAddressSpaceCounts) {
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

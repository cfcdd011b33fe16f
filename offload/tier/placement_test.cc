// The memory can be used whatever topology the system reports, and whichever
// requests it refuses.

#include "offload/tier/placement.h"

#include <dlfcn.h>
#include <hwloc.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/system/faults.h"
#include "kernels/system/no_privileges_for_test.h"
#include "kernels/system/signals_for_test.h"

namespace {

bool take_signals = false;  // set by the thread that loaded a topology last

}  // namespace

// Takes the place of hwloc's function, and calls it.
extern "C" int hwloc_topology_load(hwloc_topology_t topology) {
  take_signals = tiercel::TakesSignals();
  const auto load = reinterpret_cast<decltype(&hwloc_topology_load)>(
      dlsym(RTLD_NEXT, "hwloc_topology_load"));
  return load(topology);
}

namespace tiercel {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr size_t kBytes = size_t{1} << 20;

// Places a region, uses it, and returns the warnings, a line each.
std::string WarningsOf(Placement& placement) {
  void* const data = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  EXPECT_NE(data, MAP_FAILED);
  placement.Apply(data, kBytes);
  auto* const bytes = static_cast<unsigned char*>(data);
  for (size_t i = 0; i < kBytes; i += 1000) bytes[i] = 7;
  for (size_t i = 0; i < kBytes; i += 1000) EXPECT_EQ(bytes[i], 7);
  munmap(data, kBytes);
  return absl::StrJoin(placement.warnings(), "\n");
}

class PlacementTest : public testing::Test {
 protected:
  ~PlacementTest() override {
    for (const char* name : {"HWLOC_SYNTHETIC", "HWLOC_THISSYSTEM",
                             "HWLOC_XMLFILE", "HWLOC_COMPONENTS"}) {
      unsetenv(name);
    }
  }

  // Runs `body` in a child process, so that its resource limits end with it.
  static void InAProcess(const std::function<void()>& body) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      body();
      _exit(HasFailure() ? 1 : 0);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  }
};

TEST_F(PlacementTest, AnyTopologyServes) {
  for (const char* topology :
       {"numa:1 pu:1", "numa:1 pu:64", "numa:2 pu:1", "numa:8 pu:2",
        "pack:2 [numa] [numa] pu:2", "pu:1", "numa:300 pu:1"}) {
    setenv("HWLOC_SYNTHETIC", topology, 1);
    for (const char* is_ours : {"0", "1"}) {
      setenv("HWLOC_THISSYSTEM", is_ours, 1);
      Placement placement;
      EXPECT_THAT(WarningsOf(placement), Not(HasSubstr("hwloc"))) << topology;
    }
  }
}

// Node 1 has memory and no CPUs. hwloc counts it to the CPUs that it is
// attached to, and the system fills the nearer node first.
TEST_F(PlacementTest, MemoryWithoutCpus) {
  const std::string path = testing::TempDir() + "placement_test.xml";
  std::ofstream(path) << R"(<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE topology SYSTEM "hwloc2.dtd">
<topology version="2.0">
 <object type="Machine" os_index="0" cpuset="0x3" complete_cpuset="0x3"
  allowed_cpuset="0x3" nodeset="0x3" complete_nodeset="0x3"
  allowed_nodeset="0x3" gp_index="1">
  <object type="NUMANode" os_index="0" cpuset="0x3" complete_cpuset="0x3"
   nodeset="0x1" complete_nodeset="0x1" gp_index="5" local_memory="1073741824"/>
  <object type="NUMANode" os_index="1" cpuset="0x0" complete_cpuset="0x0"
   nodeset="0x2" complete_nodeset="0x2" gp_index="6" local_memory="1073741824"/>
  <object type="PU" os_index="0" cpuset="0x1" complete_cpuset="0x1"
   nodeset="0x3" complete_nodeset="0x3" gp_index="2"/>
  <object type="PU" os_index="1" cpuset="0x2" complete_cpuset="0x2"
   nodeset="0x3" complete_nodeset="0x3" gp_index="3"/>
 </object>
</topology>
)";
  setenv("HWLOC_XMLFILE", path.c_str(), 1);
  for (const char* is_ours : {"0", "1"}) {
    setenv("HWLOC_THISSYSTEM", is_ours, 1);
    Placement placement;
    // An empty set of nodes would be an invalid argument.
    EXPECT_THAT(WarningsOf(placement),
                Not(AnyOf(HasSubstr("hwloc"), HasSubstr("Invalid argument"))));
  }
  unlink(path.c_str());
}

// hwloc loads drivers, which start threads.
TEST_F(PlacementTest, ThreadsOfDriversTakeNoSignals) {
  take_signals = true;
  Placement placement;
  EXPECT_FALSE(take_signals);
  EXPECT_TRUE(TakesSignals());
}

TEST_F(PlacementTest, NoTopology) {
  setenv("HWLOC_COMPONENTS", "stop", 1);
  Placement placement;
  EXPECT_THAT(WarningsOf(placement), HasSubstr("hwloc cannot read"));
}

// Containers without CAP_SYS_NICE refuse these system calls.
TEST_F(PlacementTest, SystemCallsMayBeRefused) {
  setenv("HWLOC_SYNTHETIC", "numa:2 pu:1", 1);
  setenv("HWLOC_THISSYSTEM", "1", 1);
  InAProcess([] {
    sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mbind, 3, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_set_mempolicy, 2, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mlock2, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
    };
    const sock_fprog program = {std::size(code), code};
    ASSERT_EQ(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
    ASSERT_EQ(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), 0);
    Placement placement;
    const std::string warnings = WarningsOf(placement);
    EXPECT_THAT(warnings, HasSubstr("not placed near the device"));
    EXPECT_THAT(warnings, HasSubstr("not pinned"));
    // Each warning is given once.
    EXPECT_EQ(WarningsOf(placement), warnings);
  });
}

TEST_F(PlacementTest, LockedMemoryMayBeLimited) {
  InAProcess([] {
    const rlimit none = {0, 0};
    ASSERT_EQ(setrlimit(RLIMIT_MEMLOCK, &none), 0);
    const NoPrivileges as_any_user;
    Placement placement;
    EXPECT_THAT(WarningsOf(placement), HasSubstr("ulimit -l"));
  });
}

TEST_F(PlacementTest, PinningFailsAsATestSays) {
  int64_t asked = 0;
  const Faults faults(Callee::kHost, [&](const Operation& pin) {
    return (asked += pin.bytes) > 1 << 20;
  });
  Placement placement;
  EXPECT_THAT(WarningsOf(placement), Not(HasSubstr("by a test")));
  EXPECT_THAT(WarningsOf(placement), HasSubstr("by a test"));
  EXPECT_EQ(asked, 2 << 20);
}

}  // namespace
}  // namespace tiercel

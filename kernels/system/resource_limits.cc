#include "kernels/system/resource_limits.h"

#include <sched.h>
#include <sys/resource.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <optional>
#include <string_view>
#include <thread>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace tiercel {
namespace {

constexpr int64_t kUnlimited = std::numeric_limits<int64_t>::max();

// The number after `key` in a file of words, or its first word if there is no
// key. Nullopt if it is missing or is no number ("max").
std::optional<int64_t> Number(const std::string& path,
                              std::string_view key = "") {
  std::ifstream file(path);
  for (std::string word; file >> word;) {
    if (!key.empty() && word != key) continue;
    if (!key.empty() && !(file >> word)) break;
    int64_t number = 0;
    if (absl::SimpleAtoi(word, &number)) return number;
    break;
  }
  return std::nullopt;
}

// The folders of the control groups that contain this process. Lines of
// /proc/self/cgroup are "0::/a/b" for version 2, which has one tree for all
// controllers, and "4:cpu,cpuacct:/a/b" for version 1, which has a tree for
// each. A container may see its own group as the root of a tree, but read the
// name that its host gave it, so a folder may not exist.
std::vector<std::string> ControlGroups(const std::string& root,
                                       const std::string& controller) {
  std::vector<std::string> folders;
  std::ifstream file(root + "/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    const std::vector<std::string> parts =
        absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (parts.size() != 3) continue;
    const std::vector<std::string> names = absl::StrSplit(parts[1], ',');
    std::string tree = root + "/sys/fs/cgroup";
    if (!parts[1].empty()) {
      if (std::find(names.begin(), names.end(), controller) == names.end()) {
        continue;
      }
      absl::StrAppend(&tree, "/", controller);
    }
    std::string group = parts[2];
    while (true) {
      folders.push_back(tree + group);
      const size_t slash = group.rfind('/');
      if (slash == std::string::npos) break;
      group.resize(slash);
    }
  }
  return folders;
}

// The memory that a control group leaves. Version 1 counts it in other files.
// Page cache counts as free, as the system gives it back on demand.
int64_t FreeInGroup(const std::string& folder) {
  std::optional<int64_t> most = Number(folder + "/memory.max");
  std::optional<int64_t> used = Number(folder + "/memory.current");
  const char* cache = "inactive_file";
  if (!most.has_value() && !used.has_value()) {
    most = Number(folder + "/memory.limit_in_bytes");
    used = Number(folder + "/memory.usage_in_bytes");
    cache = "total_inactive_file";
  }
  if (!most.has_value() || !used.has_value()) return kUnlimited;
  return std::max<int64_t>(
      0, *most - *used + Number(folder + "/memory.stat", cache).value_or(0));
}

int64_t FreeInGroups(const std::string& root) {
  int64_t free = kUnlimited;
  for (const std::string& folder : ControlGroups(root, "memory")) {
    free = std::min(free, FreeInGroup(folder));
  }
  return free;
}

int64_t FreeInAddressSpace(const std::string& root) {
  rlimit limit = {};
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) {
    return kUnlimited;
  }
  constexpr int64_t kKiB = 1024;
  const int64_t used =
      kKiB * Number(root + "/proc/self/status", "VmSize:").value_or(0);
  const auto most = static_cast<int64_t>(
      std::min<rlim_t>(limit.rlim_cur, static_cast<rlim_t>(kUnlimited)));
  return std::max<int64_t>(0, most - used);
}

// The CPUs for which a control group has time. Version 2 has "QUOTA PERIOD" in
// one file, version 1 a file for each; no quota is "max" or -1.
int64_t CpusOfGroup(const std::string& folder) {
  int64_t quota = -1;
  int64_t period = 0;
  std::ifstream file(folder + "/cpu.max");
  if (!(file >> quota >> period)) {
    quota = Number(folder + "/cpu.cfs_quota_us").value_or(-1);
    period = Number(folder + "/cpu.cfs_period_us").value_or(0);
  }
  if (quota <= 0 || period <= 0) return kUnlimited;
  return quota / period + (quota % period != 0 ? 1 : 0);
}

int64_t CpusToRunOn() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) == 0) return CPU_COUNT(&set);
  return std::thread::hardware_concurrency();
}

}  // namespace

int AllowedCpus(const std::string& root) {
  int64_t cpus = std::max<int64_t>(1, CpusToRunOn());
  for (const std::string& folder : ControlGroups(root, "cpu")) {
    cpus = std::min(cpus, CpusOfGroup(folder));
  }
  return static_cast<int>(cpus);
}

int64_t FreeHostMemory(const std::string& root) {
  constexpr int64_t kKiB = 1024;
  const std::optional<int64_t> available =
      Number(root + "/proc/meminfo", "MemAvailable:");
  return std::min({available.has_value() ? kKiB * *available : kUnlimited,
                   FreeInGroups(root), FreeInAddressSpace(root)});
}

}  // namespace tiercel

#include "offload/tier/host_memory.h"

#include <sys/resource.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <optional>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace tiercel {
namespace {

constexpr int64_t kUnlimited = std::numeric_limits<int64_t>::max();

// The number after `key` in a file of lines "key number"; with an empty key the
// file's first word. Absent where it is not there or no number ("max").
std::optional<int64_t> Number(const std::string& path, const std::string& key) {
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

// Of one control group (version 2). Its page cache is given back on demand.
int64_t FreeInGroup(const std::string& folder) {
  const std::optional<int64_t> most = Number(folder + "/memory.max", "");
  const std::optional<int64_t> used = Number(folder + "/memory.current", "");
  if (!most.has_value() || !used.has_value()) return kUnlimited;
  const int64_t cache =
      Number(folder + "/memory.stat", "inactive_file").value_or(0);
  return std::max<int64_t>(0, *most - *used + cache);
}

// The group of this process ("0::/a/b") and those around it.
int64_t FreeInGroups(const std::string& root) {
  std::ifstream file(root + "/proc/self/cgroup");
  std::string group;
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("0::", 0) == 0) group = line.substr(3);
  }
  int64_t free = kUnlimited;
  while (true) {
    free = std::min(free, FreeInGroup(root + "/sys/fs/cgroup" + group));
    const size_t slash = group.rfind('/');
    if (slash == std::string::npos) return free;
    group.resize(slash);
  }
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

}  // namespace

int64_t FreeHostMemory(const std::string& root) {
  constexpr int64_t kKiB = 1024;
  const std::optional<int64_t> available =
      Number(root + "/proc/meminfo", "MemAvailable:");
  return std::min({available.has_value() ? kKiB * *available : kUnlimited,
                   FreeInGroups(root), FreeInAddressSpace(root)});
}

}  // namespace tiercel

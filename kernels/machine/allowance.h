#ifndef TIERCEL_KERNELS_MACHINE_ALLOWANCE_H_
#define TIERCEL_KERNELS_MACHINE_ALLOWANCE_H_

#include <cstdint>
#include <string>

namespace tiercel {

// What this process may take of the machine. `root` stands before /proc and
// /sys; tests put a folder there.

// CPUs worth a thread: those it may run on (affinity, cpusets), but no more
// than its control groups give it time for, a part of one counted whole.
int AllowedCpus(const std::string& root = "");

// Bytes of memory that it can still take: the least of what the system has
// available, what its control groups leave, and what its address space may grow
// by (RLIMIT_AS). INT64_MAX where nothing tells.
int64_t FreeHostMemory(const std::string& root = "");

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_MACHINE_ALLOWANCE_H_

#ifndef TIERCEL_KERNELS_SYSTEM_RESOURCE_LIMITS_H_
#define TIERCEL_KERNELS_SYSTEM_RESOURCE_LIMITS_H_

#include <cstdint>
#include <string>

namespace tiercel {

// The resource limits of this process. `root` is put before /proc and /sys, so
// that tests can use a folder of their own.

// The number of CPUs worth a thread: those on which the process may run
// (affinity, cpusets), but no more than its control groups give it time for,
// rounded up.
int AllowedCpus(const std::string& root = "");

// The bytes of memory that the process can still take: the least of the
// system's available memory, the memory that its control groups leave, and the
// growth that RLIMIT_AS allows. INT64_MAX if none of these is known.
int64_t FreeHostMemory(const std::string& root = "");

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_SYSTEM_RESOURCE_LIMITS_H_

#ifndef TIERCEL_OFFLOAD_DISK_PROCESS_FILES_H_
#define TIERCEL_OFFLOAD_DISK_PROCESS_FILES_H_

#include "absl/functional/function_ref.h"

namespace tiercel {

// Files that are open in this process alone: one that fork() makes begins with
// them closed. Thread-safe; a fork waits while one is being opened.

// What `open` returns: a file, or -1 with errno set. ENOMEM where there is no
// memory to note it.
int OpenForThisProcess(absl::FunctionRef<int()> open);
// What `close` returns, which closes `file`.
int CloseForThisProcess(int file, absl::FunctionRef<int()> close);

}  // namespace tiercel

#endif  // TIERCEL_OFFLOAD_DISK_PROCESS_FILES_H_

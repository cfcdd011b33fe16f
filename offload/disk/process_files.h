#ifndef TIERCEL_OFFLOAD_DISK_PROCESS_FILES_H_
#define TIERCEL_OFFLOAD_DISK_PROCESS_FILES_H_

#include "absl/functional/function_ref.h"

namespace tiercel {

// Files that are open in this process alone: a child that fork() makes begins
// with them closed. Thread-safe; a fork waits while a file is being opened.

// Calls `open` and returns its result: a file, or -1 with errno set. Returns -1
// with ENOMEM if there is no memory to note the file.
int OpenForThisProcess(absl::FunctionRef<int()> open);
// Calls `close`, which closes `file`, and returns its result.
int CloseForThisProcess(int file, absl::FunctionRef<int()> close);

}  // namespace tiercel

#endif  // TIERCEL_OFFLOAD_DISK_PROCESS_FILES_H_

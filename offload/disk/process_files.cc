#include "offload/disk/process_files.h"

#include <pthread.h>
#include <unistd.h>

#include <cerrno>
#include <mutex>
#include <new>
#include <vector>

namespace tiercel {
namespace {

struct ProcessFiles {
  std::mutex mutex;
  std::vector<int> open;
  bool knows_forks = false;
};

// The list is never destroyed: objects that are destroyed at the very end of a
// program close files, too.
ProcessFiles& Files() {
  static auto* const files = new ProcessFiles;
  return *files;
}

// These are called on the thread that forks: HoldFiles before the fork,
// KeepFiles after it, and LoseFiles after it in the child.
void HoldFiles() { Files().mutex.lock(); }
void KeepFiles() { Files().mutex.unlock(); }
void LoseFiles() {
  for (const int file : Files().open) close(file);
  Files().open.clear();
  Files().mutex.unlock();
}

}  // namespace

int OpenForThisProcess(absl::FunctionRef<int()> open) {
  try {
    ProcessFiles& files = Files();
    const std::lock_guard<std::mutex> lock(files.mutex);
    if (!files.knows_forks) {
      const int error = pthread_atfork(HoldFiles, KeepFiles, LoseFiles);
      if (error != 0) {
        errno = error;
        return -1;
      }
      files.knows_forks = true;
    }
    files.open.reserve(files.open.size() + 1);
    const int file = open();
    if (file >= 0) files.open.push_back(file);
    return file;
  } catch (const std::bad_alloc&) {
    errno = ENOMEM;
    return -1;
  }
}

int CloseForThisProcess(int file, absl::FunctionRef<int()> close) {
  ProcessFiles& files = Files();
  const std::lock_guard<std::mutex> lock(files.mutex);
  std::erase(files.open, file);
  return close();
}

}  // namespace tiercel

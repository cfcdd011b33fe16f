#ifndef TIERCEL_APPS_DOCUMENT_CHILD_PROCESS_H_
#define TIERCEL_APPS_DOCUMENT_CHILD_PROCESS_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tiercel::document {

// What a child may take; it is killed when it takes more.
struct ChildLimits {
  uint64_t memory_bytes;  // of its address space
  unsigned cpu_seconds;
  double wall_seconds;
  uint64_t output_bytes;  // on stdout
};

struct ChildEnd {
  enum class Kind {
    kExited,
    kKilled,    // by a signal that none of the limits sent
    kTimedOut,  // processor or wall time
    kTooMuchOutput,
    kUnseen,  // ended; others took the status: SIGCHLD is ignored, or they wait
    kNotStarted,  // the system could not
  };
  Kind kind;
  int code;            // exit status, signal or errno; unseen 0
  std::string errors;  // the beginning of stderr
};

// The path of a program in the absolute folders of $PATH.
std::optional<std::string> FindProgram(const std::string& name);

// Runs command[0], an absolute path, with `input` as a file on stdin that can
// be read from any place (by its path /proc/self/fd/0, too), and hands what it
// writes to `sink`, piece by piece. No shell is involved. The child stands in
// "/", writes no files, inherits nothing but these three descriptors and dies
// with the thread that started it. The program may ignore SIGCHLD, or wait for
// any child: then how this one ended may be unknown. Thread-safe.
ChildEnd RunChild(const std::vector<std::string>& command,
                  std::string_view input, const ChildLimits& limits,
                  const std::function<void(std::string_view)>& sink);

}  // namespace tiercel::document

#endif  // TIERCEL_APPS_DOCUMENT_CHILD_PROCESS_H_

#ifndef TIERCEL_LIB_DOCUMENTS_CHILD_PROCESS_H_
#define TIERCEL_LIB_DOCUMENTS_CHILD_PROCESS_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tiercel::document {

// Limits on a child's resources. A child that exceeds one is killed.
struct ChildLimits {
  uint64_t memory_bytes;  // address space
  unsigned cpu_seconds;
  double wall_seconds;
  uint64_t output_bytes;  // on stdout
};

struct ChildEnd {
  enum class Kind {
    kExited,
    kKilled,    // by a signal that no limit sent
    kTimedOut,  // limit on processor or wall time
    kTooMuchOutput,
    kUnseen,  // ended, status lost: SIGCHLD is ignored, or another wait took it
    kNotStarted,  // the system could not start it
  };
  Kind kind;
  int code;            // exit status, signal or errno; 0 if unseen
  std::string errors;  // the beginning of stderr
};

// Returns the path of a program in the absolute folders of $PATH.
std::optional<std::string> FindProgram(const std::string& name);

// Runs command[0], an absolute path. `input` is a file on its stdin that can be
// read from any position (by its path /proc/self/fd/0, too); each piece of its
// output is passed to `sink`. No shell is involved. The child runs in "/",
// writes no files, inherits only these three descriptors and dies with the
// thread that started it. The program may ignore SIGCHLD, or wait for any
// child: then how this one ended may be unknown. Thread-safe.
ChildEnd RunChild(const std::vector<std::string>& command,
                  std::string_view input, const ChildLimits& limits,
                  const std::function<void(std::string_view)>& sink);

}  // namespace tiercel::document

#endif  // TIERCEL_LIB_DOCUMENTS_CHILD_PROCESS_H_

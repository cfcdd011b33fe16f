#include "lib/documents/child_process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <utility>

#include "lib/documents/file_descriptor.h"

namespace tiercel::document {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kMaxErrorBytes = 4096;

// The environment of a child: programs that read it print the same everywhere.
constexpr const char* kEnvironment[] = {"LC_ALL=C.UTF-8", nullptr};

void Limit(int resource, rlim_t most, rlim_t at_last) {
  const struct rlimit limit = {most, at_last};
  setrlimit(static_cast<__rlimit_resource_t>(resource), &limit);
}

// The child's steps between fork and exec. Only calls that are safe beside
// threads that hold locks may be made here.
[[noreturn]] void BecomeProgram(char* const* arguments, int input, int output,
                                int errors, pid_t parent,
                                const ChildLimits& limits) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(127);  // the parent died before prctl
  const bool has_streams = dup2(input, STDIN_FILENO) >= 0 &&
                           dup2(output, STDOUT_FILENO) >= 0 &&
                           dup2(errors, STDERR_FILENO) >= 0;
  if (!has_streams || chdir("/") != 0) _exit(127);
  // Closes inherited descriptors that were opened without O_CLOEXEC.
  if (close_range(STDERR_FILENO + 1, ~0U, 0) != 0) _exit(127);
  Limit(RLIMIT_AS, limits.memory_bytes, limits.memory_bytes);
  // The soft limit sends SIGXCPU, which tells why the child ended.
  Limit(RLIMIT_CPU, limits.cpu_seconds, limits.cpu_seconds + 1);
  Limit(RLIMIT_FSIZE, 0, 0);
  Limit(RLIMIT_CORE, 0, 0);
  signal(SIGPIPE, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  execve(arguments[0], arguments, const_cast<char* const*>(kEnvironment));
  _exit(127);
}

bool WriteAll(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return lseek(fd, 0, SEEK_SET) == 0;
}

int MillisecondsUntil(Clock::time_point deadline) {
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
      deadline - Clock::now());
  return static_cast<int>(std::clamp<int64_t>(left.count() + 1, 0, 60'000));
}

// Reads from one of a child's streams; false at its end.
bool ReadSome(int fd, const std::function<void(std::string_view)>& sink) {
  std::array<char, 65536> buffer;
  const ssize_t got = read(fd, buffer.data(), buffer.size());
  if (got < 0) return errno == EINTR || errno == EAGAIN;
  if (got == 0) return false;
  sink({buffer.data(), static_cast<size_t>(got)});
  return true;
}

// Forks, with a descriptor of the child in `*child`. The pid of a child may be
// reused once the child was waited for; a descriptor never is.
pid_t ForkWithDescriptor(int* child) {
  return static_cast<pid_t>(syscall(SYS_clone, CLONE_PIDFD | SIGCHLD,
                                    /*stack=*/nullptr, child,
                                    /*child_tid=*/nullptr, /*tls=*/nullptr));
}

// Waits for a child that has closed its streams; false at the deadline.
bool EndsBefore(Clock::time_point deadline, int child) {
  struct pollfd ended = {child, POLLIN, 0};
  for (;;) {
    const int ready = poll(&ended, 1, MillisecondsUntil(deadline));
    if (ready > 0) return true;
    if (Clock::now() >= deadline || (ready < 0 && errno != EINTR)) return false;
  }
}

// Returns how a child ended, once it has; nothing if another call has already
// waited for it.
std::optional<siginfo_t> Reap(int child) {
  siginfo_t status = {};
  while (waitid(P_PIDFD, static_cast<id_t>(child), &status, WEXITED) != 0) {
    if (errno != EINTR) return std::nullopt;
  }
  return status;
}

ChildEnd NotStarted() { return {ChildEnd::Kind::kNotStarted, errno, {}}; }

}  // namespace

std::optional<std::string> FindProgram(const std::string& name) {
  const char* const path = std::getenv("PATH");
  const std::string_view folders = path == nullptr ? "" : path;
  for (size_t begin = 0; begin < folders.size();) {
    const size_t end = std::min(folders.find(':', begin), folders.size());
    const std::string_view folder = folders.substr(begin, end - begin);
    begin = end + 1;
    if (folder.substr(0, 1) != "/") continue;
    std::string program = std::string(folder) + "/" + name;
    if (access(program.c_str(), X_OK) == 0) return program;
  }
  return std::nullopt;
}

ChildEnd RunChild(const std::vector<std::string>& command,
                  std::string_view input, const ChildLimits& limits,
                  const std::function<void(std::string_view)>& sink) {
  const FileDescriptor file(memfd_create("document", MFD_CLOEXEC));
  if (file.get() < 0 || !WriteAll(file.get(), input)) return NotStarted();
  int output_ends[2];
  if (pipe2(output_ends, O_CLOEXEC) != 0) return NotStarted();
  const FileDescriptor output(output_ends[0]);
  FileDescriptor output_end(output_ends[1]);
  int error_ends[2];
  if (pipe2(error_ends, O_CLOEXEC) != 0) return NotStarted();
  const FileDescriptor errors(error_ends[0]);
  FileDescriptor error_end(error_ends[1]);

  std::vector<char*> arguments;
  arguments.reserve(command.size() + 1);
  for (const std::string& argument : command) {
    arguments.push_back(const_cast<char*>(argument.c_str()));
  }
  arguments.push_back(nullptr);
  const pid_t parent = getpid();
  const auto deadline =
      Clock::now() + std::chrono::duration_cast<Clock::duration>(
                         std::chrono::duration<double>(limits.wall_seconds));
  int descriptor = -1;
  const pid_t forked = ForkWithDescriptor(&descriptor);
  if (forked < 0) return NotStarted();
  if (forked == 0) {
    BecomeProgram(arguments.data(), file.get(), output_end.get(),
                  error_end.get(), parent, limits);
  }
  const FileDescriptor child(descriptor);
  output_end.Close();
  error_end.Close();

  ChildEnd end = {ChildEnd::Kind::kExited, 0, {}};
  uint64_t num_bytes = 0;
  std::array<struct pollfd, 2> streams = {
      {{output.get(), POLLIN, 0}, {errors.get(), POLLIN, 0}}};
  while (end.kind == ChildEnd::Kind::kExited &&
         (streams[0].fd >= 0 || streams[1].fd >= 0)) {
    const int ready =
        poll(streams.data(), streams.size(), MillisecondsUntil(deadline));
    if (ready < 0 && errno != EINTR) break;
    if (Clock::now() >= deadline) {
      end.kind = ChildEnd::Kind::kTimedOut;
      break;
    }
    if (ready <= 0) continue;
    if (streams[0].revents != 0 &&
        !ReadSome(output.get(), [&](std::string_view bytes) {
          num_bytes += bytes.size();
          if (num_bytes > limits.output_bytes) {
            end.kind = ChildEnd::Kind::kTooMuchOutput;
          } else {
            sink(bytes);
          }
        })) {
      streams[0].fd = -1;
    }
    if (streams[1].revents != 0 &&
        !ReadSome(errors.get(), [&](std::string_view bytes) {
          end.errors += bytes.substr(0, kMaxErrorBytes - end.errors.size());
        })) {
      streams[1].fd = -1;
    }
  }
  if (end.kind == ChildEnd::Kind::kExited &&
      !EndsBefore(deadline, child.get())) {
    end.kind = ChildEnd::Kind::kTimedOut;
  }
  const bool killed = end.kind != ChildEnd::Kind::kExited;
  if (killed) {
    syscall(SYS_pidfd_send_signal, child.get(), SIGKILL, /*info=*/nullptr,
            /*flags=*/0);
  }
  const std::optional<siginfo_t> status = Reap(child.get());
  if (killed) return end;
  if (!status.has_value()) {
    end.kind = ChildEnd::Kind::kUnseen;
    return end;
  }
  end.code = status->si_status;
  if (status->si_code != CLD_EXITED) {
    end.kind = end.code == SIGXCPU ? ChildEnd::Kind::kTimedOut
                                   : ChildEnd::Kind::kKilled;
  }
  return end;
}

}  // namespace tiercel::document

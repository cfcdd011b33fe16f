#ifndef TIERCEL_APPS_TERMINAL_SIGNALS_H_
#define TIERCEL_APPS_TERMINAL_SIGNALS_H_

#include <functional>
#include <string_view>

#include "include/tiercel.h"

namespace tiercel::cli {

// Ctrl-C and SIGTERM end the program at once, with 130 or 143, whatever it is
// doing: it says that on stderr, or on stdout in `json` if nothing is there
// yet. While there is something to keep they only ask the work to stop, and the
// second one ends the program. Writing to a closed pipe or past a file-size
// limit becomes an error of the write instead of a signal.
void InstallSignalHandlers(bool json);

// While one lives there is something to keep: text that was generated, a file
// that is half written, a terminal in another mode.
class KeepOnSignal {
 public:
  KeepOnSignal();
  ~KeepOnSignal();
  KeepOnSignal(const KeepOnSignal&) = delete;
  KeepOnSignal& operator=(const KeepOnSignal&) = delete;
};

// Opens what is missing of stdin, stdout and stderr, so that no file of ours
// can take their numbers; reads and writes there still fail.
void HoldStandardStreams();

// SIGINT or SIGTERM once one came, else 0.
int SignalReceived();

// True, and from now on as if it had not come, where the signal was Ctrl-C.
bool ForgetInterrupt();

// Waits until `fd` can be read without blocking; false where a signal came, be
// it just before. `on_wake` is called before it waits and after WakeReader.
bool WaitToRead(int fd, const std::function<void()>& on_wake = nullptr);

// Waits until `fd` takes PIPE_BUF bytes without blocking; false where a signal
// came and, for a moment after it, nobody has read.
bool WaitToWrite(int fd);

// From now on stdout is no place for a whole JSON document.
void NoteOutput();

// Says whether layers of what is being read are on disk, for the same command
// to go on behind them.
void NoteKept(bool kept);
// "interrupted", and where they are, that they are kept and how to go on.
std::string_view InterruptedMessage();

// For handlers of other signals.
void WakeReader();

// While it lives a signal that does not end the program cancels what runs in
// `session`, and nothing that comes after. One at a time.
class CancelOnSignal {
 public:
  explicit CancelOnSignal(tiercel_session* session);
  ~CancelOnSignal();
  CancelOnSignal(const CancelOnSignal&) = delete;
  CancelOnSignal& operator=(const CancelOnSignal&) = delete;

 private:
  tiercel_session* const session_;
};

}  // namespace tiercel::cli

#endif  // TIERCEL_APPS_TERMINAL_SIGNALS_H_

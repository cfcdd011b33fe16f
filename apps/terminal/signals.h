#ifndef TIERCEL_APPS_TERMINAL_SIGNALS_H_
#define TIERCEL_APPS_TERMINAL_SIGNALS_H_

#include <functional>
#include <string_view>
#include <vector>

#include "include/tiercel.h"

namespace tiercel::cli {

// Makes Ctrl-C and SIGTERM end the program at once, with 130 or 143, and a
// message on stderr, or with `json` on stdout if nothing was written there.
// While a KeepOnSignal lives they only ask the work to stop, and the second one
// ends the program. Writing to a closed pipe or past a file-size limit becomes
// an error of the write instead of a signal.
void InstallSignalHandlers(bool json);

// While one lives, a first signal does not end the program, since there is
// something to keep: text that was generated, a file that is half written, a
// terminal in another mode.
class KeepOnSignal {
 public:
  KeepOnSignal();
  ~KeepOnSignal();
  KeepOnSignal(const KeepOnSignal&) = delete;
  KeepOnSignal& operator=(const KeepOnSignal&) = delete;
};

// While one lives, the first two signals are only counted: a server ends what
// it does by itself. A third one ends the program. Once it is gone they have
// come. Only one may exist at a time.
class CountSignals {
 public:
  CountSignals();
  ~CountSignals();
  CountSignals(const CountSignals&) = delete;
  CountSignals& operator=(const CountSignals&) = delete;
};
// The signals that were counted.
int SignalsCounted();
// A file that can be read once a signal was counted, or WakeReader was called;
// -1: the system gave none.
int SignalFile();

// Opens each of stdin, stdout and stderr that is closed, so that no file of
// ours can take its number; reads and writes there still fail.
void HoldStandardStreams();

// Returns SIGINT or SIGTERM once one came, else 0.
int SignalReceived();

// Returns true, and forgets the signal, if it was Ctrl-C.
bool ForgetInterrupt();

// Waits until `fd` can be read without blocking; returns false if a signal
// came, even just before the call. `on_wake` is called before each wait, thus
// also after WakeReader.
bool WaitToRead(int fd, const std::function<void()>& on_wake = nullptr);

// Waits until `fd` takes PIPE_BUF bytes without blocking; returns false if a
// signal came and the reader took nothing for a moment after it.
bool WaitToWrite(int fd);

// Notes that stdout has output, so that no JSON error document can go there.
void NoteOutput();

// Notes whether finished layers of the prompt are on disk, from which the same
// command can go on.
void NoteKept(bool kept);
// "interrupted", and if layers are kept, that they are and how to go on.
std::string_view InterruptedMessage();

// Wakes WaitToRead; for handlers of other signals.
void WakeReader();

// While it lives, a signal that does not end the program cancels the work that
// runs in `sessions`, at most 64, and no later work. Only one may exist at a
// time.
class CancelOnSignal {
 public:
  explicit CancelOnSignal(std::vector<tiercel_session*> sessions);
  explicit CancelOnSignal(tiercel_session* session)
      : CancelOnSignal(std::vector<tiercel_session*>{session}) {}
  ~CancelOnSignal();
  CancelOnSignal(const CancelOnSignal&) = delete;
  CancelOnSignal& operator=(const CancelOnSignal&) = delete;

 private:
  const std::vector<tiercel_session*> sessions_;
};

}  // namespace tiercel::cli

#endif  // TIERCEL_APPS_TERMINAL_SIGNALS_H_

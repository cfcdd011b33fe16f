#ifndef TIERCEL_APPS_SIGNALS_H_
#define TIERCEL_APPS_SIGNALS_H_

#include <functional>

#include "include/tiercel.h"

namespace tiercel::cli {

// Ctrl-C and SIGTERM ask the work to stop: what is running is cancelled, text
// printed so far stays, and the program ends with 130 or 143. The second one
// ends it at once. Writing to a closed pipe or past a file-size limit becomes
// an error of the write instead of a signal.
void InstallSignalHandlers();

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

// For handlers of other signals.
void WakeReader();

// While it lives a signal also cancels what runs in `session`. One at a time.
class CancelOnSignal {
 public:
  explicit CancelOnSignal(tiercel_session* session);
  ~CancelOnSignal();
  CancelOnSignal(const CancelOnSignal&) = delete;
  CancelOnSignal& operator=(const CancelOnSignal&) = delete;
};

}  // namespace tiercel::cli

#endif  // TIERCEL_APPS_SIGNALS_H_

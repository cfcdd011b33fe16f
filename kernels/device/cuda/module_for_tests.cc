// A library that starts a thread when it is loaded, and reports whether that
// thread takes the program's signals.

#include <stdlib.h>

#include "kernels/system/signals_for_test.h"

__attribute__((constructor)) static void Say() {
  setenv("TIERCEL_LIBRARY_FOR_TEST", tiercel::TakesSignals() ? "takes" : "none",
         /*overwrite=*/1);
}

// A library that says, as it is loaded, whether a thread that it began then
// would take the program's signals.

#include <stdlib.h>

#include "kernels/machine/signals_for_test.h"

__attribute__((constructor)) static void Say() {
  setenv("TIERCEL_LIBRARY_FOR_TEST", tiercel::TakesSignals() ? "takes" : "none",
         /*overwrite=*/1);
}

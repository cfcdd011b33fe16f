#include "kernels/device/cuda/dynamic_library.h"

#include <stdlib.h>

#include "gtest/gtest.h"
#include "kernels/system/signals_for_test.h"

namespace tiercel {
namespace {

TEST(DynamicLibraryTest, ThreadsOfALibraryTakeNoSignals) {
  const absl::StatusOr<DynamicLibrary> library =
      DynamicLibrary::Load("a library", TIERCEL_LIBRARY_FOR_TEST);
  ASSERT_TRUE(library.ok()) << library.status();
  EXPECT_STREQ(getenv("TIERCEL_LIBRARY_FOR_TEST"), "none");
  EXPECT_TRUE(TakesSignals());
}

}  // namespace
}  // namespace tiercel

#include "kernels/device/cuda/nccl.h"

#include <stdlib.h>

#include <string>

#include "gtest/gtest.h"
#include "lib/status/error.h"

namespace tiercel {
namespace {

int got = 0;

NcclFunctions OfVersion(int version) {
  got = version;
  NcclFunctions f;
  f.version = [](int* to) {
    *to = got;
    return got < 0 ? 3 : 0;
  };
  f.error_text = [](int) { return "an internal error"; };
  return f;
}

TEST(NcclTest, OldVersionsAreRefused) {
  for (const int good : {22705, 22809, 29999}) {
    EXPECT_TRUE(OfVersion(good).CheckVersion().ok()) << good;
  }
  const struct {
    int version;
    const char* text;
  } cases[] = {{22704, "2.27.4"},
               {21805, "2.18.5"},
               {2708, "2.7.8"},
               {30000, "3.0.0"},
               {13101, "1.31.1"}};
  for (const auto& one : cases) {
    const absl::Status status = OfVersion(one.version).CheckVersion();
    EXPECT_EQ(CodeOf(status), "no_library");
    EXPECT_EQ(status.message(), std::string("NCCL: got version ") + one.text +
                                    ", need 2.27.5 or a later 2");
  }
  EXPECT_EQ(OfVersion(-1).CheckVersion().message(),
            "NCCL: GetVersion ended with error 3, an internal error");
}

TEST(NcclTest, ALibraryHasToBeThereAndHaveAllOfIt) {
  const absl::Status missing = NcclFunctions::Load("libnothing.so.2").status();
  EXPECT_EQ(CodeOf(missing), "no_library");
  EXPECT_NE(std::string(missing.message()).find("libnothing.so.2"),
            std::string::npos);
  EXPECT_EQ(NcclFunctions::Load("libm.so.6").status().message(),
            "NCCL: libm.so.6 has no ncclGetVersion");
}

TEST(NcclTest, TheEnvironmentSaysWhetherItIsUsed) {
  for (const auto& [value, use] :
       {std::pair("", NcclUse::kWhereItIs), std::pair("0", NcclUse::kNever),
        std::pair("1", NcclUse::kAlways)}) {
    setenv("TIERCEL_NCCL", value, /*overwrite=*/1);
    const absl::StatusOr<NcclUse> asked = NcclFromEnvironment();
    ASSERT_TRUE(asked.ok()) << asked.status();
    EXPECT_EQ(*asked, use) << value;
  }
  setenv("TIERCEL_NCCL", "yes", /*overwrite=*/1);
  EXPECT_EQ(NcclFromEnvironment().status().message(),
            "TIERCEL_NCCL: got \"yes\", need 0 or 1");
  unsetenv("TIERCEL_NCCL");
  EXPECT_EQ(*NcclFromEnvironment(), NcclUse::kWhereItIs);
}

}  // namespace
}  // namespace tiercel

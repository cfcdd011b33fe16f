#include "kernels/system/isa.h"

#include <stdlib.h>

#include <algorithm>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/system/testing.h"
#include "lib/status/error.h"

namespace tiercel {
namespace {

// Other tests have cases of an ISA only if this machine has it. If it has not,
// the cases here are skipped, and test.sh reports them.
class IsaTest : public testing::TestWithParam<Isa> {};
INSTANTIATE_TEST_SUITE_P(Isas, IsaTest, testing::ValuesIn(kAllIsas), NameOfIsa);

TEST_P(IsaTest, IsChosenByNameWhereThisMachineHasIt) {
  const std::string name(NameOf(GetParam()));
  const char* forced = getenv("TIERCEL_ISA");
  const std::string before = forced == nullptr ? "" : forced;
  setenv("TIERCEL_ISA", name.c_str(), /*overwrite=*/1);
  const absl::StatusOr<Isa> chosen = ChooseIsa();
  setenv("TIERCEL_ISA", before.c_str(), /*overwrite=*/1);
  const std::vector<Isa> here = SupportedIsas();
  if (std::find(here.begin(), here.end(), GetParam()) != here.end()) {
    ASSERT_TRUE(chosen.ok()) << chosen.status();
    EXPECT_EQ(*chosen, GetParam());
    return;
  }
  ASSERT_EQ(CodeOf(chosen.status()), "invalid_environment");
  EXPECT_NE(chosen.status().message().find(name), absl::string_view::npos);
  GTEST_SKIP() << "this CPU has no " << name << ": no case of it was made";
}

}  // namespace
}  // namespace tiercel

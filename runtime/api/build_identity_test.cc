#include "runtime/api/build_identity.h"

#include <array>
#include <cstdio>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tiercel {
namespace {

TEST(BuildIdentityTest, IsThatOfThisProgram) {
  const std::string id = BuildIdentity();
  ASSERT_GE(id.size(), 16u);
  // What a program of the system reads of the file that runs.
  std::FILE* pipe = popen("readelf -n /proc/$PPID/exe 2>&1", "r");
  ASSERT_NE(pipe, nullptr);
  std::string notes;
  std::array<char, 4096> part;
  for (size_t got; (got = fread(part.data(), 1, part.size(), pipe)) > 0;) {
    notes.append(part.data(), got);
  }
  pclose(pipe);
  EXPECT_THAT(notes, testing::HasSubstr(id));
}

}  // namespace
}  // namespace tiercel

#include "apps/sampling.h"

#include <cstdint>
#include <vector>

#include "gtest/gtest.h"

namespace tiercel::cli {
namespace {

Json ReportOf(const std::vector<int32_t>& tokens) {
  return {{"output", Json::array({{{"tokens", tokens}}})},
          {"memory", {{"device_bytes", 1000}}},
          {"ledger", {{"formula", {{"resident_pages", 3}}}}}};
}

TEST(ComparedTest, AgreesTokenForToken) {
  const Json full = ReportOf({1, 2, 3});
  const Json same = Compared(full, 30, full, 20);
  EXPECT_EQ(same["agree"], true);
  EXPECT_TRUE(same["first_difference"].is_null());
  const auto difference = [&](const std::vector<int32_t>& tokens) {
    const Json other = Compared(ReportOf(tokens), 30, full, 20);
    EXPECT_EQ(other["agree"], false);
    return other["first_difference"];
  };
  EXPECT_EQ(difference({1, 2, 4}), 2);
  EXPECT_EQ(difference({0, 2, 3}), 0);
  EXPECT_EQ(difference({1, 2}), 2);
  EXPECT_EQ(difference({1, 2, 3, 4}), 3);
}

TEST(ComparedTest, ASpeedUpIsHowMuchFasterItWas) {
  const Json report = ReportOf({1});
  const Json timed = Compared(report, 30, report, 20);
  EXPECT_EQ(timed["speedup"], 1.5);
  EXPECT_EQ(timed["decode_tok_s"], 20);
  EXPECT_TRUE(Compared(report, 30, report, 0)["speedup"].is_null());
}

}  // namespace
}  // namespace tiercel::cli

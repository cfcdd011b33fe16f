#include "runtime/machine/machine_json.h"

#include "gtest/gtest.h"

namespace tiercel::machine_json_test {
namespace {

TEST(MachineJsonTest, EachFigureStandsUnderItsName) {
  const Peaks peaks = {.read_bytes_per_s = 1,
                       .f32_ops_per_s = 2,
                       .int8_ops_per_s = 3,
                       .read_spread = kMostSpread};
  nlohmann::json said = MachineJson(peaks, Isa::kAvx2, 5);
  EXPECT_FALSE(said["cpu"].get<std::string>().empty());
  said.erase("cpu");
  EXPECT_EQ(said, (nlohmann::json{{"isa", "avx2"},
                                  {"threads", 5},
                                  {"read_bytes_per_s", 1.0},
                                  {"read_spread", kMostSpread},
                                  {"steady", true},
                                  {"f32_ops_per_s", 2.0},
                                  {"int8_ops_per_s", 3.0}}));
}

TEST(MachineJsonTest, AWideSpreadIsNotSteady) {
  const Peaks peaks = {.read_bytes_per_s = 1,
                       .f32_ops_per_s = 1,
                       .int8_ops_per_s = 1,
                       .read_spread = 1.01 * kMostSpread};
  EXPECT_EQ(MachineJson(peaks, Isa::kAvx2, 1)["steady"], false);
}

}  // namespace
}  // namespace tiercel::machine_json_test

// What sessions take of memory, through tiercel.h.

#include <cstdint>
#include <string>

#include "gtest/gtest.h"
#include "include/tiercel.h"
#include "nlohmann/json.hpp"
#include "runtime/api/api_fixture_for_test.h"

namespace tiercel::memory_api_test {
namespace {

using api_test::kModel;
using api_test::Sized;

constexpr int64_t kContext = 2000;

class MemoryApiTest : public api_test::ApiTest {};

// What the tokens of a block are drawn from is of the plan: a distribution for
// each row of a sweep, and one for each that was drafted.
TEST_F(MemoryApiTest, WhatABlockIsDrawnFromIsPlanned) {
  auto policy = Sized<tiercel_policy>();
  policy.name = "triforce";
  policy.chunk = 8;
  policy.budget = 32;
  policy.window = 16;
  auto params = Sized<tiercel_session_params>();
  params.context = kContext;
  params.policy = &policy;
  auto info = Sized<tiercel_model_info>();
  ASSERT_EQ(tiercel_model_get_info(model_, &info, &error_), TIERCEL_OK);
  tiercel_model* header = Open(kModel, TIERCEL_LOAD_HEADER);
  const auto planned = [&](int32_t gamma2) {
    policy.gamma2 = gamma2;
    std::string json(1 << 16, ' ');
    size_t size = json.size();
    EXPECT_EQ(tiercel_plan(header, &params, json.data(), &size, &error_),
              TIERCEL_OK)
        << error_.message;
    const auto plan = nlohmann::json::parse(json.c_str());
    return plan["tiers"]["host"]["workspace"].get<int64_t>();
  };
  const int64_t row = info.vocab * 4;
  EXPECT_GE(planned(63), 63 * (2 + 2) * row);
  EXPECT_EQ(planned(63) - planned(43), 20 * (3 + 2) * row);
  EXPECT_EQ(planned(TIERCEL_ADAPTIVE), planned(63));
  tiercel_model_free(header);
}

}  // namespace
}  // namespace tiercel::memory_api_test

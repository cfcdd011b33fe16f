// Rates of this machine through tiercel.h: measured, kept, read by sessions.

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "include/tiercel.h"
#include "nlohmann/json.hpp"
#include "runtime/api/api_fixture_for_test.h"

namespace tiercel::api_test {
namespace {

class RatesApiTest : public ApiTest {};

// Rates are asked for, kept, read by a session, listed and cleared.
TEST_F(RatesApiTest, RatesAreMeasuredWhenAskedForAndKept) {
  std::string folder = testing::TempDir() + "/api_XXXXXX";
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  auto params = Sized<tiercel_session_params>();
  params.cache_dir = folder.c_str();
  const auto kept = [&] { return ListOf(folder)["files"]; };
  const auto predicted = [&] {
    tiercel_session* session = nullptr;
    EXPECT_EQ(tiercel_session_create(model_, &params, &session, &error_),
              TIERCEL_OK);
    const int32_t id = 3;
    EXPECT_EQ(
        tiercel_session_prefill(session, &id, 1, nullptr, nullptr, &error_),
        TIERCEL_OK);
    auto sampling = Sized<tiercel_sampling>();
    sampling.max_tokens = 1;
    EXPECT_EQ(
        tiercel_session_generate(session, &sampling, nullptr, nullptr, &error_),
        TIERCEL_OK);
    const bool contains = ReportOf(session).contains("predicted");
    tiercel_session_free(session);
    return contains;
  };

  uint64_t calls = 0;
  const auto stop_at_5 = [](void* count, uint64_t, uint64_t) -> int {
    return ++*static_cast<uint64_t*>(count) == 5;
  };
  EXPECT_EQ(
      tiercel_measure(model_, &params, stop_at_5, &calls, nullptr, &error_),
      TIERCEL_CANCELLED);
  EXPECT_EQ(calls, 5);
  EXPECT_TRUE(kept().empty());
  EXPECT_FALSE(predicted());
  EXPECT_TRUE(kept().empty());

  auto measured = Sized<tiercel_measurement>();
  ASSERT_EQ(
      tiercel_measure(model_, &params, nullptr, nullptr, &measured, &error_),
      TIERCEL_OK)
      << error_.message;
  EXPECT_EQ(measured.measured, 1);
  ASSERT_EQ(kept().size(), 1);
  EXPECT_EQ(kept()[0]["spread"], measured.spread);
  EXPECT_EQ(kept()[0]["steady"], measured.steady != 0);
  EXPECT_TRUE(predicted());
  // They hold for as many threads.
  auto info = Sized<tiercel_model_info>();
  ASSERT_EQ(tiercel_model_get_info(model_, &info, &error_), TIERCEL_OK);
  if (info.threads > 1) {
    ASSERT_EQ(tiercel_model_set_threads(model_, 1, &error_), TIERCEL_OK);
    EXPECT_FALSE(predicted());
    ASSERT_EQ(tiercel_model_set_threads(model_, info.threads, &error_),
              TIERCEL_OK);
    EXPECT_TRUE(predicted());
  }
  // Without seconds it does not measure again.
  const nlohmann::json first = kept();
  measured.again_seconds = -1;
  ASSERT_EQ(
      tiercel_measure(model_, &params, nullptr, nullptr, &measured, &error_),
      TIERCEL_OK);
  EXPECT_EQ(measured.measured, 0);
  EXPECT_EQ(kept(), first);
  // It measures until the rates are steady, three times at most.
  measured.again_seconds = 600;
  for (int i = 0; i < 2; ++i) {
    tiercel_measure(model_, &params, nullptr, nullptr, &measured, &error_);
  }
  ASSERT_EQ(
      tiercel_measure(model_, &params, nullptr, nullptr, &measured, &error_),
      TIERCEL_OK);
  EXPECT_EQ(measured.measured, 0);
  EXPECT_EQ(kept()[0]["spread"], measured.spread);

  size_t removed = 7;
  EXPECT_EQ(tiercel_cache_clear(folder.c_str(), &removed, &error_), TIERCEL_OK);
  EXPECT_EQ(removed, 1);
  EXPECT_FALSE(predicted());
  EXPECT_EQ(rmdir(folder.c_str()), 0);

  params.cache_dir = "/dev/null/x";
  EXPECT_EQ(
      tiercel_measure(model_, &params, nullptr, nullptr, nullptr, &error_),
      TIERCEL_IO);
  EXPECT_STREQ(error_.code, "cannot_write");
  params.context = -1;
  EXPECT_EQ(
      tiercel_measure(model_, &params, nullptr, nullptr, nullptr, &error_),
      TIERCEL_USAGE);
}

// Kept rates predict times and kept costs adapt lengths, in a fork too.
TEST_F(RatesApiTest, ASessionAndItsForkCountWithWhatIsKept) {
  auto policy = Sized<tiercel_policy>();
  policy.draft = "ngram";
  policy.gamma1 = TIERCEL_ADAPTIVE;
  auto params = Sized<tiercel_session_params>();
  params.policy = &policy;
  const std::string folder = TempFolder();
  params.cache_dir = folder.c_str();
  ASSERT_EQ(
      tiercel_measure(model_, &params, nullptr, nullptr, nullptr, &error_),
      TIERCEL_OK)
      << error_.message;
  const std::filesystem::path file =
      *std::filesystem::directory_iterator(folder);
  nlohmann::json kept = nlohmann::json::parse(std::ifstream(file));
  kept["costs"]["step_s"] = 32.0;
  kept["costs"]["prompt_row_s"] = 1.0;
  std::ofstream(file) << kept;

  tiercel_session* session = nullptr;
  ASSERT_EQ(tiercel_session_create(model_, &params, &session, &error_),
            TIERCEL_OK);
  tiercel_session* fork = nullptr;
  ASSERT_EQ(tiercel_session_fork(session, &fork, &error_), TIERCEL_OK);
  const std::vector<int32_t> ids = Tokenize("one two one two one");
  auto sampling = Sized<tiercel_sampling>();
  sampling.max_tokens = 3;
  sampling.ignore_eos = 1;
  for (tiercel_session* const one : {session, fork}) {
    ASSERT_EQ(tiercel_session_prefill(one, ids.data(), ids.size(), nullptr,
                                      nullptr, &error_),
              TIERCEL_OK);
    ASSERT_EQ(
        tiercel_session_generate(one, &sampling, nullptr, nullptr, &error_),
        TIERCEL_OK)
        << error_.message;
    const nlohmann::json report = ReportOf(one);
    EXPECT_TRUE(report.contains("predicted"));
    EXPECT_EQ(report["speculation"]["levels"][0]["cost_ratio"], 32);
    tiercel_session_free(one);
  }
}

}  // namespace
}  // namespace tiercel::api_test

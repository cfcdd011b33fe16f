// Models of several ranks through tiercel.h: some requests are refused; in all
// others they give what one rank gives.

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "include/tiercel_lab.h"
#include "nlohmann/json.hpp"
#include "runtime/api/api_fixture_for_test.h"

namespace tiercel::api_test {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

// llama_chat has one KV head, which two ranks share; llama_gqa has three.
constexpr char kGqa[] = "tests/golden/checkpoints/llama_gqa.gguf";

class RanksApiTest : public ApiTest {
 protected:
  // A model over so many ranks, behind links if it is `simulated`.
  tiercel_model* OpenOver(int64_t ranks, const char* path = kModel,
                          bool simulated = false,
                          tiercel_load load = TIERCEL_LOAD_ALL) {
    auto params = Sized<tiercel_model_params>();
    params.path = path;
    params.load = load;
    params.tensor_parallel = ranks;
    if (simulated) params.simulation = &kSmallDevice;
    tiercel_model* model = nullptr;
    EXPECT_EQ(tiercel_model_open(&params, &model, &error_), TIERCEL_OK)
        << error_.message;
    return model;
  }

  tiercel_session* Create(
      tiercel_model* model,
      const tiercel_session_params& params = Sized<tiercel_session_params>()) {
    tiercel_session* session = nullptr;
    EXPECT_EQ(tiercel_session_create(model, &params, &session, &error_),
              TIERCEL_OK)
        << error_.message;
    return session;
  }

  void Prefill(tiercel_session* session, const std::vector<int32_t>& ids) {
    EXPECT_EQ(tiercel_session_prefill(session, ids.data(), ids.size(), nullptr,
                                      nullptr, &error_),
              TIERCEL_OK)
        << error_.message;
  }

  // The tokens that the session generates next.
  std::vector<int32_t> Generate(tiercel_session* session) {
    auto sampling = Sized<tiercel_sampling>();
    sampling.max_tokens = 20;
    sampling.ignore_eos = 1;
    sampling.temperature = 0.8f;
    std::vector<int32_t> ids = api_test::Generated(session, sampling);
    EXPECT_THAT(ids, SizeIs(20));
    return ids;
  }

  static std::vector<int32_t> Ids(int count) {
    std::vector<int32_t> ids;
    for (int i = 0; i < count; ++i) ids.push_back(5 + i * 7 % 60);
    return ids;
  }
};

TEST_F(RanksApiTest, ACountOutOfRangeIsRefused) {
  auto params = Sized<tiercel_model_params>();
  params.path = kModel;
  tiercel_model* model = nullptr;
  for (const int64_t ranks : {int64_t{-1}, int64_t{65}, (int64_t{1} << 32) + 1,
                              std::numeric_limits<int64_t>::min(),
                              std::numeric_limits<int64_t>::max()}) {
    params.tensor_parallel = ranks;
    EXPECT_EQ(tiercel_model_open(&params, &model, &error_), TIERCEL_USAGE);
    EXPECT_EQ(model, nullptr);
    EXPECT_STREQ(error_.code, "invalid_argument");
    EXPECT_EQ(error_.message, "tensor_parallel: got " + std::to_string(ranks) +
                                  ", need 0 to 64");
  }
  // The count is allowed, but the model has two query heads and one KV head.
  params.tensor_parallel = 3;
  EXPECT_EQ(tiercel_model_open(&params, &model, &error_), TIERCEL_USAGE);
  EXPECT_EQ(model, nullptr);
  EXPECT_STREQ(error_.code, "cannot_split");
  EXPECT_THAT(error_.message, HasSubstr("over 3 ranks"));
  // A machine has the ranks that it was made with.
  params.tensor_parallel = 2;
  params.beside = model_;
  EXPECT_EQ(tiercel_model_open(&params, &model, &error_), TIERCEL_USAGE);
  EXPECT_STREQ(error_.code, "invalid_argument");
}

// This program sees no GPU; tests/ covers a choice among several.
TEST_F(RanksApiTest, TheCountIsChosenForAHeader) {
  auto params = Sized<tiercel_session_params>();
  params.context = 1000;
  for (const int64_t ranks : {1, 3}) {
    tiercel_model* header =
        OpenOver(ranks, kGqa, /*simulated=*/true, TIERCEL_LOAD_HEADER);
    auto info = Sized<tiercel_model_info>();
    EXPECT_EQ(tiercel_model_get_info(header, &info, &error_), TIERCEL_OK);
    EXPECT_EQ(info.ranks, ranks);
    int64_t chosen = 0;
    EXPECT_EQ(tiercel_choose_ranks(header, &params, &chosen, &error_),
              TIERCEL_OK)
        << error_.message;
    EXPECT_EQ(chosen, 1);
    params.context = 2000;
    EXPECT_EQ(tiercel_choose_ranks(header, &params, &chosen, &error_),
              TIERCEL_USAGE);
    EXPECT_STREQ(error_.code, "invalid_context");
    params.context = 1000;
    tiercel_model_free(header);
  }
  // A model with weights is refused, and so are null arguments.
  int64_t chosen = 7;
  EXPECT_EQ(tiercel_choose_ranks(nullptr, &params, &chosen, &error_),
            TIERCEL_USAGE);
  EXPECT_EQ(tiercel_choose_ranks(model_, nullptr, &chosen, &error_),
            TIERCEL_USAGE);
  EXPECT_EQ(tiercel_choose_ranks(model_, &params, nullptr, &error_),
            TIERCEL_USAGE);
  EXPECT_EQ(tiercel_choose_ranks(model_, &params, &chosen, &error_),
            TIERCEL_USAGE);
  EXPECT_STREQ(error_.code, "invalid_argument");
  EXPECT_EQ(chosen, 7);
}

TEST_F(RanksApiTest, OneIsWhatNoneIs) {
  const std::vector<int32_t> prompt = Ids(200);
  Prefill(session_, prompt);
  const std::vector<int32_t> expected = Generate(session_);
  for (const int64_t ranks : {0, 1}) {
    tiercel_model* model = OpenOver(ranks);
    tiercel_session* session = Create(model);
    Prefill(session, prompt);
    EXPECT_EQ(Generate(session), expected);
    const nlohmann::json report = api_test::ReportOf(session);
    ASSERT_THAT(report["ranks"], SizeIs(1));
    EXPECT_EQ(report["ranks"][0]["gathered_bytes"], 0);
    tiercel_session_free(session);
    tiercel_model_free(model);
  }
}

TEST_F(RanksApiTest, TextsForksAndWhatComesAfterATruncation) {
  const std::vector<int32_t> prompt = Ids(300);
  std::vector<int32_t> expected;
  for (const int64_t ranks : {1, 3}) {
    for (const bool simulated : {false, true}) {
      tiercel_model* model =
          OpenOver(ranks, kGqa, simulated, TIERCEL_LOAD_HEADER);
      ASSERT_EQ(tiercel_model_load(model, nullptr, nullptr, &error_),
                TIERCEL_OK)
          << error_.message;
      auto params = Sized<tiercel_session_params>();
      params.context = 500;
      tiercel_session* session = Create(model, params);
      Prefill(session, prompt);
      tiercel_session* copy = nullptr;
      ASSERT_EQ(tiercel_session_fork(session, &copy, &error_), TIERCEL_OK)
          << error_.message;
      const std::vector<int32_t> text = Generate(session);
      if (expected.empty()) expected = text;
      EXPECT_EQ(text, expected) << ranks << simulated;
      EXPECT_EQ(Generate(copy), expected) << ranks << simulated;
      tiercel_session_free(session);
      ASSERT_EQ(tiercel_session_truncate(copy, prompt.size(), &error_),
                TIERCEL_OK);
      EXPECT_EQ(Generate(copy), expected) << ranks << simulated;
      const nlohmann::json report = api_test::ReportOf(copy);
      ASSERT_THAT(report["ranks"], SizeIs(ranks));
      for (const auto& rank : report["ranks"]) {
        EXPECT_EQ(rank["gathered_bytes"] > 0, ranks > 1);
      }
      tiercel_session_free(copy);
      tiercel_model_free(model);
    }
  }
}

// The small model computes only on the first rank, in forks too.
TEST_F(RanksApiTest, ASmallModelBeside) {
  const std::vector<int32_t> prompt = Ids(200);
  Prefill(session_, prompt);
  const std::vector<int32_t> expected = Generate(session_);
  auto policy = Sized<tiercel_policy>();
  policy.draft = "small";
  policy.verify = "coupled";
  auto params = Sized<tiercel_session_params>();
  params.policy = &policy;
  params.context = 400;
  for (const bool simulated : {false, true}) {
    tiercel_model* model = OpenOver(2, kModel, simulated);
    tiercel_model* draft = Open(kModel, TIERCEL_LOAD_ALL, model);
    ASSERT_NE(draft, nullptr);
    policy.draft_model = draft;
    EXPECT_EQ(tiercel_check_draft(model, draft, &error_), TIERCEL_OK);
    tiercel_session* session = Create(model, params);
    Prefill(session, prompt);
    tiercel_session* copy = nullptr;
    ASSERT_EQ(tiercel_session_fork(session, &copy, &error_), TIERCEL_OK)
        << error_.message;
    for (tiercel_session* const each : {session, copy}) {
      EXPECT_EQ(Generate(each), expected) << simulated;
      const nlohmann::json report = api_test::ReportOf(each);
      EXPECT_EQ(report["speculation"]["levels"][0]["drafter"], "small");
      EXPECT_GT(report["speculation"]["levels"][0]["accepted"], 0);
      EXPECT_GT(report["ranks"][0]["device_bytes"],
                report["ranks"][1]["device_bytes"]);
      tiercel_session_free(each);
    }
    tiercel_model_free(draft);
    tiercel_model_free(model);
  }
}

TEST_F(RanksApiTest, ASavedTextIsOpenedByAnyCount) {
  const std::vector<int32_t> ids = Ids(1500);
  const std::string folder = TempFolder() + "/texts";
  auto params = Sized<tiercel_session_params>();
  params.prompt_cache_dir = folder.c_str();
  Prefill(session_, ids);
  const std::vector<int32_t> expected = Generate(session_);
  for (const int64_t wrote : {1, 2}) {
    const auto read = [&](int64_t ranks, int64_t cached) {
      tiercel_model* model = OpenOver(ranks);
      tiercel_session* session = Create(model, params);
      EXPECT_EQ(tiercel_session_read(session, ids.data(), ids.size(), nullptr,
                                     nullptr, &error_),
                TIERCEL_OK)
          << error_.message;
      auto generation = Sized<tiercel_generation>();
      EXPECT_EQ(tiercel_session_get_generation(session, &generation, &error_),
                TIERCEL_OK);
      EXPECT_EQ(generation.cached_tokens, cached) << wrote << ranks;
      EXPECT_EQ(Generate(session), expected) << wrote << ranks;
      tiercel_session_free(session);
      tiercel_model_free(model);
    };
    read(wrote, 0);
    for (const int64_t ranks : {1, 2}) read(ranks, 1499);
    size_t removed = 0;
    EXPECT_EQ(tiercel_cache_clear(folder.c_str(), &removed, &error_),
              TIERCEL_OK);
    EXPECT_EQ(removed, 1u);
  }
}

}  // namespace
}  // namespace tiercel::api_test

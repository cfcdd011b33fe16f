// Callers misuse tiercel.h: NULL, sizes, wrong ids, callbacks.

#include <stdlib.h>

#include <cstring>
#include <limits>
#include <set>
#include <stdexcept>
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

TEST_F(ApiTest, NullIsAnErrorEverywhere) {
  size_t size = 0;
  int32_t id = 0;
  tiercel_model* model = nullptr;
  tiercel_session* session = nullptr;
  const auto sampling = Sized<tiercel_sampling>();
  const auto session_params = Sized<tiercel_session_params>();
  auto generation = Sized<tiercel_generation>();
  auto info = Sized<tiercel_model_info>();
  const auto open_params = Sized<tiercel_model_params>();
  const tiercel_message no_role = {
      sizeof(tiercel_message), nullptr, "x", 1, nullptr, 0};
  const std::vector<tiercel_status> statuses = {
      tiercel_model_open(nullptr, &model, &error_),
      tiercel_model_open(&open_params, nullptr, &error_),
      tiercel_model_open(&open_params, &model, &error_),  // no path
      tiercel_model_load(nullptr, nullptr, nullptr, &error_),
      tiercel_model_describe(nullptr, nullptr, &size, &error_),
      tiercel_model_describe(model_, nullptr, nullptr, &error_),
      tiercel_model_get_info(nullptr, &info, &error_),
      tiercel_model_get_info(model_, nullptr, &error_),
      tiercel_tokenize(nullptr, "x", 1, 0, nullptr, nullptr, &size, &error_),
      tiercel_tokenize(model_, nullptr, 1, 0, nullptr, nullptr, &size, &error_),
      tiercel_tokenize(model_, "x", 1, 0, nullptr, nullptr, nullptr, &error_),
      tiercel_detokenize(nullptr, &id, 1, 0, nullptr, &size, &error_),
      tiercel_detokenize(model_, nullptr, 1, 0, nullptr, &size, &error_),
      tiercel_chat_tokens(nullptr, nullptr, 0, nullptr, nullptr, &size,
                          &error_),
      tiercel_chat_tokens(model_, nullptr, 1, nullptr, nullptr, &size, &error_),
      tiercel_chat_tokens(model_, &no_role, 1, nullptr, nullptr, &size,
                          &error_),
      tiercel_session_create(nullptr, &session_params, &session, &error_),
      tiercel_session_create(model_, nullptr, &session, &error_),
      tiercel_session_create(model_, &session_params, nullptr, &error_),
      tiercel_plan(nullptr, &session_params, nullptr, &size, &error_),
      tiercel_plan(model_, nullptr, nullptr, &size, &error_),
      tiercel_plan(model_, &session_params, nullptr, nullptr, &error_),
      tiercel_session_prefill(nullptr, &id, 1, nullptr, nullptr, &error_),
      tiercel_session_prefill(session_, nullptr, 1, nullptr, nullptr, &error_),
      tiercel_session_fill(nullptr, &id, 1, 0, nullptr, nullptr, &error_),
      tiercel_session_fill(session_, nullptr, 1, 0, nullptr, nullptr, &error_),
      tiercel_session_read(nullptr, &id, 1, nullptr, nullptr, &error_),
      tiercel_session_read(session_, nullptr, 1, nullptr, nullptr, &error_),
      tiercel_session_ids(nullptr, nullptr, &size, &error_),
      tiercel_session_ids(session_, nullptr, nullptr, &error_),
      tiercel_session_get_generation(nullptr, &generation, &error_),
      tiercel_session_get_generation(session_, nullptr, &error_),
      tiercel_session_truncate(nullptr, 0, &error_),
      tiercel_session_fork(nullptr, &session, &error_),
      tiercel_session_fork(session_, nullptr, &error_),
      tiercel_session_generate(nullptr, &sampling, nullptr, nullptr, &error_),
      tiercel_session_generate(session_, nullptr, nullptr, nullptr, &error_),
      tiercel_check_draft(nullptr, model_, &error_),
      tiercel_check_draft(model_, nullptr, &error_),
      tiercel_session_score(nullptr, &id, 1, 0, nullptr, nullptr, &error_),
      tiercel_session_score(session_, nullptr, 1, 0, nullptr, nullptr, &error_),
      tiercel_session_report(nullptr, nullptr, &size, &error_),
      tiercel_session_token_seconds(nullptr, nullptr, &size, &error_),
      tiercel_session_token_seconds(session_, nullptr, nullptr, &error_),
      tiercel_machine(nullptr, nullptr, nullptr, &error_),
      tiercel_measure(nullptr, &session_params, nullptr, nullptr, nullptr,
                      &error_),
      tiercel_measure(model_, nullptr, nullptr, nullptr, nullptr, &error_),
      tiercel_measure(model_, &session_params, nullptr, nullptr, nullptr,
                      &error_),  // no folder
      tiercel_cache_list(nullptr, nullptr, &size, &error_),
      tiercel_cache_list("x", nullptr, nullptr, &error_),
      tiercel_policies(nullptr, nullptr, &error_),
      tiercel_cache_clear(nullptr, nullptr, &error_),
  };
  for (size_t i = 0; i < statuses.size(); ++i) {
    EXPECT_EQ(statuses[i], TIERCEL_USAGE) << "call " << i;
  }
  // Only a caller who asks for the size may give no buffer. Nothing is written.
  const auto place = [&](auto call) {
    size = 1;
    EXPECT_EQ(call(), TIERCEL_USAGE);
    EXPECT_STREQ(error_.code, "null_argument");
    EXPECT_EQ(size, 1u) << error_.message;
  };
  const tiercel_message message = {
      sizeof(tiercel_message), "user", "x", 1, nullptr, 0};
  place(
      [&] { return tiercel_model_describe(model_, nullptr, &size, &error_); });
  place([&] {
    return tiercel_tokenize(model_, "x", 1, 0, nullptr, nullptr, &size,
                            &error_);
  });
  place([&] {
    return tiercel_detokenize(model_, &id, 1, 0, nullptr, &size, &error_);
  });
  place([&] {
    return tiercel_chat_tokens(model_, &message, 1, nullptr, nullptr, &size,
                               &error_);
  });
  place([&] {
    return tiercel_plan(model_, &session_params, nullptr, &size, &error_);
  });
  place([&] { return tiercel_session_ids(session_, nullptr, &size, &error_); });
  place([&] {
    return tiercel_session_report(session_, nullptr, &size, &error_);
  });
  place([&] {
    return tiercel_session_token_seconds(session_, nullptr, &size, &error_);
  });
  place([&] { return tiercel_cache_list("x", nullptr, &size, &error_); });
  place([&] { return tiercel_policies(nullptr, &size, &error_); });
  place([&] { return tiercel_machine(nullptr, nullptr, &size, &error_); });

  // Functions that cannot fail do nothing. An error object is optional.
  tiercel_model_free(nullptr);
  tiercel_session_free(nullptr);
  tiercel_session_cancel(nullptr);
  tiercel_session_clear_cancel(nullptr);
  EXPECT_EQ(tiercel_session_length(nullptr), 0u);
  EXPECT_EQ(tiercel_session_resumed(nullptr), 0);
  EXPECT_EQ(tiercel_session_kept(nullptr), 0);
  EXPECT_EQ(
      tiercel_session_prefill(session_, nullptr, 1, nullptr, nullptr, nullptr),
      TIERCEL_USAGE);
}

TEST_F(ApiTest, StructSizesAreChecked) {
  for (size_t size : {size_t{0}, size_t{1}, size_t{1} << 40}) {
    auto sampling = Sized<tiercel_sampling>();
    sampling.struct_size = size;
    EXPECT_EQ(tiercel_session_generate(session_, &sampling, nullptr, nullptr,
                                       &error_),
              TIERCEL_USAGE);
    EXPECT_STREQ(error_.code, "invalid_struct_size");
    auto model_params = Sized<tiercel_model_params>();
    model_params.path = kModel;
    model_params.struct_size = size;
    tiercel_model* model = nullptr;
    EXPECT_EQ(tiercel_model_open(&model_params, &model, &error_),
              TIERCEL_USAGE);
    EXPECT_STREQ(error_.code, "invalid_struct_size");
    auto session_params = Sized<tiercel_session_params>();
    session_params.struct_size = size;
    tiercel_session* session = nullptr;
    EXPECT_EQ(
        tiercel_session_create(model_, &session_params, &session, &error_),
        TIERCEL_USAGE);
    EXPECT_STREQ(error_.code, "invalid_struct_size");
    auto info = Sized<tiercel_model_info>();
    info.struct_size = size;
    EXPECT_EQ(tiercel_model_get_info(model_, &info, &error_), TIERCEL_USAGE);
    EXPECT_STREQ(error_.code, "invalid_struct_size");
    auto measured = Sized<tiercel_measurement>();
    measured.struct_size = size;
    const auto params = Sized<tiercel_session_params>();
    EXPECT_EQ(
        tiercel_measure(model_, &params, nullptr, nullptr, &measured, &error_),
        TIERCEL_USAGE);
    EXPECT_STREQ(error_.code, "invalid_struct_size");
  }
  // An error object that is smaller than any header's is left alone.
  tiercel_error small;
  std::memset(&small, 'x', sizeof(small));
  small.struct_size = sizeof(small) - 1;
  EXPECT_EQ(tiercel_session_truncate(nullptr, 0, &small), TIERCEL_USAGE);
  EXPECT_EQ(small.code[0], 'x');
  EXPECT_EQ(small.message[0], 'x');
  // A newer caller's struct is fine while its new fields are unset.
  struct {
    tiercel_sampling known;
    int64_t newer;
  } future = {Sized<tiercel_sampling>(), 0};
  future.known.struct_size = sizeof(future);
  future.known.max_tokens = 1;
  const std::vector<int32_t> ids = Tokenize("a");
  ASSERT_EQ(tiercel_session_prefill(session_, ids.data(), ids.size(), nullptr,
                                    nullptr, &error_),
            TIERCEL_OK);
  EXPECT_EQ(tiercel_session_generate(session_, &future.known, nullptr, nullptr,
                                     &error_),
            TIERCEL_OK)
      << error_.message;
  future.newer = 1;
  EXPECT_EQ(tiercel_session_generate(session_, &future.known, nullptr, nullptr,
                                     &error_),
            TIERCEL_USAGE);
  // An older caller's shorter struct has defaults where it ends.
  auto older = Sized<tiercel_sampling>();
  older.struct_size = offsetof(tiercel_sampling, temperature);
  older.max_tokens = 1;
  older.temperature = -1;  // beyond its struct_size
  EXPECT_EQ(
      tiercel_session_generate(session_, &older, nullptr, nullptr, &error_),
      TIERCEL_OK)
      << error_.message;
}

TEST_F(ApiTest, BuffersAreFilledWholeOrNotAtAll) {
  const std::string text = "one two three four";
  size_t needed = 0;
  EXPECT_EQ(tiercel_tokenize(model_, text.data(), text.size(), 0, nullptr,
                             nullptr, &needed, &error_),
            TIERCEL_BUFFER_TOO_SMALL);
  ASSERT_GT(needed, 2u);
  for (size_t capacity : {size_t{1}, needed - 1, needed, needed + 1}) {
    std::vector<int32_t> ids(needed + 2, -7);
    size_t size = capacity;
    const tiercel_status status =
        tiercel_tokenize(model_, text.data(), text.size(), 0, nullptr,
                         ids.data(), &size, &error_);
    EXPECT_EQ(size, needed);
    EXPECT_EQ(status,
              capacity < needed ? TIERCEL_BUFFER_TOO_SMALL : TIERCEL_OK);
    for (size_t i = capacity < needed ? 0 : needed; i < ids.size(); ++i) {
      EXPECT_EQ(ids[i], -7) << i;
    }
  }
  // An empty result needs no buffer.
  size_t none = 0;
  EXPECT_EQ(
      tiercel_tokenize(model_, nullptr, 0, 0, nullptr, nullptr, &none, &error_),
      TIERCEL_OK);
  EXPECT_EQ(none, 0u);

  const std::vector<int32_t> ids = Tokenize(text);
  size_t bytes = 0;
  EXPECT_EQ(tiercel_detokenize(model_, ids.data(), ids.size(), 0, nullptr,
                               &bytes, &error_),
            TIERCEL_BUFFER_TOO_SMALL);
  EXPECT_EQ(bytes, text.size());
  std::string out(bytes, '?');
  EXPECT_EQ(tiercel_detokenize(model_, ids.data(), ids.size(), 0, out.data(),
                               &bytes, &error_),
            TIERCEL_OK);
  EXPECT_EQ(out, text);

  size_t json_bytes = 0;
  EXPECT_EQ(tiercel_model_describe(model_, nullptr, &json_bytes, &error_),
            TIERCEL_BUFFER_TOO_SMALL);
  std::string json(json_bytes, '?');
  EXPECT_EQ(tiercel_model_describe(model_, json.data(), &json_bytes, &error_),
            TIERCEL_OK);
  EXPECT_EQ(json.back(), '\0');
  json.pop_back();
  EXPECT_EQ(nlohmann::json::parse(json)["format"], "gguf");
}

TEST_F(ApiTest, NothingIsDoneWithNothing) {
  size_t size = 0;
  EXPECT_EQ(tiercel_detokenize(model_, nullptr, 0, 0, nullptr, &size, &error_),
            TIERCEL_OK);
  EXPECT_EQ(size, 0u);
  EXPECT_EQ(
      tiercel_session_prefill(session_, nullptr, 0, nullptr, nullptr, &error_),
      TIERCEL_OK);
  EXPECT_EQ(
      tiercel_session_score(session_, nullptr, 0, 0, nullptr, nullptr, &error_),
      TIERCEL_OK);
  EXPECT_EQ(tiercel_session_truncate(session_, 0, &error_), TIERCEL_OK);
  EXPECT_EQ(tiercel_session_length(session_), 0u);
  EXPECT_EQ(tiercel_session_truncate(session_, 1, &error_), TIERCEL_USAGE);
  EXPECT_STREQ(error_.code, "invalid_argument");
  const auto sampling = Sized<tiercel_sampling>();
  EXPECT_EQ(
      tiercel_session_generate(session_, &sampling, nullptr, nullptr, &error_),
      TIERCEL_USAGE);
  EXPECT_STREQ(error_.code, "empty_prompt");
}

TEST_F(ApiTest, WrongValuesNameTheirField) {
  auto params = Sized<tiercel_model_params>();
  params.path = kModel;
  tiercel_model* model = nullptr;
  params.device = "toaster";
  EXPECT_EQ(tiercel_model_open(&params, &model, &error_), TIERCEL_USAGE);
  EXPECT_THAT(error_.message, HasSubstr("toaster"));
  params.device = "cuda";
  EXPECT_EQ(tiercel_model_open(&params, &model, &error_), TIERCEL_NO_DEVICE);
  params.device = nullptr;
  params.compute = "q3";
  EXPECT_EQ(tiercel_model_open(&params, &model, &error_), TIERCEL_USAGE);
  params.compute = nullptr;
  params.threads = -1;
  EXPECT_EQ(tiercel_model_open(&params, &model, &error_), TIERCEL_USAGE);
  params.threads = 0;
  params.rope_freq_base = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(tiercel_model_open(&params, &model, &error_), TIERCEL_USAGE);
  params.rope_freq_base = 0;
  params.path = "/nonexistent/model.gguf";
  EXPECT_EQ(tiercel_model_open(&params, &model, &error_), TIERCEL_IO);
  EXPECT_THAT(error_.message, HasSubstr("/nonexistent/model.gguf"));
  EXPECT_EQ(model, nullptr);

  const int32_t bad_ids[] = {-1, 1 << 30, std::numeric_limits<int32_t>::max()};
  for (int32_t bad : bad_ids) {
    size_t bytes = 0;
    EXPECT_EQ(tiercel_detokenize(model_, &bad, 1, 0, nullptr, &bytes, &error_),
              TIERCEL_INVALID_INPUT);
    EXPECT_STREQ(error_.code, "invalid_token");
    EXPECT_EQ(
        tiercel_session_prefill(session_, &bad, 1, nullptr, nullptr, &error_),
        TIERCEL_INVALID_INPUT);
    EXPECT_STREQ(error_.code, "invalid_token");
  }
  EXPECT_EQ(tiercel_session_length(session_), 0u);
}

TEST_F(ApiTest, SamplingIsChecked) {
  const std::vector<int32_t> ids = Tokenize("a b c");
  ASSERT_EQ(tiercel_session_prefill(session_, ids.data(), ids.size(), nullptr,
                                    nullptr, &error_),
            TIERCEL_OK);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const int32_t no_token[] = {1'000'000};
  std::vector<tiercel_sampling> bad(11, Sized<tiercel_sampling>());
  bad[0].temperature = nan;
  bad[1].temperature = -1;
  bad[2].top_p = 2;
  bad[3].top_k = -5;
  bad[4].min_p = nan;
  bad[5].repeat_penalty = -1;
  bad[6].max_tokens = -1;
  bad[7].num_stops = 1;     // without stops
  bad[8].num_stop_ids = 1;  // without them
  bad[9].stop_ids = no_token;
  bad[9].num_stop_ids = 1;
  bad[10].stop_ids = no_token;
  bad[10].num_stop_ids = SIZE_MAX;
  for (size_t i = 0; i < bad.size(); ++i) {
    EXPECT_EQ(
        tiercel_session_generate(session_, &bad[i], nullptr, nullptr, &error_),
        TIERCEL_USAGE)
        << i;
  }
  EXPECT_EQ(tiercel_session_length(session_), ids.size());
}

TEST_F(ApiTest, CallbacksStopEveryLongCall) {
  auto params = Sized<tiercel_model_params>();
  params.path = kModel;
  params.progress = [](void*, uint64_t, uint64_t) { return 1; };
  tiercel_model* model = nullptr;
  EXPECT_EQ(tiercel_model_open(&params, &model, &error_), TIERCEL_CANCELLED);
  EXPECT_EQ(model, nullptr);

  const std::vector<int32_t> ids = Tokenize("a b c d e f");
  EXPECT_EQ(tiercel_session_prefill(
                session_, ids.data(), ids.size(),
                [](void*, uint64_t, uint64_t) { return 1; }, nullptr, &error_),
            TIERCEL_CANCELLED);
  EXPECT_EQ(tiercel_session_length(session_), 0u);
  EXPECT_EQ(tiercel_session_fill(
                session_, ids.data(), ids.size(), 1,
                [](void*, uint64_t done, uint64_t total) {
                  return done == total ? 1 : 0;
                },
                nullptr, &error_),
            TIERCEL_CANCELLED);
  EXPECT_EQ(tiercel_session_length(session_), 0u);
  EXPECT_EQ(
      tiercel_session_score(
          session_, ids.data(), ids.size(), 0,
          [](void*, size_t index, const float*) { return index == 2 ? 1 : 0; },
          nullptr, &error_),
      TIERCEL_CANCELLED);
  EXPECT_EQ(tiercel_session_length(session_), 0u);
  ASSERT_EQ(tiercel_session_prefill(session_, ids.data(), ids.size(), nullptr,
                                    nullptr, &error_),
            TIERCEL_OK);
  auto sampling = Sized<tiercel_sampling>();
  sampling.max_tokens = 5;
  sampling.ignore_eos = 1;
  EXPECT_EQ(
      tiercel_session_generate(
          session_, &sampling, [](void*, const tiercel_token*) { return 1; },
          nullptr, &error_),
      TIERCEL_CANCELLED);
  EXPECT_EQ(tiercel_session_length(session_), ids.size() + 1);
  EXPECT_EQ(
      tiercel_session_generate(session_, &sampling, nullptr, nullptr, &error_),
      TIERCEL_OK);
  EXPECT_EQ(tiercel_session_length(session_), ids.size() + 6);
}

TEST_F(ApiTest, WhatACallbackThrowsStaysInside) {
  const std::vector<int32_t> ids = Tokenize("a b c");
  const auto throws = [](void*, uint64_t, uint64_t) -> int {
    throw std::runtime_error("thrown");
  };
  EXPECT_EQ(tiercel_session_prefill(session_, ids.data(), ids.size(), throws,
                                    nullptr, &error_),
            TIERCEL_FAILED);
  EXPECT_STREQ(error_.message, "thrown");
  const auto row_throws = [](void*, size_t index, const float*) -> int {
    if (index == 1) throw std::runtime_error("row");
    return 0;
  };
  EXPECT_EQ(tiercel_session_score(session_, ids.data(), ids.size(), 0,
                                  row_throws, nullptr, &error_),
            TIERCEL_FAILED);
  EXPECT_STREQ(error_.message, "row");
  auto params = Sized<tiercel_model_params>();
  params.path = kModel;
  params.progress = throws;
  tiercel_model* model = nullptr;
  EXPECT_EQ(tiercel_model_open(&params, &model, &error_), TIERCEL_FAILED);
  EXPECT_EQ(model, nullptr);
  // The session is as it was.
  EXPECT_EQ(tiercel_session_length(session_), 0u);
  EXPECT_EQ(tiercel_session_prefill(session_, ids.data(), ids.size(), nullptr,
                                    nullptr, &error_),
            TIERCEL_OK);
  EXPECT_EQ(tiercel_session_length(session_), ids.size());

  // A token that was given out is kept, as if its callback had cancelled.
  auto sampling = Sized<tiercel_sampling>();
  sampling.max_tokens = 3;
  sampling.ignore_eos = 1;
  const auto token_throws = [](void*, const tiercel_token*) -> int {
    throw std::runtime_error("token");
  };
  EXPECT_EQ(tiercel_session_generate(session_, &sampling, token_throws, nullptr,
                                     &error_),
            TIERCEL_FAILED);
  EXPECT_STREQ(error_.message, "token");
  EXPECT_EQ(tiercel_session_length(session_), ids.size() + 1);
  EXPECT_EQ(
      tiercel_session_generate(session_, &sampling, nullptr, nullptr, &error_),
      TIERCEL_OK);
}

TEST_F(ApiTest, ASessionThatDidNothingReportsWhatItTook) {
  const nlohmann::json report = ReportOf(session_);
  EXPECT_EQ(report["prompt_tokens"], 0);
  EXPECT_GT(report["context"], 0);
  EXPECT_GT(report["memory"]["device_bytes"], 0);
}

TEST_F(ApiTest, TheFirstLayersMayDraft) {
  auto info = Sized<tiercel_model_info>();
  ASSERT_EQ(tiercel_model_get_info(model_, &info, &error_), TIERCEL_OK);
  ASSERT_EQ(info.layers, 2);
  auto params = Sized<tiercel_session_params>();
  params.context = 500;
  auto policy = Sized<tiercel_policy>();
  policy.draft = "self";
  policy.verify = "coupled";
  policy.sink = 8;
  policy.chunk = 8;
  policy.window = 16;
  params.policy = &policy;
  std::string text;
  for (int i = 0; i < 40; ++i) text += "one two three ";
  const std::vector<int32_t> ids = Tokenize(text);
  auto sampling = Sized<tiercel_sampling>();
  sampling.max_tokens = 40;
  sampling.temperature = 0.7f;
  sampling.ignore_eos = 1;
  // Returns the tokens, and the number of drafted ones.
  const auto generate = [&](int32_t layers) {
    policy.draft_layers = layers;
    tiercel_session* session = nullptr;
    EXPECT_EQ(tiercel_session_create(model_, &params, &session, &error_),
              TIERCEL_OK)
        << error_.message;
    EXPECT_EQ(tiercel_session_prefill(session, ids.data(), ids.size(), nullptr,
                                      nullptr, &error_),
              TIERCEL_OK)
        << error_.message;
    EXPECT_EQ(
        tiercel_session_generate(session, &sampling, nullptr, nullptr, &error_),
        TIERCEL_OK)
        << error_.message;
    const nlohmann::json report = ReportOf(session);
    tiercel_session_free(session);
    return std::pair(report["output"][0]["tokens"],
                     report["speculation"]["levels"]);
  };
  const auto all = generate(0);
  const auto one = generate(1);
  EXPECT_EQ(one.first, all.first);
  EXPECT_NE(one.second, all.second);
  EXPECT_EQ(generate(2), all);
  policy.draft_layers = 3;
  tiercel_session* none = nullptr;
  EXPECT_EQ(tiercel_session_create(model_, &params, &none, &error_),
            TIERCEL_USAGE);
  EXPECT_STREQ(error_.code, "invalid_argument");
  EXPECT_THAT(error_.message, HasSubstr("draft_layers: got 3"));
}

// The next turn of a conversation: the part that it shares with the last is not
// read again, and the rest of the last leaves no trace.
TEST_F(ApiTest, ReadingKeepsWhatIsShared) {
  std::vector<int32_t> all;
  for (int32_t i = 0; i < 200; ++i) all.push_back(5 + i * 7 % 200);
  const auto held = [&] {
    std::vector<int32_t> ids(1000);
    size_t size = ids.size();
    EXPECT_EQ(tiercel_session_ids(session_, ids.data(), &size, &error_),
              TIERCEL_OK);
    ids.resize(size);
    return ids;
  };
  auto last = Sized<tiercel_generation>();
  const auto read = [&](const std::vector<int32_t>& ids) {
    const tiercel_status status = tiercel_session_read(
        session_, ids.data(), ids.size(), nullptr, nullptr, &error_);
    EXPECT_EQ(tiercel_session_get_generation(session_, &last, &error_),
              TIERCEL_OK);
    return status;
  };
  ASSERT_EQ(read(all), TIERCEL_OK) << error_.message;
  EXPECT_EQ(held(), all);
  EXPECT_EQ(last.prompt_tokens, 200);
  EXPECT_EQ(last.cached_tokens, 0);
  EXPECT_GT(last.prefill_seconds, 0);
  EXPECT_EQ(last.finish, TIERCEL_FINISH_NONE);

  std::vector<int32_t> other(all.begin(), all.begin() + 150);
  other.insert(other.end(), 20, 3);
  ASSERT_EQ(read(other), TIERCEL_OK) << error_.message;
  EXPECT_EQ(held(), other);
  EXPECT_EQ(last.prompt_tokens, 170);
  EXPECT_EQ(last.cached_tokens, 150);
  ASSERT_EQ(read({}), TIERCEL_OK);
  EXPECT_TRUE(held().empty());

  // The session is as if it had never held anything else.
  auto sampling = Sized<tiercel_sampling>();
  sampling.max_tokens = 5;
  sampling.ignore_eos = 1;
  const auto generated = [&](const std::vector<int32_t>& ids) {
    EXPECT_EQ(read(ids), TIERCEL_OK);
    EXPECT_EQ(tiercel_session_generate(session_, &sampling, nullptr, nullptr,
                                       &error_),
              TIERCEL_OK);
    return held();
  };
  const std::vector<int32_t> expected = generated(other);
  EXPECT_EQ(expected.size(), 175u);
  generated(all);
  EXPECT_EQ(generated(other), expected);
  EXPECT_EQ(tiercel_session_get_generation(session_, &last, &error_),
            TIERCEL_OK);
  EXPECT_EQ(last.output_tokens, 5);
  EXPECT_EQ(last.finish, TIERCEL_FINISH_LENGTH);
  EXPECT_GE(last.ttft_seconds, last.prefill_seconds);
  EXPECT_GT(last.decode_seconds, 0);
  EXPECT_EQ(last.simulated, 0);

  // A wrong text leaves the tokens that both share.
  std::vector<int32_t> wrong(all);
  wrong[100] = -1;
  EXPECT_EQ(read(wrong), TIERCEL_INVALID_INPUT);
  EXPECT_EQ(held(), std::vector<int32_t>(all.begin(), all.begin() + 100));
}

TEST_F(ApiTest, GenerationsSayHowTheyEnded) {
  const std::vector<int32_t> ids = Tokenize("one two three");
  ASSERT_EQ(tiercel_session_prefill(session_, ids.data(), ids.size(), nullptr,
                                    nullptr, &error_),
            TIERCEL_OK);
  auto sampling = Sized<tiercel_sampling>();
  sampling.max_tokens = 40;
  sampling.temperature = 1;
  sampling.ignore_eos = 1;
  const auto finish = [&](tiercel_on_token on_token) {
    EXPECT_EQ(tiercel_session_truncate(session_, ids.size(), &error_),
              TIERCEL_OK);
    tiercel_session_generate(session_, &sampling, on_token, nullptr, &error_);
    auto last = Sized<tiercel_generation>();
    EXPECT_EQ(tiercel_session_get_generation(session_, &last, &error_),
              TIERCEL_OK);
    return last.finish;
  };
  EXPECT_EQ(finish(nullptr), TIERCEL_FINISH_LENGTH);
  EXPECT_EQ(finish([](void*, const tiercel_token*) { return 1; }),
            TIERCEL_FINISH_CANCELLED);
  ASSERT_EQ(finish(nullptr), TIERCEL_FINISH_LENGTH);
  const std::string text = ReportOf(session_)["output"][0]["text"];
  ASSERT_GT(text.size(), 12u);
  const std::string stop = text.substr(8, 3);
  const char* const stops[] = {stop.c_str()};
  sampling.stops = stops;
  sampling.num_stops = 1;
  EXPECT_EQ(finish(nullptr), TIERCEL_FINISH_STOP);
  sampling.num_stops = 0;
  ASSERT_EQ(finish(nullptr), TIERCEL_FINISH_LENGTH);
  const std::vector<int32_t> tokens = ReportOf(session_)["output"][0]["tokens"];
  sampling.stop_ids = &tokens[3];
  sampling.num_stop_ids = 1;
  EXPECT_EQ(finish(nullptr), TIERCEL_FINISH_STOP);
  const auto first = std::find(tokens.begin(), tokens.end(), tokens[3]);
  EXPECT_EQ(ReportOf(session_)["output"][0]["tokens"],
            std::vector<int32_t>(tokens.begin(), first));
}

TEST_F(ApiTest, TextsMayBeGivenUp) {
  const std::string text(200'000, 'a');
  const tiercel_message message = {
      sizeof(tiercel_message), "user", text.data(), text.size(), nullptr, 0};
  auto limits = Sized<tiercel_text_limits>();
  const auto each = [&](tiercel_status status, const char* code) {
    size_t size = 0;
    EXPECT_EQ(tiercel_tokenize(model_, text.data(), text.size(), 0, &limits,
                               nullptr, &size, &error_),
              status);
    EXPECT_STREQ(error_.code, code);
    size = 0;
    EXPECT_EQ(tiercel_chat_tokens(model_, &message, 1, &limits, nullptr, &size,
                                  &error_),
              status);
    EXPECT_STREQ(error_.code, code);
  };
  each(TIERCEL_BUFFER_TOO_SMALL, "buffer_too_small");
  limits.most_tokens = 1000;
  each(TIERCEL_INVALID_INPUT, "too_long");
  limits.most_tokens = 0;
  limits.progress = [](void*, uint64_t, uint64_t) { return 1; };
  each(TIERCEL_CANCELLED, "cancelled");
  limits.struct_size = 3;
  each(TIERCEL_USAGE, "invalid_struct_size");
}

TEST_F(ApiTest, TimesOfTokensAreThoseOfTheReport) {
  const std::vector<int32_t> ids = Tokenize("a b c");
  ASSERT_EQ(tiercel_session_prefill(session_, ids.data(), ids.size(), nullptr,
                                    nullptr, &error_),
            TIERCEL_OK);
  size_t size = 0;
  EXPECT_EQ(tiercel_session_token_seconds(session_, nullptr, &size, &error_),
            TIERCEL_OK);
  EXPECT_EQ(size, 0u);
  auto sampling = Sized<tiercel_sampling>();
  sampling.max_tokens = 9;
  sampling.ignore_eos = 1;
  ASSERT_EQ(
      tiercel_session_generate(session_, &sampling, nullptr, nullptr, &error_),
      TIERCEL_OK);
  EXPECT_EQ(tiercel_session_token_seconds(session_, nullptr, &size, &error_),
            TIERCEL_BUFFER_TOO_SMALL);
  ASSERT_EQ(size, 9u);
  std::vector<double> seconds(size);
  ASSERT_EQ(
      tiercel_session_token_seconds(session_, seconds.data(), &size, &error_),
      TIERCEL_OK);
  std::vector<char> text(1 << 16);
  size = text.size();
  ASSERT_EQ(tiercel_session_report(session_, text.data(), &size, &error_),
            TIERCEL_OK);
  const auto report = nlohmann::json::parse(text.data());
  double sum = 0;
  for (size_t i = 1; i < seconds.size(); ++i) sum += seconds[i];
  EXPECT_DOUBLE_EQ(report["decode_tok_s"], 8 / sum);
  EXPECT_EQ(report["tbt_ms"]["samples"], 8);
  EXPECT_DOUBLE_EQ(
      report["ttft_s"],
      report["ledger"]["phases"]["prefill"]["seconds"].get<double>() +
          seconds[0]);
}

TEST_F(ApiTest, AWrongEnvironmentIsUsage) {
  EXPECT_EQ(tiercel_check_environment(&error_), TIERCEL_OK);
  const char* forced = getenv("TIERCEL_ISA");
  const std::string before = forced == nullptr ? "" : forced;
  setenv("TIERCEL_ISA", "avx9", /*overwrite=*/1);
  EXPECT_EQ(tiercel_check_environment(&error_), TIERCEL_USAGE);
  EXPECT_EQ(tiercel_check_environment(nullptr), TIERCEL_USAGE);
  setenv("TIERCEL_ISA", before.c_str(), /*overwrite=*/1);
  EXPECT_STREQ(error_.code, "invalid_environment");
  EXPECT_THAT(error_.message, HasSubstr("TIERCEL_ISA: got \"avx9\""));
}

TEST_F(ApiTest, VersionNamesItsParts) {
  EXPECT_THAT(tiercel_version(), HasSubstr("commit "));
  const std::string number =
      absl::StrCat(TIERCEL_VERSION_MAJOR, ".", TIERCEL_VERSION_MINOR, ".",
                   TIERCEL_VERSION_PATCH, " (");
  EXPECT_EQ(std::string(tiercel_version()).substr(0, number.size()), number);
}

TEST_F(ApiTest, StatusesHaveNamesOfTheirOwn) {
  std::set<std::string> names;
  for (int status = TIERCEL_OK; status <= TIERCEL_BUFFER_TOO_SMALL; ++status) {
    names.insert(tiercel_status_name(static_cast<tiercel_status>(status)));
  }
  EXPECT_EQ(names.size(), TIERCEL_BUFFER_TOO_SMALL + 1u);
  EXPECT_EQ(names.count("unknown status"), 0u);
  EXPECT_STREQ(tiercel_status_name(TIERCEL_OUT_OF_MEMORY), "out of memory");
  EXPECT_STREQ(tiercel_status_name(static_cast<tiercel_status>(15)),
               "unknown status");
}

TEST_F(ApiTest, AStructBeginsAsItsDefaults) {
  tiercel_sampling sampling = TIERCEL_INIT(tiercel_sampling);
  EXPECT_EQ(sampling.struct_size, sizeof(sampling));
  sampling.struct_size = 0;
  const std::vector<char> zeros(sizeof(sampling));
  EXPECT_EQ(std::memcmp(&sampling, zeros.data(), zeros.size()), 0);
}

}  // namespace
}  // namespace tiercel::api_test

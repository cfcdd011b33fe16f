// Programs made with an older header pass shorter structs, with anything behind
// them.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "include/tiercel_lab.h"
#include "runtime/api/api_fixture_for_test.h"

namespace tiercel::growth_test {
namespace {

using api_test::Sized;
using ::testing::Each;

// A struct of `size` bytes with garbage behind it, like an older program's.
template <typename T>
class Older {
 public:
  explicit Older(size_t size) : size_(size) {
    std::memset(bytes_, kGarbage, sizeof(bytes_));
    std::memset(bytes_, 0, size);
    std::memcpy(bytes_, &size, sizeof(size));
  }
  // The whole struct, like a current program's.
  Older() : Older(sizeof(T)) {}

  T* get() { return reinterpret_cast<T*>(bytes_); }
  T* operator->() { return get(); }
  bool garbage_is_whole() const {
    for (size_t i = size_; i < sizeof(bytes_); ++i) {
      if (bytes_[i] != kGarbage) return false;
    }
    return true;
  }

 private:
  static constexpr unsigned char kGarbage = 0xA5;
  const size_t size_;
  alignas(T) unsigned char bytes_[sizeof(T) + 64];
};

class GrowthTest : public api_test::ApiTest {};

TEST_F(GrowthTest, WhatLiesBehindAStructIsNotRead) {
  Older<tiercel_error> error;
  Older<tiercel_model_params> model_params;
  Older<tiercel_simulation> simulation;
  simulation->device_bytes = 64 << 20;
  simulation->link_bytes_per_s = 1e12;
  model_params->path = api_test::kModel;
  model_params->simulation = simulation.get();
  tiercel_model* model = nullptr;
  ASSERT_EQ(tiercel_model_open(model_params.get(), &model, error.get()),
            TIERCEL_OK)
      << error->message;
  Older<tiercel_model_info> info;
  ASSERT_EQ(tiercel_model_get_info(model, info.get(), error.get()), TIERCEL_OK);
  EXPECT_EQ(info->layers, 2);
  Older<tiercel_policy> policy;
  policy->draft = "ngram";
  const std::string folder = TempFolder();
  Older<tiercel_session_params> params;
  params->policy = policy.get();
  params->cache_dir = folder.c_str();
  Older<tiercel_measurement> measurement;
  ASSERT_EQ(tiercel_measure(model, params.get(), nullptr, nullptr,
                            measurement.get(), error.get()),
            TIERCEL_OK)
      << error->message;
  EXPECT_EQ(measurement->measured, 1);
  tiercel_session* session = nullptr;
  ASSERT_EQ(tiercel_session_create(model, params.get(), &session, error.get()),
            TIERCEL_OK)
      << error->message;
  Older<tiercel_text_limits> limits;
  Older<tiercel_message> message;
  message->role = "user";
  message->content = "a b";
  message->content_bytes = 3;
  std::vector<int32_t> ids(500);
  size_t size = ids.size();
  ASSERT_EQ(tiercel_chat_tokens(model, message.get(), 1, limits.get(),
                                ids.data(), &size, error.get()),
            TIERCEL_OK)
      << error->message;
  ASSERT_EQ(tiercel_session_prefill(session, ids.data(), size, nullptr, nullptr,
                                    error.get()),
            TIERCEL_OK);
  Older<tiercel_sampling> sampling;
  sampling->max_tokens = 3;
  sampling->ignore_eos = 1;
  ASSERT_EQ(tiercel_session_generate(session, sampling.get(), nullptr, nullptr,
                                     error.get()),
            TIERCEL_OK);
  Older<tiercel_generation> generation;
  ASSERT_EQ(
      tiercel_session_get_generation(session, generation.get(), error.get()),
      TIERCEL_OK);
  EXPECT_EQ(generation->output_tokens, 3);
  EXPECT_TRUE(error.garbage_is_whole());
  EXPECT_TRUE(info.garbage_is_whole());
  EXPECT_TRUE(generation.garbage_is_whole());
  EXPECT_TRUE(measurement.garbage_is_whole());
  tiercel_session_free(session);
  tiercel_model_free(model);
}

TEST_F(GrowthTest, WhatAnOlderStructLacksIsItsDefault) {
  Older<tiercel_model_params> model_params(
      offsetof(tiercel_model_params, tensor_parallel));
  model_params->path = api_test::kModel;
  tiercel_model* model = nullptr;
  ASSERT_EQ(tiercel_model_open(model_params.get(), &model, &error_), TIERCEL_OK)
      << error_.message;
  Older<tiercel_policy> policy(offsetof(tiercel_policy, budget));
  policy->name = "triforce";
  Older<tiercel_session_params> params;
  params->policy = policy.get();
  Older<tiercel_session_params> before_policies(
      offsetof(tiercel_session_params, policy));
  Older<tiercel_session_params> before_texts(
      offsetof(tiercel_session_params, prompt_cache_dir));
  before_texts->policy = policy.get();
  for (auto* const p :
       {params.get(), before_policies.get(), before_texts.get()}) {
    tiercel_session* session = nullptr;
    ASSERT_EQ(tiercel_session_create(model, p, &session, &error_), TIERCEL_OK)
        << error_.message;
    tiercel_session_free(session);
  }
  tiercel_model_free(model);

  Older<tiercel_model_info> info(offsetof(tiercel_model_info, threads));
  ASSERT_EQ(tiercel_model_get_info(model_, info.get(), &error_), TIERCEL_OK);
  EXPECT_GT(info->vocab, 0);
  EXPECT_TRUE(info.garbage_is_whole());
  Older<tiercel_generation> generation(
      offsetof(tiercel_generation, ttft_seconds));
  ASSERT_EQ(tiercel_session_get_generation(session_, generation.get(), &error_),
            TIERCEL_OK);
  EXPECT_TRUE(generation.garbage_is_whole());
  const std::string folder = TempFolder();
  auto params_of_today = Sized<tiercel_session_params>();
  params_of_today.cache_dir = folder.c_str();
  Older<tiercel_measurement> measurement(offsetof(tiercel_measurement, spread));
  ASSERT_EQ(tiercel_measure(model_, &params_of_today, nullptr, nullptr,
                            measurement.get(), &error_),
            TIERCEL_OK)
      << error_.message;
  EXPECT_EQ(measurement->measured, 1);
  EXPECT_TRUE(measurement.garbage_is_whole());
}

// A newer program's unset fields do not matter; fields that it sets are
// refused.
TEST_F(GrowthTest, WhatANewerProgramSetsIsRefused) {
  struct Newer {
    tiercel_sampling sampling;
    uint64_t field;
  } newer = {};
  newer.sampling.struct_size = sizeof(newer);
  newer.sampling.max_tokens = 1;
  const int32_t id = 3;
  ASSERT_EQ(
      tiercel_session_prefill(session_, &id, 1, nullptr, nullptr, &error_),
      TIERCEL_OK);
  EXPECT_EQ(tiercel_session_generate(session_, &newer.sampling, nullptr,
                                     nullptr, &error_),
            TIERCEL_OK)
      << error_.message;
  newer.field = 1;
  EXPECT_EQ(tiercel_session_generate(session_, &newer.sampling, nullptr,
                                     nullptr, &error_),
            TIERCEL_USAGE);
  EXPECT_STREQ(error_.code, "invalid_struct_size");
}

// No header has a struct that ends within a field, half of which would count.
TEST_F(GrowthTest, ASizeWithinAFieldIsRefused) {
  const size_t seed = offsetof(tiercel_sampling, seed);
  for (size_t size = seed; size <= seed + sizeof(uint64_t); ++size) {
    Older<tiercel_sampling> sampling(size);
    const tiercel_status status = tiercel_session_generate(
        session_, sampling.get(), nullptr, nullptr, &error_);
    EXPECT_EQ(status, TIERCEL_USAGE);  // no prompt, at best
    const bool whole = size == seed || size == seed + sizeof(uint64_t);
    EXPECT_STREQ(error_.code, whole ? "empty_prompt" : "invalid_struct_size");
  }
}

TEST_F(GrowthTest, AnErrorOfAnySizeKeepsItsText) {
  struct Newer {
    tiercel_error error;
    char more[64];
  } newer = {};
  newer.error.struct_size = sizeof(newer);
  EXPECT_EQ(tiercel_session_prefill(nullptr, nullptr, 0, nullptr, nullptr,
                                    &newer.error),
            TIERCEL_USAGE);
  EXPECT_STREQ(newer.error.code, "null_argument");
  EXPECT_THAT(newer.more, Each('\0'));
  // An error that is too small for the text gets none.
  auto small = Sized<tiercel_error>();
  small.struct_size = 8;
  EXPECT_EQ(
      tiercel_session_prefill(nullptr, nullptr, 0, nullptr, nullptr, &small),
      TIERCEL_USAGE);
  EXPECT_STREQ(small.code, "");
}

// The stride of an array is its elements' struct_size.
TEST_F(GrowthTest, MessagesMayBeLarger) {
  struct Newer {
    tiercel_message message;
    uint64_t field;
  };
  const auto tokens = [&](const tiercel_message* messages, size_t count) {
    std::vector<int32_t> ids(500);
    size_t size = ids.size();
    EXPECT_EQ(tiercel_chat_tokens(model_, messages, count, nullptr, ids.data(),
                                  &size, &error_),
              TIERCEL_OK)
        << error_.message;
    ids.resize(size);
    return ids;
  };
  const tiercel_message plain[] = {
      {sizeof(tiercel_message), "user", "one", 3, nullptr, 0},
      {sizeof(tiercel_message), "assistant", "two", 3, nullptr, 0},
      {sizeof(tiercel_message), "user", "three", 5, nullptr, 0}};
  Newer newer[3] = {};
  for (size_t i = 0; i < 3; ++i) {
    newer[i].message = plain[i];
    newer[i].message.struct_size = sizeof(Newer);
  }
  EXPECT_EQ(tokens(&newer[0].message, 3), tokens(plain, 3));
  newer[1].message.struct_size = sizeof(tiercel_message);
  size_t size = 0;
  EXPECT_EQ(tiercel_chat_tokens(model_, &newer[0].message, 3, nullptr, nullptr,
                                &size, &error_),
            TIERCEL_USAGE);
  EXPECT_STREQ(error_.code, "invalid_struct_size");
}

}  // namespace
}  // namespace tiercel::growth_test

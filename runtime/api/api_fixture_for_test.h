#ifndef TIERCEL_RUNTIME_API_API_FIXTURE_FOR_TEST_H_
#define TIERCEL_RUNTIME_API_API_FIXTURE_FOR_TEST_H_

#include <stdlib.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "include/tiercel_lab.h"
#include "nlohmann/json.hpp"

namespace tiercel::api_test {

inline constexpr char kModel[] = "tests/golden/checkpoints/llama_chat.gguf";
inline constexpr char kIdsOnly[] = "tests/golden/checkpoints/llama_mha.gguf";

template <typename T>
T Sized() {
  T t = {};
  t.struct_size = sizeof(T);
  return t;
}

// A small device that has room for the small models, behind a fast link.
inline constexpr tiercel_simulation kSmallDevice = {
    sizeof(tiercel_simulation), /*device_bytes=*/64 << 20,
    /*link_bytes_per_s=*/1e12,  /*link_latency_us=*/0,
    /*host_bytes_per_s=*/0,     /*strict_seed=*/0};

// The tokens that `session` generates next.
inline std::vector<int32_t> Generated(tiercel_session* session,
                                      const tiercel_sampling& sampling) {
  std::vector<int32_t> ids;
  auto error = Sized<tiercel_error>();
  const auto add = [](void* to, const tiercel_token* token) {
    static_cast<std::vector<int32_t>*>(to)->push_back(token->id);
    return 0;
  };
  EXPECT_EQ(tiercel_session_generate(session, &sampling, add, &ids, &error),
            TIERCEL_OK)
      << error.message;
  return ids;
}

// The document that the library writes when `write` calls it.
template <typename Write>
nlohmann::json JsonFrom(const Write& write) {
  std::string json(1 << 16, ' ');
  size_t size = json.size();
  auto error = Sized<tiercel_error>();
  EXPECT_EQ(write(json.data(), &size, &error), TIERCEL_OK) << error.message;
  return nlohmann::json::parse(json.c_str());
}
inline nlohmann::json ReportOf(const tiercel_session* session) {
  return JsonFrom([&](char* json, size_t* size, tiercel_error* error) {
    return tiercel_session_report(session, json, size, error);
  });
}
inline nlohmann::json PlanOf(const tiercel_model* model,
                             const tiercel_session_params& params) {
  return JsonFrom([&](char* json, size_t* size, tiercel_error* error) {
    return tiercel_plan(model, &params, json, size, error);
  });
}
inline nlohmann::json ListOf(const std::string& cache_dir) {
  return JsonFrom([&](char* json, size_t* size, tiercel_error* error) {
    return tiercel_cache_list(cache_dir.c_str(), json, size, error);
  });
}

// A small model with a chat template, and one session of it.
class ApiTest : public testing::Test {
 protected:
  void SetUp() override {
    error_ = Sized<tiercel_error>();
    model_ = Open(kModel, TIERCEL_LOAD_ALL);
    ASSERT_NE(model_, nullptr);
    const auto params = Sized<tiercel_session_params>();
    ASSERT_EQ(tiercel_session_create(model_, &params, &session_, &error_),
              TIERCEL_OK)
        << error_.message;
  }
  void TearDown() override {
    tiercel_session_free(session_);
    tiercel_model_free(model_);
    if (!folder_.empty()) std::filesystem::remove_all(folder_);
  }

  // Makes an empty folder, which is removed with its contents after the test.
  std::string TempFolder() {
    folder_ = testing::TempDir() + "/api_XXXXXX";
    EXPECT_NE(mkdtemp(folder_.data()), nullptr);
    return folder_;
  }

  tiercel_model* Open(const char* path, tiercel_load load,
                      const tiercel_model* beside = nullptr) {
    auto params = Sized<tiercel_model_params>();
    params.path = path;
    params.load = load;
    params.beside = beside;
    tiercel_model* model = nullptr;
    EXPECT_EQ(tiercel_model_open(&params, &model, &error_), TIERCEL_OK)
        << error_.message;
    return model;
  }

  std::vector<int32_t> Tokenize(const std::string& text) {
    std::vector<int32_t> ids(text.size() + 1);
    size_t size = ids.size();
    EXPECT_EQ(tiercel_tokenize(model_, text.data(), text.size(), 0, nullptr,
                               ids.data(), &size, &error_),
              TIERCEL_OK)
        << error_.message;
    ids.resize(size);
    return ids;
  }

  std::string folder_;
  tiercel_error error_;
  tiercel_model* model_ = nullptr;
  tiercel_session* session_ = nullptr;
};

}  // namespace tiercel::api_test

#endif  // TIERCEL_RUNTIME_API_API_FIXTURE_FOR_TEST_H_

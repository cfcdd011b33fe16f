// The library as a module that a program opens, uses and closes again.

#include <dirent.h>
#include <dlfcn.h>

#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "include/tiercel.h"

namespace {

template <typename Function>
Function* Find(void* module, const char* name) {
  void* const symbol = dlsym(module, name);
  EXPECT_NE(symbol, nullptr) << name;
  return reinterpret_cast<Function*>(symbol);
}

int Threads() {
  DIR* const tasks = opendir("/proc/self/task");
  int count = -2;  // . and ..
  while (readdir(tasks) != nullptr) ++count;
  closedir(tasks);
  return count;
}

bool IsMapped() {
  std::ifstream maps("/proc/self/maps");
  const std::string text((std::istreambuf_iterator<char>(maps)),
                         std::istreambuf_iterator<char>());
  return text.find(TIERCEL_MODULE) != std::string::npos;
}

std::vector<int32_t> Generate(void* module, bool simulated) {
  auto* const open = Find<decltype(tiercel_model_open)>(module,  //
                                                        "tiercel_model_open");
  auto* const create =
      Find<decltype(tiercel_session_create)>(module, "tiercel_session_create");
  auto* const prefill =
      Find<decltype(tiercel_prefill)>(module, "tiercel_prefill");
  auto* const generate =
      Find<decltype(tiercel_generate)>(module, "tiercel_generate");
  tiercel_model_params params = {};
  params.struct_size = sizeof(params);
  params.path = "tests/golden/checkpoints/llama_chat.gguf";
  params.threads = 3;
  if (simulated) {
    params.simulate_device_bytes = 64 << 20;
    params.simulate_link_bytes_per_s = 1e12;
  }
  tiercel_model* model = nullptr;
  EXPECT_EQ(open(&params, &model, nullptr), TIERCEL_OK);
  tiercel_session_params session_params = {};
  session_params.struct_size = sizeof(session_params);
  session_params.context = 300;
  tiercel_session* session = nullptr;
  EXPECT_EQ(create(model, &session_params, &session, nullptr), TIERCEL_OK);
  const std::vector<int32_t> prompt(200, 9);
  EXPECT_EQ(
      prefill(session, prompt.data(), prompt.size(), nullptr, nullptr, nullptr),
      TIERCEL_OK);
  tiercel_sampling sampling = {};
  sampling.struct_size = sizeof(sampling);
  sampling.max_tokens = 10;
  sampling.ignore_eos = 1;
  std::vector<int32_t> ids;
  EXPECT_EQ(generate(
                session, &sampling,
                [](void* out, const tiercel_token* token) {
                  static_cast<std::vector<int32_t>*>(out)->push_back(token->id);
                  return 0;
                },
                &ids, nullptr),
            TIERCEL_OK);
  EXPECT_GT(Threads(), 1);
  Find<decltype(tiercel_session_free)>(module, "tiercel_session_free")(session);
  Find<decltype(tiercel_model_free)>(module, "tiercel_model_free")(model);
  return ids;
}

TEST(UnloadTest, NothingRunsOnOnceAllIsFreed) {
  std::vector<int32_t> first;
  for (int round = 0; round < 4; ++round) {
    void* const module = dlopen(TIERCEL_MODULE, RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(module, nullptr) << dlerror();
    EXPECT_TRUE(IsMapped());
    const std::vector<int32_t> ids = Generate(module, round % 2 == 1);
    EXPECT_EQ(ids.size(), 10u);
    if (round == 0) first = ids;
    EXPECT_EQ(ids, first);
    EXPECT_EQ(Threads(), 1);
    EXPECT_EQ(dlclose(module), 0);
    EXPECT_FALSE(IsMapped());
  }
}

}  // namespace

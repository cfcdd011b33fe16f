// A program opens the library as a module, uses it and closes it again.

#include <dirent.h>
#include <dlfcn.h>

#include <chrono>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "include/tiercel_lab.h"

namespace {

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

// A program that uses the module from dlopen to dlclose, with a model and a
// session that has read something.
class Program {
 public:
  explicit Program(bool simulated) {
    tiercel_model_params params = {};
    params.struct_size = sizeof(params);
    params.path = "tests/golden/checkpoints/llama_chat.gguf";
    params.threads = 3;
    tiercel_simulation device = {};
    device.struct_size = sizeof(device);
    device.device_bytes = 64 << 20;
    device.link_bytes_per_s = 1e12;
    if (simulated) params.simulation = &device;
    EXPECT_EQ(open_(&params, &model_, nullptr), TIERCEL_OK);
    tiercel_session_params session_params = {};
    session_params.struct_size = sizeof(session_params);
    session_params.context = 300;
    EXPECT_EQ(create_(model_, &session_params, &session_, nullptr), TIERCEL_OK);
    const std::vector<int32_t> prompt(200, 9);
    EXPECT_EQ(prefill_(session_, prompt.data(), prompt.size(), nullptr, nullptr,
                       nullptr),
              TIERCEL_OK);
  }
  ~Program() {
    free_session_(session_);
    free_model_(model_);
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  // Closes the module, which must not be called any more.
  void Close() {
    EXPECT_EQ(dlclose(std::exchange(module_.handle, nullptr)), 0);
  }

  std::vector<int32_t> Generate() {
    tiercel_sampling sampling = {};
    sampling.struct_size = sizeof(sampling);
    sampling.max_tokens = 10;
    sampling.ignore_eos = 1;
    std::vector<int32_t> ids;
    EXPECT_EQ(
        generate_(
            session_, &sampling,
            [](void* out, const tiercel_token* token) {
              static_cast<std::vector<int32_t>*>(out)->push_back(token->id);
              return 0;
            },
            &ids, nullptr),
        TIERCEL_OK);
    return ids;
  }

 private:
  struct Module {
    ~Module() {
      if (handle != nullptr) dlclose(handle);
    }
    void* handle = dlopen(TIERCEL_MODULE, RTLD_NOW | RTLD_LOCAL);
  };
  template <typename Function>
  Function* Find(const char* name) const {
    void* const symbol = dlsym(module_.handle, name);
    EXPECT_NE(symbol, nullptr) << name;
    return reinterpret_cast<Function*>(symbol);
  }

  Module module_;  // ends last
  decltype(tiercel_model_open)* const open_ =
      Find<decltype(tiercel_model_open)>("tiercel_model_open");
  decltype(tiercel_session_create)* const create_ =
      Find<decltype(tiercel_session_create)>("tiercel_session_create");
  decltype(tiercel_session_prefill)* const prefill_ =
      Find<decltype(tiercel_session_prefill)>("tiercel_session_prefill");
  decltype(tiercel_session_generate)* const generate_ =
      Find<decltype(tiercel_session_generate)>("tiercel_session_generate");
  decltype(tiercel_session_free)* const free_session_ =
      Find<decltype(tiercel_session_free)>("tiercel_session_free");
  decltype(tiercel_model_free)* const free_model_ =
      Find<decltype(tiercel_model_free)>("tiercel_model_free");
  tiercel_model* model_ = nullptr;
  tiercel_session* session_ = nullptr;
};

TEST(UnloadTest, NothingRunsOnOnceAllIsFreed) {
  std::vector<int32_t> first;
  for (int round = 0; round < 4; ++round) {
    std::vector<int32_t> ids;
    {
      Program program(/*simulated=*/round % 2 == 1);
      EXPECT_TRUE(IsMapped());
      EXPECT_GT(Threads(), 1);
      ids = program.Generate();
    }
    EXPECT_EQ(ids.size(), 10u);
    if (round == 0) first = ids;
    EXPECT_EQ(ids, first);
    EXPECT_EQ(Threads(), 1);
    EXPECT_FALSE(IsMapped());
  }
}

// A program that closes the module too early still ends well: the code stays
// while threads of the module run it.
TEST(UnloadTest, WhatIsClosedWhileAModelIsOpenStays) {
  for (const bool simulated : {false, true}) {
    {
      Program program(simulated);
      program.Close();
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      EXPECT_TRUE(IsMapped());
      EXPECT_EQ(program.Generate().size(), 10u);
    }
    EXPECT_EQ(Threads(), 1);
    // The next program that opens and closes the module unloads it.
    { const Program next(simulated); }
    EXPECT_FALSE(IsMapped());
  }
}

}  // namespace

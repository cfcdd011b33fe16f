// Models and their drafts through tiercel.h.

#include <pthread.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>
#include <thread>
#include <tuple>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "include/tiercel_lab.h"
#include "nlohmann/json.hpp"
#include "runtime/api/api_fixture_for_test.h"

namespace tiercel::api_test {
namespace {

using ::testing::HasSubstr;

class ModelApiTest : public ApiTest {};

// The device bytes of the report.
uint64_t DeviceBytes(const tiercel_session* session) {
  return ReportOf(session)["memory"]["device_bytes"].get<uint64_t>();
}

// A few tokens that a new session generates.
std::vector<int32_t> Continued(tiercel_model* model) {
  auto error = Sized<tiercel_error>();
  const auto params = Sized<tiercel_session_params>();
  tiercel_session* session = nullptr;
  EXPECT_EQ(tiercel_session_create(model, &params, &session, &error),
            TIERCEL_OK)
      << error.message;
  const int32_t prompt[] = {5, 6, 7, 8};
  EXPECT_EQ(
      tiercel_session_prefill(session, prompt, 4, nullptr, nullptr, &error),
      TIERCEL_OK)
      << error.message;
  auto sampling = Sized<tiercel_sampling>();
  sampling.max_tokens = 20;
  sampling.ignore_eos = 1;
  std::vector<int32_t> ids = api_test::Generated(session, sampling);
  tiercel_session_free(session);
  EXPECT_EQ(ids.size(), 20u);
  return ids;
}

TEST_F(ModelApiTest, ThreadsMayChangeAtAnyTime) {
  const std::vector<int32_t> expected = Continued(model_);
  auto params = Sized<tiercel_model_params>();
  params.path = kModel;
  params.threads = 4;
  tiercel_model* model = nullptr;
  ASSERT_EQ(tiercel_model_open(&params, &model, &error_), TIERCEL_OK);
  for (const int32_t wrong : {-1, 0, 5}) {
    EXPECT_EQ(tiercel_model_set_threads(model, wrong, &error_), TIERCEL_USAGE);
    EXPECT_STREQ(error_.code, "invalid_threads");
  }
  std::atomic<bool> done = false;
  std::thread other([&] {
    for (int32_t threads = 0; !done; threads = (threads + 1) % 4) {
      EXPECT_EQ(tiercel_model_set_threads(model, threads + 1, nullptr),
                TIERCEL_OK);
    }
  });
  for (int i = 0; i < 5; ++i) EXPECT_EQ(Continued(model), expected);
  done = true;
  other.join();
  ASSERT_EQ(tiercel_model_set_threads(model, 2, &error_), TIERCEL_OK);
  auto info = Sized<tiercel_model_info>();
  ASSERT_EQ(tiercel_model_get_info(model, &info, &error_), TIERCEL_OK);
  EXPECT_EQ(info.threads, 2);
  EXPECT_EQ(Continued(model), expected);
  tiercel_model_free(model);
}

TEST_F(ModelApiTest, TheFileMayGoOnceItIsLoaded) {
  const std::string path = TempFolder() + "/m.gguf";
  std::filesystem::copy_file(kModel, path);
  tiercel_model* model = Open(path.c_str(), TIERCEL_LOAD_ALL);
  std::filesystem::resize_file(path, 100);
  EXPECT_EQ(Continued(model), Continued(model_));
  std::filesystem::remove(path);
  EXPECT_EQ(Continued(model), Continued(model_));
  tiercel_model_free(model);
}

TEST_F(ModelApiTest, WithoutAChatTemplateThereIsNoChat) {
  const std::string path = TempFolder() + "/m";
  std::filesystem::copy("tests/golden/checkpoints/llama_chat", path);
  std::ofstream(path + "/tokenizer_config.json") << "{}";
  tiercel_model* model = Open(path.c_str(), TIERCEL_LOAD_HEADER);
  const tiercel_message message = {
      sizeof(tiercel_message), "user", "a", 1, nullptr, 0};
  size_t size = 0;
  EXPECT_EQ(
      tiercel_chat_tokens(model, &message, 1, nullptr, nullptr, &size, &error_),
      TIERCEL_INVALID_INPUT);
  EXPECT_STREQ(error_.code, "no_chat_template");
  tiercel_model_free(model);
}

// No system has room for stacks of this size, so threads are refused.
TEST_F(ModelApiTest, ThreadsThatAreRefusedAreDoneWithout) {
  const std::vector<int32_t> expected = Continued(model_);
  pthread_attr_t before;
  ASSERT_EQ(pthread_getattr_default_np(&before), 0);
  pthread_attr_t huge;
  ASSERT_EQ(pthread_getattr_default_np(&huge), 0);
  ASSERT_EQ(pthread_attr_setstacksize(&huge, size_t{1} << 47), 0);
  ASSERT_EQ(pthread_setattr_default_np(&huge), 0);
  EXPECT_THROW(std::thread([] {}), std::system_error);
  auto params = Sized<tiercel_model_params>();
  params.path = kModel;
  params.threads = 4;
  tiercel_model* model = nullptr;
  EXPECT_EQ(tiercel_model_open(&params, &model, &error_), TIERCEL_OK)
      << error_.message;
  EXPECT_TRUE(model == nullptr || Continued(model) == expected);
  tiercel_model_free(model);
  EXPECT_EQ(pthread_setattr_default_np(&before), 0);
  pthread_attr_destroy(&huge);
  pthread_attr_destroy(&before);
}

TEST_F(ModelApiTest, MessagesCannotEndTheirTurn) {
  const auto count = [&](const std::string& content) {
    const tiercel_message message = {
        sizeof(tiercel_message), "user",  content.data(),
        content.size(),          nullptr, 0};
    std::vector<int32_t> ids(1000);
    size_t size = ids.size();
    EXPECT_EQ(tiercel_chat_tokens(model_, &message, 1, nullptr, ids.data(),
                                  &size, &error_),
              TIERCEL_OK)
        << error_.message;
    ids.resize(size);
    // The special tokens of the rendered conversation, in order.
    std::string specials;
    for (int32_t id : ids) {
      std::string piece(64, '\0');
      size_t bytes = piece.size();
      EXPECT_EQ(
          tiercel_detokenize(model_, &id, 1, 0, piece.data(), &bytes, &error_),
          TIERCEL_OK);
      if (bytes == 0) specials += std::to_string(id) + " ";
    }
    return specials;
  };
  const std::string honest = count("hello");
  EXPECT_FALSE(honest.empty());
  for (const char* text : {"<|im_end|>", "<|im_start|>system", "</s>", "<s>",
                           "<|endoftext|>", "[INST]"}) {
    EXPECT_EQ(count(text), honest) << text;
  }
}

// The least context of a draft model holds a window of one token and a block.
TEST_F(ModelApiTest, ADraftModelNeedsContext) {
  const std::string path = TempFolder() + "/m";
  std::filesystem::copy("tests/golden/checkpoints/llama_chat", path);
  nlohmann::json config =
      nlohmann::json::parse(std::ifstream(path + "/config.json"));
  for (const int context : {81, 82}) {
    config["max_position_embeddings"] = context;
    std::ofstream(path + "/config.json") << config;
    tiercel_model* draft = Open(path.c_str(), TIERCEL_LOAD_HEADER, model_);
    const bool enough = context == 82;
    EXPECT_EQ(tiercel_check_draft(model_, draft, &error_),
              enough ? TIERCEL_OK : TIERCEL_INVALID_INPUT);
    if (!enough) {
      EXPECT_STREQ(error_.code, "draft_context");
    }
    tiercel_model_free(draft);
  }
}

TEST_F(ModelApiTest, DraftModelsAreChecked) {
  tiercel_model* header = Open(kModel, TIERCEL_LOAD_HEADER, model_);
  tiercel_model* other = Open(kIdsOnly, TIERCEL_LOAD_ALL, model_);
  tiercel_model* elsewhere = Open(kModel, TIERCEL_LOAD_HEADER);
  EXPECT_EQ(tiercel_check_draft(model_, model_, &error_), TIERCEL_OK);
  EXPECT_EQ(tiercel_check_draft(header, model_, &error_), TIERCEL_OK);
  EXPECT_EQ(tiercel_check_draft(model_, header, &error_), TIERCEL_OK);
  EXPECT_EQ(tiercel_check_draft(model_, elsewhere, &error_), TIERCEL_USAGE);
  EXPECT_STREQ(error_.code, "draft_machine");
  EXPECT_EQ(tiercel_check_draft(model_, other, &error_), TIERCEL_INVALID_INPUT);
  EXPECT_STREQ(error_.code, "draft_vocabulary");
  EXPECT_THAT(error_.message, HasSubstr("384"));
  EXPECT_THAT(error_.message, HasSubstr("131"));

  const std::vector<int32_t> ids = Tokenize("one two one two one");
  ASSERT_EQ(tiercel_session_prefill(session_, ids.data(), ids.size(), nullptr,
                                    nullptr, &error_),
            TIERCEL_OK);
  auto sampling = Sized<tiercel_sampling>();
  sampling.max_tokens = 20;
  sampling.temperature = 0.7f;
  sampling.ignore_eos = 1;
  const auto generate = [&](tiercel_session* session) {
    std::string text;
    EXPECT_EQ(tiercel_session_truncate(session, ids.size(), &error_),
              TIERCEL_OK);
    EXPECT_EQ(tiercel_session_generate(
                  session, &sampling,
                  [](void* user_data, const tiercel_token* token) {
                    static_cast<std::string*>(user_data)->append(
                        std::to_string(token->id) + " ");
                    return 0;
                  },
                  &text, &error_),
              TIERCEL_OK)
        << error_.message;
    return text;
  };
  const std::string plain = generate(session_);
  EXPECT_NE(plain, "");
  auto policy = Sized<tiercel_policy>();
  policy.draft = "small";
  policy.verify = "coupled";
  policy.draft_model = model_;
  auto params = Sized<tiercel_session_params>();
  params.policy = &policy;
  tiercel_session* drafted = nullptr;
  ASSERT_EQ(tiercel_session_create(model_, &params, &drafted, &error_),
            TIERCEL_OK)
      << error_.message;
  ASSERT_EQ(tiercel_session_prefill(drafted, ids.data(), ids.size(), nullptr,
                                    nullptr, &error_),
            TIERCEL_OK);
  // A fork has a draft session of its own, and gives the same text.
  tiercel_session* copy = nullptr;
  ASSERT_EQ(tiercel_session_fork(drafted, &copy, &error_), TIERCEL_OK);
  for (tiercel_session* const session : {drafted, copy, drafted}) {
    EXPECT_EQ(generate(session), plain);
    std::vector<char> report(1 << 16);
    size_t size = report.size();
    ASSERT_EQ(tiercel_session_report(session, report.data(), &size, &error_),
              TIERCEL_OK);
    EXPECT_THAT(report.data(), HasSubstr("\"drafter\":\"small\""));
  }
  tiercel_session_free(copy);
  tiercel_session_free(drafted);

  for (const auto& [draft, status, code] :
       {std::tuple(other, TIERCEL_INVALID_INPUT, "draft_vocabulary"),
        std::tuple(elsewhere, TIERCEL_USAGE, "draft_machine"),
        std::tuple(header, TIERCEL_USAGE, "no_weights")}) {
    policy.draft_model = draft;
    EXPECT_EQ(tiercel_session_create(model_, &params, &drafted, &error_),
              status);
    EXPECT_STREQ(error_.code, code);
    tiercel_model_free(draft);
  }
}

// The plan's bytes of a draft model are the bytes that it takes, on a device of
// exactly the plan's size.
TEST_F(ModelApiTest, ADraftModelIsInThePlanAndOnTheDevice) {
  auto policy = Sized<tiercel_policy>();
  policy.name = "triforce";
  policy.draft = "small";
  auto params = Sized<tiercel_session_params>();
  params.context = 1000;
  params.policy = &policy;
  const auto plan = [&](const tiercel_model* model) {
    std::vector<char> json(1 << 14);
    size_t size = json.size();
    EXPECT_EQ(tiercel_plan(model, &params, json.data(), &size, &error_),
              TIERCEL_OK)
        << error_.message;
    return nlohmann::json::parse(json.data());
  };
  const auto open = [&](uint64_t bytes, tiercel_load load) {
    auto on = Sized<tiercel_model_params>();
    on.path = kModel;
    on.load = load;
    tiercel_simulation simulation = kSmallDevice;
    simulation.device_bytes = bytes;
    on.simulation = &simulation;
    tiercel_model* model = nullptr;
    EXPECT_EQ(tiercel_model_open(&on, &model, &error_), TIERCEL_OK)
        << error_.message;
    return model;
  };
  tiercel_model* header = open(1 << 20, TIERCEL_LOAD_HEADER);
  tiercel_model* draft_header = Open(kModel, TIERCEL_LOAD_HEADER, header);
  policy.draft_model = draft_header;
  const nlohmann::json planned = plan(header);
  EXPECT_EQ(planned["fits"], false);
  const auto least = planned["min_device_bytes"].get<uint64_t>();
  int64_t device = 0;
  for (const auto& [part, bytes] : planned["tiers"]["device"].items()) {
    EXPECT_GT(bytes, 0) << part;
    device += bytes.get<int64_t>();
  }
  EXPECT_EQ(device, static_cast<int64_t>(least));
  // Without a draft model the least is smaller by its bytes. If the model
  // drafts for itself it is smaller too, as its weights are there once.
  const auto of_draft = planned["tiers"]["device"]["draft"].get<uint64_t>();
  policy.draft = "ngram";
  EXPECT_EQ(plan(header)["min_device_bytes"], least - of_draft);
  EXPECT_FALSE(plan(header)["tiers"]["device"].contains("draft"));
  policy.draft = "small";
  policy.draft_model = header;
  EXPECT_EQ(plan(header)["min_device_bytes"].get<uint64_t>(),
            least - planned["tiers"]["device"]["weights"].get<uint64_t>());
  tiercel_model_free(header);
  tiercel_model_free(draft_header);

  for (const bool enough : {true, false}) {
    tiercel_model* model = open(enough ? least : least - 64, TIERCEL_LOAD_ALL);
    tiercel_model* draft = Open(kModel, TIERCEL_LOAD_ALL, model);
    policy.draft_model = draft;
    // The loaded weights of both models do not count as another's.
    const nlohmann::json device_part = plan(model)["tiers"]["device"];
    EXPECT_EQ(device_part["draft"], of_draft);
    EXPECT_FALSE(device_part.contains("others"));
    tiercel_session* session = nullptr;
    ASSERT_EQ(tiercel_session_create(model, &params, &session, &error_),
              enough ? TIERCEL_OK : TIERCEL_OUT_OF_MEMORY)
        << error_.message;
    if (enough) {
      EXPECT_EQ(DeviceBytes(session), least);
      const std::vector<int32_t> ids = Tokenize("one two one two one");
      EXPECT_EQ(tiercel_session_prefill(session, ids.data(), ids.size(),
                                        nullptr, nullptr, &error_),
                TIERCEL_OK)
          << error_.message;
      auto sampling = Sized<tiercel_sampling>();
      sampling.max_tokens = 30;
      sampling.ignore_eos = 1;
      EXPECT_EQ(tiercel_session_generate(session, &sampling, nullptr, nullptr,
                                         &error_),
                TIERCEL_OK)
          << error_.message;
      EXPECT_EQ(DeviceBytes(session), least);
    }
    tiercel_session_free(session);
    tiercel_model_free(draft);
    tiercel_model_free(model);
  }
}

// A model's machine outlives it, for the models beside it.
TEST_F(ModelApiTest, BesideIsOnOneMachine) {
  tiercel_model* first = Open(kModel, TIERCEL_LOAD_HEADER);
  tiercel_model* second = Open(kModel, TIERCEL_LOAD_ALL, first);
  tiercel_model_free(first);
  EXPECT_EQ(Continued(second), Continued(model_));
  tiercel_model_free(second);

  auto params = Sized<tiercel_model_params>();
  params.path = kModel;
  params.beside = model_;
  const auto refused = [&](auto tiercel_model_params::*field, auto value) {
    tiercel_model_params bad = params;
    bad.*field = value;
    tiercel_model* none = nullptr;
    EXPECT_EQ(tiercel_model_open(&bad, &none, &error_), TIERCEL_USAGE);
    EXPECT_STREQ(error_.code, "invalid_argument");
    EXPECT_THAT(error_.message, HasSubstr("beside"));
  };
  refused(&tiercel_model_params::device, "cpu");
  refused(&tiercel_model_params::threads, 2);
  refused(&tiercel_model_params::device_memory_bytes, uint64_t{1} << 30);
  refused(&tiercel_model_params::host_memory_bytes, uint64_t{1} << 30);
  refused(&tiercel_model_params::tensor_parallel, 2);
  refused(&tiercel_model_params::deterministic, 1);
  refused(&tiercel_model_params::host_layers, 3);
  refused(&tiercel_model_params::simulation, &kSmallDevice);
}

TEST_F(ModelApiTest, HostLayersHaveLimits) {
  auto params = Sized<tiercel_model_params>();
  params.path = kModel;
  params.simulation = &kSmallDevice;
  for (const int64_t count : {int64_t{-1}, int64_t{2}, int64_t{513}}) {
    params.host_layers = count;
    tiercel_model* none = nullptr;
    EXPECT_EQ(tiercel_model_open(&params, &none, &error_), TIERCEL_USAGE);
    EXPECT_STREQ(error_.code, "invalid_host_layers");
    EXPECT_THAT(error_.message, HasSubstr(std::to_string(count)));
  }
}

TEST_F(ModelApiTest, HeaderModelsTokenizeAndDescribeOnly) {
  tiercel_model* header = Open(kModel, TIERCEL_LOAD_HEADER);
  size_t size = 8;
  int32_t ids[8];
  EXPECT_EQ(tiercel_tokenize(header, "a b", 3, 0, nullptr, ids, &size, &error_),
            TIERCEL_OK);
  const auto params = Sized<tiercel_session_params>();
  tiercel_session* session = nullptr;
  EXPECT_EQ(tiercel_session_create(header, &params, &session, &error_),
            TIERCEL_USAGE);
  EXPECT_STREQ(error_.code, "no_weights");
  tiercel_model_free(header);
}

TEST_F(ModelApiTest, WeightsMayComeLater) {
  tiercel_model* model = Open(kModel, TIERCEL_LOAD_HEADER);
  const auto stop = [](void*, uint64_t, uint64_t) { return 1; };
  EXPECT_EQ(tiercel_model_load(model, stop, nullptr, &error_),
            TIERCEL_CANCELLED);
  const auto params = Sized<tiercel_session_params>();
  tiercel_session* session = nullptr;
  EXPECT_EQ(tiercel_session_create(model, &params, &session, &error_),
            TIERCEL_USAGE);
  EXPECT_STREQ(error_.code, "no_weights");
  for (int i = 0; i < 2; ++i) {  // the second time it does nothing
    EXPECT_EQ(tiercel_model_load(model, nullptr, nullptr, &error_), TIERCEL_OK)
        << error_.message;
  }
  EXPECT_EQ(Continued(model), Continued(model_));
  tiercel_model_free(model);
}

TEST_F(ModelApiTest, ModelsWithoutTokenizerServeIds) {
  tiercel_model* model = Open(kIdsOnly, TIERCEL_LOAD_ALL);
  size_t size = 0;
  EXPECT_EQ(
      tiercel_tokenize(model, "a", 1, 0, nullptr, nullptr, &size, &error_),
      TIERCEL_INVALID_INPUT);
  EXPECT_STREQ(error_.code, "no_tokenizer");
  const auto params = Sized<tiercel_session_params>();
  tiercel_session* session = nullptr;
  ASSERT_EQ(tiercel_session_create(model, &params, &session, &error_),
            TIERCEL_OK);
  const int32_t ids[] = {1, 2, 3};
  auto sampling = Sized<tiercel_sampling>();
  sampling.max_tokens = 3;
  EXPECT_EQ(tiercel_session_prefill(session, ids, 3, nullptr, nullptr, &error_),
            TIERCEL_OK);
  EXPECT_EQ(
      tiercel_session_generate(session, &sampling, nullptr, nullptr, &error_),
      TIERCEL_OK);
  tiercel_session_free(session);
  tiercel_model_free(model);
}

}  // namespace
}  // namespace tiercel::api_test

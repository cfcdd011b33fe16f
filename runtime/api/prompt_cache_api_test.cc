// The prompt cache: a text is read, saved, opened by another session, listed,
// and cleared.

#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "include/tiercel.h"
#include "nlohmann/json.hpp"
#include "runtime/api/api_fixture_for_test.h"

namespace tiercel::api_test {
namespace {

class PromptCacheApiTest : public ApiTest {};

TEST_F(PromptCacheApiTest, AreKeptAndOpened) {
  const std::string folder = TempFolder() + "/texts";
  auto params = Sized<tiercel_session_params>();
  params.prompt_cache_dir = folder.c_str();
  const std::vector<int32_t> ids(1500, 7);
  const auto read = [&] {
    tiercel_session* session = nullptr;
    EXPECT_EQ(tiercel_session_create(model_, &params, &session, &error_),
              TIERCEL_OK)
        << error_.message;
    EXPECT_EQ(tiercel_session_read(session, ids.data(), ids.size(), nullptr,
                                   nullptr, &error_),
              TIERCEL_OK)
        << error_.message;
    auto generation = Sized<tiercel_generation>();
    EXPECT_EQ(tiercel_session_get_generation(session, &generation, &error_),
              TIERCEL_OK);
    tiercel_session_free(session);
    return generation.cached_tokens;
  };
  const auto texts = [&] { return ListOf(folder)["prompt_cache"]; };
  EXPECT_TRUE(texts().empty());
  EXPECT_EQ(read(), 0);
  ASSERT_EQ(texts().size(), 1);
  EXPECT_EQ(texts()[0]["model"], "llama_chat.gguf");
  EXPECT_EQ(texts()[0]["tokens"], 1500);
  EXPECT_EQ(read(), 1499);
  size_t removed = 0;
  EXPECT_EQ(tiercel_cache_clear(folder.c_str(), &removed, &error_), TIERCEL_OK);
  EXPECT_EQ(removed, 1);
  params.prompt_cache_bytes = 1000;
  EXPECT_EQ(read(), 0);
  EXPECT_TRUE(texts().empty());

  tiercel_session* session = nullptr;
  params.prompt_cache_dir = nullptr;
  EXPECT_EQ(tiercel_session_create(model_, &params, &session, &error_),
            TIERCEL_USAGE);
  params.prompt_cache_dir = "";
  EXPECT_EQ(tiercel_session_create(model_, &params, &session, &error_),
            TIERCEL_USAGE);
  EXPECT_STREQ(error_.code, "invalid_argument");
  params.prompt_cache_dir = folder.c_str();
  for (const uint64_t flags : {4, 5}) {
    params.prompt_cache_flags = flags;
    EXPECT_EQ(tiercel_session_create(model_, &params, &session, &error_),
              TIERCEL_USAGE);
    EXPECT_STREQ(error_.code, "invalid_argument");
  }
  params.prompt_cache_flags = TIERCEL_PROMPT_CACHE_BEGIN_ANEW;
  params.prompt_cache_bytes = 0;
  params.prompt_cache_dir = nullptr;
  EXPECT_EQ(tiercel_session_create(model_, &params, &session, &error_),
            TIERCEL_USAGE);
  EXPECT_STREQ(error_.message,
               "prompt_cache_flags: it is set, and no prompt_cache_dir");
}

// After a cancelled call another session of the same folder goes on.
TEST_F(PromptCacheApiTest, APromptGoesOnInAnotherSession) {
  const std::string folder = TempFolder() + "/texts";
  const std::vector<int32_t> ids(1500, 7);
  const auto read = [&](uint64_t flags, tiercel_progress progress) {
    auto params = Sized<tiercel_session_params>();
    params.prompt_cache_dir = folder.c_str();
    params.prompt_cache_flags = flags;
    tiercel_session* session = nullptr;
    EXPECT_EQ(tiercel_session_create(model_, &params, &session, &error_),
              TIERCEL_OK)
        << error_.message;
    const tiercel_status status = tiercel_session_prefill(
        session, ids.data(), ids.size(), progress, session, &error_);
    int layers = -1;
    if (status == TIERCEL_OK) {
      layers = ReportOf(session)["resumed"]["layers"];
      EXPECT_EQ(tiercel_session_resumed(session), layers);
    }
    tiercel_session_free(session);
    return layers;
  };
  const auto in_second_layer = [](void* /*user_data*/, uint64_t done,
                                  uint64_t total) {
    return 2 * done > total ? 1 : 0;
  };
  EXPECT_EQ(read(0, in_second_layer), -1);
  EXPECT_STREQ(error_.code, "cancelled");
  const nlohmann::json texts = ListOf(folder)["prompt_cache"];
  ASSERT_EQ(texts.size(), 1);
  EXPECT_FALSE(texts[0].contains("model"));
  EXPECT_EQ(read(0, in_second_layer), -1);
  EXPECT_EQ(read(TIERCEL_PROMPT_CACHE_BEGIN_ANEW, in_second_layer), -1);
  // The number of resumed layers is known as soon as anything is computed.
  EXPECT_EQ(read(0,
                 [](void* session, uint64_t done, uint64_t /*total*/) {
                   EXPECT_EQ(tiercel_session_resumed(
                                 static_cast<tiercel_session*>(session)),
                             done > 0 ? 1 : 0);
                   return 0;
                 }),
            1);
  EXPECT_EQ(read(0, nullptr), 0);  // the text is saved
}

// A session that saves only unfinished prompts leaves the finished layers of
// its prompt on disk until a generation behind it has ended, and nothing else.
TEST_F(PromptCacheApiTest, APromptIsKeptForItselfAlone) {
  const std::string folder = TempFolder() + "/texts";
  const std::vector<int32_t> ids(1500, 7);
  auto params = Sized<tiercel_session_params>();
  params.prompt_cache_dir = folder.c_str();
  params.prompt_cache_flags = TIERCEL_PROMPT_CACHE_UNFINISHED_ALONE;
  const auto create = [&] {
    tiercel_session* session = nullptr;
    EXPECT_EQ(tiercel_session_create(model_, &params, &session, &error_),
              TIERCEL_OK)
        << error_.message;
    EXPECT_EQ(tiercel_session_kept(session), 0);
    return session;
  };
  const auto files = [&] {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      names.push_back(entry.path().filename().string().substr(0, 7));
    }
    return names;
  };
  const auto stop_in_second_layer = [](void*, uint64_t done, uint64_t total) {
    return 2 * done > total ? 1 : 0;
  };
  // The prompt is stopped while it is read, and while it is answered.
  tiercel_session* session = create();
  EXPECT_EQ(tiercel_session_prefill(session, ids.data(), ids.size(),
                                    stop_in_second_layer, nullptr, &error_),
            TIERCEL_CANCELLED);
  tiercel_session_free(session);
  EXPECT_EQ(files(), std::vector<std::string>{"prompt-"});
  session = create();
  EXPECT_EQ(tiercel_session_prefill(
                session, ids.data(), ids.size(),
                [](void* of, uint64_t done, uint64_t) {
                  const auto* reading = static_cast<const tiercel_session*>(of);
                  EXPECT_TRUE(done == 0 || tiercel_session_kept(reading) == 1);
                  return 0;
                },
                session, &error_),
            TIERCEL_OK);
  EXPECT_EQ(tiercel_session_resumed(session), 1);
  auto sampling = Sized<tiercel_sampling>();
  sampling.max_tokens = 3;
  sampling.ignore_eos = 1;
  EXPECT_EQ(
      tiercel_session_generate(
          session, &sampling, [](void*, const tiercel_token*) { return 1; },
          nullptr, &error_),
      TIERCEL_CANCELLED);
  EXPECT_EQ(tiercel_session_kept(session), 1);
  tiercel_session_free(session);
  EXPECT_EQ(files(), std::vector<std::string>{"prompt-"});
  // The file goes when the prompt is answered.
  session = create();
  EXPECT_EQ(tiercel_session_prefill(session, ids.data(), ids.size(), nullptr,
                                    nullptr, &error_),
            TIERCEL_OK);
  EXPECT_EQ(tiercel_session_resumed(session), 1);
  EXPECT_EQ(
      tiercel_session_generate(session, &sampling, nullptr, nullptr, &error_),
      TIERCEL_OK);
  EXPECT_EQ(tiercel_session_kept(session), 0);
  tiercel_session_free(session);
  EXPECT_TRUE(files().empty());
  // A session that saves texts keeps all layers of a finished prompt.
  params.prompt_cache_flags = 0;
  for (int i = 0; i < 2; ++i) {
    session = create();
    EXPECT_EQ(tiercel_session_prefill(session, ids.data(), ids.size(), nullptr,
                                      nullptr, &error_),
              TIERCEL_OK);
    if (i == 1) {
      EXPECT_EQ(tiercel_session_kept(session), 2);
    }
    tiercel_session_free(session);
    ASSERT_EQ(files().size(), 1);
    EXPECT_EQ(files()[0].substr(0, 5), "text-");
  }
}

}  // namespace
}  // namespace tiercel::api_test

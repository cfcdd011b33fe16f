// The prompt cache: a text is read, saved, opened by another session, listed,
// and cleared.

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
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

// Parts of a text stay beside each other, while others make room.
TEST_F(PromptCacheApiTest, TheFirstPartsOfATextStay) {
  const std::string folder = TempFolder() + "/texts";
  auto params = Sized<tiercel_session_params>();
  params.prompt_cache_dir = folder.c_str();
  params.prompt_cache_name = "a book";
  const auto part = [](int32_t number, size_t count = 1500) {
    return std::vector<int32_t>(count, number);
  };
  const auto found = [&](const std::vector<int32_t>& ids) {
    int64_t tokens = -1;
    EXPECT_EQ(tiercel_cached_tokens(model_, &params, ids.data(), ids.size(),
                                    nullptr, nullptr, &tokens, &error_),
              TIERCEL_OK)
        << error_.message;
    return tokens;
  };
  // Reads the parts in one session, which may wait for a warning. Returns its
  // warnings.
  const auto read = [&](const std::vector<int32_t>& numbers,
                        bool waits = false) {
    tiercel_session* session = nullptr;
    EXPECT_EQ(tiercel_session_create(model_, &params, &session, &error_),
              TIERCEL_OK);
    const auto read_part = [&](int32_t number, size_t count = 1500) {
      EXPECT_EQ(tiercel_session_truncate(session, 0, &error_), TIERCEL_OK);
      const std::vector<int32_t> ids = part(number, count);
      EXPECT_EQ(tiercel_session_prefill(session, ids.data(), ids.size(),
                                        nullptr, nullptr, &error_),
                TIERCEL_OK);
      return ReportOf(session)["warnings"];
    };
    for (const int32_t number : numbers) read_part(number);
    nlohmann::json warnings;
    for (int times = 0; times < (waits ? 1000 : 1) && warnings.empty();
         ++times) {
      warnings = read_part(numbers.front());
    }
    if (waits) read_part(numbers.back(), 2600);
    tiercel_session_free(session);
    return warnings.dump();
  };
  EXPECT_EQ(found(part(1)), 0);
  EXPECT_EQ(read({1}), "[]");
  EXPECT_EQ(found(part(1)), 1499);
  EXPECT_EQ(found(part(1, 1600)), 1500);
  EXPECT_EQ(found(part(1, 257)), 256);
  EXPECT_EQ(found(part(1, 256)), 0);
  EXPECT_EQ(found(part(2)), 0);
  const uint64_t bytes = ListOf(folder)["prompt_cache"][0]["bytes"];
  params.prompt_cache_bytes = 3 * bytes - 1;
  // The third part finds no room, and the session goes on to keep others: here
  // a longer one, which takes the place of its beginning.
  EXPECT_THAT(read({1, 2, 3, 2}, /*waits=*/true),
              testing::HasSubstr("other parts of this text have"));
  EXPECT_EQ(found(part(1)), 1499);
  EXPECT_EQ(found(part(2, 2600)), 2599);
  EXPECT_EQ(found(part(3)), 0);
  EXPECT_EQ(ListOf(folder)["prompt_cache"].size(), 2);
  // Texts that a session has not used make room. Files are marked by ticks of
  // some milliseconds.
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_EQ(read({4, 5}), "[]");
  EXPECT_EQ(found(part(1)), 0);
  EXPECT_EQ(found(part(5)), 1499);
  std::vector<int32_t> branch = part(5, 1100);
  std::fill(branch.begin() + 600, branch.end(), 6);
  EXPECT_EQ(found(branch), 600);
  params.prompt_cache_name = nullptr;
  EXPECT_EQ(found(branch), 0);
  EXPECT_EQ(found(part(5, 1025)), 1024);
  EXPECT_EQ(found(part(5, 1024)), 0);
  EXPECT_EQ(read({1, 2, 3}), "[]");
  EXPECT_EQ(found(part(5)), 0);
  EXPECT_EQ(found(part(2)), 0);
  EXPECT_EQ(found(part(3)), 1499);

  const std::vector<int32_t> ids = part(2);
  int64_t tokens = 0;
  params.context = 1;
  params.prompt_cache_dir = nullptr;
  params.prompt_cache_bytes = 0;
  EXPECT_EQ(found(ids), 0);
  EXPECT_EQ(tiercel_cached_tokens(nullptr, &params, ids.data(), ids.size(),
                                  nullptr, nullptr, &tokens, &error_),
            TIERCEL_USAGE);
  EXPECT_EQ(tiercel_cached_tokens(model_, &params, nullptr, 1, nullptr, nullptr,
                                  &tokens, &error_),
            TIERCEL_USAGE);
  EXPECT_EQ(tiercel_cached_tokens(model_, &params, ids.data(), ids.size(),
                                  nullptr, nullptr, nullptr, &error_),
            TIERCEL_USAGE);
}

// The model is hashed once, and that may be stopped.
TEST_F(PromptCacheApiTest, AHashIsStopped) {
  const std::string folder = TempFolder() + "/texts";
  auto params = Sized<tiercel_session_params>();
  params.prompt_cache_dir = folder.c_str();
  const std::vector<int32_t> ids(1500, 7);
  int64_t tokens = -1;
  EXPECT_EQ(tiercel_cached_tokens(
                model_, &params, ids.data(), ids.size(),
                [](void*, uint64_t done, uint64_t) {
                  EXPECT_EQ(done, 0u);
                  return 1;
                },
                nullptr, &tokens, &error_),
            TIERCEL_CANCELLED);
  EXPECT_EQ(tokens, -1);
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

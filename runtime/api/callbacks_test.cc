// Callbacks may change the thread that they are called on, or end it: results
// do not depend on that, and the program gets its thread and its session back.

#include <pthread.h>

#include <cfenv>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "include/tiercel_lab.h"
#include "runtime/api/api_fixture_for_test.h"

namespace tiercel::api_test {
namespace {

using Act = std::function<void()>;

// The functions that call back, each with callbacks that all do `act`. Keeps
// the rows, tokens and shares.
struct Calls {
  tiercel_model* model;
  tiercel_session* session;
  Act act;
  std::vector<float> rows = {};
  std::vector<int32_t> tokens = {};
  std::vector<float> shares = {};
  tiercel_error error = Sized<tiercel_error>();

  static int Progress(void* calls, uint64_t, uint64_t) {
    static_cast<Calls*>(calls)->act();
    return 0;
  }
  static int Row(void* of, size_t, const float* logits) {
    auto& calls = *static_cast<Calls*>(of);
    calls.rows.insert(calls.rows.end(), logits, logits + 200);
    calls.act();
    return 0;
  }
  static int Token(void* of, const tiercel_token* token) {
    auto& calls = *static_cast<Calls*>(of);
    calls.tokens.push_back(token->id);
    calls.act();
    return 0;
  }

  std::vector<std::function<tiercel_status()>> All() {
    static const std::vector<int32_t> text = [] {
      std::vector<int32_t> ids;
      for (int32_t i = 0; i < 300; ++i) ids.push_back(3 + i * 11 % 200);
      return ids;
    }();
    const auto again = [this](size_t length) {
      return tiercel_session_truncate(session, length, &error);
    };
    return {
        [this] {
          auto params = Sized<tiercel_model_params>();
          params.path = kModel;
          params.progress = Progress;
          params.user_data = this;
          tiercel_model* opened = nullptr;
          const tiercel_status status =
              tiercel_model_open(&params, &opened, &error);
          tiercel_model_free(opened);
          return status;
        },
        [this] {
          auto limits = Sized<tiercel_text_limits>();
          limits.progress = Progress;
          limits.user_data = this;
          const std::string words(1000, 'a');
          std::vector<int32_t> ids(words.size() + 1);
          size_t size = ids.size();
          return tiercel_tokenize(model, words.data(), words.size(), 0, &limits,
                                  ids.data(), &size, &error);
        },
        [this, again] {
          const tiercel_status cut = again(0);
          return cut != TIERCEL_OK ? cut
                                   : tiercel_session_prefill(
                                         session, text.data(), text.size(),
                                         Progress, this, &error);
        },
        [this] {
          return tiercel_session_score(session, text.data(), 20, 0, Row, this,
                                       &error);
        },
        [this, again] {
          const tiercel_status cut = again(0);
          return cut != TIERCEL_OK
                     ? cut
                     : tiercel_session_read(session, text.data(), text.size(),
                                            Progress, this, &error);
        },
        [this] {
          auto sampling = Sized<tiercel_sampling>();
          sampling.max_tokens = 20;
          sampling.temperature = 0.9f;
          sampling.ignore_eos = 1;
          return tiercel_session_generate(session, &sampling, Token, this,
                                          &error);
        },
        [this] {
          shares.resize(100);
          size_t size = shares.size();
          const tiercel_status status =
              tiercel_session_attended(session, 0, 200, 210, 300, Progress,
                                       this, shares.data(), &size, &error);
          shares.resize(size);
          return status;
        },
        [this, again] {
          const tiercel_status cut = again(0);
          return cut != TIERCEL_OK
                     ? cut
                     : tiercel_session_fill(session, text.data(), text.size(),
                                            7, Progress, this, &error);
        },
    };
  }
  // Calls those that the others need. Returns true if they succeed.
  bool Prepare() {
    const auto all = All();
    return all[2]() == TIERCEL_OK && all[5]() == TIERCEL_OK;
  }
  // Returns true if all of them succeed.
  bool Work() {
    bool good = true;
    for (const auto& call : All()) good = call() == TIERCEL_OK && good;
    return good;
  }
};

class CallbacksTest : public ApiTest {};

// A program's callback may set a rounding mode, for itself only.
TEST_F(CallbacksTest, ArithmeticIsTheLibrarysAgainBehindThem) {
  Calls expected = {model_, session_, [] {}};
  ASSERT_TRUE(expected.Work()) << expected.error.message;
  ASSERT_EQ(expected.rows.size(), 20u * 200);
  ASSERT_EQ(expected.tokens.size(), 20u);
  for (const int mode : {FE_UPWARD, FE_TOWARDZERO}) {
    int found = FE_TONEAREST;
    Calls calls = {model_, session_, [mode, &found] {
                     if (std::fegetround() != FE_TONEAREST) {
                       found = std::fegetround();
                     }
                     std::fesetround(mode);
                   }};
    EXPECT_TRUE(calls.Work()) << calls.error.message;
    EXPECT_EQ(std::fegetround(), FE_TONEAREST);
    EXPECT_EQ(found, FE_TONEAREST);
    EXPECT_EQ(calls.tokens, expected.tokens);
    EXPECT_EQ(calls.shares, expected.shares);
    ASSERT_EQ(calls.rows.size(), expected.rows.size());
    EXPECT_EQ(std::memcmp(calls.rows.data(), expected.rows.data(),
                          calls.rows.size() * sizeof(float)),
              0);
  }
}

// The caller's own mode comes back, not the one that a callback has set.
TEST_F(CallbacksTest, TheCallersArithmeticComesBack) {
  Calls calls = {model_, session_, [] { std::fesetround(FE_DOWNWARD); }};
  std::fesetround(FE_UPWARD);
  for (const auto& call : calls.All()) {
    EXPECT_EQ(call(), TIERCEL_OK);
    EXPECT_EQ(std::fegetround(), FE_UPWARD);
  }
  std::fesetround(FE_TONEAREST);
}

// Prompts that such calls save on disk are the same as others.
TEST_F(CallbacksTest, WhatIsKeptIsWhatWouldBeComputed) {
  const std::string folder = TempFolder() + "/texts";
  const std::vector<int32_t> ids = [] {
    std::vector<int32_t> all;
    for (int32_t i = 0; i < 1500; ++i) all.push_back(3 + i * 7 % 200);
    return all;
  }();
  const auto read = [&](const char* texts, tiercel_progress progress) {
    auto params = Sized<tiercel_session_params>();
    params.prompt_cache_dir = texts;
    tiercel_session* session = nullptr;
    EXPECT_EQ(tiercel_session_create(model_, &params, &session, &error_),
              TIERCEL_OK)
        << error_.message;
    EXPECT_EQ(tiercel_session_prefill(session, ids.data(), ids.size(), progress,
                                      nullptr, &error_),
              TIERCEL_OK)
        << error_.message;
    Calls calls = {model_, session, [] {}};
    EXPECT_EQ(tiercel_session_score(session, ids.data(), 3, 0, Calls::Row,
                                    &calls, &error_),
              TIERCEL_OK);
    tiercel_session_free(session);
    return calls.rows;
  };
  const auto rounds = [](void*, uint64_t, uint64_t) {
    std::fesetround(FE_UPWARD);
    return 0;
  };
  const std::vector<float> expected = read(nullptr, nullptr);
  read(folder.c_str(), rounds);
  EXPECT_EQ(read(folder.c_str(), nullptr), expected);
}

// ---- Threads that end in a call ----

// Runs `call` on a thread; returns true if it returned.
bool Returns(const std::function<void()>& call) {
  bool returned = false;
  std::thread([&] {
    call();
    returned = true;
  }).join();
  return returned;
}

TEST_F(CallbacksTest, AThreadMayEndInOne) {
  Calls expected = {model_, session_, [] {}};
  ASSERT_TRUE(expected.Work()) << expected.error.message;
  const size_t count = expected.All().size();
  for (size_t i = 0; i < count; ++i) {
    Calls before = {model_, session_, [] {}};
    ASSERT_TRUE(before.Prepare());
    Calls ends = {model_, session_, [] { pthread_exit(nullptr); }};
    EXPECT_FALSE(Returns([&] { ends.All()[i](); })) << i;
    Calls after = {model_, session_, [] {}};
    EXPECT_TRUE(after.Work()) << i << ": " << after.error.message;
    EXPECT_EQ(after.tokens, expected.tokens);
  }
}

// pthread_cancel ends a thread where the program's own code runs: in a
// callback, or after the call.
TEST_F(CallbacksTest, AThreadThatIsCancelledEndsInOne) {
  Calls cancels = {model_, session_, [] {
                     pthread_cancel(pthread_self());
                     pthread_testcancel();
                   }};
  for (size_t i = 0; i < cancels.All().size(); ++i) {
    Calls before = {model_, session_, [] {}};
    ASSERT_TRUE(before.Prepare());
    EXPECT_FALSE(Returns([&] { cancels.All()[i](); })) << i;
  }
  Calls after = {model_, session_, [] {}};
  EXPECT_TRUE(after.Work()) << after.error.message;
}

TEST_F(CallbacksTest, AThreadThatIsCancelledEndsBehindTheCall) {
  const std::string folder = TempFolder() + "/texts";
  const std::vector<int32_t> ids(1500, 7);
  tiercel_status status = TIERCEL_FAILED;
  EXPECT_FALSE(Returns([&] {
    pthread_cancel(pthread_self());
    // All of these calls pass points at which a thread can be cancelled.
    auto model_params = Sized<tiercel_model_params>();
    model_params.path = kModel;
    model_params.simulation = &kSmallDevice;
    tiercel_model* model = nullptr;
    status = tiercel_model_open(&model_params, &model, nullptr);
    if (status != TIERCEL_OK) return;
    auto params = Sized<tiercel_session_params>();
    params.prompt_cache_dir = folder.c_str();
    tiercel_session* session = nullptr;
    status = tiercel_session_create(model, &params, &session, nullptr);
    if (status != TIERCEL_OK) return;
    status = tiercel_session_prefill(session, ids.data(), ids.size(), nullptr,
                                     nullptr, nullptr);
    tiercel_session_free(session);
    tiercel_model_free(model);
    pthread_testcancel();
  }));
  EXPECT_EQ(status, TIERCEL_OK);
}

}  // namespace
}  // namespace tiercel::api_test

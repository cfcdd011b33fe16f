// Programs use handles twice at once, or free them too early.

#include <malloc.h>

#include <functional>
#include <latch>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "include/tiercel_lab.h"
#include "runtime/api/api_fixture_for_test.h"
#include "runtime/api/boundary.h"

namespace tiercel::api_test {
namespace {

class LivesTest : public ApiTest {
 protected:
  // Freed memory changes at once.
  void SetUp() override {
    mallopt(M_PERTURB, 0xa5);
    ApiTest::SetUp();
  }
  void TearDown() override {
    ApiTest::TearDown();
    mallopt(M_PERTURB, 0);
  }

  tiercel_session* Fork() {
    tiercel_session* fork = nullptr;
    EXPECT_EQ(tiercel_session_fork(session_, &fork, &error_), TIERCEL_OK)
        << error_.message;
    return fork;
  }
  void Prefill(tiercel_session* session) {
    std::vector<int32_t> ids;
    for (int32_t i = 0; i < 100; ++i) ids.push_back(3 + i * 11 % 200);
    EXPECT_EQ(tiercel_session_truncate(session, 0, &error_), TIERCEL_OK);
    EXPECT_EQ(tiercel_session_prefill(session, ids.data(), ids.size(), nullptr,
                                      nullptr, &error_),
              TIERCEL_OK)
        << error_.message;
  }
};

using OnToken = std::function<void()>;

// Generates tokens, with a call of `on_token` for each.
tiercel_status Generate(tiercel_session* session, OnToken on_token,
                        std::vector<int32_t>* tokens = nullptr) {
  struct To {
    OnToken& on_token;
    std::vector<int32_t>* tokens;
  } to = {on_token, tokens};
  auto sampling = Sized<tiercel_sampling>();
  sampling.max_tokens = 20;
  sampling.temperature = 0.9f;
  sampling.ignore_eos = 1;
  return tiercel_session_generate(
      session, &sampling,
      [](void* of, const tiercel_token* token) {
        auto& found = *static_cast<To*>(of);
        if (found.tokens != nullptr) found.tokens->push_back(token->id);
        if (found.on_token) found.on_token();
        return 0;
      },
      &to, nullptr);
}

// Every call that uses `session` is refused, because another call has the turn.
void ExpectInUse(tiercel_session* session) {
  const int32_t id = 7;
  auto error = Sized<tiercel_error>();
  auto generation = Sized<tiercel_generation>();
  auto sampling = Sized<tiercel_sampling>();
  tiercel_session* copy = nullptr;
  size_t size = 0;
  float share = 0;
  const std::vector<std::function<tiercel_status()>> calls = {
      [&] {
        return tiercel_session_prefill(session, &id, 1, nullptr, nullptr,
                                       &error);
      },
      [&] {
        return tiercel_session_fill(session, &id, 1, 7, nullptr, nullptr,
                                    &error);
      },
      [&] {
        return tiercel_session_read(session, &id, 1, nullptr, nullptr, &error);
      },
      [&] { return tiercel_session_ids(session, nullptr, &size, &error); },
      [&] { return tiercel_session_truncate(session, 0, &error); },
      [&] { return tiercel_session_fork(session, &copy, &error); },
      [&] {
        return tiercel_session_generate(session, &sampling, nullptr, nullptr,
                                        &error);
      },
      [&] {
        return tiercel_session_score(session, &id, 1, 0, nullptr, nullptr,
                                     &error);
      },
      [&] {
        return tiercel_session_get_generation(session, &generation, &error);
      },
      [&] { return tiercel_session_report(session, nullptr, &size, &error); },
      [&] {
        return tiercel_session_token_seconds(session, nullptr, &size, &error);
      },
      [&] {
        return tiercel_session_attended(session, 0, 32, 40, 50, nullptr,
                                        nullptr, &share, &size, &error);
      },
  };
  for (size_t i = 0; i < calls.size(); ++i) {
    size = 0;
    error.code[0] = '\0';
    EXPECT_EQ(calls[i](), TIERCEL_USAGE) << i;
    EXPECT_STREQ(error.code, "session_in_use") << i;
  }
  EXPECT_EQ(copy, nullptr);
}

TEST_F(LivesTest, ACallbackMayNotUseItsSession) {
  Prefill(session_);
  std::vector<int32_t> expected;
  ASSERT_EQ(Generate(session_, nullptr, &expected), TIERCEL_OK);
  Prefill(session_);
  tiercel_session* const fork = Fork();
  EXPECT_EQ(tiercel_session_length(fork), 100u);
  std::vector<int32_t> tokens;
  EXPECT_EQ(Generate(
                session_,
                [&] {
                  ExpectInUse(session_);
                  ExpectInUse(fork);
                  EXPECT_EQ(tiercel_session_length(session_), 100u);
                },
                &tokens),
            TIERCEL_OK);
  EXPECT_EQ(tokens, expected);
  EXPECT_EQ(tiercel_session_length(session_), 120u);
  tokens.clear();
  EXPECT_EQ(Generate(fork, nullptr, &tokens), TIERCEL_OK);
  EXPECT_EQ(tokens, expected);
  tiercel_session_free(fork);
}

TEST_F(LivesTest, AnotherThreadIsRefused) {
  Prefill(session_);
  std::latch works(1);
  std::latch goes_on(1);
  tiercel_status status = TIERCEL_FAILED;
  std::thread thread([&] {
    bool first = true;
    status = Generate(session_, [&] {
      if (std::exchange(first, false)) works.count_down();
      goes_on.wait();
    });
  });
  works.wait();
  ExpectInUse(session_);
  goes_on.count_down();
  thread.join();
  EXPECT_EQ(status, TIERCEL_OK);
  EXPECT_EQ(tiercel_session_length(session_), 120u);
}

TEST_F(LivesTest, ASessionMayBeFreedInItsCallback) {
  Prefill(session_);
  tiercel_session* const fork = Fork();
  tiercel_session* session = std::exchange(session_, nullptr);
  EXPECT_EQ(
      Generate(session,
               [&] { tiercel_session_free(std::exchange(session, nullptr)); }),
      TIERCEL_CANCELLED);
  EXPECT_EQ(session, nullptr);
  EXPECT_EQ(Generate(fork, nullptr), TIERCEL_OK);
  tiercel_session_free(fork);
}

TEST_F(LivesTest, AForkMayBeFreedInACall) {
  Prefill(session_);
  tiercel_session* fork = Fork();
  EXPECT_EQ(
      Generate(session_,
               [&] { tiercel_session_free(std::exchange(fork, nullptr)); }),
      TIERCEL_OK);
  EXPECT_EQ(Generate(session_, nullptr), TIERCEL_OK);
}

// All of them go when the call ends, and then hold the model no longer.
TEST_F(LivesTest, SeveralForksMayBeFreedInACall) {
  Prefill(session_);
  const long holders = model_->model.use_count();
  std::vector<tiercel_session*> forks = {Fork(), Fork(), Fork()};
  EXPECT_GT(model_->model.use_count(), holders);
  EXPECT_EQ(Generate(session_,
                     [&] {
                       for (tiercel_session*& fork : forks) {
                         tiercel_session_free(std::exchange(fork, nullptr));
                       }
                     }),
            TIERCEL_OK);
  EXPECT_EQ(model_->model.use_count(), holders);
}

TEST_F(LivesTest, AnotherThreadMayFreeIt) {
  Prefill(session_);
  std::latch works(1);
  std::latch goes_on(1);
  tiercel_status status = TIERCEL_FAILED;
  std::thread thread([&, session = session_] {
    bool first = true;
    status = Generate(session, [&] {
      if (std::exchange(first, false)) works.count_down();
      goes_on.wait();
    });
  });
  works.wait();
  tiercel_session_free(std::exchange(session_, nullptr));
  goes_on.count_down();
  thread.join();
  EXPECT_EQ(status, TIERCEL_CANCELLED);
}

TEST_F(LivesTest, AModelLivesAsLongAsItsSessions) {
  tiercel_model* const draft = Open(kModel, TIERCEL_LOAD_ALL, model_);
  auto policy = Sized<tiercel_policy>();
  policy.draft = "small";
  policy.verify = "coupled";
  policy.draft_model = draft;
  auto params = Sized<tiercel_session_params>();
  params.policy = &policy;
  tiercel_session* drafts = nullptr;
  ASSERT_EQ(tiercel_session_create(model_, &params, &drafts, &error_),
            TIERCEL_OK)
      << error_.message;
  Prefill(session_);
  std::vector<int32_t> expected;
  ASSERT_EQ(Generate(session_, nullptr, &expected), TIERCEL_OK);
  tiercel_model_free(draft);
  tiercel_model_free(std::exchange(model_, nullptr));
  for (tiercel_session* const session : {session_, drafts}) {
    Prefill(session);
    tiercel_session* copy = nullptr;
    ASSERT_EQ(tiercel_session_fork(session, &copy, &error_), TIERCEL_OK)
        << error_.message;
    std::vector<int32_t> tokens;
    EXPECT_EQ(Generate(session, nullptr, &tokens), TIERCEL_OK);
    EXPECT_EQ(tokens, expected);
    tiercel_session_free(session);
    tokens.clear();
    EXPECT_EQ(Generate(copy, nullptr, &tokens), TIERCEL_OK);
    EXPECT_EQ(tokens, expected);
    tiercel_session_free(copy);
  }
  session_ = nullptr;
}

TEST_F(LivesTest, AModelMayBeFreedInACallback) {
  tiercel_model* model = Open(kModel, TIERCEL_LOAD_ALL);
  auto limits = Sized<tiercel_text_limits>();
  limits.user_data = &model;
  limits.progress = [](void* of, uint64_t, uint64_t) {
    tiercel_model_free(
        std::exchange(*static_cast<tiercel_model**>(of), nullptr));
    return 0;
  };
  const std::string text(1000, 'a');
  std::vector<int32_t> ids(text.size() + 1);
  size_t size = ids.size();
  EXPECT_EQ(tiercel_tokenize(model, text.data(), text.size(), 0, &limits,
                             ids.data(), &size, &error_),
            TIERCEL_OK)
      << error_.message;
  EXPECT_EQ(model, nullptr);
  ids.resize(size);
  EXPECT_EQ(ids, Tokenize(text));
}

}  // namespace
}  // namespace tiercel::api_test

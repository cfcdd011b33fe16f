// Each tiercel_session_cancel is answered once, whenever it comes.

#include <stdlib.h>

#include <atomic>
#include <cstdint>
#include <random>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "include/tiercel_lab.h"
#include "runtime/api/api_fixture_for_test.h"

namespace tiercel::cancel_test {
namespace {

using api_test::Sized;

class CancelTest : public api_test::ApiTest {
 public:
  tiercel_status Prefill(tiercel_session* session) {
    return tiercel_session_prefill(session, kIds.data(), kIds.size(), nullptr,
                                   nullptr, &error_);
  }
  tiercel_status Fill(tiercel_session* session) {
    return tiercel_session_fill(session, kIds.data(), kIds.size(), 1, nullptr,
                                nullptr, &error_);
  }
  tiercel_status Read(tiercel_session* session) {
    return tiercel_session_read(session, kIds.data(), kIds.size(), nullptr,
                                nullptr, &error_);
  }
  tiercel_status Generate(tiercel_session* session) {
    auto sampling = Sized<tiercel_sampling>();
    sampling.max_tokens = 2;
    sampling.ignore_eos = 1;
    return tiercel_session_generate(session, &sampling, nullptr, nullptr,
                                    &error_);
  }
  tiercel_status Score(tiercel_session* session) {
    return tiercel_session_score(session, kIds.data(), kIds.size(), 0, nullptr,
                                 nullptr, &error_);
  }
  // These calls neither see nor clear it.
  void LookOn(tiercel_session* session) {
    EXPECT_EQ(tiercel_session_truncate(session, 1, &error_), TIERCEL_OK);
    EXPECT_EQ(tiercel_session_length(session), 1u);
    size_t size = 0;
    EXPECT_EQ(tiercel_session_report(session, nullptr, &size, &error_),
              TIERCEL_BUFFER_TOO_SMALL);
    tiercel_session* fork = nullptr;
    ASSERT_EQ(tiercel_session_fork(session, &fork, &error_), TIERCEL_OK);
    EXPECT_EQ(Generate(fork), TIERCEL_OK) << error_.message;
    tiercel_session_free(fork);
  }

  const std::vector<int32_t> kIds = {3, 4, 5};
};

TEST_F(CancelTest, TheNextCallAnswersOnce) {
  ASSERT_EQ(Prefill(session_), TIERCEL_OK) << error_.message;
  using Call = tiercel_status (CancelTest::*)(tiercel_session*);
  for (const Call call :
       {&CancelTest::Prefill, &CancelTest::Fill, &CancelTest::Read,
        &CancelTest::Generate, &CancelTest::Score}) {
    tiercel_session_cancel(session_);
    tiercel_session_cancel(
        session_);  // a second one before the answer changes nothing
    LookOn(session_);
    EXPECT_EQ((this->*call)(session_), TIERCEL_CANCELLED);
    EXPECT_STREQ(error_.code, "cancelled");
    EXPECT_EQ(tiercel_session_length(session_), 1u);
    EXPECT_EQ((this->*call)(session_), TIERCEL_OK) << error_.message;
  }
}

// A call that computes nothing still answers.
TEST_F(CancelTest, ACallWithNothingToDoAnswersToo) {
  ASSERT_EQ(Read(session_), TIERCEL_OK) << error_.message;
  tiercel_session_cancel(session_);
  EXPECT_EQ(Read(session_), TIERCEL_CANCELLED);
  EXPECT_EQ(Read(session_), TIERCEL_OK) << error_.message;
  tiercel_session_cancel(session_);
  EXPECT_EQ(
      tiercel_session_score(session_, nullptr, 0, 0, nullptr, nullptr, &error_),
      TIERCEL_CANCELLED);
  EXPECT_EQ(
      tiercel_session_score(session_, nullptr, 0, 0, nullptr, nullptr, &error_),
      TIERCEL_OK);
  tiercel_session_cancel(session_);
  EXPECT_EQ(
      tiercel_session_fill(session_, nullptr, 0, 0, nullptr, nullptr, &error_),
      TIERCEL_CANCELLED);
  EXPECT_EQ(
      tiercel_session_fill(session_, nullptr, 0, 0, nullptr, nullptr, &error_),
      TIERCEL_OK);

  // A plain form obeys a cancellation once, too.
  auto policy = Sized<tiercel_policy>();
  policy.name = "sfi";
  policy.form = "plain";
  policy.settings = "trigger=fixed";
  policy.budget = 8;
  policy.window = 8;
  auto params = Sized<tiercel_session_params>();
  params.policy = &policy;
  tiercel_session* plain = nullptr;
  ASSERT_EQ(tiercel_session_create(model_, &params, &plain, &error_),
            TIERCEL_OK)
      << error_.message;
  EXPECT_EQ(Prefill(plain), TIERCEL_OK) << error_.message;
  tiercel_session_cancel(plain);
  EXPECT_EQ(
      tiercel_session_score(plain, nullptr, 0, 0, nullptr, nullptr, &error_),
      TIERCEL_CANCELLED);
  EXPECT_EQ(
      tiercel_session_score(plain, nullptr, 0, 0, nullptr, nullptr, &error_),
      TIERCEL_OK);
  tiercel_session_free(plain);
}

// The report is of the call that ended last.
TEST_F(CancelTest, WhatWasNotBegunIsReportedSo) {
  const auto last = [&] {
    auto generation = Sized<tiercel_generation>();
    EXPECT_EQ(tiercel_session_get_generation(session_, &generation, &error_),
              TIERCEL_OK);
    return generation;
  };
  ASSERT_EQ(Read(session_), TIERCEL_OK) << error_.message;
  ASSERT_EQ(Generate(session_), TIERCEL_OK) << error_.message;
  ASSERT_EQ(last().output_tokens, 2);
  tiercel_session_cancel(session_);
  EXPECT_EQ(Generate(session_), TIERCEL_CANCELLED);
  EXPECT_EQ(last().finish, TIERCEL_FINISH_CANCELLED);
  EXPECT_EQ(last().prompt_tokens, 5);
  EXPECT_EQ(last().output_tokens, 0);
  EXPECT_EQ(last().ttft_seconds, 0);

  // A call with wrong arguments is not one that ended.
  ASSERT_EQ(Generate(session_), TIERCEL_OK) << error_.message;
  auto wrong = Sized<tiercel_sampling>();
  wrong.max_tokens = -1;
  EXPECT_EQ(
      tiercel_session_generate(session_, &wrong, nullptr, nullptr, &error_),
      TIERCEL_USAGE);
  EXPECT_EQ(last().output_tokens, 2);
  EXPECT_EQ(last().finish, TIERCEL_FINISH_LENGTH);
}

TEST_F(CancelTest, AReadThatFailsReportsWhatItLeft) {
  for (const bool cancelled : {true, false}) {
    ASSERT_EQ(Read(session_), TIERCEL_OK) << error_.message;
    ASSERT_EQ(Generate(session_), TIERCEL_OK) << error_.message;
    if (cancelled) tiercel_session_cancel(session_);
    const std::vector<int32_t> other = {3, 4, cancelled ? 6 : -1};
    EXPECT_EQ(tiercel_session_read(session_, other.data(), other.size(),
                                   nullptr, nullptr, &error_),
              cancelled ? TIERCEL_CANCELLED : TIERCEL_INVALID_INPUT);
    auto generation = Sized<tiercel_generation>();
    ASSERT_EQ(tiercel_session_get_generation(session_, &generation, &error_),
              TIERCEL_OK);
    EXPECT_EQ(generation.prompt_tokens, 2);
    EXPECT_EQ(generation.cached_tokens, 2);
    EXPECT_EQ(generation.prefill_seconds, 0);
    EXPECT_EQ(generation.output_tokens, 0);
    EXPECT_EQ(generation.finish, TIERCEL_FINISH_NONE);
  }
}

TEST_F(CancelTest, MayBeForgotten) {
  tiercel_session_cancel(session_);
  tiercel_session_clear_cancel(session_);
  EXPECT_EQ(Prefill(session_), TIERCEL_OK) << error_.message;
  tiercel_session_clear_cancel(nullptr);
}

// A callback that stops the call answers any cancel before it.
TEST_F(CancelTest, ACallbackThatStopsAnswersToo) {
  const auto stop = [](void* session, uint64_t, uint64_t) -> int {
    tiercel_session_cancel(static_cast<tiercel_session*>(session));
    return 1;
  };
  EXPECT_EQ(tiercel_session_prefill(session_, kIds.data(), kIds.size(), stop,
                                    session_, &error_),
            TIERCEL_CANCELLED);
  EXPECT_EQ(Prefill(session_), TIERCEL_OK) << error_.message;
}

TEST_F(CancelTest, NoneIsLost) {
  const int cancels = getenv("TIERCEL_ALL_CANCELS") != nullptr ? 10'000 : 500;
  std::atomic<int> sent = 0;
  std::atomic<int> answered = 0;
  std::thread canceller([&] {
    std::mt19937 random(1);
    for (int i = 0; i < cancels; ++i) {
      for (auto wait = random() % 3000; wait > 0; --wait) {
        sent.load();  // some time passes
      }
      sent = i + 1;
      tiercel_session_cancel(session_);
      while (answered <= i) std::this_thread::yield();
    }
  });
  std::mt19937 random(2);
  while (answered < cancels) {
    tiercel_status status = TIERCEL_OK;
    switch (random() % 7) {
      case 0:
        status = Prefill(session_);
        break;
      case 1:
        status = tiercel_session_length(session_) > 0 ? Generate(session_)
                                                      : Read(session_);
        break;
      case 2:
        status = Score(session_);
        break;
      case 3:
        EXPECT_EQ(tiercel_session_truncate(session_, 0, &error_), TIERCEL_OK);
        break;
      case 4:
        status = Fill(session_);
        break;
      case 5:  // between calls
        for (auto wait = random() % 3000; wait > 0; --wait) sent.load();
        break;
      default:
        status = Read(session_);
    }
    if (status == TIERCEL_CANCELLED) {
      ASSERT_LT(answered, sent);
      ++answered;
    } else {
      ASSERT_EQ(status, TIERCEL_OK) << error_.message;
    }
    if (tiercel_session_length(session_) > 300) {
      EXPECT_EQ(tiercel_session_truncate(session_, 0, &error_), TIERCEL_OK);
    }
  }
  canceller.join();
  EXPECT_EQ(Read(session_), TIERCEL_OK) << error_.message;
}

}  // namespace
}  // namespace tiercel::cancel_test

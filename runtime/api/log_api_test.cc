// The program's log, through tiercel.h.

#include <cstdint>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "include/tiercel_queue.h"
#include "runtime/api/api_fixture_for_test.h"

namespace tiercel::api_test {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct LogLine {
  int32_t level;
  std::string sentence;
  std::thread::id thread;
};

auto LineOf(int32_t level, const std::string& part) {
  return AllOf(Field(&LogLine::level, level),
               Field(&LogLine::sentence, HasSubstr(part)));
}

class LogApiTest : public ApiTest {
 protected:
  void SetUp() override {
    error_ = Sized<tiercel_error>();
    auto params = Sized<tiercel_model_params>();
    params.path = kModel;
    params.log = [](void* to, int32_t level, const char* sentence) {
      static_cast<std::vector<LogLine>*>(to)->push_back(
          {level, sentence, std::this_thread::get_id()});
    };
    params.log_user_data = &lines_;
    ASSERT_EQ(tiercel_model_open(&params, &model_, &error_), TIERCEL_OK)
        << error_.message;
  }

  // The lines since the last call.
  std::vector<LogLine> Lines() { return std::exchange(lines_, {}); }

  // A session whose policy has a setting without effect, which is a warning.
  tiercel_session* Create() {
    auto policy = Sized<tiercel_policy>();
    policy.name = "sfi";
    policy.settings = "gap=2";
    policy.budget = 64;
    policy.window = 32;
    auto params = Sized<tiercel_session_params>();
    params.policy = &policy;
    tiercel_session* session = nullptr;
    EXPECT_EQ(tiercel_session_create(model_, &params, &session, &error_),
              TIERCEL_OK)
        << error_.message;
    return session;
  }

  static void Read(tiercel_session* session) {
    const int32_t ids[] = {5, 6, 7};
    EXPECT_EQ(tiercel_session_read(session, ids, 3, nullptr, nullptr, nullptr),
              TIERCEL_OK);
  }
  static tiercel_sampling Two() {
    auto sampling = Sized<tiercel_sampling>();
    sampling.max_tokens = 2;
    sampling.ignore_eos = 1;
    return sampling;
  }

  std::vector<LogLine> lines_;
};

TEST_F(LogApiTest, CallsSayWhatTheyDid) {
  EXPECT_THAT(Lines(),
              ElementsAre(LineOf(TIERCEL_LOG_INFO, "llama_chat.gguf: llama")));
  session_ = Create();
  EXPECT_THAT(Lines(),
              ElementsAre(LineOf(TIERCEL_LOG_WARNING, "gap: no effect")));
  tiercel_session* other = Create();
  EXPECT_THAT(Lines(), IsEmpty());  // each warning once
  tiercel_session_free(other);
  Read(session_);
  EXPECT_THAT(Lines(), ElementsAre(LineOf(TIERCEL_LOG_INFO,
                                          "read 3 tokens, 0 "
                                          "of which")));
  const tiercel_sampling sampling = Two();
  Generated(session_, sampling);
  EXPECT_THAT(Lines(),
              ElementsAre(LineOf(TIERCEL_LOG_INFO, "generated 2 tokens in ")));
}

TEST_F(LogApiTest, AnErrorOfACallThatBeganIsSaid) {
  session_ = Create();
  Lines();
  const int32_t wrong = 1 << 30;
  EXPECT_EQ(
      tiercel_session_prefill(session_, &wrong, 1, nullptr, nullptr, &error_),
      TIERCEL_INVALID_INPUT);
  EXPECT_THAT(Lines(), ElementsAre(LineOf(
                           TIERCEL_LOG_ERROR,
                           std::string("invalid_token: ") + error_.message)));
  tiercel_session_cancel(session_);
  const int32_t id = 5;
  EXPECT_EQ(
      tiercel_session_prefill(session_, &id, 1, nullptr, nullptr, &error_),
      TIERCEL_CANCELLED);
  EXPECT_THAT(Lines(), IsEmpty());
}

// A batch tells on its caller's thread, a queue on its own.
TEST_F(LogApiTest, ItComesOnTheThreadOfCallbacks) {
  session_ = Create();
  Read(session_);
  Lines();
  const tiercel_sampling sampling = Two();
  auto entry = Sized<tiercel_batch_entry>();
  entry.session = session_;
  entry.sampling = &sampling;
  const tiercel_batch_entry* entries[] = {&entry};
  ASSERT_EQ(tiercel_generate_batch(entries, 1, &error_), TIERCEL_OK);
  std::vector<LogLine> lines = Lines();
  ASSERT_THAT(lines, ElementsAre(LineOf(TIERCEL_LOG_INFO, "generated 2 ")));
  EXPECT_EQ(lines[0].thread, std::this_thread::get_id());

  auto params = Sized<tiercel_queue_params>();
  tiercel_queue* queue = nullptr;
  ASSERT_EQ(tiercel_queue_create(model_, &params, &queue, &error_), TIERCEL_OK);
  ASSERT_EQ(tiercel_queue_add(queue, &entry, nullptr, &error_), TIERCEL_OK);
  ASSERT_EQ(tiercel_queue_wait(queue, &error_), TIERCEL_OK);
  lines = Lines();
  ASSERT_THAT(lines, ElementsAre(LineOf(TIERCEL_LOG_INFO, "generated 2 ")));
  EXPECT_NE(lines[0].thread, std::this_thread::get_id());
  tiercel_queue_free(queue);
}

TEST_F(LogApiTest, AnExceptionOfTheLogEndsNothing) {
  auto params = Sized<tiercel_model_params>();
  params.path = kModel;
  int calls = 0;
  params.log = [](void* count, int32_t, const char*) {
    ++*static_cast<int*>(count);
    throw std::runtime_error("the log is full");
  };
  params.log_user_data = &calls;
  tiercel_model* model = nullptr;
  ASSERT_EQ(tiercel_model_open(&params, &model, &error_), TIERCEL_OK);
  tiercel_session* session = nullptr;
  const auto of_session = Sized<tiercel_session_params>();
  ASSERT_EQ(tiercel_session_create(model, &of_session, &session, &error_),
            TIERCEL_OK);
  Read(session);
  EXPECT_EQ(calls, 2);
  tiercel_session_free(session);
  tiercel_model_free(model);
}

// ASan sees what is used after it.
TEST_F(LogApiTest, TheModelMayBeFreedInItsLog) {
  auto params = Sized<tiercel_model_params>();
  params.path = kModel;
  struct Freeing {
    tiercel_model* model = nullptr;
    int calls = 0;
  } freeing;
  params.log = [](void* to, int32_t, const char*) {
    auto* const one = static_cast<Freeing*>(to);
    ++one->calls;
    tiercel_model_free(std::exchange(one->model, nullptr));
  };
  params.log_user_data = &freeing;
  ASSERT_EQ(tiercel_model_open(&params, &freeing.model, &error_), TIERCEL_OK);
  EXPECT_EQ(freeing.calls, 1);
  EXPECT_EQ(freeing.model, nullptr);
}

}  // namespace
}  // namespace tiercel::api_test

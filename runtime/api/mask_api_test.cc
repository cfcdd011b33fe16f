// Programs mask tokens: by callbacks that are called as the others are, in
// single calls, batches and queues.

#include <cstdint>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "include/tiercel_queue.h"
#include "runtime/api/api_fixture_for_test.h"

namespace tiercel::mask_api_test {
namespace {

using api_test::Generated;
using api_test::Sized;
using testing::HasSubstr;

using Ids = std::vector<int32_t>;

// A mask that allows a token if it and the one before it are both even or both
// odd, and what it does besides.
struct Parity {
  int32_t first = 0;  // stands before an output
  size_t calls = 0;
  size_t refuses_at = SIZE_MAX;  // calls
  size_t throws_at = SIZE_MAX;
  size_t has_no_memory_at = SIZE_MAX;
  size_t dead_at = SIZE_MAX;         // tokens behind which nothing is allowed
  tiercel_session* own = nullptr;    // on which it tries a call
  tiercel_session* other = nullptr;  // ... that it generates with
  tiercel_status tried = TIERCEL_OK;
  std::thread::id thread = {};
  size_t words = 0;
};

int Mask(void* of, const int32_t* output, size_t count, uint32_t* allowed,
         size_t words) {
  auto& parity = *static_cast<Parity*>(of);
  ++parity.calls;
  parity.thread = std::this_thread::get_id();
  parity.words = words;
  if (parity.calls == parity.throws_at) throw std::runtime_error("as asked");
  if (parity.calls == parity.has_no_memory_at) throw std::bad_alloc();
  if (parity.own != nullptr) {
    parity.tried = tiercel_session_truncate(parity.own, 0, nullptr);
  }
  if (parity.other != nullptr) {
    auto sampling = Sized<tiercel_sampling>();
    sampling.max_tokens = 2;
    EXPECT_EQ(tiercel_session_generate(parity.other, &sampling, nullptr,
                                       nullptr, nullptr),
              TIERCEL_OK);
  }
  const int32_t last = count == 0 ? parity.first : output[count - 1];
  const uint32_t keep = last % 2 == 0 ? 0x55555555u : 0xAAAAAAAAu;
  for (size_t i = 0; i < words; ++i) {
    EXPECT_NE(allowed[i], 0u);
    allowed[i] &= count >= parity.dead_at ? 0 : keep;
  }
  return parity.calls == parity.refuses_at;
}

bool Obeys(const Ids& ids, int32_t first) {
  return std::all_of(ids.begin(), ids.end(),
                     [&](int32_t id) { return id % 2 == first; });
}

class MaskApiTest : public api_test::ApiTest {
 protected:
  void SetUp() override {
    ApiTest::SetUp();
    prompt_ = Tokenize("the falcon and the heron and the falcon and");
    Read(session_);
  }

  void Read(tiercel_session* session) {
    ASSERT_EQ(tiercel_session_read(session, prompt_.data(), prompt_.size(),
                                   nullptr, nullptr, &error_),
              TIERCEL_OK)
        << error_.message;
  }
  static tiercel_sampling With(Parity* parity, float temperature = 0.9f) {
    auto sampling = Sized<tiercel_sampling>();
    sampling.max_tokens = 24;
    sampling.temperature = temperature;
    sampling.seed = 3;
    sampling.ignore_eos = 1;
    if (parity != nullptr) sampling.mask = Mask;
    sampling.mask_user_data = parity;
    return sampling;
  }
  tiercel_status Generate(Parity* parity) {
    const tiercel_sampling sampling = With(parity);
    return tiercel_session_generate(session_, &sampling, nullptr, nullptr,
                                    &error_);
  }
  // The session goes on as one that was given the same tokens does.
  void ExpectGoesOn() {
    Ids held(tiercel_session_length(session_));
    size_t size = held.size();
    ASSERT_EQ(tiercel_session_ids(session_, held.data(), &size, &error_),
              TIERCEL_OK);
    tiercel_session* fresh = nullptr;
    const auto params = Sized<tiercel_session_params>();
    ASSERT_EQ(tiercel_session_create(model_, &params, &fresh, &error_),
              TIERCEL_OK);
    ASSERT_EQ(tiercel_session_prefill(fresh, held.data(), held.size(), nullptr,
                                      nullptr, &error_),
              TIERCEL_OK);
    EXPECT_EQ(Generated(session_, With(nullptr)),
              Generated(fresh, With(nullptr)));
    tiercel_session_free(fresh);
    Read(session_);
  }
  tiercel_session* Fork() {
    tiercel_session* fork = nullptr;
    EXPECT_EQ(tiercel_session_fork(session_, &fork, &error_), TIERCEL_OK);
    return fork;
  }

  Ids prompt_;
};

TEST_F(MaskApiTest, TokensAreMaskedOnTheCallersThread) {
  const Ids free = Generated(session_, With(nullptr));
  for (const int32_t first : {0, 1}) {
    for (const float temperature : {0.0f, 0.9f}) {
      Read(session_);
      Parity parity = {.first = first};
      const Ids ids = Generated(session_, With(&parity, temperature));
      EXPECT_EQ(ids.size(), 24u);
      EXPECT_TRUE(Obeys(ids, first));
      EXPECT_EQ(parity.calls, 24u);
      EXPECT_EQ(parity.thread, std::this_thread::get_id());
      auto info = Sized<tiercel_model_info>();
      ASSERT_EQ(tiercel_model_get_info(model_, &info, &error_), TIERCEL_OK);
      EXPECT_EQ(parity.words, static_cast<size_t>(info.vocab + 31) / 32);
    }
  }
  EXPECT_FALSE(Obeys(free, free[0] % 2));
}

TEST_F(MaskApiTest, AMaskMayEndTheCall) {
  const Ids expected = [&] {
    Parity parity;
    return Generated(session_, With(&parity));
  }();
  for (const size_t at : {1, 6}) {
    Read(session_);
    Parity refuses = {.refuses_at = at};
    EXPECT_EQ(Generate(&refuses), TIERCEL_CANCELLED);
    EXPECT_EQ(tiercel_session_length(session_), prompt_.size() + at - 1);
    ExpectGoesOn();
    Parity throws = {.throws_at = at};
    EXPECT_EQ(Generate(&throws), TIERCEL_FAILED);
    EXPECT_STREQ(error_.message, "as asked");
    EXPECT_EQ(tiercel_session_length(session_), prompt_.size() + at - 1);
    ExpectGoesOn();
    Parity has_no_memory = {.has_no_memory_at = at};
    EXPECT_EQ(Generate(&has_no_memory), TIERCEL_OUT_OF_MEMORY);
    ExpectGoesOn();
    Parity dead = {.dead_at = at};
    EXPECT_EQ(Generate(&dead), TIERCEL_FAILED);
    EXPECT_STREQ(error_.code, "nothing_allowed");
    EXPECT_THAT(error_.message, HasSubstr("allows no token"));
    EXPECT_EQ(tiercel_session_length(session_), prompt_.size() + at);
    ExpectGoesOn();
  }
  Parity parity;
  EXPECT_EQ(Generated(session_, With(&parity)), expected);
}

TEST_F(MaskApiTest, AMaskMayUseOtherSessions) {
  Parity parity;
  const Ids expected = Generated(session_, With(&parity));
  Read(session_);
  const auto params = Sized<tiercel_session_params>();
  tiercel_session* other = nullptr;
  ASSERT_EQ(tiercel_session_create(model_, &params, &other, &error_),
            TIERCEL_OK);
  Read(other);
  Parity busy = {.own = session_, .other = other};
  EXPECT_EQ(Generated(session_, With(&busy)), expected);
  EXPECT_EQ(busy.tried, TIERCEL_USAGE);
  tiercel_session_free(other);
}

TEST_F(MaskApiTest, EntriesOfABatchHaveMasksOfTheirOwn) {
  constexpr size_t kCount = 3;
  Parity masks[kCount] = {{.first = 0}, {.first = 1}, {}};
  const tiercel_sampling samplings[kCount] = {With(&masks[0]), With(&masks[1]),
                                              With(nullptr)};
  std::vector<Ids> alone;
  for (const tiercel_sampling& sampling : samplings) {
    Read(session_);
    alone.push_back(Generated(session_, sampling));
  }
  Read(session_);
  tiercel_session* const sessions[kCount] = {session_, Fork(), Fork()};
  tiercel_batch_entry entries[kCount];
  const tiercel_batch_entry* list[kCount];
  for (size_t i = 0; i < kCount; ++i) {
    entries[i] = Sized<tiercel_batch_entry>();
    entries[i].session = sessions[i];
    entries[i].sampling = &samplings[i];
    list[i] = &entries[i];
  }
  EXPECT_EQ(tiercel_generate_batch(list, kCount, &error_), TIERCEL_OK)
      << error_.message;
  for (size_t i = 0; i < kCount; ++i) {
    EXPECT_EQ(api_test::ReportOf(sessions[i])["output"][0]["tokens"], alone[i]);
  }
  EXPECT_EQ(masks[1].thread, std::this_thread::get_id());

  // One that is refused ends alone.
  tiercel_status status = TIERCEL_OK;
  entries[1].status = &status;
  Parity refuses = {.refuses_at = 3};
  const tiercel_sampling refused = With(&refuses);
  entries[1].sampling = &refused;
  EXPECT_EQ(tiercel_generate_batch(list, kCount, &error_), TIERCEL_CANCELLED);
  EXPECT_EQ(status, TIERCEL_CANCELLED);
  EXPECT_EQ(api_test::ReportOf(sessions[1])["output"][0]["tokens"].size(), 2u);
  EXPECT_EQ(api_test::ReportOf(sessions[0])["output"][0]["tokens"].size(), 24u);
  tiercel_session_free(sessions[1]);
  tiercel_session_free(sessions[2]);
}

TEST_F(MaskApiTest, AQueueAsksOnItsOwnThread) {
  Parity parity = {.first = 1};
  const Ids expected = Generated(session_, With(&parity));
  Read(session_);
  tiercel_queue* queue = nullptr;
  const auto params = Sized<tiercel_queue_params>();
  ASSERT_EQ(tiercel_queue_create(model_, &params, &queue, &error_), TIERCEL_OK)
      << error_.message;
  Parity throws = {.throws_at = 4};
  tiercel_session* const other = Fork();
  {
    // The queue has copies of what it needs.
    const tiercel_sampling sampling = With(&parity);
    const tiercel_sampling bad = With(&throws);
    auto entry = Sized<tiercel_batch_entry>();
    entry.session = session_;
    entry.sampling = &sampling;
    ASSERT_EQ(tiercel_queue_add(queue, &entry, nullptr, &error_), TIERCEL_OK);
    entry.session = other;
    entry.sampling = &bad;
    entry.user_data = &throws;
    const auto ended = [](void* to, tiercel_status status,
                          const tiercel_error* error) {
      static_cast<Parity*>(to)->tried = status;
      EXPECT_STREQ(error->message, "as asked");
    };
    ASSERT_EQ(tiercel_queue_add(queue, &entry, ended, &error_), TIERCEL_OK);
  }
  EXPECT_EQ(tiercel_queue_wait(queue, &error_), TIERCEL_OK);
  tiercel_queue_free(queue);
  EXPECT_EQ(api_test::ReportOf(session_)["output"][0]["tokens"], expected);
  EXPECT_NE(parity.thread, std::this_thread::get_id());
  EXPECT_EQ(throws.tried, TIERCEL_FAILED);
  EXPECT_EQ(tiercel_session_length(other), prompt_.size() + 3);
  tiercel_session_free(other);
}

}  // namespace
}  // namespace tiercel::mask_api_test

// A program calls tiercel_session_attended.

#include <numeric>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "include/tiercel.h"
#include "runtime/api/api_fixture_for_test.h"

namespace tiercel::api_test {
namespace {

class AttendedApiTest : public ApiTest {
 protected:
  void SetUp() override {
    ApiTest::SetUp();
    std::string text;
    for (int i = 0; i < 40; ++i)
      text += "The cat sat on mat " + std::to_string(i);
    ids_ = Tokenize(text);
    ASSERT_GT(ids_.size(), 300u);
    ids_.resize(300);
    ASSERT_EQ(tiercel_session_prefill(session_, ids_.data(), ids_.size(),
                                      nullptr, nullptr, &error_),
              TIERCEL_OK)
        << error_.message;
    auto sampling = Sized<tiercel_sampling>();
    sampling.max_tokens = 20;
    sampling.ignore_eos = 1;
    ASSERT_EQ(tiercel_session_generate(session_, &sampling, nullptr, nullptr,
                                       &error_),
              TIERCEL_OK)
        << error_.message;
  }

  tiercel_status Attended(size_t begin, size_t end, size_t asked, size_t answer,
                          std::vector<float>* shares,
                          tiercel_progress progress = nullptr,
                          void* user_data = nullptr) {
    size_t size = shares->size();
    const tiercel_status status =
        tiercel_session_attended(session_, begin, end, asked, answer, progress,
                                 user_data, shares->data(), &size, &error_);
    if (status == TIERCEL_OK || status == TIERCEL_BUFFER_TOO_SMALL) {
      shares->resize(size);
    }
    return status;
  }

  std::vector<int32_t> ids_;
};

TEST_F(AttendedApiTest, SaysHowManyAndThenWhere) {
  std::vector<float> shares;
  ASSERT_EQ(Attended(10, 290, 295, 300, &shares), TIERCEL_BUFFER_TOO_SMALL);
  ASSERT_EQ(shares.size(), 8u);  // runs from 32 to 288
  ASSERT_EQ(Attended(10, 290, 295, 300, &shares), TIERCEL_OK) << error_.message;
  EXPECT_EQ(shares.size(), 8u);
  EXPECT_NEAR(std::accumulate(shares.begin(), shares.end(), 0.0), 1, 1e-6);
  EXPECT_EQ(tiercel_session_length(session_), 320u);
  std::vector<float> none(3);
  ASSERT_EQ(Attended(33, 63, 70, 300, &none), TIERCEL_OK) << error_.message;
  EXPECT_TRUE(none.empty());
}

TEST_F(AttendedApiTest, RefusesWhatIsNotThere) {
  std::vector<float> shares(20);
  for (const auto& [begin, end, asked, answer] :
       {std::array<size_t, 4>{5, 4, 10, 300},
        {0, 64, 64, 300},
        {0, 64, 301, 300},
        {0, 64, 65, 320}}) {
    EXPECT_EQ(Attended(begin, end, asked, answer, &shares), TIERCEL_USAGE);
    EXPECT_STREQ(error_.code, "invalid_argument");
  }
  size_t size = 1;
  for (const tiercel_status status :
       {tiercel_session_attended(nullptr, 0, 64, 65, 300, nullptr, nullptr,
                                 shares.data(), &size, &error_),
        tiercel_session_attended(session_, 0, 64, 65, 300, nullptr, nullptr,
                                 nullptr, &size, &error_),
        tiercel_session_attended(session_, 0, 64, 65, 300, nullptr, nullptr,
                                 shares.data(), nullptr, &error_)}) {
    EXPECT_EQ(status, TIERCEL_USAGE);
    EXPECT_STREQ(error_.code, "null_argument");
  }
  auto policy = Sized<tiercel_policy>();
  policy.name = "sadas";
  policy.form = "plain";
  auto params = Sized<tiercel_session_params>();
  params.policy = &policy;
  tiercel_session* plain = nullptr;
  ASSERT_EQ(tiercel_session_create(model_, &params, &plain, &error_),
            TIERCEL_OK)
      << error_.message;
  ASSERT_EQ(tiercel_session_prefill(plain, ids_.data(), ids_.size(), nullptr,
                                    nullptr, &error_),
            TIERCEL_OK);
  size = shares.size();
  EXPECT_EQ(tiercel_session_attended(plain, 0, 64, 65, 200, nullptr, nullptr,
                                     shares.data(), &size, &error_),
            TIERCEL_USAGE);
  tiercel_session_free(plain);
}

TEST_F(AttendedApiTest, ComparesWithOtherQuestions) {
  std::vector<float> alone(20), beside(20);
  ASSERT_EQ(Attended(0, 96, 100, 120, &alone), TIERCEL_OK) << error_.message;
  const std::vector<int32_t> same(ids_.begin() + 100, ids_.begin() + 120);
  const std::vector<int32_t> other = {9, 8, 7, 6};
  const int32_t* others[] = {same.data(), other.data()};
  size_t sizes[] = {same.size(), other.size()};
  double excess = -1;
  auto reading = Sized<tiercel_reading>();
  reading.end = 96;
  reading.asked = 100;
  reading.answer = 120;
  reading.others = others;
  reading.other_sizes = sizes;
  reading.excess = &excess;
  const auto attend = [&](size_t count) {
    reading.num_others = count;
    size_t size = beside.size();
    return tiercel_session_attended_beside(session_, &reading, nullptr, nullptr,
                                           beside.data(), &size, &error_);
  };
  ASSERT_EQ(attend(0), TIERCEL_OK) << error_.message;
  beside.resize(alone.size());
  EXPECT_EQ(beside, alone);
  EXPECT_GT(excess, 0);
  ASSERT_EQ(attend(1), TIERCEL_OK) << error_.message;
  EXPECT_EQ(excess, 0);
  ASSERT_EQ(attend(2), TIERCEL_OK) << error_.message;
  EXPECT_NE(beside, alone);
  sizes[1] = 1000000;
  others[1] = nullptr;
  EXPECT_EQ(attend(2), TIERCEL_USAGE);
  EXPECT_STREQ(error_.code, "null_argument");
  reading.struct_size = 0;
  EXPECT_EQ(attend(0), TIERCEL_USAGE);
  EXPECT_STREQ(error_.code, "invalid_struct_size");
}

// The next call gives the same as if nothing had been stopped.
TEST_F(AttendedApiTest, CanBeStopped) {
  std::vector<float> shares(20);
  int calls = 0;
  const auto stop = [](void* user_data, uint64_t done, uint64_t total) {
    EXPECT_EQ(total, 224u);
    EXPECT_EQ(done, 0u);
    return ++*static_cast<int*>(user_data);
  };
  EXPECT_EQ(Attended(0, 96, 100, 120, &shares, stop, &calls),
            TIERCEL_CANCELLED);
  EXPECT_EQ(calls, 1);
  tiercel_session_cancel(session_);
  EXPECT_EQ(Attended(0, 96, 100, 120, &shares), TIERCEL_CANCELLED);
  std::vector<float> again(20);
  ASSERT_EQ(Attended(0, 96, 100, 120, &shares), TIERCEL_OK) << error_.message;
  ASSERT_EQ(Attended(0, 96, 100, 120, &again), TIERCEL_OK) << error_.message;
  EXPECT_EQ(again, shares);
  EXPECT_EQ(tiercel_session_length(session_), 320u);
}

}  // namespace
}  // namespace tiercel::api_test

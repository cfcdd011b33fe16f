// Programs ask for the log-probabilities of tokens.

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/api/api_fixture_for_test.h"

namespace tiercel::log_probs_api_test {
namespace {

using api_test::Generated;
using api_test::Sized;
using testing::HasSubstr;

struct Taken {
  int32_t id;
  float log_prob;
  std::vector<int32_t> top_ids;
  std::vector<float> top_log_probs;

  bool operator==(const Taken&) const = default;
};

int Take(void* to, const tiercel_token* token) {
  EXPECT_EQ(token->top_ids != nullptr, token->num_top > 0);
  Taken taken = {token->id, token->log_prob, {}, {}};
  taken.top_ids.assign(token->top_ids, token->top_ids + token->num_top);
  taken.top_log_probs.assign(token->top_log_probs,
                             token->top_log_probs + token->num_top);
  static_cast<std::vector<Taken>*>(to)->push_back(taken);
  return 0;
}

class LogProbsApiTest : public api_test::ApiTest {
 protected:
  tiercel_sampling With(int64_t log_probs, int64_t top) {
    auto sampling = Sized<tiercel_sampling>();
    sampling.max_tokens = 12;
    sampling.ignore_eos = 1;
    sampling.temperature = 0.8f;
    sampling.log_probs = log_probs;
    sampling.top_log_probs = top;
    return sampling;
  }
  void Read(tiercel_session* session) {
    const std::vector<int32_t> ids = Tokenize("the falcon and the heron");
    ASSERT_EQ(tiercel_session_read(session, ids.data(), ids.size(), nullptr,
                                   nullptr, &error_),
              TIERCEL_OK);
  }
  std::vector<Taken> Text(const tiercel_sampling& sampling) {
    Read(session_);
    std::vector<Taken> taken;
    EXPECT_EQ(
        tiercel_session_generate(session_, &sampling, Take, &taken, &error_),
        TIERCEL_OK)
        << error_.message;
    return taken;
  }
};

TEST_F(LogProbsApiTest, ComeWithTokensIfAskedFor) {
  const std::vector<Taken> none = Text(With(0, 0));
  const std::vector<Taken> own = Text(With(1, 0));
  const std::vector<Taken> three = Text(With(1, 3));
  ASSERT_EQ(none.size(), 12u);
  ASSERT_EQ(three.size(), 12u);
  for (size_t i = 0; i < none.size(); ++i) {
    EXPECT_EQ(none[i].log_prob, 0);
    EXPECT_LT(own[i].log_prob, 0);
    EXPECT_EQ(own[i].log_prob, three[i].log_prob);
    EXPECT_EQ(none[i].id, three[i].id);
    EXPECT_TRUE(none[i].top_ids.empty() && own[i].top_ids.empty());
    ASSERT_EQ(three[i].top_ids.size(), 3u);
    EXPECT_GE(three[i].top_log_probs[0], three[i].top_log_probs[1]);
    EXPECT_GE(three[i].top_log_probs[0], three[i].log_prob);
    EXPECT_LT(std::exp(three[i].top_log_probs[0]), 1);
  }
}

TEST_F(LogProbsApiTest, EntriesOfABatchHaveTheirOwn) {
  const tiercel_sampling samplings[] = {With(1, 2), With(0, 0), With(1, 20)};
  std::vector<std::vector<Taken>> alone;
  for (const tiercel_sampling& sampling : samplings) {
    alone.push_back(Text(sampling));
  }
  Read(session_);
  tiercel_session* sessions[3] = {session_};
  std::vector<Taken> taken[3];
  tiercel_batch_entry entries[3];
  const tiercel_batch_entry* list[3];
  for (size_t i = 0; i < 3; ++i) {
    if (i > 0) {
      ASSERT_EQ(tiercel_session_fork(session_, &sessions[i], &error_),
                TIERCEL_OK);
    }
    entries[i] = Sized<tiercel_batch_entry>();
    entries[i].session = sessions[i];
    entries[i].sampling = &samplings[i];
    entries[i].on_token = Take;
    entries[i].user_data = &taken[i];
    list[i] = &entries[i];
  }
  EXPECT_EQ(tiercel_generate_batch(list, 3, &error_), TIERCEL_OK);
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(taken[i], alone[i]) << i;
  tiercel_session_free(sessions[1]);
  tiercel_session_free(sessions[2]);
}

TEST_F(LogProbsApiTest, NumbersAreChecked) {
  Read(session_);
  const auto refused = [&](int64_t log_probs, int64_t top) {
    const tiercel_sampling sampling = With(log_probs, top);
    EXPECT_EQ(tiercel_session_generate(session_, &sampling, nullptr, nullptr,
                                       &error_),
              TIERCEL_USAGE);
    return std::string(error_.code) + ": " + error_.message;
  };
  EXPECT_THAT(refused(1, -1), HasSubstr("invalid_sampling: top_log_probs: go"));
  EXPECT_THAT(refused(1, 21), HasSubstr("got 21, need 0 to 20"));
  EXPECT_THAT(refused(1, int64_t{1} << 40), HasSubstr("need 0 to 20"));
  EXPECT_THAT(refused(0, 1), HasSubstr("got 1, need 0 unless log_probs"));
}

}  // namespace
}  // namespace tiercel::log_probs_api_test

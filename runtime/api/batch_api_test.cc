// tiercel_generate_batch: each entry is a tiercel_session_generate, and ends by
// itself.

#include <cstdint>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "runtime/api/api_fixture_for_test.h"

namespace tiercel::api_test {
namespace {

using testing::HasSubstr;

// The results of an entry, and what its callback does.
struct Taken {
  std::vector<int32_t> ids;
  tiercel_status status = TIERCEL_BUFFER_TOO_SMALL;  // no entry gives it
  tiercel_error error = Sized<tiercel_error>();
  size_t refuse_after = SIZE_MAX;
  size_t told = 0;                    // progress of its prompt
  bool stops_prompt = false;          // at the first progress
  tiercel_session* cancel = nullptr;  // at the third token
  bool throws = false;                // likewise
  std::thread::id thread;
  // The entry whose status is read at every token, and the number of tokens
  // that came after it had ended.
  const Taken* watched = nullptr;
  size_t after = 0;
};

int Take(void* to, const tiercel_token* token) {
  auto& taken = *static_cast<Taken*>(to);
  taken.ids.push_back(token->id);
  taken.thread = std::this_thread::get_id();
  if (taken.watched != nullptr &&
      taken.watched->status != TIERCEL_BUFFER_TOO_SMALL) {
    ++taken.after;
  }
  if (taken.ids.size() == 3) {
    if (taken.cancel != nullptr) tiercel_session_cancel(taken.cancel);
    if (taken.throws) throw std::runtime_error("as asked");
  }
  return taken.ids.size() > taken.refuse_after;
}

int Count(void* to, uint64_t done, uint64_t total) {
  auto& taken = *static_cast<Taken*>(to);
  EXPECT_LE(done, total);
  ++taken.told;
  return taken.stops_prompt;
}

class BatchApiTest : public ApiTest {
 protected:
  static constexpr int kCount = 4;

  BatchApiTest() : taken_(kCount), samplings_(kCount) {
    for (size_t i = 0; i < kCount; ++i) {
      samplings_[i] = Sized<tiercel_sampling>();
      samplings_[i].max_tokens = 8 + 2 * static_cast<int64_t>(i);
      samplings_[i].temperature = 0.9f;
      samplings_[i].seed = i;
      samplings_[i].ignore_eos = 1;
    }
  }
  void SetUp() override {
    ApiTest::SetUp();
    const std::vector<int32_t> ids = Tokenize("One day a fox and a hen met.");
    ASSERT_EQ(tiercel_session_prefill(session_, ids.data(), ids.size(), nullptr,
                                      nullptr, &error_),
              TIERCEL_OK);
    sessions_ = {session_, Fork()};
    // Two others have texts of their own.
    for (const char* text : {"A hen sat", "Far away, in the hills,"}) {
      const auto params = Sized<tiercel_session_params>();
      tiercel_session* other = nullptr;
      ASSERT_EQ(tiercel_session_create(model_, &params, &other, &error_),
                TIERCEL_OK);
      const std::vector<int32_t> own = Tokenize(text);
      ASSERT_EQ(tiercel_session_prefill(other, own.data(), own.size(), nullptr,
                                        nullptr, &error_),
                TIERCEL_OK);
      sessions_.push_back(other);
    }
    for (size_t i = 0; i < kCount; ++i) {
      tiercel_session* alone = nullptr;
      ASSERT_EQ(tiercel_session_fork(sessions_[i], &alone, &error_),
                TIERCEL_OK);
      alone_.push_back(Generated(alone, samplings_[i]));
      tiercel_session_free(alone);
    }
  }
  void TearDown() override {
    for (size_t i = 1; i < sessions_.size(); ++i) {
      tiercel_session_free(sessions_[i]);
    }
    ApiTest::TearDown();
  }
  tiercel_session* Fork() {
    tiercel_session* fork = nullptr;
    EXPECT_EQ(tiercel_session_fork(session_, &fork, &error_), TIERCEL_OK);
    return fork;
  }

  // Has entry i read `prompt` first.
  void Read(size_t i, const char* prompt) {
    prompts_[i] = Tokenize(prompt);
    reads_[i] = true;
  }
  tiercel_status Generate() {
    std::vector<tiercel_batch_entry> entries;
    for (size_t i = 0; i < sessions_.size(); ++i) {
      auto entry = Sized<tiercel_batch_entry>();
      entry.session = sessions_[i];
      entry.sampling = &samplings_[i];
      entry.on_token = Take;
      entry.user_data = &taken_[i];
      entry.status = &taken_[i].status;
      entry.error = &taken_[i].error;
      if (reads_[i]) {
        entry.ids = prompts_[i].data();
        entry.count = prompts_[i].size();
        entry.progress = Count;
      }
      entries.push_back(entry);
    }
    std::vector<const tiercel_batch_entry*> list;
    for (const tiercel_batch_entry& entry : entries) list.push_back(&entry);
    return tiercel_generate_batch(list.data(), list.size(), &error_);
  }
  void ExpectAlone(size_t i) {
    EXPECT_EQ(taken_[i].ids, alone_[i]) << i;
    EXPECT_EQ(taken_[i].status, TIERCEL_OK) << i;
  }

  std::vector<std::vector<int32_t>> prompts_ =
      std::vector<std::vector<int32_t>>(kCount);
  std::vector<bool> reads_ = std::vector<bool>(kCount);
  std::vector<Taken> taken_;
  std::vector<tiercel_sampling> samplings_;
  std::vector<tiercel_session*> sessions_;
  std::vector<std::vector<int32_t>> alone_;
};

TEST_F(BatchApiTest, EachEntryGivesItsOwnText) {
  taken_[3].watched = &taken_[0];
  const size_t before = tiercel_session_length(sessions_[1]);
  EXPECT_EQ(Generate(), TIERCEL_OK) << error_.message;
  for (size_t i = 0; i < kCount; ++i) {
    ExpectAlone(i);
    EXPECT_EQ(taken_[i].thread, std::this_thread::get_id());
    EXPECT_EQ(ReportOf(sessions_[i])["output"][0]["tokens"], alone_[i]);
  }
  EXPECT_NE(alone_[0], alone_[1]);
  EXPECT_EQ(tiercel_session_length(sessions_[1]), before + alone_[1].size());
  // The status of the shortest comes with its last token, before the longest
  // gets the token of the same pass.
  EXPECT_EQ(taken_[3].after, alone_[3].size() - alone_[0].size() + 1);
}

// An entry with a prompt is a tiercel_session_read and a
// tiercel_session_generate.
TEST_F(BatchApiTest, EntriesReadTheirPrompts) {
  const char* const kPrompts[] = {"One day a fox and a hen met. They ran.",
                                  "One day a fox", "A hen sat on an egg", ""};
  for (size_t i = 0; i < kCount; ++i) {
    const std::vector<int32_t> ids = Tokenize(kPrompts[i]);
    tiercel_session* alone = nullptr;
    ASSERT_EQ(tiercel_session_fork(sessions_[i], &alone, &error_), TIERCEL_OK);
    if (i < 3) {
      ASSERT_EQ(tiercel_session_read(alone, ids.data(), ids.size(), nullptr,
                                     nullptr, &error_),
                TIERCEL_OK);
      Read(i, kPrompts[i]);
    }
    alone_[i] = Generated(alone, samplings_[i]);
    const nlohmann::json report = ReportOf(alone);
    tiercel_session_free(alone);
    if (i != 1) continue;
    // All of its tokens were held.
    EXPECT_EQ(report["cached_tokens"], report["prompt_tokens"]);
  }
  EXPECT_EQ(Generate(), TIERCEL_OK) << error_.message;
  for (size_t i = 0; i < kCount; ++i) {
    ExpectAlone(i);
    EXPECT_EQ(taken_[i].told > 0, i == 0 || i == 2) << i;
  }
  EXPECT_EQ(ReportOf(sessions_[1])["prompt_tokens"], prompts_[1].size());
}

// A prompt that is stopped, or has a token that is none, ends its entry alone.
TEST_F(BatchApiTest, APromptThatFailsEndsItsEntryAlone) {
  Read(0, "Two days later, a cat and a dog met.");
  taken_[0].stops_prompt = true;
  Read(2, "A hen sat");
  prompts_[2].push_back(1 << 30);
  EXPECT_EQ(Generate(), TIERCEL_CANCELLED);
  EXPECT_EQ(taken_[0].status, TIERCEL_CANCELLED);
  EXPECT_TRUE(taken_[0].ids.empty());
  EXPECT_EQ(ReportOf(sessions_[0])["output"][0]["finish_reason"], "cancelled");
  EXPECT_EQ(taken_[2].status, TIERCEL_INVALID_INPUT);
  EXPECT_STREQ(taken_[2].error.code, "invalid_token");
  ExpectAlone(1);
  ExpectAlone(3);
}

TEST_F(BatchApiTest, EntriesAreRefusedAndCancelledAlone) {
  taken_[0].refuse_after = 4;
  taken_[1].cancel = sessions_[2];
  samplings_[3].temperature = -1;
  EXPECT_EQ(Generate(), TIERCEL_CANCELLED);
  EXPECT_THAT(error_.message, HasSubstr("entries 0: "));
  EXPECT_EQ(taken_[0].status, TIERCEL_CANCELLED);
  EXPECT_EQ(taken_[0].ids.size(), 5u);
  ExpectAlone(1);
  EXPECT_EQ(taken_[2].status, TIERCEL_CANCELLED);
  EXPECT_EQ(taken_[3].status, TIERCEL_USAGE);
  EXPECT_STREQ(taken_[3].error.code, "invalid_sampling");
  EXPECT_TRUE(taken_[3].ids.empty());
}

TEST_F(BatchApiTest, AnExceptionEndsAllAndLeavesTheSessionsUsable) {
  taken_[1].throws = true;
  EXPECT_EQ(Generate(), TIERCEL_FAILED);
  EXPECT_STREQ(error_.message, "as asked");
  for (size_t i = 0; i < kCount; ++i) {
    EXPECT_LT(taken_[i].ids.size(), alone_[i].size()) << i;
    EXPECT_EQ(taken_[i].status, TIERCEL_CANCELLED) << i;
  }
  // The tokens given out stay; the rest follows.
  std::vector<int32_t> text = taken_[2].ids;
  samplings_[2].max_tokens -= static_cast<int64_t>(text.size());
  const std::vector<int32_t> rest = Generated(sessions_[2], samplings_[2]);
  text.insert(text.end(), rest.begin(), rest.end());
  EXPECT_EQ(text, alone_[2]);
}

// A batch that ends drops what the program has not been given, such as a token
// within a character.
TEST_F(BatchApiTest, SessionsHoldTheTokensThatWereGiven) {
  taken_[1].throws = true;
  size_t within = 0;  // the texts whose next token would be given later
  std::vector<size_t> before;
  for (tiercel_session* session : sessions_) {
    before.push_back(tiercel_session_length(session));
  }
  for (uint64_t seed = 0; seed < 100; ++seed) {
    for (size_t i = 0; i < kCount; ++i) {
      samplings_[i].seed = seed * kCount + i;
      samplings_[i].max_tokens = 20;
      taken_[i].ids.clear();
      ASSERT_EQ(tiercel_session_truncate(sessions_[i], before[i], &error_),
                TIERCEL_OK);
    }
    EXPECT_EQ(Generate(), TIERCEL_FAILED);
    for (size_t i = 0; i < kCount; ++i) {
      ASSERT_EQ(tiercel_session_length(sessions_[i]),
                before[i] + taken_[i].ids.size())
          << seed << " " << i;
      within += taken_[i].ids.size() < 2;
    }
  }
  EXPECT_GT(within, 5u);
}

TEST_F(BatchApiTest, WrongEntriesBeginNothing) {
  tiercel_model* const model = Open(kModel, TIERCEL_LOAD_ALL);
  const auto params = Sized<tiercel_session_params>();
  tiercel_session* stranger = nullptr;
  ASSERT_EQ(tiercel_session_create(model, &params, &stranger, &error_),
            TIERCEL_OK);
  tiercel_session* const kept = sessions_[1];
  for (const auto& [session, said] :
       {std::pair(session_, "entries 1: its session is in the batch twice"),
        std::pair(stranger, "entries 1: its session is of another model"),
        std::pair<tiercel_session*, const char*>(nullptr, "session: ")}) {
    sessions_[1] = session;
    EXPECT_EQ(Generate(), TIERCEL_USAGE);
    EXPECT_THAT(error_.message, HasSubstr(said));
  }
  sessions_[1] = kept;
  EXPECT_EQ(tiercel_generate_batch(nullptr, 1, &error_), TIERCEL_USAGE);
  EXPECT_EQ(tiercel_generate_batch(nullptr, 0, &error_), TIERCEL_USAGE);
  EXPECT_THAT(error_.message, HasSubstr("count: got 0, need 1 to 64"));
  for (const Taken& taken : taken_) {
    EXPECT_TRUE(taken.ids.empty());
    EXPECT_EQ(taken.status, TIERCEL_BUFFER_TOO_SMALL);
  }
  EXPECT_EQ(Generate(), TIERCEL_OK);
  tiercel_session_free(stranger);
  tiercel_model_free(model);
}

}  // namespace
}  // namespace tiercel::api_test

// The headers for C++ of generations that are made at once, and of
// measurements.

#include <algorithm>
#include <exception>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "include/tiercel_lab.hpp"
#include "include/tiercel_queue.hpp"

namespace {

using ::testing::HasSubstr;

constexpr char kModel[] = "tests/golden/checkpoints/llama_chat.gguf";
constexpr int64_t kTokens = 7;

tiercel_sampling Sampling(int64_t tokens = kTokens) {
  auto sampling = tiercel::defaults<tiercel_sampling>();
  sampling.max_tokens = tokens;
  sampling.ignore_eos = 1;
  return sampling;
}

// "" for null, the code of an Error, or "thrown" for another exception.
std::string CodeOf(const std::exception_ptr& ended) {
  if (ended == nullptr) return "";
  try {
    std::rethrow_exception(ended);
  } catch (const tiercel::Error& error) {
    return error.code();
  } catch (...) {
    return "thrown";
  }
}

class AtOnceTest : public ::testing::Test {
 protected:
  AtOnceTest() {
    for (const char* text : {"The falcon", "A ship", "On Monday"}) {
      prompts_.push_back(model_.tokenize(text));
      tiercel::Session& session = sessions_.emplace_back(model_);
      session.prefill(prompts_.back());
      texts_.push_back(session.generate(Sampling()));
      session.truncate(0);
    }
    given_.resize(texts_.size());
  }

  // An entry that reads its prompt and collects its text in `given_`.
  tiercel::Entry Reads(size_t i) {
    return {&sessions_[i], Sampling(), &prompts_[i],
            [this, i](const tiercel::Token& token) {
              given_[i].append(token.text);
              return true;
            }};
  }

  const tiercel::Model model_ = tiercel::Model(kModel);
  std::vector<std::vector<int32_t>> prompts_;
  std::vector<tiercel::Session> sessions_;
  std::vector<std::string> texts_;  // given by each alone
  std::vector<std::string> given_;
};

TEST_F(AtOnceTest, ABatchGivesTheTextsOfEachAlone) {
  sessions_[2].prefill(prompts_[2]);
  std::vector<tiercel::Entry> entries = {Reads(0), Reads(1), Reads(2)};
  entries[2].prompt = nullptr;  // its session holds it
  tiercel_status status = TIERCEL_FAILED;
  entries[1].status = &status;
  bool may_know = true;
  entries[0].progress = [&](uint64_t, uint64_t) {
    may_know = may_know && status == tiercel::not_ended;
    return true;
  };
  for (const std::exception_ptr& ended : tiercel::generate_batch(entries)) {
    EXPECT_EQ(CodeOf(ended), "");
  }
  EXPECT_EQ(given_, texts_);
  EXPECT_EQ(status, TIERCEL_OK);
  EXPECT_TRUE(may_know);
}

TEST_F(AtOnceTest, AnEntryOfABatchEndsAlone) {
  std::vector<tiercel::Entry> entries = {Reads(0), Reads(1), Reads(2)};
  entries[0].on_token = [](const tiercel::Token&) -> bool { throw 5; };
  entries[1].progress = [](uint64_t, uint64_t) { return false; };
  auto ends = tiercel::generate_batch(entries);
  EXPECT_EQ(CodeOf(ends[0]), "thrown");
  EXPECT_EQ(CodeOf(ends[1]), "");
  EXPECT_EQ(CodeOf(ends[2]), "");
  EXPECT_EQ(given_[1], "");
  EXPECT_EQ(given_[2], texts_[2]);

  sessions_[0].cancel();
  entries = {Reads(0), Reads(1)};
  entries[1].progress = [](uint64_t, uint64_t) -> bool { throw 5; };
  ends = tiercel::generate_batch(entries);
  EXPECT_EQ(CodeOf(ends[0]), "cancelled");
  EXPECT_EQ(CodeOf(ends[1]), "thrown");

  // Nothing begins.
  try {
    tiercel::generate_batch({Reads(0), Reads(0)});
    FAIL() << "they were generated";
  } catch (const tiercel::Error& error) {
    EXPECT_EQ(error.code(), "invalid_argument");
  }
}

TEST_F(AtOnceTest, AQueueTellsTheEndOfEach) {
  auto params = tiercel::defaults<tiercel_queue_params>();
  params.at_once = 2;
  tiercel::Queue queue(model_, params);
  // The queue calls one function at a time.
  std::vector<std::string> ends(3, "not called");
  size_t most = 0;
  for (size_t i = 0; i < ends.size(); ++i) {
    queue.add(Reads(i), [&, i](std::exception_ptr ended) {
      ends[i] = CodeOf(ended);
      most = std::max(most, queue.running());
    });
  }
  queue.wait();
  EXPECT_EQ(ends, std::vector<std::string>(3));
  EXPECT_EQ(given_, texts_);
  EXPECT_LE(most, 2u);
  EXPECT_EQ(queue.running() + queue.waiting(), 0u);

  ends.assign(3, "not called");
  tiercel::Entry throws = Reads(0);
  throws.on_token = [](const tiercel::Token&) -> bool { throw 5; };
  tiercel::Entry stops = Reads(1);
  stops.on_token = [](const tiercel::Token&) { return false; };
  tiercel::Entry silent = Reads(2);
  silent.on_token = nullptr;
  sessions_[2].cancel();
  size_t next = 0;
  for (const tiercel::Entry& entry : {throws, stops, silent}) {
    queue.add(entry, [&, i = next](std::exception_ptr ended) {
      ends[i] = CodeOf(ended);
    });
    ++next;
  }
  queue.wait();
  EXPECT_EQ(ends, (std::vector<std::string>{"thrown", "", "cancelled"}));
  queue.add(silent);  // without a function for its end
  queue.wait();
  EXPECT_EQ(sessions_[2].length(), prompts_[2].size() + kTokens);
}

TEST_F(AtOnceTest, AQueueThatGoesEndsItsEntries) {
  std::string ended = "not called";
  {
    tiercel::Queue queue(model_);
    tiercel::Entry endless = Reads(0);
    endless.sampling = Sampling(0);
    queue.add(endless,
              [&](std::exception_ptr thrown) { ended = CodeOf(thrown); });
    EXPECT_THROW(queue.add(Reads(0), [](std::exception_ptr) { FAIL(); }),
                 tiercel::Error);
  }
  EXPECT_NE(ended, "not called");
}

TEST(LabHeaderTest, SessionsAreFilledAndMachinesMeasured) {
  tiercel::Model model(kModel);
  tiercel::Session session(model);
  tiercel::session_fill(session, std::vector<int32_t>(200, 40), /*seed=*/1);
  EXPECT_EQ(session.length(), 200u);
  EXPECT_THROW(
      tiercel::session_fill(session, std::vector<int32_t>(200, 40), /*seed=*/1,
                            [](uint64_t, uint64_t) -> bool { throw 5; }),
      int);
  EXPECT_THROW(tiercel::machine(1, [](uint64_t, uint64_t) -> bool { throw 5; }),
               int);
  try {
    tiercel::machine(1, [](uint64_t, uint64_t) { return false; });
    FAIL() << "it was measured";
  } catch (const tiercel::Error& error) {
    EXPECT_EQ(error.status(), TIERCEL_CANCELLED);
  }
  EXPECT_THAT(tiercel::machine(), HasSubstr("\"isa\""));
}

}  // namespace

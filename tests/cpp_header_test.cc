// The header for C++, as a program uses it.

#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "include/tiercel.hpp"

namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr char kModel[] = "tests/golden/checkpoints/llama_chat.gguf";

tiercel_sampling Tokens(int64_t count) {
  auto sampling = tiercel::defaults<tiercel_sampling>();
  sampling.max_tokens = count;
  sampling.ignore_eos = 1;
  return sampling;
}

tiercel::Session Reading(tiercel::Model& model, std::string_view text) {
  tiercel::Session session(model);
  session.prefill(model.tokenize(text));
  return session;
}

TEST(CppHeaderTest, TextsAreThoseOfC) {
  tiercel::Model model(kModel);
  tiercel::Session session = Reading(model, "The falcon");
  const std::vector<int32_t> prompt = session.ids();
  EXPECT_EQ(model.detokenize(prompt), "The falcon");
  std::string told;
  std::vector<int32_t> ids;
  const std::string text =
      session.generate(Tokens(9), [&](const tiercel::Token& token) {
        told.append(token.text);
        ids.push_back(token.id);
        return true;
      });
  EXPECT_EQ(text, told);
  tiercel::Detokenizer one_by_one(model, prompt);
  std::string joined;
  for (const int32_t id : ids) joined += one_by_one.add(id);
  joined += one_by_one.end();
  EXPECT_EQ(text, joined);
  EXPECT_EQ(session.length(), prompt.size() + 9);
  EXPECT_EQ(session.generation().output_tokens, 9);
  EXPECT_THAT(session.report(), StartsWith("{"));
  EXPECT_EQ(session.report().back(), '}');

  tiercel_session* const c = session.get();
  ASSERT_EQ(tiercel_session_truncate(c, prompt.size(), nullptr), TIERCEL_OK);
  const tiercel_sampling sampling = Tokens(9);
  std::vector<int32_t> again;
  const auto keep = [](void* to, const tiercel_token* token) {
    static_cast<std::vector<int32_t>*>(to)->push_back(token->id);
    return 0;
  };
  ASSERT_EQ(tiercel_session_generate(c, &sampling, keep, &again, nullptr),
            TIERCEL_OK);
  EXPECT_EQ(again, ids);
}

TEST(CppHeaderTest, ErrorsAreThrown) {
  try {
    tiercel::Model model("tests/no/such.gguf");
    FAIL() << "it was opened";
  } catch (const tiercel::Error& error) {
    EXPECT_EQ(error.status(), TIERCEL_IO);
    EXPECT_EQ(error.code(), "file_not_found");
    EXPECT_THAT(error.what(), HasSubstr("tests/no/such.gguf"));
  }
  tiercel::Model model(kModel);
  tiercel::Session session(model);
  EXPECT_THROW(session.generate(), tiercel::Error);  // it holds no token
  EXPECT_THROW(model.detokenize({-1}), tiercel::Error);
  // A session that was moved from is empty, and says so.
  const tiercel::Session moved = std::move(session);
  EXPECT_EQ(session.get(), nullptr);
  EXPECT_THROW(session.truncate(0), tiercel::Error);
  EXPECT_EQ(session.length(), 0u);
}

TEST(CppHeaderTest, ThreadsAndMemoryMayChange) {
  auto params = tiercel::defaults<tiercel_model_params>();
  params.threads = 2;
  tiercel::Model model(kModel, params);
  tiercel::Session session = Reading(model, "The falcon");
  const size_t held = session.length();
  const std::string text = session.generate(Tokens(9));
  session.truncate(held);
  model.set_threads(1);
  EXPECT_EQ(model.info().threads, 1);
  EXPECT_THROW(model.set_threads(3), tiercel::Error);
  session.trim();
  model.trim();
  EXPECT_EQ(session.length(), held);
  EXPECT_EQ(session.generate(Tokens(9)), text);
}

TEST(CppHeaderTest, CallbacksMayThrowOrStop) {
  tiercel::Model model(kModel);
  tiercel::Session session = Reading(model, "The falcon");
  const size_t held = session.length();
  int left = 3;
  const auto throws = [&](const tiercel::Token&) -> bool {
    if (--left == 0) throw std::string("enough");
    return true;
  };
  EXPECT_THROW(session.generate(Tokens(9), throws), std::string);
  session.truncate(held);
  left = 3;
  const auto stops = [&](const tiercel::Token&) { return --left > 0; };
  EXPECT_NO_THROW(session.generate(Tokens(9), stops));
  EXPECT_EQ(session.length(), held + 3);

  EXPECT_THROW(session.read(model.tokenize("Others"),
                            [](uint64_t, uint64_t) -> bool { throw 5; }),
               int);
  EXPECT_NO_THROW(session.read(model.tokenize("Others"),
                               [](uint64_t, uint64_t) { return false; }));
  EXPECT_THROW(tiercel::Model(kModel, [](uint64_t, uint64_t) { return false; }),
               tiercel::Error);
}

TEST(CppHeaderTest, MasksAreFunctions) {
  tiercel::Model model(kModel);
  tiercel::Session session = Reading(model, "The falcon");
  const size_t held = session.length();
  const std::vector<int32_t> wanted = {9, 40, 41, 7};
  std::vector<size_t> lengths;
  const tiercel::Mask only = [&](const std::vector<int32_t>& output,
                                 tiercel::AllowedTokens& allowed) {
    lengths.push_back(output.size());
    const int32_t id = wanted[output.size()];
    EXPECT_TRUE(allowed.has(id));
    allowed.forbid(id);
    EXPECT_FALSE(allowed.has(id));
    EXPECT_TRUE(allowed.has(id + 1));
    allowed.forbid_all();
    EXPECT_FALSE(allowed.has(id + 1));
    allowed.allow(id);
    return true;
  };
  session.generate(Tokens(4), {}, only);
  std::vector<int32_t> ids = session.ids();
  EXPECT_EQ(std::vector<int32_t>(ids.begin() + held, ids.end()), wanted);
  EXPECT_EQ(lengths, (std::vector<size_t>{0, 1, 2, 3}));

  session.truncate(held);
  const auto stops = [](const std::vector<int32_t>& output,
                        tiercel::AllowedTokens&) { return output.size() < 2; };
  EXPECT_NO_THROW(session.generate(Tokens(4), {}, stops));
  EXPECT_EQ(session.length(), held + 2);
  const auto throws = [](const std::vector<int32_t>&,
                         tiercel::AllowedTokens&) -> bool { throw 5; };
  EXPECT_THROW(session.generate(Tokens(4), {}, throws), int);
  EXPECT_THROW(session.generate(Tokens(4), {},
                                [](const std::vector<int32_t>&,
                                   tiercel::AllowedTokens& allowed) {
                                  allowed.forbid_all();
                                  return true;
                                }),
               tiercel::Error);
}

TEST(CppHeaderTest, LogProbsComeWithTokens) {
  tiercel::Model model(kModel);
  tiercel::Session session = Reading(model, "The falcon");
  tiercel_sampling sampling = Tokens(4);
  sampling.log_probs = 1;
  sampling.top_log_probs = 2;
  session.generate(sampling, [](const tiercel::Token& token) {
    EXPECT_EQ(token.top.size(), 2u);
    EXPECT_EQ(token.top[0].id, token.id);  // it is greedy
    EXPECT_EQ(token.top[0].log_prob, token.log_prob);
    EXPECT_LT(token.top[1].log_prob, token.log_prob);
    return true;
  });
  session.generate(Tokens(1), [](const tiercel::Token& token) {
    EXPECT_TRUE(token.top.empty());
    EXPECT_EQ(token.log_prob, 0);
    return true;
  });
}

TEST(CppHeaderTest, ACancelledCallThrows) {
  tiercel::Model model(kModel);
  tiercel::Session session = Reading(model, "The falcon");
  session.cancel();
  try {
    session.generate(Tokens(9));
    FAIL() << "it went on";
  } catch (const tiercel::Error& error) {
    EXPECT_EQ(error.status(), TIERCEL_CANCELLED);
  }
  session.cancel();
  session.clear_cancel();
  EXPECT_NO_THROW(session.generate(Tokens(1)));
}

TEST(CppHeaderTest, ForksGoTheirOwnWays) {
  tiercel::Model model(kModel);
  tiercel::Session session = Reading(model, "The falcon");
  tiercel::Session copy = session.fork();
  EXPECT_EQ(copy.ids(), session.ids());
  EXPECT_EQ(copy.generate(Tokens(5)), session.generate(Tokens(5)));
}

TEST(CppHeaderTest, ATalkIsEncoded) {
  tiercel::Model model(kModel);
  const auto asked = model.chat_tokens({{"user", "Who?"}});
  const auto answered = model.chat_tokens(
      {{"user", "Who?"}, {"assistant", "I."}, {"user", "Who?"}});
  EXPECT_GT(answered.size(), asked.size());
  EXPECT_GT(asked.size(), 4u);
  EXPECT_THAT(model.plan(), HasSubstr("fits"));
  EXPECT_EQ(model.info().has_template, 1);
}

TEST(CppHeaderTest, TextsHaveLimits) {
  const tiercel::Model model(kModel);
  const std::string text(400, 'a');
  const std::vector<int32_t> ids = model.tokenize(text);
  ASSERT_GT(ids.size(), 3u);
  EXPECT_EQ(model.tokenize(text, TIERCEL_ADD_BOS, {ids.size()}), ids);
  try {
    model.tokenize(text, TIERCEL_ADD_BOS, {ids.size() - 1});
    FAIL() << "it was tokenized";
  } catch (const tiercel::Error& error) {
    EXPECT_EQ(error.code(), "too_long");
  }
  const auto settings = tiercel::defaults<tiercel_chat_settings>();
  EXPECT_THROW(model.chat_tokens({{"user", text}}, settings, {3}),
               tiercel::Error);
  const tiercel::Progress throws = [](uint64_t, uint64_t) -> bool { throw 5; };
  EXPECT_THROW(model.tokenize(text, 0, {0, throws}), int);
  EXPECT_THROW(model.chat_tokens({{"user", text}}, settings, {0, throws}), int);
  // There are no tokens to return.
  try {
    model.tokenize(text, 0, {0, [](uint64_t, uint64_t) { return false; }});
    FAIL() << "it was tokenized";
  } catch (const tiercel::Error& error) {
    EXPECT_EQ(error.status(), TIERCEL_CANCELLED);
  }
}

TEST(CppHeaderTest, PlansAreMadeBeforeWeightsAreRead) {
  auto params = tiercel::defaults<tiercel_model_params>();
  params.load = TIERCEL_LOAD_HEADER;
  tiercel::Model model(kModel, params);
  EXPECT_EQ(model.choose_ranks(), 1);
  auto cached = tiercel::defaults<tiercel_session_params>();
  EXPECT_EQ(model.cached_tokens(cached, {1, 2, 3}), 0);
  cached.prompt_cache_dir = "/dev/null/none";
  EXPECT_THROW(model.cached_tokens(cached, std::vector<int32_t>(2000, 1),
                                   [](uint64_t, uint64_t) -> bool { throw 5; }),
               int);
  params.beside = model.get();
  const tiercel::Model draft(kModel, params);
  EXPECT_NO_THROW(model.check_draft(draft));
  EXPECT_THROW(model.check_draft(tiercel::Model(kModel)), tiercel::Error);

  const std::string folder = ::testing::TempDir() + "/cpp_header_rates";
  auto session = tiercel::defaults<tiercel_session_params>();
  session.cache_dir = folder.c_str();
  EXPECT_THROW(model.measure(session, /*again_seconds=*/-1,
                             [](uint64_t, uint64_t) -> bool { throw 5; }),
               int);
  EXPECT_EQ(tiercel::cache_clear(folder), 0u);
  EXPECT_EQ(model.measure(session, /*again_seconds=*/-1).measured, 1);
  EXPECT_THAT(tiercel::cache_list(folder), HasSubstr("rates"));
  EXPECT_GT(tiercel::cache_clear(folder), 0u);
  EXPECT_THAT(tiercel::policies(), HasSubstr("\"triforce\""));
  EXPECT_NO_THROW(tiercel::check_environment());
}

TEST(CppHeaderTest, RowsAreScored) {
  tiercel::Model model(kModel);
  tiercel::Session session = Reading(model, "The falcon");
  const size_t held = session.length();
  const std::vector<int32_t> ids = model.tokenize(" flies high", 0);
  ASSERT_GT(ids.size(), 1u);
  std::vector<size_t> rows;
  session.score(ids, 1, [&](size_t index, const float* logits) {
    EXPECT_NE(logits[0], logits[1]);
    rows.push_back(index);
    return true;
  });
  EXPECT_EQ(rows.size(), ids.size());
  EXPECT_EQ(rows.back(), ids.size() - 1);
  session.truncate(held);
  const auto throws = [](size_t, const float*) -> bool { throw 5; };
  EXPECT_THROW(session.score(ids, 0, throws), int);
  session.score(ids, 0, [](size_t, const float*) { return false; });
  EXPECT_EQ(session.length(), held);
}

TEST(CppHeaderTest, ASessionTellsWhatItDid) {
  tiercel::Model model(kModel);
  std::string text;
  while (text.size() < 600) text += "The falcon flies. ";
  tiercel::Session session = Reading(model, text);
  const size_t end = session.length();
  session.prefill(model.tokenize(" Which bird is that?", 0));
  const size_t answer = session.length();
  session.generate(Tokens(5));
  EXPECT_EQ(session.token_seconds().size(), 5u);
  EXPECT_EQ(session.resumed(), 0);
  EXPECT_EQ(session.kept(), 0);
  const std::vector<float> shares = session.attended(0, end, end + 1, answer);
  EXPECT_EQ(shares.size(), end / TIERCEL_RUN_TOKENS);
  EXPECT_THROW(session.attended(0, end, end + 1, answer,
                                [](uint64_t, uint64_t) -> bool { throw 5; }),
               int);
  EXPECT_THROW(session.attended(end, 0, end + 1, answer), tiercel::Error);
}

// A main loop.
class Loop {
 public:
  void Put(std::function<void()> function) {
    const std::lock_guard<std::mutex> lock(mutex_);
    functions_.push_back(std::move(function));
    came_.notify_one();
  }
  void RunOne() {
    std::unique_lock<std::mutex> lock(mutex_);
    came_.wait(lock, [this] { return !functions_.empty(); });
    const auto function = std::move(functions_.front());
    functions_.pop_front();
    lock.unlock();
    function();
  }

 private:
  std::mutex mutex_;
  std::condition_variable came_;
  std::deque<std::function<void()>> functions_;
};

TEST(WorkerTest, DoesJobsInTheirOrderAndTellsTheLoop) {
  Loop loop;
  tiercel::Worker worker(
      [&](tiercel::Worker::Function function) { loop.Put(function); });
  const std::thread::id here = std::this_thread::get_id();
  std::string said;
  const auto add = [&](const char* name) {
    worker.add(
        [&, name] {
          EXPECT_NE(std::this_thread::get_id(), here);
          worker.tell([&, name] { said += name; });
        },
        [&](std::exception_ptr thrown) {
          EXPECT_EQ(thrown, nullptr);
          EXPECT_EQ(std::this_thread::get_id(), here);
          said += ".";
        });
  };
  add("a");
  add("b");
  for (int i = 0; i < 4; ++i) loop.RunOne();
  EXPECT_EQ(said, "a.b.");
}

TEST(WorkerTest, AJobMayThrow) {
  Loop loop;
  tiercel::Worker worker(
      [&](tiercel::Worker::Function function) { loop.Put(function); });
  int caught = 0;
  worker.add([] { throw 7; },
             [&](std::exception_ptr thrown) {
               try {
                 std::rethrow_exception(thrown);
               } catch (int number) {
                 caught = number;
               }
             });
  loop.RunOne();
  EXPECT_EQ(caught, 7);
}

TEST(WorkerTest, EndsWithTheJobThatItHasBegun) {
  Loop loop;
  int done = 0;
  std::mutex ends;
  ends.lock();
  auto worker = std::make_unique<tiercel::Worker>(
      [&](tiercel::Worker::Function function) { loop.Put(function); });
  worker->add([&] {
    loop.Put([] {});
    const std::lock_guard<std::mutex> wait(ends);
    ++done;
  });
  worker->add([&] { done += 100; });
  loop.RunOne();  // the first job has begun
  std::thread destroys([&] { worker.reset(); });
  // The second job would follow the first at once, were it not dropped.
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  ends.unlock();
  destroys.join();
  EXPECT_EQ(done, 1);
}

}  // namespace

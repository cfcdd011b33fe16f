// tiercel_queue: entries come and go while others are made, each with the text
// that it has alone.

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "include/tiercel_queue.h"
#include "runtime/api/api_fixture_for_test.h"
#include "runtime/api/boundary.h"

namespace tiercel::queue_api_test {
namespace {

using api_test::Generated;
using api_test::kModel;
using api_test::Sized;
using testing::HasSubstr;

constexpr char kText[] = "One day a fox and a hen met in the far hills.";

// An entry with its arguments, what it gave, and what its callbacks do.
struct Person {
  tiercel_session* session = nullptr;
  std::vector<int32_t> prompt;
  tiercel_sampling sampling = Sized<tiercel_sampling>();
  std::vector<int32_t> ids;
  std::atomic<size_t> given{0};  // tokens, for other threads
  std::atomic<int> ends{0};
  tiercel_status status = TIERCEL_OK;
  std::string message;
  size_t throws_at = SIZE_MAX;   // tokens
  size_t cancels_at = SIZE_MAX;  // ... after which its session is cancelled
  size_t frees_at = SIZE_MAX;    // ... after which its session is freed
  bool freed_at_end = false;
  std::atomic<bool> pauses = false;  // its callbacks do not return
  tiercel_queue* queue = nullptr;
  Person* follows = nullptr;          // is added when this one has ended
  tiercel_status added = TIERCEL_OK;  // the status of that
  tiercel_status tried = TIERCEL_OK;  // a call on its session in a callback
  size_t most_running = 0;
};

tiercel_status AddTo(tiercel_queue* queue, Person& person,
                     tiercel_error* error);

int Take(void* to, const tiercel_token* token) {
  auto& person = *static_cast<Person*>(to);
  person.ids.push_back(token->id);
  person.most_running =
      std::max(person.most_running, tiercel_queue_running(person.queue));
  const size_t given = person.ids.size();
  person.given = given;
  while (person.pauses) std::this_thread::yield();
  if (given == person.throws_at) throw std::runtime_error("as asked");
  if (given == person.cancels_at) tiercel_session_cancel(person.session);
  if (given == person.frees_at) tiercel_session_free(person.session);
  if (given == 2) {
    tiercel_session* copy = nullptr;
    person.tried = tiercel_session_fork(person.session, &copy, nullptr);
    // It cannot wait for its own end.
    EXPECT_EQ(tiercel_queue_wait(person.queue, nullptr), TIERCEL_USAGE);
    tiercel_queue_free(person.queue);
  }
  return 0;
}

void End(void* to, tiercel_status status, const tiercel_error* error) {
  auto& person = *static_cast<Person*>(to);
  person.status = status;
  person.message = error->message;
  constexpr int kEnough = 50;
  if (person.follows != nullptr && person.ends < kEnough) {
    person.added = AddTo(person.queue, *person.follows, nullptr);
  }
  if (person.freed_at_end) {
    tiercel_session_free(std::exchange(person.session, nullptr));
  }
  ++person.ends;
  if (person.ids.size() == person.throws_at) throw 1;  // nothing is left to end
}

tiercel_status AddTo(tiercel_queue* queue, Person& person,
                     tiercel_error* error) {
  person.queue = queue;
  auto entry = Sized<tiercel_batch_entry>();
  entry.session = person.session;
  entry.sampling = &person.sampling;
  entry.on_token = Take;
  entry.user_data = &person;
  if (!person.prompt.empty()) {
    entry.ids = person.prompt.data();
    entry.count = person.prompt.size();
  }
  return tiercel_queue_add(queue, &entry, End, error);
}

class QueueApiTest : public api_test::ApiTest {
 protected:
  void SetUp() override {
    ApiTest::SetUp();
    Read(session_, kText);
  }
  void TearDown() override {
    tiercel_queue_free(queue_);
    for (const Person& person : people_) {
      if (person.frees_at == SIZE_MAX) tiercel_session_free(person.session);
    }
    ApiTest::TearDown();
  }

  void Read(tiercel_session* session, const std::string& text) {
    const std::vector<int32_t> ids = Tokenize(text);
    ASSERT_EQ(tiercel_session_read(session, ids.data(), ids.size(), nullptr,
                                   nullptr, &error_),
              TIERCEL_OK)
        << error_.message;
  }
  tiercel_session* Fork(const tiercel_session* of) {
    tiercel_session* fork = nullptr;
    EXPECT_EQ(tiercel_session_fork(of, &fork, &error_), TIERCEL_OK)
        << error_.message;
    return fork;
  }
  void MakeQueue(int64_t at_once) {
    auto params = Sized<tiercel_queue_params>();
    params.at_once = at_once;
    ASSERT_EQ(tiercel_queue_create(model_, &params, &queue_, &error_),
              TIERCEL_OK)
        << error_.message;
  }
  // One who asks in a fork of the text.
  Person& Ask(const std::string& question, int64_t tokens) {
    Person& person = people_.emplace_back();
    person.session = Fork(session_);
    person.prompt = Tokenize(kText + question);
    person.sampling.max_tokens = tokens;
    person.sampling.temperature = 0.9f;
    person.sampling.seed = people_.size();
    person.sampling.ignore_eos = 1;
    return person;
  }
  std::vector<int32_t> Alone(const Person& person) {
    tiercel_session* const alone = Fork(session_);
    EXPECT_EQ(
        tiercel_session_read(alone, person.prompt.data(), person.prompt.size(),
                             nullptr, nullptr, &error_),
        TIERCEL_OK);
    const std::vector<int32_t> ids = Generated(alone, person.sampling);
    tiercel_session_free(alone);
    return ids;
  }
  void Add(Person& person) {
    ASSERT_EQ(AddTo(queue_, person, &error_), TIERCEL_OK) << error_.message;
  }
  void Wait() { EXPECT_EQ(tiercel_queue_wait(queue_, &error_), TIERCEL_OK); }

  tiercel_queue* queue_ = nullptr;
  std::deque<Person> people_;
};

TEST_F(QueueApiTest, EntriesThatComeAndGoHaveTheirOwnTexts) {
  constexpr int kPeople = 12;
  MakeQueue(4);
  for (int i = 0; i < kPeople; ++i) {
    Ask(std::string(static_cast<size_t>(i) * 17, 'a') + " who", 5 + 3 * i);
  }
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([this, t] {
      for (size_t i = static_cast<size_t>(t); i < kPeople; i += 3) {
        EXPECT_EQ(AddTo(queue_, people_[i], nullptr), TIERCEL_OK);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  Wait();
  EXPECT_EQ(tiercel_queue_running(queue_), 0u);
  EXPECT_EQ(tiercel_queue_waiting(queue_), 0u);
  size_t most = 0;
  for (const Person& person : people_) {
    EXPECT_EQ(person.status, TIERCEL_OK) << person.message;
    EXPECT_EQ(person.ends, 1);
    EXPECT_EQ(person.ids, Alone(person));
    EXPECT_EQ(person.tried, TIERCEL_USAGE);  // its session was in use
    EXPECT_EQ(tiercel_session_length(person.session),
              person.prompt.size() + person.ids.size());
    most = std::max(most, person.most_running);
  }
  EXPECT_EQ(most, 4u);
}

// Forks of a text that is read by entries wait for a pass, not for the entries.
TEST_F(QueueApiTest, OtherSessionsGoOnBesideIt) {
  MakeQueue(2);
  Person& person = Ask(" Then", 400);
  Add(person);
  for (int i = 0; i < 20; ++i) {
    tiercel_session* const fork = Fork(session_);
    Read(fork, std::string(kText) + " And");
    tiercel_session_free(fork);
    tiercel_session* copy = nullptr;
    if (person.ends > 0) continue;  // it may have ended on a fast machine
    EXPECT_EQ(tiercel_session_fork(person.session, &copy, &error_),
              TIERCEL_USAGE);
    EXPECT_STREQ(error_.code, "session_in_use");
  }
  while (person.given == 0) std::this_thread::yield();
  EXPECT_EQ(person.ends, 0);  // it is long
  EXPECT_EQ(AddTo(queue_, person, &error_), TIERCEL_USAGE);
  EXPECT_STREQ(error_.code, "session_in_use");
  tiercel_session_cancel(person.session);
  Wait();
  EXPECT_EQ(person.status, TIERCEL_CANCELLED);
  EXPECT_GT(person.ids.size(), 0u);
  // Now it is free.
  tiercel_session_free(Fork(person.session));
}

// A call that comes while the last entry of a text ends, and sessions that were
// freed are deleted, waits for that.
TEST_F(QueueApiTest, NoCallIsRefusedWhileItEnds) {
  MakeQueue(1);
  tiercel_session* const other = Fork(session_);
  for (int i = 0; i < 150; ++i) {
    std::vector<tiercel_session*> freed;
    for (int k = 0; k < 8; ++k) freed.push_back(Fork(other));
    Person& person = Ask(" Then", 1);
    person.pauses = true;
    Add(person);
    while (person.given == 0) std::this_thread::yield();
    for (tiercel_session* const fork : freed) tiercel_session_free(fork);
    const auto begin = std::chrono::steady_clock::now();
    person.pauses = false;
    while (std::chrono::steady_clock::now() <
           begin + std::chrono::microseconds(4 * i)) {
    }
    ASSERT_EQ(tiercel_session_truncate(other, 1, &error_), TIERCEL_OK)
        << i << ": " << error_.message;
    Wait();
  }
  tiercel_session_free(other);
}

// A call that has the turn at one text may use another in its callbacks.
TEST_F(QueueApiTest, CallsWithinCallsGoOnBesideIt) {
  const auto plain = Sized<tiercel_session_params>();
  tiercel_session* other = nullptr;
  ASSERT_EQ(tiercel_session_create(model_, &plain, &other, &error_),
            TIERCEL_OK);
  Read(other, "Far away, in the hills,");
  MakeQueue(2);
  Add(Ask(" Then", 400));
  Person& of_other = Ask("", 400);
  tiercel_session_free(std::exchange(of_other.session, Fork(other)));
  Add(of_other);
  struct Within {
    tiercel_session* other;
    int forks = 0;
  } within = {other};
  const auto on_token = [](void* to, const tiercel_token*) {
    auto& own = *static_cast<Within*>(to);
    tiercel_session* fork = nullptr;
    own.forks += tiercel_session_fork(own.other, &fork, nullptr) == TIERCEL_OK;
    tiercel_session_free(fork);
    return 0;
  };
  auto sampling = Sized<tiercel_sampling>();
  sampling.max_tokens = 8;
  sampling.ignore_eos = 1;
  EXPECT_EQ(
      tiercel_session_generate(session_, &sampling, on_token, &within, &error_),
      TIERCEL_OK)
      << error_.message;
  EXPECT_EQ(within.forks, 8);
  Wait();
  tiercel_session_free(other);
}

// Batches take the turns of two texts in one order, whatever their own is.
TEST_F(QueueApiTest, BatchesOverTwoTextsNeverWaitForEachOther) {
  const auto plain = Sized<tiercel_session_params>();
  tiercel_session* other = nullptr;
  ASSERT_EQ(tiercel_session_create(model_, &plain, &other, &error_),
            TIERCEL_OK);
  Read(other, "Far away, in the hills,");
  std::vector<tiercel_session*> forks = {Fork(session_), Fork(other),
                                         Fork(other), Fork(session_)};
  MakeQueue(2);
  Person& person = Ask(" Then", 450);
  Person& of_other = Ask("", 450);
  tiercel_session_free(std::exchange(of_other.session, Fork(other)));
  person.pauses = true;
  Add(person);
  Add(of_other);
  while (person.given == 0) std::this_thread::yield();
  std::vector<std::thread> threads;
  for (size_t t = 0; t < 2; ++t) {
    threads.emplace_back([&forks, t] {
      for (int i = 0; i < 10; ++i) {
        auto sampling = Sized<tiercel_sampling>();
        sampling.max_tokens = 1;
        tiercel_batch_entry entries[2];
        tiercel_status statuses[2];
        const tiercel_batch_entry* list[2];
        for (size_t k = 0; k < 2; ++k) {
          entries[k] = Sized<tiercel_batch_entry>();
          entries[k].session = forks[2 * t + k];
          entries[k].sampling = &sampling;
          entries[k].status = &statuses[k];
          list[k] = &entries[k];
        }
        EXPECT_EQ(tiercel_generate_batch(list, 2, nullptr), TIERCEL_OK);
      }
    });
  }
  const auto waits = [&] {
    int64_t all = 0;
    for (const tiercel_session* fork : forks) all += fork->waits;
    return all;
  };
  while (waits() < 2) std::this_thread::yield();  // both want both texts
  person.pauses = false;
  for (std::thread& thread : threads) thread.join();
  tiercel_session_cancel(person.session);
  tiercel_session_cancel(of_other.session);
  Wait();
  forks.push_back(other);
  for (tiercel_session* session : forks) tiercel_session_free(session);
}

// A session may be freed while a call on it waits for the queue.
TEST_F(QueueApiTest, ASessionThatIsFreedWhileItsCallWaitsIsCancelled) {
  MakeQueue(1);
  tiercel_session* const fork = Fork(session_);
  Person& person = Ask(" Then", 450);
  person.pauses = true;
  Add(person);
  while (person.given == 0) std::this_thread::yield();
  tiercel_status status = TIERCEL_OK;
  std::thread call([&] {
    auto sampling = Sized<tiercel_sampling>();
    sampling.max_tokens = 400;
    sampling.ignore_eos = 1;
    status =
        tiercel_session_generate(fork, &sampling, nullptr, nullptr, nullptr);
  });
  while (fork->waits == 0) std::this_thread::yield();
  tiercel_session_free(fork);
  person.pauses = false;
  call.join();
  EXPECT_EQ(status, TIERCEL_CANCELLED);
  tiercel_session_cancel(person.session);
  Wait();
}

// A callback of a call for which the queue waits cannot wait for the queue.
TEST_F(QueueApiTest, ACallThatTheQueueWaitsForCannotWaitForIt) {
  MakeQueue(1);
  Person& person = Ask(" Then", 450);
  Add(person);
  while (person.given == 0) std::this_thread::yield();
  auto sampling = Sized<tiercel_sampling>();
  sampling.max_tokens = 1;
  sampling.ignore_eos = 1;
  const auto on_token = [](void* to, const tiercel_token*) {
    auto* const queue = static_cast<tiercel_queue*>(to);
    EXPECT_EQ(tiercel_queue_wait(queue, nullptr), TIERCEL_USAGE);
    tiercel_queue_free(queue);  // does nothing
    return 0;
  };
  tiercel_session* const fork = Fork(session_);
  EXPECT_EQ(
      tiercel_session_generate(fork, &sampling, on_token, queue_, &error_),
      TIERCEL_OK);
  EXPECT_EQ(person.ends, 0);
  tiercel_session_cancel(person.session);
  Wait();
  tiercel_session_free(fork);
}

TEST_F(QueueApiTest, OneThatFailsOrIsFreedEndsAlone) {
  MakeQueue(8);
  Person& throws = Ask(" Then", 30);
  throws.throws_at = 4;
  Person& cancels = Ask(" Then a cat", 30);
  cancels.cancels_at = 5;
  Person& frees = Ask(" Then a dog", 30);
  frees.frees_at = 6;
  Person& wrong = Ask(" Then", 30);
  wrong.prompt.push_back(-1);
  Person& goes_on = Ask(" Then they", 30);
  Person& follows = Ask(" Then a bird", 20);
  goes_on.follows = &follows;
  for (Person* person : {&throws, &cancels, &frees, &wrong, &goes_on}) {
    Add(*person);
  }
  Wait();
  EXPECT_EQ(throws.status, TIERCEL_FAILED);
  EXPECT_EQ(throws.message, "as asked");
  EXPECT_EQ(throws.ids.size(), 4u);
  EXPECT_EQ(cancels.status, TIERCEL_CANCELLED);
  EXPECT_EQ(frees.status, TIERCEL_CANCELLED);
  EXPECT_LE(frees.ids.size(), 7u);
  EXPECT_EQ(wrong.status, TIERCEL_INVALID_INPUT);
  EXPECT_THAT(wrong.message, HasSubstr("token"));
  EXPECT_EQ(goes_on.added, TIERCEL_OK);
  for (const Person* person : {&goes_on, &follows}) {
    EXPECT_EQ(person->status, TIERCEL_OK) << person->message;
    EXPECT_EQ(person->ids, Alone(*person));
  }
  for (const Person& person : people_) EXPECT_EQ(person.ends, 1);
}

TEST_F(QueueApiTest, FreeingItCancelsWhatHasNotEnded) {
  MakeQueue(2);
  for (int i = 0; i < 5; ++i) Add(Ask(" Then", 400));
  people_[0].follows = &people_[0];      // it would never end
  people_[3].sampling.temperature = -1;  // too late: its arguments were copied
  Person& wrong = Ask(" Then", 400);
  wrong.sampling.temperature = -1;
  wrong.prompt.clear();
  Add(wrong);
  while (people_[1].given == 0) std::this_thread::yield();
  tiercel_queue_free(std::exchange(queue_, nullptr));
  for (const Person& person : people_) {
    EXPECT_EQ(person.ends, 1);
    EXPECT_EQ(person.status,
              &person == &wrong ? TIERCEL_USAGE : TIERCEL_CANCELLED);
    EXPECT_LT(person.ids.size(), 400u);
  }
  EXPECT_EQ(people_[0].added, TIERCEL_CANCELLED);
  wrong.sampling.temperature = 0;
  EXPECT_EQ(Generated(wrong.session, wrong.sampling).size(), 400u);
  EXPECT_TRUE(people_[4].ids.empty());
  // The sessions are free, and go on.
  EXPECT_EQ(Generated(people_[0].session, people_[0].sampling).size(), 400u);
}

// Entries wait until there is memory for all that those before them may take.
TEST_F(QueueApiTest, EntriesWaitForMemory) {
  auto params = Sized<tiercel_model_params>();
  params.path = kModel;
  params.threads = 2;
  auto of_session = Sized<tiercel_session_params>();
  of_session.context = 512;
  tiercel_model* bounded = nullptr;
  tiercel_session* text = nullptr;
  for (params.device_memory_bytes = 1 << 19; text == nullptr;
       params.device_memory_bytes += 1 << 16) {
    tiercel_model_free(bounded);
    bounded = nullptr;
    ASSERT_LT(params.device_memory_bytes, 64u << 20);
    if (tiercel_model_open(&params, &bounded, &error_) != TIERCEL_OK) continue;
    (void)tiercel_session_create(bounded, &of_session, &text, &error_);
  }
  std::swap(bounded, model_);
  std::swap(text, session_);
  Read(session_, kText);
  MakeQueue(8);
  // Each takes half of the context, so that not all fit at once.
  for (int i = 0; i < 6; ++i) Ask(" Then", 200).freed_at_end = true;
  for (Person& person : people_) Add(person);
  Wait();
  size_t most = 0;
  for (const Person& person : people_) {
    EXPECT_EQ(person.status, TIERCEL_OK) << person.message;
    EXPECT_EQ(person.ids.size(), 200u);
    most = std::max(most, person.most_running);
  }
  EXPECT_LT(most, 6u);
  tiercel_queue_free(std::exchange(queue_, nullptr));
  std::swap(bounded, model_);
  std::swap(text, session_);
  tiercel_session_free(text);
  tiercel_model_free(bounded);
}

TEST_F(QueueApiTest, WrongArgumentsAddNothing) {
  auto params = Sized<tiercel_queue_params>();
  params.at_once = 65;
  EXPECT_EQ(tiercel_queue_create(model_, &params, &queue_, &error_),
            TIERCEL_USAGE);
  EXPECT_THAT(error_.message, HasSubstr("at_once: got 65, need 0 to 64"));
  EXPECT_EQ(tiercel_queue_create(nullptr, &params, &queue_, &error_),
            TIERCEL_USAGE);
  EXPECT_EQ(queue_, nullptr);
  MakeQueue(0);
  Person& person = Ask(" Then", 4);
  EXPECT_EQ(tiercel_queue_add(queue_, nullptr, End, &error_), TIERCEL_USAGE);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  // A sanitizer ends the program that asks for so much.
  auto endless = Sized<tiercel_batch_entry>();
  endless.session = person.session;
  endless.sampling = &person.sampling;
  endless.ids = person.prompt.data();
  endless.count = size_t{1} << 60;
  EXPECT_EQ(tiercel_queue_add(queue_, &endless, End, &error_),
            TIERCEL_OUT_OF_MEMORY);
#endif
  person.sampling.temperature = -1;
  EXPECT_EQ(AddTo(queue_, person, &error_), TIERCEL_OK);  // it ends with that
  Wait();
  EXPECT_EQ(person.status, TIERCEL_USAGE);
  person.sampling.temperature = 0;
  person.sampling.struct_size = 3;
  EXPECT_EQ(AddTo(queue_, person, &error_), TIERCEL_USAGE);
  EXPECT_EQ(person.ends, 1);
  person.sampling = Sized<tiercel_sampling>();
  person.sampling.max_tokens = 3;
  tiercel_model* const other = Open(kModel, TIERCEL_LOAD_ALL);
  const auto plain = Sized<tiercel_session_params>();
  tiercel_session* stranger = nullptr;
  ASSERT_EQ(tiercel_session_create(other, &plain, &stranger, &error_),
            TIERCEL_OK);
  std::swap(person.session, stranger);
  EXPECT_EQ(AddTo(queue_, person, &error_), TIERCEL_USAGE);
  EXPECT_THAT(error_.message, HasSubstr("of another model than the queue"));
  std::swap(person.session, stranger);
  tiercel_session_free(stranger);
  tiercel_model_free(other);
  Add(person);  // nothing of these stayed
  Wait();
  EXPECT_EQ(person.ids.size(), 3u);
  EXPECT_EQ(tiercel_queue_wait(nullptr, &error_), TIERCEL_USAGE);
  EXPECT_EQ(tiercel_queue_running(nullptr), 0u);
  tiercel_queue_free(nullptr);
}

TEST_F(QueueApiTest, AForkedProcessHasNone) {
  MakeQueue(0);
  Person& person = Ask(" Then", 4);
  const pid_t child = fork();
  if (child == 0) {
    const bool refused = AddTo(queue_, person, nullptr) == TIERCEL_USAGE &&
                         tiercel_queue_wait(queue_, nullptr) == TIERCEL_USAGE;
    tiercel_queue_free(queue_);
    _exit(refused ? 0 : 1);
  }
  int status = 1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  Add(person);
  Wait();
  EXPECT_EQ(person.status, TIERCEL_OK);
}

}  // namespace
}  // namespace tiercel::queue_api_test

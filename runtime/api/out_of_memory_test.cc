// The system refuses memory at any allocation of a call: the call says so,
// leaks nothing, and succeeds the next time. Calls that make or read JSON are
// left out: nlohmann's documents allocate when they are destroyed, and end the
// process if that fails.

#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <limits>
#include <new>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "include/tiercel_lab.h"
#include "runtime/api/api_fixture_for_test.h"

namespace {

// Counts and refuses allocations of all threads. Every allocation of the
// library comes here: operator new, and aligned_alloc and mmap for the memory
// that ops compute on.
constexpr int64_t kNever = std::numeric_limits<int64_t>::max();
std::atomic<int64_t> left{kNever};  // allocations until one is refused
std::atomic<bool> stays{false};     // all after it are refused too
std::atomic<bool> refused{false};   // one was refused
std::atomic<int64_t> live{0};       // blocks of operator new

bool Refuse() {
  const int64_t now = --left;
  if (now > 0 || (now < 0 && !stays)) return false;
  refused = true;
  return true;
}

void* New(size_t bytes, size_t alignment) {
  void* data = nullptr;
  if (Refuse() || posix_memalign(&data, alignment, bytes) != 0) {
    throw std::bad_alloc();
  }
  ++live;
  return data;
}

void Delete(void* data) {
  if (data == nullptr) return;
  --live;
  free(data);
}

}  // namespace

// NOLINTBEGIN: the standard names them
void* operator new(size_t n) { return New(n, alignof(std::max_align_t)); }
void* operator new[](size_t n) { return New(n, alignof(std::max_align_t)); }
void* operator new(size_t n, std::align_val_t a) { return New(n, size_t(a)); }
void* operator new[](size_t n, std::align_val_t a) { return New(n, size_t(a)); }
void operator delete(void* p) noexcept { Delete(p); }
void operator delete[](void* p) noexcept { Delete(p); }
void operator delete(void* p, size_t) noexcept { Delete(p); }
void operator delete[](void* p, size_t) noexcept { Delete(p); }
void operator delete(void* p, std::align_val_t) noexcept { Delete(p); }
void operator delete[](void* p, std::align_val_t) noexcept { Delete(p); }
void operator delete(void* p, size_t, std::align_val_t) noexcept { Delete(p); }
void operator delete[](void* p, size_t, std::align_val_t) noexcept {
  Delete(p);
}
extern "C" void* aligned_alloc(size_t alignment, size_t bytes) noexcept {
  void* data = nullptr;
  if (Refuse() || posix_memalign(&data, alignment, bytes) != 0) {
    errno = ENOMEM;
    return nullptr;
  }
  return data;
}
// Sanitizers map memory of their own before anything of this program runs.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
extern "C" void* mmap(void* at, size_t bytes, int protection, int flags,
                      int file, off_t offset) noexcept {
  if ((flags & MAP_ANONYMOUS) != 0 && Refuse()) {
    errno = ENOMEM;
    return MAP_FAILED;
  }
  return reinterpret_cast<void*>(
      syscall(SYS_mmap, at, bytes, protection, flags, file, offset));
}
#endif
// NOLINTEND

namespace {

using tiercel::api_test::kModel;
using tiercel::api_test::kSmallDevice;
using tiercel::api_test::Sized;

// The next allocation to refuse: in the full run each one, in the short run
// fewer and fewer; over ranks, which synchronize often and are slower, fewer
// still.
bool over_ranks = false;
int64_t After(int64_t n) {
  static const bool all = getenv("TIERCEL_ALL_FAULTS") != nullptr;
  return all ? n + 1 : n + 1 + n / (over_ranks ? 4 : 6);
}

using Call = std::function<tiercel_status(tiercel_error*)>;

// The memory that a failed call may keep: a session's buffers grow.
enum class Keeps { kNothing, kBuffers };

// Refuses each allocation of `call` in turn, and checks its error. `failed` and
// `succeeded` check the rest; `succeeded` also undoes the call. A lack of
// memory may only cost a thread, which is no error. The short run, too, refuses
// each of the `last` allocations.
void RefuseEach(const char* what, Keeps keeps, const Call& call,
                const std::function<void()>& failed,
                const std::function<void()>& succeeded, int64_t last = 0) {
  int64_t end = 0;  // the number of allocations before the last ones
  if (last > 0) {
    left = kNever;
    auto error = Sized<tiercel_error>();
    ASSERT_EQ(call(&error), TIERCEL_OK) << what << error.message;
    end = kNever - left - last;
    succeeded();
  }
  const auto next = [&](int64_t n) {
    if (n >= end + last) return After(n);
    return std::min(After(n), std::max(n + 1, end));
  };
  for (const bool from_then_on : {false, true}) {
    int64_t failures = 0;
    for (int64_t n = 1;; n = next(n)) {
      auto error = Sized<tiercel_error>();
      refused = false;
      stays = from_then_on;
      const int64_t before = live;
      left = n;
      tiercel_status status = call(&error);
      left = kNever;
      if (status != TIERCEL_OK) {
        ++failures;
        ASSERT_TRUE(refused) << what << ": " << error.message;
        ASSERT_EQ(status, TIERCEL_OUT_OF_MEMORY) << what << error.message;
        ASSERT_STREQ(error.code, "out_of_memory") << what << error.message;
        ASSERT_NE(error.message[0], '\0');
        if (keeps == Keeps::kNothing) {
          ASSERT_EQ(live, before) << what;
        }
        failed();
        status = call(&error);
      }
      ASSERT_EQ(status, TIERCEL_OK) << what << " " << n << error.message;
      succeeded();
      if (keeps == Keeps::kNothing) {
        ASSERT_EQ(live, before) << what;
      }
      if (testing::Test::HasFailure()) {
        FAIL() << what << ": allocation " << n;
      }
      if (!refused) break;
    }
    EXPECT_GT(failures, 0) << what;
  }
}

// The place of a model: here, behind a link, or over two ranks with a link
// each.
enum class Place { kPlain, kSimulated, kRanks };

class OutOfMemoryTest : public testing::TestWithParam<Place> {
 protected:
  OutOfMemoryTest() {
    params_.path = kModel;
    params_.threads = 3;
    over_ranks = GetParam() == Place::kRanks;
    if (over_ranks) params_.tensor_parallel = 2;
    if (GetParam() != Place::kPlain) params_.simulation = &kSmallDevice;
    session_params_.context = 400;
    sampling_.max_tokens = 6;
    sampling_.ignore_eos = 1;
    sampling_.temperature = 1;
    sampling_.repeat_penalty = 1.1f;
    for (int32_t i = 0; i < 200; ++i) prompt_.push_back(5 + i * 7 % 200);
  }

  void Open() {
    ASSERT_EQ(tiercel_model_open(&params_, &model_, &error_), TIERCEL_OK)
        << error_.message;
  }
  void Create() {
    ASSERT_EQ(
        tiercel_session_create(model_, &session_params_, &session_, &error_),
        TIERCEL_OK)
        << error_.message;
  }
  tiercel_status PrefillAll(tiercel_session* session, tiercel_error* error) {
    return tiercel_session_prefill(session, prompt_.data(), prompt_.size(),
                                   nullptr, nullptr, error);
  }
  // Generates into a buffer that exists before.
  tiercel_status Generate(tiercel_session* session, tiercel_error* error) {
    count_ = 0;
    return tiercel_session_generate(
        session, &sampling_,
        [](void* self, const tiercel_token* token) {
          auto* const test = static_cast<OutOfMemoryTest*>(self);
          test->output_[test->count_++] = token->id;
          return 0;
        },
        this, error);
  }
  void Cut(tiercel_session* session, size_t length) {
    EXPECT_EQ(tiercel_session_truncate(session, length, &error_), TIERCEL_OK);
  }
  // The tokens that the session generates behind its prompt.
  std::vector<int32_t> Output() {
    EXPECT_EQ(Generate(session_, &error_), TIERCEL_OK) << error_.message;
    std::vector<int32_t> ids(output_, output_ + count_);
    EXPECT_EQ(ids.size(), 6u);
    Cut(session_, prompt_.size());
    return ids;
  }
  // Tries to make sessions; returns the tokens of a session that was made
  // before.
  std::vector<int32_t> RefuseSessions() {
    Create();
    EXPECT_EQ(PrefillAll(session_, &error_), TIERCEL_OK);
    const std::vector<int32_t> expected = Output();
    tiercel_session_free(session_);
    RefuseEach(
        "create", Keeps::kNothing,
        [&](tiercel_error* e) {
          return tiercel_session_create(model_, &session_params_, &session_, e);
        },
        [&] { EXPECT_EQ(session_, nullptr); },
        [&] { tiercel_session_free(session_); });
    return expected;
  }
  // Tokens that were given out are kept, and are right.
  void RefuseGenerations(const char* what,
                         const std::vector<int32_t>& expected) {
    RefuseEach(
        what, Keeps::kBuffers,
        [&](tiercel_error* e) { return Generate(session_, e); },
        [&] {
          EXPECT_EQ(tiercel_session_length(session_), prompt_.size() + count_);
          for (size_t i = 0; i < count_; ++i) {
            EXPECT_EQ(output_[i], expected[i]);
          }
          Cut(session_, prompt_.size());
        },
        [&] {
          EXPECT_EQ(std::vector<int32_t>(output_, output_ + count_), expected);
          Cut(session_, prompt_.size());
        });
  }
  void Free() {
    tiercel_session_free(session_);
    tiercel_model_free(model_);
  }

  tiercel_model_params params_ = Sized<tiercel_model_params>();
  tiercel_session_params session_params_ = Sized<tiercel_session_params>();
  tiercel_sampling sampling_ = Sized<tiercel_sampling>();
  tiercel_error error_ = Sized<tiercel_error>();
  std::vector<int32_t> prompt_;
  tiercel_model* model_ = nullptr;
  tiercel_session* session_ = nullptr;
  int32_t output_[16];
  size_t count_ = 0;
};
std::string NameOf(const testing::TestParamInfo<Place>& place) {
  return place.param == Place::kPlain       ? "Plain"
         : place.param == Place::kSimulated ? "Simulated"
                                            : "Ranks";
}

INSTANTIATE_TEST_SUITE_P(Devices, OutOfMemoryTest,
                         testing::Values(Place::kPlain, Place::kSimulated),
                         NameOf);

// Tests calls that behave differently over ranks.
class OutOfMemoryRanksTest : public OutOfMemoryTest {};
INSTANTIATE_TEST_SUITE_P(Devices, OutOfMemoryRanksTest,
                         testing::Values(Place::kPlain, Place::kSimulated,
                                         Place::kRanks),
                         NameOf);

TEST_P(OutOfMemoryRanksTest, Loading) {
  Open();  // makes all that is made only once
  tiercel_model_free(model_);
  RefuseEach(
      "open", Keeps::kNothing,
      [&](tiercel_error* e) {
        return tiercel_model_open(&params_, &model_, e);
      },
      [&] { EXPECT_EQ(model_, nullptr); }, [&] { tiercel_model_free(model_); });
}

TEST_P(OutOfMemoryRanksTest, Sessions) {
  Open();
  const std::vector<int32_t> expected = RefuseSessions();
  Create();
  RefuseEach(
      "prefill", Keeps::kBuffers,
      [&](tiercel_error* e) { return PrefillAll(session_, e); },
      [&] { EXPECT_EQ(tiercel_session_length(session_), 0u); },
      [&] {
        EXPECT_EQ(Output(), expected);
        tiercel_session_free(session_);
        Create();  // has no buffers yet
      });

  ASSERT_EQ(PrefillAll(session_, &error_), TIERCEL_OK);
  RefuseGenerations("generate", expected);

  tiercel_session_free(session_);
  Create();
  RefuseEach(
      "score", Keeps::kBuffers,
      [&](tiercel_error* e) {
        return tiercel_session_score(session_, prompt_.data(), prompt_.size(),
                                     0, nullptr, nullptr, e);
      },
      [&] { EXPECT_EQ(tiercel_session_length(session_), 0u); },
      [&] {
        EXPECT_EQ(Output(), expected);
        tiercel_session_free(session_);
        Create();
      });

  ASSERT_EQ(PrefillAll(session_, &error_), TIERCEL_OK);
  tiercel_session* copy = nullptr;
  RefuseEach(
      "fork", Keeps::kNothing,
      [&](tiercel_error* e) {
        return tiercel_session_fork(session_, &copy, e);
      },
      [&] { EXPECT_EQ(copy, nullptr); },
      [&] {
        // Until one of them writes, the two share their pages.
        EXPECT_EQ(tiercel_session_length(copy), prompt_.size());
        tiercel_session_free(copy);
      });
  EXPECT_EQ(Output(), expected);
  Free();
}

// The session has a view beside its sequence, and a draft model.
TEST_P(OutOfMemoryTest, Drafts) {
  Open();
  auto policy = Sized<tiercel_policy>();
  policy.name = "triforce";
  policy.verify = "coupled";
  policy.gamma2 = 4;
  policy.draft_model = model_;
  policy.budget = 32;
  policy.sink = 8;
  policy.window = 16;
  policy.chunk = 8;
  session_params_.policy = &policy;
  for (const char* const draft : {"ngram", "self", "small"}) {
    policy.draft = draft;
    const std::vector<int32_t> expected = RefuseSessions();
    Create();
    ASSERT_EQ(PrefillAll(session_, &error_), TIERCEL_OK);
    RefuseGenerations(draft, expected);
    tiercel_session* copy = nullptr;
    RefuseEach(
        "fork", Keeps::kNothing,
        [&](tiercel_error* e) {
          return tiercel_session_fork(session_, &copy, e);
        },
        [&] { EXPECT_EQ(copy, nullptr); }, [&] { tiercel_session_free(copy); });
    EXPECT_EQ(Output(), expected);
    tiercel_session_free(session_);
  }
  tiercel_model_free(model_);
}

// A fork's first step copies the pages that it writes.
TEST_P(OutOfMemoryTest, Copies) {
  Open();
  Create();
  ASSERT_EQ(PrefillAll(session_, &error_), TIERCEL_OK);
  const std::vector<int32_t> expected = Output();
  RefuseEach(
      "a copy's first steps", Keeps::kBuffers,
      [&](tiercel_error* e) {
        tiercel_session* copy = nullptr;
        tiercel_status status = tiercel_session_fork(session_, &copy, e);
        if (status == TIERCEL_OK) status = Generate(copy, e);
        tiercel_session_free(copy);
        return status;
      },
      [&] { EXPECT_EQ(Output(), expected); },
      [&] {
        EXPECT_EQ(std::vector<int32_t>(output_, output_ + count_), expected);
        EXPECT_EQ(Output(), expected);
      });
  Free();
}

class OutOfMemoryPromptCacheTest : public OutOfMemoryTest {
 protected:
  // Creates a session that holds nothing but has put together the identity of
  // its texts (in JSON).
  void CreateWarm() {
    Create();
    const std::vector<int32_t> other(1100, 7);
    ASSERT_EQ(tiercel_session_prefill(session_, other.data(), other.size(),
                                      nullptr, nullptr, &error_),
              TIERCEL_OK)
        << error_.message;
    Cut(session_, 0);
  }
  void Clear(const std::string& folder) {
    size_t removed = 0;
    EXPECT_EQ(tiercel_cache_clear(folder.c_str(), &removed, &error_),
              TIERCEL_OK);
  }
};
INSTANTIATE_TEST_SUITE_P(Devices, OutOfMemoryPromptCacheTest,
                         testing::Values(Place::kPlain, Place::kRanks), NameOf);

// A text is read and saved, then opened. Without memory for a part, the call
// reads it instead of opening it, or does not save it, or fails.
TEST_P(OutOfMemoryPromptCacheTest, TextsThatAreKeptAndOpened) {
  std::string folder = testing::TempDir() + "/prompt_cache_XXXXXX";
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  session_params_.prompt_cache_dir = folder.c_str();
  session_params_.context = 1200;
  for (int32_t i = 200; i < 1100; ++i) prompt_.push_back(5 + i * 7 % 200);
  Open();
  CreateWarm();
  ASSERT_EQ(PrefillAll(session_, &error_), TIERCEL_OK);
  const std::vector<int32_t> expected = Output();
  for (const bool kept : {false, true}) {
    const auto anew = [&] {
      tiercel_session_free(session_);  // waits for a text that is being saved
      if (!kept) Clear(folder);
      CreateWarm();
    };
    anew();
    RefuseEach(
        kept ? "open" : "read", Keeps::kBuffers,
        [&](tiercel_error* e) { return PrefillAll(session_, e); },
        [&] { EXPECT_EQ(tiercel_session_length(session_), 0u); },
        [&] {
          EXPECT_EQ(Output(), expected);
          anew();
        },
        /*last=*/kept ? 0 : 16);  // begins to save the text
  }
  Free();
  std::filesystem::remove_all(folder);
}

TEST_P(OutOfMemoryTest, Text) {
  Open();
  Create();
  ASSERT_EQ(PrefillAll(session_, &error_), TIERCEL_OK);
  const auto nothing = [] {};
  const std::string text = "Once upon a time there were 3 cats.";
  int32_t ids[64];
  char out[1 << 16];
  size_t size = 0;
  RefuseEach(
      "tokenize", Keeps::kNothing,
      [&](tiercel_error* e) {
        size = std::size(ids);
        return tiercel_tokenize(model_, text.data(), text.size(), 0, nullptr,
                                ids, &size, e);
      },
      nothing, nothing);
  const size_t count = size;
  RefuseEach(
      "detokenize", Keeps::kNothing,
      [&](tiercel_error* e) {
        size = sizeof(out);
        return tiercel_detokenize(model_, ids, count, 0, out, &size, e);
      },
      nothing, [&] { EXPECT_EQ(std::string(out, size), text); });
  const tiercel_message message = {
      sizeof(tiercel_message), "user", text.data(), text.size(), nullptr, 0};
  RefuseEach(
      "chat", Keeps::kNothing,
      [&](tiercel_error* e) {
        size = std::size(ids);
        return tiercel_chat_tokens(model_, &message, 1, nullptr, ids, &size, e);
      },
      nothing, nothing);
  // A call that fails anyway gives its own error, or out_of_memory.
  for (int64_t n = 1; n < 10; ++n) {
    stays = true;
    left = n;
    const tiercel_status status = tiercel_session_prefill(
        session_, nullptr, 1, nullptr, nullptr, &error_);
    left = kNever;
    EXPECT_TRUE(status == TIERCEL_USAGE || status == TIERCEL_OUT_OF_MEMORY);
  }
  left = 1;
  EXPECT_NE(tiercel_version(), nullptr);
  left = kNever;
  Free();
}

}  // namespace

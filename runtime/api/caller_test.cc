// Programs that embed the library set floating-point modes and locales, fork,
// use threads, end in any order, and pass any number.

#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cfenv>
#include <clocale>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <locale>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "include/tiercel_lab.h"
#include "nlohmann/json.hpp"
#include "runtime/api/api_fixture_for_test.h"

namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

using tiercel::api_test::kModel;
using tiercel::api_test::kSmallDevice;
using tiercel::api_test::Sized;

tiercel_model* Open(bool simulated = false) {
  auto error = Sized<tiercel_error>();
  auto params = Sized<tiercel_model_params>();
  params.path = kModel;
  params.threads = 3;
  if (simulated) params.simulation = &kSmallDevice;
  tiercel_model* model = nullptr;
  EXPECT_EQ(tiercel_model_open(&params, &model, &error), TIERCEL_OK)
      << error.message;
  return model;
}

tiercel_session* Create(tiercel_model* model) {
  auto error = Sized<tiercel_error>();
  auto params = Sized<tiercel_session_params>();
  params.context = 500;
  tiercel_session* session = nullptr;
  EXPECT_EQ(tiercel_session_create(model, &params, &session, &error),
            TIERCEL_OK)
      << error.message;
  return session;
}

struct Result {
  std::vector<float> logits;  // every row's
  std::vector<int32_t> ids;
  std::string report;

  bool operator==(const Result& other) const {
    return ids == other.ids && logits.size() == other.logits.size() &&
           std::memcmp(logits.data(), other.logits.data(),
                       logits.size() * sizeof(float)) == 0;
  }
};

Result Work(tiercel_session* session) {
  auto error = Sized<tiercel_error>();
  Result result;
  std::vector<int32_t> prompt;
  for (int32_t i = 0; i < 150; ++i) prompt.push_back(3 + i * 11 % 200);
  EXPECT_EQ(tiercel_session_truncate(session, 0, &error), TIERCEL_OK);
  EXPECT_EQ(tiercel_session_score(
                session, prompt.data(), prompt.size(), 0,
                [](void* out, size_t, const float* logits) {
                  auto& all = static_cast<Result*>(out)->logits;
                  all.insert(all.end(), logits, logits + 200);
                  return 0;
                },
                &result, &error),
            TIERCEL_OK)
      << error.message;
  auto sampling = Sized<tiercel_sampling>();
  sampling.max_tokens = 30;
  sampling.ignore_eos = 1;
  sampling.temperature = 0.9f;
  sampling.top_p = 0.95f;
  EXPECT_EQ(tiercel_session_generate(
                session, &sampling,
                [](void* out, const tiercel_token* token) {
                  static_cast<Result*>(out)->ids.push_back(token->id);
                  return 0;
                },
                &result, &error),
            TIERCEL_OK)
      << error.message;
  char json[1 << 14];
  size_t size = sizeof(json);
  EXPECT_EQ(tiercel_session_report(session, json, &size, &error), TIERCEL_OK);
  result.report = json;
  EXPECT_EQ(result.logits.size(), 150u * 200);
  EXPECT_EQ(result.ids.size(), 30u);
  return result;
}

// Does everything with a new model and a new session.
Result WorkAnew() {
  tiercel_model* const model = Open();
  tiercel_session* const session = Create(model);
  const Result result = Work(session);
  tiercel_session_free(session);
  tiercel_model_free(model);
  return result;
}

// ---- Floating point ----

#if defined(__x86_64__)
unsigned Mxcsr() { return __builtin_ia32_stmxcsr(); }
constexpr unsigned kModes = 0xffc0;     // all bits but the flags
constexpr unsigned kDefault = 0x1f80;   // every trap masked
constexpr unsigned kFlushing = 0x8040;  // outputs and inputs to zero

TEST(CallerTest, FlushingToZeroIsOffInsideAndOnAgain) {
  const Result expected = WorkAnew();
  const unsigned before = Mxcsr();
  __builtin_ia32_ldmxcsr(before | kFlushing);
  const Result result = WorkAnew();
  EXPECT_EQ(Mxcsr() & kModes, (before | kFlushing) & kModes);
  tiercel_model* const model = Open();
  tiercel_session* const session = Create(model);
  const int32_t id = 7;
  unsigned inside = 0;
  EXPECT_EQ(tiercel_session_prefill(
                session, &id, 1,
                [](void* out, uint64_t, uint64_t) {
                  *static_cast<unsigned*>(out) = Mxcsr();
                  return 0;
                },
                &inside, nullptr),
            TIERCEL_OK);
  __builtin_ia32_ldmxcsr(before);
  EXPECT_EQ(inside & kModes, kDefault);
  EXPECT_TRUE(result == expected);
  tiercel_session_free(session);
  tiercel_model_free(model);
}
#endif

TEST(CallerTest, RoundingAndTrapsAreTheLibrarysOwn) {
  const Result expected = WorkAnew();
  for (const int mode : {FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO}) {
    std::fesetround(mode);
    const Result result = WorkAnew();
    EXPECT_EQ(std::fegetround(), mode);
    std::fesetround(FE_TONEAREST);
    EXPECT_TRUE(result == expected) << mode;
  }
  std::feclearexcept(FE_ALL_EXCEPT);
  feenableexcept(FE_DIVBYZERO | FE_INVALID | FE_OVERFLOW | FE_UNDERFLOW |
                 FE_INEXACT);
  tiercel_model* const model = Open();
  tiercel_session* const session = Create(model);
  auto error = Sized<tiercel_error>();
  const std::vector<int32_t> prompt(100, 9);
  const tiercel_status status = tiercel_session_prefill(
      session, prompt.data(), prompt.size(), nullptr, nullptr, &error);
  const int traps = fegetexcept();
  fedisableexcept(FE_ALL_EXCEPT);
  EXPECT_EQ(status, TIERCEL_OK) << error.message;
  EXPECT_NE(traps & FE_INEXACT, 0);  // the program's again
  EXPECT_EQ(std::fetestexcept(FE_ALL_EXCEPT), 0);
  tiercel_session_free(session);
  tiercel_model_free(model);
}

// ---- Locales ----

void ExpectSame(const Result& result, const Result& expected) {
  EXPECT_TRUE(result == expected);
  const nlohmann::json report = nlohmann::json::parse(result.report);
  EXPECT_TRUE(report["ttft_s"].is_number_float()) << result.report;
}

TEST(CallerTest, StreamsMayWriteCommas) {
  struct Comma final : std::numpunct<char> {
    char do_decimal_point() const override { return ','; }
    char do_thousands_sep() const override { return '.'; }
    std::string do_grouping() const override { return "\1"; }
  };
  const Result expected = WorkAnew();
  const std::locale before =
      std::locale::global(std::locale(std::locale::classic(), new Comma));
  ExpectSame(WorkAnew(), expected);
  std::locale::global(before);
}

TEST(CallerTest, TheLocaleMayHaveAComma) {
  std::string folder = testing::TempDir() + "caller_XXXXXX";
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  std::ofstream(folder + "/comma") << "LC_NUMERIC\n"
                                      "decimal_point \"<U002C>\"\n"
                                      "thousands_sep \"<U002E>\"\n"
                                      "grouping 3;3\n"
                                      "END LC_NUMERIC\n";
  // -c allows for the other categories, which are missing, but it complains.
  const std::string make = "localedef -c -i " + folder + "/comma -f UTF-8 " +
                           folder + "/xx_XX.UTF-8 >/dev/null 2>&1";
  if (system(make.c_str()) < 0) GTEST_SKIP() << "no localedef";
  setenv("LOCPATH", folder.c_str(), 1);
  const Result expected = WorkAnew();
  const bool set = std::setlocale(LC_NUMERIC, "xx_XX.UTF-8") != nullptr;
  if (set) {
    EXPECT_STREQ(std::localeconv()->decimal_point, ",");
    ExpectSame(WorkAnew(), expected);
    std::setlocale(LC_NUMERIC, "C");
  }
  unsetenv("LOCPATH");
  std::filesystem::remove_all(folder);
  if (!set) GTEST_SKIP() << "localedef made no locale";
}

// ---- Processes, threads, the end ----

TEST(CallerTest, AForkedProcessMakesItsOwnSessions) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "ThreadSanitizer starts no threads after a fork";
#endif
  for (const bool simulated : {false, true}) {
    tiercel_model* const model = Open(simulated);
    tiercel_session* const session = Create(model);
    const Result expected = Work(session);
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      alarm(60);  // ends a wait for threads that only the parent has
      auto error = Sized<tiercel_error>();
      const int32_t id = 3;
      const tiercel_status status =
          tiercel_session_prefill(session, &id, 1, nullptr, nullptr, &error);
      bool good = status == TIERCEL_USAGE &&
                  std::strcmp(error.code, "forked") == 0 &&
                  tiercel_session_truncate(session, 0, &error) == TIERCEL_USAGE;
      tiercel_session_cancel(session);
      tiercel_session_free(session);  // does nothing
      tiercel_session* const own = Create(model);
      good = good && Work(own) == expected;
      tiercel_session_free(own);
      tiercel_model_free(model);
      const int code = good && !testing::Test::HasFailure() ? 0 : 1;
#if defined(__SANITIZE_ADDRESS__)
      // LeakSanitizer takes the memory of the parent's threads for leaks.
      _exit(code);
#endif
      exit(code);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
    EXPECT_EQ(WEXITSTATUS(status), 0);
    EXPECT_TRUE(Work(session) == expected);
    tiercel_session_free(session);
    tiercel_model_free(model);
  }
}

TEST(CallerTest, ThreadsWorkBesideEachOther) {
  const Result expected = WorkAnew();
  for (const bool simulated : {false, true}) {
    tiercel_model* const shared = Open(simulated);
    std::vector<Result> results(6);
    std::vector<std::thread> threads;
    for (size_t i = 0; i < results.size(); ++i) {
      threads.emplace_back([&, i] {
        tiercel_model* const model = i % 2 == 0 ? shared : Open(simulated);
        tiercel_session* const session = Create(model);
        results[i] = Work(session);
        tiercel_session_free(session);
        if (model != shared) tiercel_model_free(model);
      });
    }
    for (std::thread& thread : threads) thread.join();
    for (const Result& result : results) EXPECT_TRUE(result == expected);
    tiercel_model_free(shared);
  }
}

// Frees its handles after everything of the library is gone: it is made before,
// so it ends after.
struct Late {
  ~Late() {
    tiercel_session_free(session);
    tiercel_model_free(model);
    if (version != nullptr && std::strstr(version, "commit ") == nullptr) {
      abort();
    }
  }
  tiercel_model* model = nullptr;
  tiercel_session* session = nullptr;
  const char* version = nullptr;
} late[2];

TEST(CallerTest, StaticObjectsMayFreeAtTheEnd) {
  for (const bool simulated : {false, true}) {
    late[simulated].model = Open(simulated);
    late[simulated].session = Create(late[simulated].model);
    late[simulated].version = tiercel_version();
    Work(late[simulated].session);
  }
}

// ---- Numbers ----

class NumbersTest : public testing::Test {
 protected:
  ~NumbersTest() override { tiercel_model_free(model_); }

  void RefusesModel(void (*change)(tiercel_model_params*), const char* code) {
    auto params = Sized<tiercel_model_params>();
    params.path = kModel;
    change(&params);
    tiercel_model* model = nullptr;
    EXPECT_EQ(tiercel_model_open(&params, &model, &error_), TIERCEL_USAGE);
    EXPECT_STREQ(error_.code, code) << error_.message;
    EXPECT_EQ(model, nullptr);
    tiercel_model_free(model);
  }
  void RefusesSession(int64_t context, const char* code) {
    auto params = Sized<tiercel_session_params>();
    params.context = context;
    tiercel_session* session = nullptr;
    EXPECT_EQ(tiercel_session_create(model_, &params, &session, &error_),
              TIERCEL_USAGE);
    EXPECT_STREQ(error_.code, code) << error_.message;
    tiercel_session_free(session);
  }

  tiercel_error error_ = Sized<tiercel_error>();
  tiercel_model* model_ = Open();
};

constexpr int32_t kMin32 = std::numeric_limits<int32_t>::min();
constexpr int32_t kMax32 = std::numeric_limits<int32_t>::max();
constexpr int64_t kMin64 = std::numeric_limits<int64_t>::min();
constexpr int64_t kMax64 = std::numeric_limits<int64_t>::max();

TEST_F(NumbersTest, OfModels) {
  using P = tiercel_model_params;
  RefusesModel([](P* p) { std::memcpy(&p->load, &kMax32, 4); },
               "invalid_argument");
  RefusesModel([](P* p) { std::memcpy(&p->load, &kMin32, 4); },
               "invalid_argument");
  RefusesModel(
      [](P* p) {
        p->device_memory_bytes = std::numeric_limits<uint64_t>::max();
      },
      "invalid_argument");
  RefusesModel([](P* p) { p->threads = -1; }, "invalid_threads");
  RefusesModel([](P* p) { p->threads = kMin32; }, "invalid_threads");
  RefusesModel([](P* p) { p->threads = kMax32; }, "invalid_threads");
  RefusesModel([](P* p) { p->yarn_orig_ctx = -1; }, "invalid_rope");
  RefusesModel([](P* p) { p->yarn_orig_ctx = kMin64; }, "invalid_rope");
  RefusesModel(
      [](P* p) {
        p->yarn_orig_ctx = kMax64;
        p->rope_scaling = "yarn";
        p->rope_scale = 4096;
      },
      "invalid_rope");
  RefusesModel([](P* p) { p->rope_scale = -1; }, "invalid_rope");
  RefusesModel([](P* p) { p->rope_scale = 1e300; }, "invalid_rope");
  RefusesModel([](P* p) { p->rope_freq_base = -1e300; }, "invalid_rope");
  RefusesModel(
      [](P* p) { p->rope_freq_base = std::numeric_limits<double>::infinity(); },
      "invalid_rope");
}

TEST_F(NumbersTest, OfSimulations) {
  using S = tiercel_simulation;
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  static constexpr struct {
    const char* field;
    void (*change)(S*);
  } kRefused[] = {
      {"device_bytes", [](S* s) { s->device_bytes = UINT64_MAX; }},
      {"device_bytes", [](S* s) { s->device_bytes = (1ull << 46) + 1; }},
      {"device_bytes", [](S* s) { s->device_bytes = 0; }},
      {"link_bytes_per_s", [](S* s) { s->link_bytes_per_s = 0; }},
      {"link_bytes_per_s", [](S* s) { s->link_bytes_per_s = -1; }},
      {"link_bytes_per_s", [](S* s) { s->link_bytes_per_s = 2e15; }},
      {"link_bytes_per_s", [](S* s) { s->link_bytes_per_s = kNan; }},
      {"link_latency_us", [](S* s) { s->link_latency_us = -1; }},
      {"link_latency_us", [](S* s) { s->link_latency_us = kInfinity; }},
      {"host_bytes_per_s", [](S* s) { s->host_bytes_per_s = -1; }},
      {"host_bytes_per_s", [](S* s) { s->host_bytes_per_s = 999; }},
      {"host_bytes_per_s", [](S* s) { s->host_bytes_per_s = 2e15; }},
      {"host_bytes_per_s", [](S* s) { s->host_bytes_per_s = kNan; }},
  };
  auto params = Sized<tiercel_model_params>();
  params.path = kModel;
  const auto refused = [&](const S& simulation, const std::string& field) {
    params.simulation = &simulation;
    tiercel_model* model = nullptr;
    EXPECT_EQ(tiercel_model_open(&params, &model, &error_), TIERCEL_USAGE);
    EXPECT_STREQ(error_.code, "invalid_simulation");
    EXPECT_THAT(error_.message, StartsWith("simulation." + field + ": got "));
    tiercel_model_free(model);
  };
  for (const auto& [field, change] : kRefused) {
    S simulation = kSmallDevice;
    change(&simulation);
    refused(simulation, field);
  }
  auto host_alone = Sized<S>();
  host_alone.host_bytes_per_s = 1e9;
  refused(host_alone, "device_bytes");
  auto latency_alone = Sized<S>();
  latency_alone.link_latency_us = 1;
  refused(latency_alone, "device_bytes");
  params.device = "ref";
  auto strict = Sized<S>();
  strict.strict_seed = 1;
  refused(strict, "strict_seed");

  const S unsized = {};
  params.simulation = &unsized;
  tiercel_model* model = nullptr;
  EXPECT_EQ(tiercel_model_open(&params, &model, &error_), TIERCEL_USAGE);
  EXPECT_STREQ(error_.code, "invalid_struct_size");
}

TEST_F(NumbersTest, OfSessions) {
  for (int64_t n : {kMin64, int64_t{-1}, int64_t{kMax32} + 1, kMax64}) {
    RefusesSession(n, "invalid_context");
  }
  tiercel_session* const session = Create(model_);
  // If there are more tokens than fit, the ids are not even read.
  const int32_t id = 3;
  for (size_t n : {size_t{501}, size_t{1} << 31, SIZE_MAX / 4, SIZE_MAX}) {
    EXPECT_EQ(
        tiercel_session_prefill(session, &id, n, nullptr, nullptr, &error_),
        TIERCEL_INVALID_INPUT);
    EXPECT_STREQ(error_.code, "context_length_exceeded");
    EXPECT_EQ(
        tiercel_session_score(session, &id, n, 0, nullptr, nullptr, &error_),
        TIERCEL_INVALID_INPUT);
    EXPECT_STREQ(error_.code, "context_length_exceeded");
    EXPECT_EQ(tiercel_session_truncate(session, n, &error_), TIERCEL_USAGE);
  }
  size_t size = 0;
  EXPECT_EQ(
      tiercel_detokenize(model_, &id, SIZE_MAX, 0, nullptr, &size, &error_),
      TIERCEL_USAGE);
  // The number of rows at once may exceed the tokens; 0 is the library's
  // choice.
  std::vector<float> expected;
  const std::vector<int32_t> ids = {3, 4, 5, 6};
  for (size_t rows : {size_t{1}, size_t{0}, size_t{1} << 31, SIZE_MAX}) {
    std::vector<float> logits;
    EXPECT_EQ(tiercel_session_score(
                  session, ids.data(), ids.size(), rows,
                  [](void* out, size_t, const float* row) {
                    auto* all = static_cast<std::vector<float>*>(out);
                    all->insert(all->end(), row, row + 200);
                    return 0;
                  },
                  &logits, &error_),
              TIERCEL_OK)
        << error_.message;
    if (expected.empty()) expected = logits;
    EXPECT_EQ(logits, expected);
    EXPECT_EQ(tiercel_session_truncate(session, 0, &error_), TIERCEL_OK);
  }
  tiercel_session_free(session);
  size = 0;
  for (int64_t n : {kMin64, int64_t{-1}, int64_t{1025}, kMax64}) {
    auto machine = Sized<tiercel_machine_params>();
    machine.threads = n;
    EXPECT_EQ(tiercel_machine(&machine, nullptr, &size, &error_),
              TIERCEL_USAGE);
    EXPECT_STREQ(error_.code, "invalid_threads");
  }
}

TEST_F(NumbersTest, OfPolicies) {
  using P = tiercel_policy;
  static constexpr struct {
    const char* field;
    void (*change)(P*);
  } kRefused[] = {
      {"gamma1", [](P* p) { p->gamma1 = -2; }},
      {"gamma1", [](P* p) { p->gamma1 = kMin32; }},
      {"gamma2", [](P* p) { p->gamma2 = kMax32; }},
      {"draft_layers", [](P* p) { p->draft_layers = kMax32; }},
      {"branches", [](P* p) { p->branches = kMax64; }},
      {"branches", [](P* p) { p->branches = kMin64; }},
      {"chunk", [](P* p) { p->chunk = kMin32; }},
      {"budget", [](P* p) { p->budget = kMax64; }},
      {"sink", [](P* p) { p->sink = kMax64; }},
      {"window", [](P* p) { p->window = kMin64; }},
      {"cost_ratio",
       [](P* p) { p->cost_ratio = std::numeric_limits<double>::quiet_NaN(); }},
      {"cost_ratio",
       [](P* p) { p->cost_ratio = std::numeric_limits<double>::infinity(); }},
  };
  for (const auto& [field, change] : kRefused) {
    auto policy = Sized<P>();
    policy.name = "triforce";
    change(&policy);
    auto params = Sized<tiercel_session_params>();
    params.policy = &policy;
    tiercel_session* session = nullptr;
    EXPECT_EQ(tiercel_session_create(model_, &params, &session, &error_),
              TIERCEL_USAGE);
    EXPECT_STREQ(error_.code, "invalid_argument") << error_.message;
    EXPECT_THAT(error_.message, StartsWith(field));
  }
}

TEST_F(NumbersTest, OfSampling) {
  using S = tiercel_sampling;
  tiercel_session* const session = Create(model_);
  const int32_t id = 3;
  ASSERT_EQ(tiercel_session_prefill(session, &id, 1, nullptr, nullptr, &error_),
            TIERCEL_OK);
  static const char* const kStop = "x";
  const struct {
    void (*change)(S*);
    const char* code;
  } refused[] = {
      {[](S* s) { s->max_tokens = -1; }, "invalid_sampling"},
      {[](S* s) { s->max_tokens = kMin64; }, "invalid_sampling"},
      {[](S* s) { s->top_k = -1; }, "invalid_sampling"},
      {[](S* s) { s->top_k = kMin32; }, "invalid_sampling"},
      {[](S* s) {
         s->stops = &kStop;
         s->num_stops = SIZE_MAX;
       },
       "invalid_stop"},
      {[](S* s) {
         s->stops = &kStop;
         s->num_stops = 65;
       },
       "invalid_stop"},
  };
  for (const auto& r : refused) {
    auto sampling = Sized<S>();
    r.change(&sampling);
    EXPECT_EQ(
        tiercel_session_generate(session, &sampling, nullptr, nullptr, &error_),
        TIERCEL_USAGE);
    EXPECT_STREQ(error_.code, r.code) << error_.message;
    EXPECT_EQ(tiercel_session_length(session), 1u);
  }
  // Large numbers are taken as they are.
  auto sampling = Sized<S>();
  sampling.max_tokens = kMax64;
  sampling.top_k = kMax32;
  sampling.temperature = 1;
  sampling.seed = std::numeric_limits<uint64_t>::max();
  sampling.ignore_eos = kMin32;
  EXPECT_EQ(
      tiercel_session_generate(session, &sampling, nullptr, nullptr, &error_),
      TIERCEL_OK)
      << error_.message;
  EXPECT_EQ(tiercel_session_length(session), 500u);
  tiercel_session_free(session);
}

TEST_F(NumbersTest, AnyThingMayBeThrown) {
  tiercel_session* const session = Create(model_);
  const int32_t id = 3;
  EXPECT_EQ(
      tiercel_session_prefill(
          session, &id, 1, [](void*, uint64_t, uint64_t) -> int { throw 5; },
          nullptr, &error_),
      TIERCEL_FAILED);
  EXPECT_THAT(error_.message, HasSubstr("threw"));
  EXPECT_EQ(tiercel_session_length(session), 0u);
  tiercel_session_free(session);
}

}  // namespace

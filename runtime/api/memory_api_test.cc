// The memory of sessions, through tiercel.h: which sessions are admitted, the
// memory that they share, and a fork without enough of it.

#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "include/tiercel_lab.h"
#include "nlohmann/json.hpp"
#include "offload/tier/memory_promise.h"
#include "runtime/api/api_fixture_for_test.h"

namespace tiercel::memory_api_test {
namespace {

using api_test::kModel;
using api_test::kSmallDevice;
using api_test::PlanOf;
using api_test::ReportOf;
using api_test::Sized;
using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr int64_t kContext = 2000;

class MemoryApiTest : public api_test::ApiTest {
 protected:
  // A model with a limit of so many bytes, in place; or on a device with room
  // to spare, where the limit is the host tier's.
  tiercel_model* Bounded(uint64_t bytes, bool simulated) {
    auto params = Sized<tiercel_model_params>();
    params.path = kModel;
    params.threads = 2;
    tiercel_simulation simulation = kSmallDevice;
    simulation.device_bytes = 256 << 20;
    if (simulated) {
      params.simulation = &simulation;
      params.host_memory_bytes = bytes;
    } else {
      params.device_memory_bytes = bytes;
    }
    tiercel_model* model = nullptr;
    EXPECT_EQ(tiercel_model_open(&params, &model, &error_), TIERCEL_OK)
        << error_.message;
    return model;
  }

  // Returns null if the session is refused.
  tiercel_session* Create(tiercel_model* model, int64_t context = kContext) {
    auto params = Sized<tiercel_session_params>();
    params.context = context;
    tiercel_session* session = nullptr;
    const tiercel_status status =
        tiercel_session_create(model, &params, &session, &error_);
    EXPECT_EQ(session != nullptr, status == TIERCEL_OK);
    return session;
  }

  // The bytes of one more session: {its workspace, its KV in the host tier}.
  std::pair<int64_t, int64_t> Needs(tiercel_model* model) {
    auto params = Sized<tiercel_session_params>();
    params.context = kContext;
    const nlohmann::json plan = PlanOf(model, params);
    const nlohmann::json& tiers = plan["tiers"];
    const nlohmann::json& device = tiers["device"];
    int64_t work = tiers["host"].value("workspace", int64_t{0});
    for (const auto& [part, bytes] : device.items()) {
      if (part != "weights" && part != "others") work += bytes.get<int64_t>();
    }
    return {work, tiers["host"]["kv"].get<int64_t>()};
  }

  void Prefill(tiercel_session* session, size_t count, int first = 0) {
    EXPECT_EQ(TryPrefill(session, count, first), TIERCEL_OK) << error_.message;
  }
  tiercel_status TryPrefill(tiercel_session* session, size_t count,
                            int first = 0) {
    std::vector<int32_t> ids;
    for (size_t i = 0; i < count; ++i) {
      ids.push_back(5 + (first + static_cast<int>(i) * 7) % 60);
    }
    return tiercel_session_prefill(session, ids.data(), count, nullptr, nullptr,
                                   &error_);
  }

  static std::vector<int32_t> Generate(tiercel_session* session,
                                       int64_t count = 20) {
    auto sampling = Sized<tiercel_sampling>();
    sampling.max_tokens = count;
    sampling.ignore_eos = 1;
    sampling.temperature = 0.8f;
    return api_test::Generated(session, sampling);
  }

  // The parameters of sessions for which a model drafts.
  struct Drafts {
    explicit Drafts(tiercel_model* draft) : model(draft) {
      policy.draft = "small";
      policy.draft_model = model;
      params.context = kContext;
      params.policy = &policy;
    }
    ~Drafts() { tiercel_model_free(model); }
    Drafts(const Drafts&) = delete;
    Drafts& operator=(const Drafts&) = delete;

    tiercel_model* const model;
    tiercel_policy policy = Sized<tiercel_policy>();
    tiercel_session_params params = Sized<tiercel_session_params>();
  };

  // {host, device}: the bytes of the session's host tier, and of its device.
  nlohmann::json Held(const tiercel_session* session) {
    return ReportOf(session)["memory"];
  }
  int64_t OnDevice(const tiercel_session* session) {
    return Held(session)["device_bytes"].get<int64_t>();
  }
};

// If there is room for four sessions, a fifth is refused until one is gone,
// though none of them has written its memory yet.
TEST_F(MemoryApiTest, WhatASessionMayStillTakeCounts) {
  for (const bool simulated : {false, true}) {
    tiercel_model* model = Bounded(uint64_t{1} << 40, simulated);
    const auto [work, host] = Needs(model);
    tiercel_session* first = Create(model);
    const int64_t weights = simulated ? 0 : OnDevice(first);
    const auto [more_work, host_too] = Needs(model);
    EXPECT_EQ(host_too, host);
    tiercel_session_free(first);
    tiercel_model_free(model);

    const int64_t four =
        simulated ? 4 * host : weights + work + 3 * more_work + 4 * host;
    model = Bounded(static_cast<uint64_t>(four), simulated);
    std::vector<tiercel_session*> sessions;
    for (int i = 0; i < 4; ++i) {
      sessions.push_back(Create(model));
      ASSERT_NE(sessions.back(), nullptr) << error_.message;
    }
    EXPECT_EQ(Create(model), nullptr) << simulated;
    EXPECT_STREQ(error_.code, "does_not_fit");
    EXPECT_THAT(std::string(error_.message),
                HasSubstr(" of it may be taken by sessions that are there"));
    // The admitted sessions have room, in whatever order they take it.
    for (tiercel_session* session : sessions) Prefill(session, 1900);
    int64_t written = simulated ? 0 : OnDevice(sessions.front());
    for (tiercel_session* session : sessions) {
      EXPECT_THAT(Generate(session, 100), SizeIs(100));
      written += Held(session)["host_bytes"].get<int64_t>();
    }
    EXPECT_LE(written, four);
    EXPECT_EQ(Create(model), nullptr);
    tiercel_session_free(sessions.back());
    sessions.back() = Create(model);
    EXPECT_NE(sessions.back(), nullptr) << error_.message;
    for (tiercel_session* session : sessions) tiercel_session_free(session);
    tiercel_model_free(model);
  }
}

// The pages that a session has written, in its host tier and on its device, are
// no longer free memory of the system: they do not count as promised any more.
TEST_F(MemoryApiTest, WhatIsWrittenCountsOnce) {
  tiercel_model* model = Bounded(uint64_t{1} << 40, /*simulated=*/true);
  const int64_t before = MemoryAccount::Unwritten();
  tiercel_session* session = Create(model);
  const int64_t promised = MemoryAccount::Unwritten() - before;
  Prefill(session, 1900);
  const int64_t left = MemoryAccount::Unwritten() - before;
  const auto pages = Held(session)["host_bytes"].get<int64_t>();
  EXPECT_GT(pages, 0);
  EXPECT_GE(promised - left, 2 * pages);  // the device has a copy of all
  tiercel_session_free(session);
  tiercel_model_free(model);
  EXPECT_EQ(MemoryAccount::Unwritten(), before);
}

// The plan counts the memory for the distributions of a block: one for each row
// of a sweep, and one for each drafted token.
TEST_F(MemoryApiTest, WhatABlockIsDrawnFromIsPlanned) {
  auto policy = Sized<tiercel_policy>();
  policy.name = "triforce";
  policy.chunk = 8;
  policy.budget = 32;
  policy.window = 16;
  auto params = Sized<tiercel_session_params>();
  params.context = kContext;
  params.policy = &policy;
  auto info = Sized<tiercel_model_info>();
  ASSERT_EQ(tiercel_model_get_info(model_, &info, &error_), TIERCEL_OK);
  tiercel_model* header = Open(kModel, TIERCEL_LOAD_HEADER);
  const auto planned = [&](int32_t gamma2) {
    policy.gamma2 = gamma2;
    const nlohmann::json plan = PlanOf(header, params);
    return plan["tiers"]["host"]["workspace"].get<int64_t>();
  };
  const int64_t row = info.vocab * 4;
  EXPECT_GE(planned(63), 63 * (2 + 2) * row);
  EXPECT_EQ(planned(63) - planned(43), 20 * (3 + 2) * row);
  EXPECT_EQ(planned(TIERCEL_ADAPTIVE), planned(63));
  tiercel_model_free(header);
}

// The plan's bytes of a draft model do not depend on other sessions.
TEST_F(MemoryApiTest, OthersAreNoPartOfADraftModel) {
  const Drafts drafts(Open(kModel, TIERCEL_LOAD_ALL, model_));
  const auto planned = [&] {
    const nlohmann::json plan = PlanOf(model_, drafts.params);
    return plan["tiers"]["device"]["draft"].get<int64_t>();
  };
  const int64_t alone = planned();
  tiercel_session* other = Create(model_);
  EXPECT_EQ(planned(), alone);
  tiercel_session_free(other);
}

// Sessions of a model compute in the same memory, by turns.
TEST_F(MemoryApiTest, SessionsShareAWorkspace) {
  Prefill(session_, 300);
  const std::vector<int32_t> expected = Generate(session_);
  const int64_t one = OnDevice(session_);
  std::vector<tiercel_session*> sessions;
  for (int i = 0; i < 5; ++i) {
    sessions.push_back(Create(model_));
    Prefill(sessions.back(), 300);
  }
  for (tiercel_session* session : sessions) {
    EXPECT_EQ(Generate(session), expected);
    EXPECT_EQ(OnDevice(session), one);
  }
  for (tiercel_session* session : sessions) tiercel_session_free(session);
}

TEST_F(MemoryApiTest, AWorkspaceIsGivenBackAndMadeAgain) {
  Prefill(session_, 300);
  const int64_t with = OnDevice(session_);
  ASSERT_EQ(tiercel_trim(model_, &error_), TIERCEL_OK);
  const int64_t without = OnDevice(session_);
  EXPECT_LT(without, with);
  const std::vector<int32_t> expected = Generate(session_);
  EXPECT_GT(OnDevice(session_), without);

  // A workspace that a call uses stays.
  ASSERT_EQ(tiercel_session_truncate(session_, 300, &error_), TIERCEL_OK);
  auto sampling = Sized<tiercel_sampling>();
  sampling.max_tokens = 20;
  sampling.ignore_eos = 1;
  sampling.temperature = 0.8f;
  struct Trimming {
    tiercel_model* model;
    std::vector<int32_t> ids;
  } trimming = {model_, {}};
  const auto trim = [](void* data, const tiercel_token* token) -> int {
    auto* to = static_cast<Trimming*>(data);
    to->ids.push_back(token->id);
    return tiercel_trim(to->model, nullptr) != TIERCEL_OK;
  };
  EXPECT_EQ(
      tiercel_session_generate(session_, &sampling, trim, &trimming, &error_),
      TIERCEL_OK)
      << error_.message;
  EXPECT_EQ(trimming.ids, expected);
}

TEST_F(MemoryApiTest, ASessionGivesBackWhatItDropped) {
  Prefill(session_, 1900);
  ASSERT_EQ(tiercel_session_truncate(session_, 300, &error_), TIERCEL_OK);
  tiercel_session* fork = nullptr;
  ASSERT_EQ(tiercel_session_fork(session_, &fork, &error_), TIERCEL_OK);
  const std::vector<int32_t> expected = Generate(fork);
  tiercel_session_free(fork);
  const int64_t before = MemoryAccount::Unwritten();
  ASSERT_EQ(tiercel_session_trim(session_, &error_), TIERCEL_OK);
  const auto held = Held(session_)["host_bytes"].get<int64_t>();
  // It holds 3 of 15 pages, of 128 tokens each.
  EXPECT_EQ(MemoryAccount::Unwritten() - before, 4 * held);
  EXPECT_EQ(Generate(session_), expected);
  EXPECT_EQ(tiercel_session_trim(nullptr, &error_), TIERCEL_USAGE);
  EXPECT_EQ(tiercel_trim(nullptr, &error_), TIERCEL_USAGE);
}

// Draft models of several sessions compute in the same memory, too.
TEST_F(MemoryApiTest, DraftsShareAWorkspace) {
  const Drafts drafts(Open(kModel, TIERCEL_LOAD_ALL, model_));
  std::vector<tiercel_session*> sessions(3);
  std::vector<int64_t> taken;
  for (tiercel_session*& session : sessions) {
    ASSERT_EQ(tiercel_session_create(model_, &drafts.params, &session, &error_),
              TIERCEL_OK)
        << error_.message;
    Prefill(session, 300);
    EXPECT_THAT(Generate(session), SizeIs(20));
    taken.push_back(OnDevice(session));
  }
  // Each session has KV of its own, and nothing else.
  EXPECT_EQ(taken[2] - taken[1], taken[1] - taken[0]);
  EXPECT_LT(taken[1] - taken[0], taken[0] / 40);
  for (tiercel_session* session : sessions) tiercel_session_free(session);
}

// A session that computes during another's call has memory of its own for that
// time, and gives it back.
TEST_F(MemoryApiTest, ACallbackMayUseAnotherSession) {
  Prefill(session_, 300);
  const std::vector<int32_t> expected = Generate(session_);
  ASSERT_EQ(tiercel_session_truncate(session_, 300, &error_), TIERCEL_OK);
  const int64_t one = OnDevice(session_);
  struct Both {
    tiercel_session* other;
    std::vector<int32_t> ids;
    std::vector<int32_t> other_ids;
  } both = {Create(model_), {}, {}};
  Prefill(both.other, 300);
  auto sampling = Sized<tiercel_sampling>();
  sampling.max_tokens = 20;
  sampling.ignore_eos = 1;
  sampling.temperature = 0.8f;
  ASSERT_EQ(tiercel_session_generate(
                session_, &sampling,
                [](void* data, const tiercel_token* token) {
                  auto* to = static_cast<Both*>(data);
                  to->ids.push_back(token->id);
                  for (int32_t id : Generate(to->other, 1)) {
                    to->other_ids.push_back(id);
                  }
                  return 0;
                },
                &both, &error_),
            TIERCEL_OK)
      << error_.message;
  EXPECT_EQ(both.ids, expected);
  EXPECT_EQ(both.other_ids, expected);
  EXPECT_EQ(OnDevice(session_), one);
  tiercel_session_free(both.other);
}

TEST_F(MemoryApiTest, SessionsComputeBesideEachOther) {
  Prefill(session_, 300);
  const std::vector<int32_t> expected = Generate(session_, 60);
  const int64_t one = OnDevice(session_);
  std::vector<tiercel_session*> sessions;
  for (int i = 0; i < 3; ++i) sessions.push_back(Create(model_));
  std::vector<std::thread> threads;
  for (tiercel_session* session : sessions) {
    threads.emplace_back([&expected, session] {
      auto error = Sized<tiercel_error>();
      std::vector<int32_t> ids;
      for (int i = 0; i < 300; ++i) ids.push_back(5 + i * 7 % 60);
      EXPECT_EQ(tiercel_session_prefill(session, ids.data(), ids.size(),
                                        nullptr, nullptr, &error),
                TIERCEL_OK)
          << error.message;
      EXPECT_EQ(Generate(session, 60), expected);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(OnDevice(session_), one);
  for (tiercel_session* session : sessions) tiercel_session_free(session);
}

// A stopped prompt goes on where it was, whatever other sessions computed
// since.
TEST_F(MemoryApiTest, AStoppedPromptOutlivesWhatOthersCompute) {
  struct Progress {
    uint64_t first = 0;
    uint64_t last = 0;
    int left = 0;  // calls until it stops; 0: never
  };
  const auto note = [](void* data, uint64_t done, uint64_t) -> int {
    auto* progress = static_cast<Progress*>(data);
    if (progress->first == 0) progress->first = done;
    progress->last = done;
    return --progress->left == 0;
  };
  for (const bool simulated : {false, true}) {
    SCOPED_TRACE(simulated);
    tiercel_model* model = Bounded(uint64_t{1} << 40, simulated);
    tiercel_session* session = Create(model);
    tiercel_session* other = Create(model);
    std::vector<int32_t> ids;
    for (int i = 0; i < 1500; ++i) ids.push_back(5 + i * 7 % 60);
    Progress stopped = {.left = 6};
    EXPECT_EQ(tiercel_session_prefill(session, ids.data(), ids.size(), note,
                                      &stopped, &error_),
              TIERCEL_CANCELLED);
    Prefill(other, 1500);
    const std::vector<int32_t> expected = Generate(other);
    Progress resumed;
    EXPECT_EQ(tiercel_session_prefill(session, ids.data(), ids.size(), note,
                                      &resumed, &error_),
              TIERCEL_OK)
        << error_.message;
    EXPECT_GE(resumed.first, stopped.last);
    EXPECT_EQ(Generate(session), expected);
    tiercel_session_free(session);
    tiercel_session_free(other);
    tiercel_model_free(model);
  }
}

// If memory ends with one session, its fork has room for the pages that they
// share. Both get an error for pages that they lack, and lose nothing.
TEST_F(MemoryApiTest, AForkMayLackPages) {
  for (const bool simulated : {false, true}) {
    tiercel_model* model = Bounded(uint64_t{1} << 40, simulated);
    const auto [work, host] = Needs(model);
    tiercel_session* alone = Create(model);
    const int64_t weights = OnDevice(alone);
    tiercel_session_free(alone);
    tiercel_model_free(model);
    model =
        Bounded(static_cast<uint64_t>(simulated ? host : weights + work + host),
                simulated);
    tiercel_session* session = Create(model);
    ASSERT_NE(session, nullptr) << error_.message;
    Prefill(session, 1200);
    tiercel_session* fork = nullptr;
    ASSERT_EQ(tiercel_session_fork(session, &fork, &error_), TIERCEL_OK);
    const std::vector<int32_t> expected = Generate(fork);
    EXPECT_EQ(Generate(session), expected);
    // There are 16 pages; the two sessions have 11 of them already.
    EXPECT_EQ(TryPrefill(fork, 770), TIERCEL_OUT_OF_MEMORY) << simulated;
    EXPECT_STREQ(error_.code, "out_of_memory");
    EXPECT_THAT(std::string(error_.message), HasSubstr("need 16384 bytes"));
    EXPECT_EQ(tiercel_session_length(fork), 1220u);
    Prefill(fork, 400);
    EXPECT_EQ(TryPrefill(session, 700), TIERCEL_OUT_OF_MEMORY);
    EXPECT_EQ(tiercel_session_length(session), 1220u);
    tiercel_session_free(fork);
    Prefill(session, 700);
    EXPECT_THAT(Generate(session), SizeIs(20));
    tiercel_session_free(session);
    tiercel_model_free(model);
  }
}

}  // namespace
}  // namespace tiercel::memory_api_test

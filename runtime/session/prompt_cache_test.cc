// A session that opens its KV from disk goes on, byte for byte, as one that has
// computed it.

#include "runtime/session/prompt_cache.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/system/testing.h"
#include "lib/status/error.h"
#include "offload/disk/faulty_disk_for_test.h"
#include "runtime/generate/generate.h"
#include "runtime/policies/policy.h"
#include "runtime/policies/sadas/sadas_params.h"
#include "runtime/policies/sfi/sfi_params.h"
#include "runtime/policies/speed/speed_params.h"
#include "tests/drafting.h"
#include "tests/golden.h"
#include "tests/tiers.h"

namespace tiercel::prompt_cache_test {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr int64_t kContext = 1700;

PolicyParams Sfi(PolicyForm form) {
  PolicyParams params = {.policy = PolicyNamed("sfi"),
                         .form = form,
                         .verify = VerifyMode::kCoupled};
  params.Own<SfiParams>().budget = 40;
  params.Own<SfiParams>().sink = 2;
  params.Own<SfiParams>().window = 20;
  EXPECT_TRUE(params.Own<SfiParams>().Set("interval=8").ok());
  return params;
}

PolicyParams Sadas(PolicyForm form, const std::string& settings) {
  PolicyParams params = {.policy = PolicyNamed("sadas"),
                         .form = form,
                         .verify = VerifyMode::kCoupled,
                         .view = kSmallView};
  params.Own<SadasParams>().window = 200;
  EXPECT_TRUE(params.Own<SadasParams>().Set(settings).ok());
  return params;
}

PolicyParams Speed(PolicyForm form) {
  PolicyParams params = {.policy = PolicyNamed("speed"),
                         .form = form,
                         .verify = VerifyMode::kCoupled,
                         .view = kSmallView};
  EXPECT_TRUE(params.Own<SpeedParams>().Set("cut=1").ok());
  return params;
}

// Each of its writes takes at least `write`.
class SlowDisk : public FaultyDisk {
 public:
  explicit SlowDisk(std::chrono::milliseconds write) : write_(write) {}
  ssize_t Write(int file, const std::byte* from, size_t bytes,
                uint64_t offset) override {
    std::this_thread::sleep_for(write_);
    return FaultyDisk::Write(file, from, bytes, offset);
  }

 private:
  const std::chrono::milliseconds write_;
};

class PromptCacheTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    model_ = OpenModel({.path = Deepened("llama_rope_linear"),
                        .machine = {.threads = 2},
                        .rope_scale = 2})
                 .release();
    ids_ = new Ids(RandomIds(1600, model_->config.vocab));
  }
  static void TearDownTestSuite() {
    delete ids_;
    delete model_;
  }

  std::string path() const { return folder_.path() + "/texts"; }
  std::vector<std::string> Names() const {
    std::vector<std::string> names;
    if (!std::filesystem::exists(path())) return names;
    for (const auto& file : std::filesystem::directory_iterator(path())) {
      names.push_back(file.path().filename());
    }
    return names;
  }
  Session::Options WithPromptCache(Session::Options options = {},
                                   DiskCalls& disk = GoodDisk()) const {
    if (options.context == 0) options.context = kContext;
    options.texts = {.path = path(), .build = "a build", .disk = &disk};
    return options;
  }
  static Session::Options Without(Session::Options options) {
    options.texts.reset();
    return options;
  }
  // Makes `session` read `ids`, whose KV it saves before it ends.
  static PrefillReport Read(Session& session, const Ids& ids) {
    const auto prefill = Prefill(session, ids.data(), ids.size(), kNoProgress);
    EXPECT_TRUE(prefill.ok()) << prefill.status();
    return prefill.value_or(PrefillReport());
  }
  void Keep(const Ids& ids, const Session::Options& options) {
    Read(*MakeSession(*model_, options), ids);
    EXPECT_EQ(Names().size(), 1u);
  }
  static Ids First(size_t count) {
    return {ids_->begin(), ids_->begin() + static_cast<std::ptrdiff_t>(count)};
  }
  // Makes a session in place, or on a device that is too small.
  static Tiered At(const std::optional<Budget>& place,
                   const Session::Options& options) {
    if (place.has_value()) return MakeTiered(*model_, options, *place);
    Tiered made;
    made.session = MakeSession(*model_, options);
    return made;
  }
  // Checks that both give the same logits now, and after more tokens.
  static void ExpectSame(Session& opened, Session& computed) {
    EXPECT_EQ(opened.sequence().tokens(), computed.sequence().tokens());
    ASSERT_FALSE(NextLogits(computed).empty());
    EXPECT_TRUE(SameBits(NextLogits(opened), NextLogits(computed)));
    for (const size_t rows : {1, 64, 300}) {
      const Ids more = {ids_->begin(),
                        ids_->begin() + static_cast<std::ptrdiff_t>(rows)};
      if (opened.sequence().room() < std::ssize(more)) break;
      EXPECT_TRUE(SameBits(AllLogits(opened, more, rows),
                           AllLogits(computed, more, rows)))
          << rows;
    }
  }
  static bool SameBits(const std::vector<float>& a,
                       const std::vector<float>& b) {
    return a.size() == b.size() &&
           std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
  }

  static inline Model* model_ = nullptr;
  static inline Ids* ids_ = nullptr;
  FolderForTest folder_;
};

// ---- Opening ----

// Without a build id the files of two builds would be confused.
TEST_F(PromptCacheTest, NothingIsKeptWhereBuildsCannotBeToldApart) {
  Session::Options options = WithPromptCache();
  options.texts->build = "";
  for (int times = 0; times < 2; ++times) {
    const auto session = MakeSession(*model_, options);
    EXPECT_EQ(Read(*session, *ids_).cached_tokens, 0);
    ASSERT_EQ(session->warnings().size(), 1u);
    EXPECT_THAT(session->warnings()[0],
                testing::HasSubstr("tells this build of the library from "
                                   "another"));
  }
  EXPECT_TRUE(Names().empty());
}

TEST_F(PromptCacheTest, LogitsAreTheSameBytesWhereverItIsOpened) {
  const Ids ids = First(1200);
  for (const auto& [k, v] : {std::pair(DType::kF16, DType::kF16),
                             std::pair(DType::kQ8_0, DType::kQ8_0),
                             std::pair(DType::kF32, DType::kBF16)}) {
    Session::Options types;
    types.type_k = k;
    types.type_v = v;
    const Session::Options options = WithPromptCache(types);
    const auto computed = MakeSession(*model_, Without(options));
    Read(*computed, ids);
    const std::optional<Budget> places[] = {std::nullopt, Budget::kLeast,
                                            Budget::kMiddle};
    for (const std::optional<Budget>& from : places) {
      std::filesystem::remove_all(path());
      Read(*At(from, options).session, ids);
      ASSERT_EQ(Names().size(), 1u);
      // Behind a link only whole pages are in the host tier.
      const int64_t kept = from.has_value() ? 1152 : 1199;
      for (const std::optional<Budget>& to : places) {
        if (!TriesAll() && k != DType::kF16 && to != from) continue;
        const Tiered tiered = At(to, options);
        const PrefillReport prefill = Read(*tiered.session, ids);
        EXPECT_EQ(prefill.cached_tokens, kept);
        const int64_t pages = 6 * ((kept + kPageTokens - 1) / kPageTokens);
        EXPECT_EQ(prefill.traffic.disk.read_pages, pages);
        EXPECT_EQ(prefill.traffic.disk.read_bytes,
                  pages * options.Layout(model_->config).PageBytes());
        EXPECT_THAT(tiered.session->warnings(), IsEmpty());
        computed->Truncate(ids.size());
        ASSERT_TRUE(computed->CatchUp(Phase::kPrefill).ok());
        ExpectSame(*tiered.session, *computed);
      }
      EXPECT_EQ(Names().size(), 1u);
    }
  }
}

// Drafts and their acceptance are the same, too: a view that is chosen by
// digests or norms knows those of pages that came from disk.
TEST_F(PromptCacheTest, EveryPolicyGoesOnAsIfItHadRead) {
  const auto model = OpenModel(
      {.path = CheckpointPath("llama_chat.gguf"), .machine = {.threads = 2}});
  const Ids ids = RepeatedText(60, 20);
  RetrievalSize single = kSmallView;
  single.chunk = 1;
  single.selection = kDraftSelection;
  const auto view = [](const PolicyKind* policy, Proposer proposer,
                       const RetrievalSize& size) {
    return PolicyParams{.policy = policy,
                        .proposer = proposer,
                        .verify = VerifyMode::kCoupled,
                        .view = size};
  };
  const PolicyParams policies[] = {
      view(PolicyNamed("full"), Proposer::kNone, kSmallView),
      view(PolicyNamed("full"), Proposer::kNgram, kSmallView),
      view(PolicyNamed("full"), Proposer::kSelf, kSmallView),
      view(PolicyNamed("triforce"), Proposer::kNgram, kSmallView),
      view(PolicyNamed("triforce"), Proposer::kNone, single),
      Sfi(PolicyForm::kVerified),
      Sfi(PolicyForm::kPlain),
      Sadas(PolicyForm::kVerified, "think=on,most=20"),
      Sadas(PolicyForm::kPlain, "think=on,most=20"),
      Speed(PolicyForm::kVerified)};
  int number = 0;
  for (const PolicyParams& params : policies) {
    SCOPED_TRACE(number++);
    const Session::Options options =
        WithPromptCache(params.OptionsFor(*model, {}));
    std::filesystem::remove_all(path());
    Read(*MakeSession(*model, options), ids);
    ASSERT_EQ(Names().size(), 1u);
    const Tiered tiers[] = {MakeTiered(*model, options, Budget::kLeast),
                            MakeTiered(*model, options, Budget::kMiddle)};
    const auto in_place = MakeSession(*model, options);
    const auto computed = MakeSession(*model, Without(options));
    EXPECT_EQ(Read(*computed, ids).cached_tokens, 0);
    const GenerateParams generate = DraftedParams(0.8f, 60);
    const Report expected = GenerateDrafted(*computed, generate, params);
    ASSERT_TRUE(expected.status.ok()) << expected.status;
    for (Session* session :
         {in_place.get(), tiers[0].session.get(), tiers[1].session.get()}) {
      EXPECT_GE(Read(*session, ids).cached_tokens, 1184);
      const Report report = GenerateDrafted(*session, generate, params);
      ASSERT_TRUE(report.status.ok()) << report.status;
      EXPECT_EQ(report.tokens, expected.tokens);
      ASSERT_EQ(report.rounds.levels.size(), expected.rounds.levels.size());
      for (size_t i = 0; i < report.rounds.levels.size(); ++i) {
        EXPECT_EQ(report.rounds.levels[i].drafted,
                  expected.rounds.levels[i].drafted);
        EXPECT_EQ(report.rounds.levels[i].accepted,
                  expected.rounds.levels[i].accepted);
      }
    }
  }
}

// The KV of such prompts differs from that of other sessions.
TEST_F(PromptCacheTest, PromptsThatReadLessKeepAndOpenNothing) {
  const Ids ids = First(1200);
  Keep(ids, WithPromptCache());
  for (const PolicyParams& params :
       {Sadas(PolicyForm::kPlain, "gate=literal"), Speed(PolicyForm::kPlain)}) {
    const auto session =
        MakeSession(*model_, WithPromptCache(params.OptionsFor(*model_, {})));
    EXPECT_EQ(Read(*session, ids).cached_tokens, 0);
  }
  Session::Options later = WithPromptCache();
  later.first_position = 128;
  EXPECT_EQ(Read(*MakeSession(*model_, later), ids).cached_tokens, 0);
  Session::Options on_device = WithPromptCache();
  on_device.on_device = true;
  EXPECT_EQ(Read(*MakeSession(*model_, on_device), ids).cached_tokens, 0);
  EXPECT_EQ(Names().size(), 1u);
}

TEST_F(PromptCacheTest, TextsShareTheirBeginning) {
  const Ids ids = First(1200);
  Keep(ids, WithPromptCache());
  Ids other = First(1300);
  for (size_t i = 1100; i < other.size(); ++i) other[i] = 66 - (*ids_)[i];
  const auto session = MakeSession(*model_, WithPromptCache());
  EXPECT_EQ(Read(*session, other).cached_tokens, 1100);
  const auto computed = MakeSession(*model_, Without(WithPromptCache()));
  Read(*computed, other);
  ExpectSame(*session, *computed);
  // Too little was computed for another file, and a shorter prompt opens none.
  EXPECT_EQ(Names().size(), 1u);
  const auto shorter = MakeSession(*model_, WithPromptCache());
  EXPECT_EQ(Read(*shorter, First(1024)).cached_tokens, 0);
  EXPECT_EQ(
      Read(*MakeSession(*model_, WithPromptCache()), First(1025)).cached_tokens,
      1024);
}

// A session that holds the beginning of a saved text opens the rest.
TEST_F(PromptCacheTest, ASessionThatHoldsSomethingOpensTheRest) {
  Keep(First(1400), WithPromptCache());
  for (const std::optional<Budget>& place :
       {std::optional<Budget>(), std::optional<Budget>(Budget::kLeast)}) {
    for (const size_t held : {1, 130, 256}) {
      const Tiered tiered = At(place, WithPromptCache());
      Session& session = *tiered.session;
      Ids before = First(held);
      before.resize(held + 300, 5);
      Read(session, before);
      session.Truncate(held);
      const Ids rest(ids_->begin() + static_cast<std::ptrdiff_t>(held),
                     ids_->begin() + 1400);
      const int64_t cached = held < 376 ? 1399 : 256;
      EXPECT_EQ(Read(session, rest).cached_tokens,
                held + 1024 > 1399 ? static_cast<int64_t>(held) : cached);
      const auto computed = MakeSession(*model_, Without(WithPromptCache()));
      Read(*computed, First(1400));
      ExpectSame(session, *computed);
    }
  }
}

// ---- Saving ----

TEST_F(PromptCacheTest, AGrownTextIsKeptWhenEnoughIsNew) {
  {
    const auto session = MakeSession(*model_, WithPromptCache());
    Read(*session, First(500));
    EXPECT_THAT(Names(), IsEmpty());
    Read(*session, Ids(ids_->begin() + 500, ids_->begin() + 1100));
    Read(*session, Ids(ids_->begin() + 1100, ids_->begin() + 1200));
  }
  const nlohmann::json list = *ListPromptCache(path());
  ASSERT_EQ(list.size(), 1u);
  EXPECT_EQ(list[0]["tokens"], 1100);
  EXPECT_EQ(list[0]["model"], "llama_rope_linear");
  EXPECT_EQ(*ClearPromptCache(path()), 1);
}

TEST_F(PromptCacheTest, WhatNobodyComputedIsNotKept) {
  {
    const auto session = MakeSession(*model_, WithPromptCache());
    ASSERT_TRUE(FillPrompt(*session, ids_->data(), 1200, 7, kNoProgress).ok());
    Read(*session, {1, 2, 3});
    session->Truncate(1100);
    const auto fork = *session->Fork();
    Read(*fork, {1, 2, 3});
  }
  EXPECT_THAT(Names(), IsEmpty());
  const auto session = MakeSession(*model_, WithPromptCache());
  ASSERT_TRUE(FillPrompt(*session, ids_->data(), 1200, 7, kNoProgress).ok());
  session->Truncate(0);
  auto fork = *session->Fork();
  Read(*fork, First(1100));
  fork->Truncate(0);
  Read(*fork, First(1200));  // once the earlier one is written
  fork.reset();
  EXPECT_EQ(Names().size(), 1u);
}

// Nothing is opened after filled KV either: its rows would differ.
TEST_F(PromptCacheTest, NothingIsOpenedBehindWhatNobodyComputed) {
  Read(*MakeSession(*model_, WithPromptCache()), *ids_);
  ASSERT_EQ(Names().size(), 1u);
  const auto logits = [&](const Session::Options& options) {
    const auto session = MakeSession(*model_, options);
    EXPECT_TRUE(FillPrompt(*session, ids_->data(), 128, 7, kNoProgress).ok());
    Read(*session, Ids(ids_->begin() + 128, ids_->end()));
    return std::vector<float>(session->NextLogits().begin(),
                              session->NextLogits().end());
  };
  EXPECT_EQ(logits(WithPromptCache()), logits(Without(WithPromptCache())));
}

// A session's progress callback may read in another session of the model.
TEST_F(PromptCacheTest, AProgressMayReadInAnotherSession) {
  const auto model = OpenModel(
      {.path = CheckpointPath("llama_chat.gguf"), .machine = {.threads = 2}});
  const auto first = MakeSession(*model, WithPromptCache());
  const auto second = MakeSession(*model, WithPromptCache());
  bool asked = false;
  const auto progress = [&](uint64_t, uint64_t) {
    if (!std::exchange(asked, true)) Read(*second, *ids_);
    return true;
  };
  EXPECT_TRUE(Prefill(*first, ids_->data(), ids_->size(), progress).ok());
  EXPECT_TRUE(asked);
  EXPECT_EQ(first->sequence().kv_length(), second->sequence().kv_length());
}

// Steps of a plain form leave other KV than a prompt would.
TEST_F(PromptCacheTest, WhatIsProvisionalIsNotKept) {
  const PolicyParams params = Sadas(PolicyForm::kPlain, "think=on");
  const auto model = OpenModel(
      {.path = CheckpointPath("llama_chat.gguf"), .machine = {.threads = 2}});
  const Ids ids = RepeatedText(60, 20);
  Ids text;
  {
    const auto session =
        MakeSession(*model, WithPromptCache(params.OptionsFor(*model, {})));
    Read(*session, {ids.begin(), ids.begin() + 300});
    const Report report =
        GenerateDrafted(*session, DraftedParams(0, 50), params);
    text = session->sequence().tokens();
    ASSERT_EQ(text.size(), 350u);
    text.insert(text.end(), ids.begin(), ids.begin() + 1100);
    Read(*session, Ids(text.begin() + 350, text.end()));
  }
  ASSERT_EQ(Names().size(), 1u);
  const auto opened = MakeSession(*model, WithPromptCache());
  EXPECT_EQ(Read(*opened, text).cached_tokens, 1449);
  const auto computed = MakeSession(*model, Without(WithPromptCache()));
  Read(*computed, text);
  ExpectSame(*opened, *computed);
}

// KV that is being written is that of the time when it began, whatever the
// session does meanwhile.
TEST_F(PromptCacheTest, ASessionGoesOnWhileItsTextIsWritten) {
  SlowDisk disk(std::chrono::milliseconds(20));
  disk.at_once = 100'000;
  const Ids ids = First(1200);
  for (const std::optional<Budget>& place :
       {std::optional<Budget>(), std::optional<Budget>(Budget::kLeast)}) {
    std::filesystem::remove_all(path());
    {
      const Session::Options options = WithPromptCache({}, disk);
      const Tiered tiered = At(place, options);
      Read(*tiered.session, ids);
      tiered.session->Truncate(100);
      Read(*tiered.session, Ids(900, 3));
      tiered.session->Truncate(0);
      Read(*tiered.session, Ids(600, 4));
    }
    ASSERT_EQ(Names().size(), 1u);
    const auto opened = MakeSession(*model_, WithPromptCache());
    EXPECT_GE(Read(*opened, ids).cached_tokens, 1152);
    const auto computed = MakeSession(*model_, Without(WithPromptCache()));
    Read(*computed, ids);
    ExpectSame(*opened, *computed);
  }
}

// If memory has room for one text, KV that is being written makes room for the
// next prompt, and is not saved.
TEST_F(PromptCacheTest, ATextThatIsWrittenMakesRoom) {
  SlowDisk disk(std::chrono::milliseconds(10));
  disk.at_once = 20'000;
  const Session::Options options = WithPromptCache({}, disk);
  const auto model = WithRoomForOne(*model_, options);
  const auto session = MakeSession(*model, options);
  ASSERT_EQ(session->kv().plan().shape.disk_pages, 0);
  Read(*session, First(1500));
  session->Truncate(100);
  const Ids more(900, 3);
  Read(*session, more);
  const auto computed = MakeSession(*model_, Without(options));
  Read(*computed, First(100));
  Read(*computed, more);
  ExpectSame(*session, *computed);
}

// ---- The key ----

// The last sessions with a smaller cache leave no more than it may have, though
// they save nothing.
TEST_F(PromptCacheTest, TheFolderIsInItsBoundsWhenASessionEnds) {
  const Ids ids = First(1200);
  const Ids other = {ids_->rbegin(), ids_->rbegin() + 1200};
  Session::Options options = WithPromptCache();
  Keep(ids, options);
  const std::vector<std::string> first = Names();
  options.texts->most_bytes =
      std::filesystem::file_size(path() + "/" + first.front());
  Read(*MakeSession(*model_, WithPromptCache()), other);
  EXPECT_EQ(Names().size(), 2u);
  MakeSession(*model_, options);  // it uses no text
  Read(*MakeSession(*model_, options), First(100));
  EXPECT_EQ(Names().size(), 2u);
  EXPECT_EQ(Read(*MakeSession(*model_, options), ids).cached_tokens, 1199);
  EXPECT_EQ(Names(), first);
  options.texts->most_bytes = 1000;
  Read(*MakeSession(*model_, options), other);
  EXPECT_THAT(Names(), IsEmpty());
}

TEST_F(PromptCacheTest, OnlyTheSameModelAndSettingsOpenIt) {
  const std::string path_of = folder_.path() + "/m.gguf";
  std::filesystem::copy_file(CheckpointPath("llama_chat.gguf"), path_of);
  const Model::Options same = {.path = path_of, .machine = {.threads = 2}};
  const Ids ids = RepeatedText(60, 20);
  Read(*MakeSession(*OpenModel(same), WithPromptCache()), ids);
  ASSERT_EQ(Names().size(), 1u);
  const auto cached = [&](const Model::Options& model,
                          const Session::Options& options) {
    return Read(*MakeSession(*OpenModel(model), options), ids).cached_tokens;
  };
  EXPECT_EQ(cached(same, WithPromptCache()), 1199);
  Model::Options other = same;
  other.machine.threads = 1;
  EXPECT_EQ(cached(other, WithPromptCache()), 1199);
  other = same;
  other.compute = Compute::kF32;
  EXPECT_EQ(cached(other, WithPromptCache()), 0);
  other = same;
  other.rope_freq_base = 12345;
  EXPECT_EQ(cached(other, WithPromptCache()), 0);
  other = same;
  other.rope_scale = 2;
  EXPECT_EQ(cached(other, WithPromptCache()), 0);
  other = same;
  other.machine.device = DeviceKind::kRef;
  EXPECT_EQ(cached(other, WithPromptCache()), 0);
  Session::Options types = WithPromptCache();
  types.type_v = DType::kF32;
  EXPECT_EQ(cached(same, types), 0);
  Session::Options build = WithPromptCache();
  build.texts->build = "another build";
  EXPECT_EQ(cached(same, build), 0);
  // One bit of a weight differs.
  std::fstream file(path_of, std::ios::binary | std::ios::in | std::ios::out);
  file.seekp(-5, std::ios::end);
  file.put('x');
  file.close();
  EXPECT_EQ(cached(same, WithPromptCache()), 0);
  EXPECT_EQ(Names().size(), 8u);
}

TEST_F(PromptCacheTest, AModelThatChangedUnderUsKeepsNothing) {
  const std::string path_of = folder_.path() + "/m.gguf";
  std::filesystem::copy_file(CheckpointPath("llama_chat.gguf"), path_of);
  const auto model = OpenModel({.path = path_of, .machine = {.threads = 2}});
  std::ofstream(path_of, std::ios::app) << "x";
  const auto session = MakeSession(*model, WithPromptCache());
  EXPECT_EQ(Read(*session, RepeatedText(60, 20)).cached_tokens, 0);
  EXPECT_THAT(session->warnings(),
              testing::Contains(HasSubstr("after it was opened")));
  EXPECT_THAT(Names(), IsEmpty());
}

// ---- Faults ----

TEST_F(PromptCacheTest, ATextThatCannotBeReadIsReadAgain) {
  const Ids ids = First(1100);
  Keep(ids, WithPromptCache());
  const auto computed = MakeSession(*model_, Without(WithPromptCache()));
  Read(*computed, ids);
  const std::string whole = folder_.path() + "/whole";
  std::filesystem::copy(path(), whole);
  // Call 4 looks for an unfinished prompt, which is not there.
  for (const int64_t call : {0, 1, 2, 3, 5, 31, 58, 59}) {
    for (const std::optional<Budget>& place :
         {std::optional<Budget>(), std::optional<Budget>(Budget::kLeast)}) {
      std::filesystem::remove_all(path());
      std::filesystem::copy(whole, path());
      std::filesystem::permissions(path(), std::filesystem::perms::owner_all);
      FaultyDisk disk;
      disk.counts_writes = false;
      disk.fail_at = call;
      const Session::Options options = WithPromptCache({}, disk);
      disk.at_once =
          static_cast<size_t>(options.Layout(model_->config).PageBytes());
      const Tiered tiered = At(place, options);
      const PrefillReport prefill = Read(*tiered.session, ids);
      if (disk.failed()) {
        EXPECT_EQ(prefill.cached_tokens, 0) << call;
        EXPECT_THAT(tiered.session->warnings(),
                    ElementsAre(HasSubstr("read again")));
      } else {
        EXPECT_EQ(prefill.cached_tokens, 1099);
        EXPECT_EQ(call, 59);
      }
      computed->Truncate(ids.size());
      ASSERT_TRUE(computed->CatchUp(Phase::kPrefill).ok());
      ExpectSame(*tiered.session, *computed);
    }
  }
}

TEST_F(PromptCacheTest, ADamagedTextIsReadAgainAndKeptAnew) {
  const Ids ids = First(1100);
  Keep(ids, WithPromptCache());
  const std::string file = path() + "/" + Names().at(0);
  std::fstream bytes(file, std::ios::binary | std::ios::in | std::ios::out);
  bytes.seekp(200'000);
  bytes.put('x').put('y');
  bytes.close();
  {
    const auto session = MakeSession(*model_, WithPromptCache());
    EXPECT_EQ(Read(*session, ids).cached_tokens, 0);
    EXPECT_THAT(session->warnings(), ElementsAre(HasSubstr("checksum")));
  }
  EXPECT_EQ(Read(*MakeSession(*model_, WithPromptCache()), ids).cached_tokens,
            1099);
}

TEST_F(PromptCacheTest, ATextThatCannotBeKeptIsAWarning) {
  const Ids ids = First(1100);
  for (const int64_t call : {0, 1, 2, 3, 4}) {
    FaultyDisk disk;
    disk.counts_reads = false;
    disk.fail_at = call;
    disk.error = ENOSPC;
    const auto session = MakeSession(*model_, WithPromptCache({}, disk));
    Read(*session, ids);
    while (!disk.failed()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    Read(*session, {1});  // waits for no writing
    session->Truncate(0);
    Read(*session, First(1200));
    EXPECT_THAT(session->warnings(), ElementsAre(HasSubstr("not kept")))
        << call;
    EXPECT_THAT(Names(), Each(HasSubstr("prompt-")));
  }
  Session::Options options = WithPromptCache();
  options.texts->most_bytes = 1000;
  {
    const auto session = MakeSession(*model_, options);
    Read(*session, ids);
    while (session->warnings().empty()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    EXPECT_THAT(session->warnings(), ElementsAre(HasSubstr("may have 1000")));
  }
  options.texts->path = "/dev/null/texts";
  EXPECT_EQ(Read(*MakeSession(*model_, options), ids).prompt_tokens, 1100);
}

// ---- Stopping ----

TEST_F(PromptCacheTest, AnOpeningThatIsStoppedLeavesTheSessionAsItWas) {
  const Ids ids = First(1200);
  Keep(ids, WithPromptCache());
  const auto computed = MakeSession(*model_, Without(WithPromptCache()));
  Read(*computed, ids);
  for (const std::optional<Budget>& place :
       {std::optional<Budget>(), std::optional<Budget>(Budget::kMiddle)}) {
    for (const int after : {0, 1, 2, 30, 60}) {
      const Tiered tiered = At(place, WithPromptCache());
      Session& session = *tiered.session;
      Read(session, First(20));
      int asked = 0;
      const auto stopped =
          Prefill(session, ids.data() + 20, ids.size() - 20,
                  [&](uint64_t, uint64_t) { return asked++ != after; });
      EXPECT_EQ(CodeOf(stopped.status()), "cancelled") << after;
      EXPECT_EQ(session.sequence().tokens(), First(20));
      EXPECT_EQ(Read(session, Ids(ids.begin() + 20, ids.end())).cached_tokens,
                1199);
      ExpectSame(session, *computed);
      computed->Truncate(ids.size());
      ASSERT_TRUE(computed->CatchUp(Phase::kPrefill).ok());
    }
  }
}

TEST_F(PromptCacheTest, WritingThatIsStoppedIsMadeUpFor) {
  struct StuckDisk : FaultyDisk {
    std::atomic<bool> stuck{true};
    std::atomic<bool> reached{false};
    int calls = 0;
    int TryAllocate(int file, uint64_t bytes) override {
      // The first two calls are the prompt's.
      if (++calls == 3) {
        reached = true;
        while (stuck) std::this_thread::yield();
      }
      return FaultyDisk::TryAllocate(file, bytes);
    }
  } disk;
  {
    const auto session = MakeSession(*model_, WithPromptCache({}, disk));
    Read(*session, First(1100));
    while (!disk.reached) std::this_thread::yield();
    std::thread stop([&] { session->prompt_cache()->Stop(); });
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    disk.stuck = false;
    stop.join();
    EXPECT_THAT(Names(), ElementsAre(HasSubstr("prompt-")));
    EXPECT_THAT(session->warnings(), IsEmpty());
    Read(*session, {1});
  }
  EXPECT_THAT(Names(), ElementsAre(Not(HasSubstr("prompt-"))));
}

}  // namespace
}  // namespace tiercel::prompt_cache_test

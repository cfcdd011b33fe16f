// A prompt that one session did not finish goes on in another, byte for byte as
// one that was never stopped.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/status/error.h"
#include "offload/disk/faulty_disk_for_test.h"
#include "runtime/generate/generate.h"
#include "runtime/policies/policy.h"
#include "runtime/policies/sfi/sfi_params.h"
#include "runtime/policies/speed/speed_params.h"
#include "tests/drafting.h"
#include "tests/golden.h"
#include "tests/tiers.h"

namespace tiercel::unfinished_prompt_test {
namespace {

namespace fs = std::filesystem;

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr int kLayers = 6;
constexpr size_t kPrompt = 1200;

using Place = std::optional<Budget>;  // absent: in place
const Place kPlaces[] = {std::nullopt, Budget::kLeast, Budget::kMiddle};

class UnfinishedPromptTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    model_ = OpenModel({.path = Deepened("llama_rope_linear"),
                        .machine = {.threads = 2},
                        .rope_scale = 2})
                 .release();
    ids_ = new Ids(RandomIds(1600, model_->config.vocab));
    const auto plain = MakeSession(*model_, {.context = 1700});
    computed_ = new std::vector<float>(LogitsOf(*plain, First(kPrompt)));
    behind_ = new std::vector<std::vector<float>>(Behind(*plain));
  }
  static void TearDownTestSuite() {
    delete behind_;
    delete computed_;
    delete ids_;
    delete model_;
  }

  std::string path() const { return folder_.path() + "/texts"; }
  std::vector<std::string> Names() const {
    std::vector<std::string> names;
    if (!fs::exists(path())) return names;
    for (const auto& file : fs::directory_iterator(path())) {
      names.push_back(file.path().filename());
    }
    return names;
  }
  // Returns the number of files in the folder that are unfinished prompts.
  size_t Prompts() const {
    size_t count = 0;
    for (const std::string& name : Names())
      count += name.rfind("prompt", 0) == 0;
    return count;
  }
  Session::Options WithPromptCache(Session::Options options = {},
                                   DiskCalls& disk = GoodDisk()) const {
    if (options.context == 0) options.context = 1700;
    // The disk of a busy machine may be slow, so the prompt waits for it.
    options.texts = {.path = path(),
                     .build = "a build",
                     .waits = std::chrono::hours(1),
                     .disk = &disk};
    return options;
  }
  static Ids First(size_t count) {
    return {ids_->begin(), ids_->begin() + static_cast<std::ptrdiff_t>(count)};
  }
  static Tiered At(const Place& place, const Session::Options& options) {
    if (place.has_value()) return MakeTiered(*model_, options, *place);
    Tiered made;
    made.session = MakeSession(*model_, options);
    return made;
  }
  static std::vector<float> LogitsOf(Session& session, const Ids& ids) {
    const auto prefill = Prefill(session, ids.data(), ids.size(), kNoProgress);
    EXPECT_TRUE(prefill.ok()) << prefill.status();
    return NextLogits(session);
  }
  static bool SameBits(const std::vector<float>& a,
                       const std::vector<float>& b) {
    return a.size() == b.size() &&
           std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
  }
  // Stops a session's prompt when `at` of `kLayers` layers and more than `more`
  // rows of the next are done.
  static void Stop(Session& session, const Ids& ids, int at, int64_t more = 0) {
    const auto most = static_cast<int64_t>(ids.size()) * at + more;
    const auto stopped =
        Prefill(session, ids.data(), ids.size(), [&](uint64_t done, uint64_t) {
          return static_cast<int64_t>(done) <= most;
        });
    EXPECT_EQ(CodeOf(stopped.status()), "cancelled");
  }
  // Returns the logits of steps of 1, 64 and 300 rows after the prompt.
  static std::vector<std::vector<float>> Behind(Session& session) {
    std::vector<std::vector<float>> logits;
    for (const size_t rows : {1, 64, 300}) {
      logits.push_back(AllLogits(session, First(rows), rows));
    }
    return logits;
  }
  // The long test tries each case at every place, the short one the n-th case
  // at one place, in turn.
  static bool Tries(size_t n, const Place& place) {
    return TriesAllFaults() || kPlaces[n % std::size(kPlaces)] == place;
  }
  // Reads the prompt in a session of its own, and checks all of it.
  PrefillReport GoOn(const Place& place, const Session::Options& options) {
    const Tiered tiered = At(place, options);
    Session& session = *tiered.session;
    const Ids ids = First(kPrompt);
    const auto prefill = Prefill(session, ids.data(), ids.size(), kNoProgress);
    EXPECT_TRUE(prefill.ok()) << prefill.status();
    EXPECT_TRUE(SameBits(NextLogits(session), *computed_));
    // These read all rows of all layers.
    EXPECT_EQ(Behind(session), *behind_);
    warnings_ = session.warnings();
    return prefill.value_or(PrefillReport());
  }

  static inline Model* model_ = nullptr;
  static inline Ids* ids_ = nullptr;
  static inline std::vector<float>* computed_ = nullptr;  // without a stop
  static inline std::vector<std::vector<float>>* behind_ = nullptr;  // likewise
  FolderForTest folder_;
  std::vector<std::string> warnings_;  // the last GoOn's
};

// ---- Going on ----

TEST_F(UnfinishedPromptTest, GoesOnWhereverItWasLeftAndIsTakenUp) {
  size_t turn = 0;
  for (const Place& from : kPlaces) {
    for (const Place& to : kPlaces) {
      for (const auto& [at, more] : {std::pair(0, 600), std::pair(1, 0),
                                     std::pair(3, 512), std::pair(5, 1100)}) {
        if (!Tries(turn++, to)) continue;
        fs::remove_all(path());
        Stop(*At(from, WithPromptCache()).session, First(kPrompt), at, more);
        EXPECT_EQ(Prompts(), 1u);
        const PrefillReport prefill = GoOn(to, WithPromptCache());
        EXPECT_EQ(prefill.resumed_layers, at);
        EXPECT_EQ(prefill.cached_tokens, 0);
        EXPECT_THAT(warnings_, IsEmpty());
        const DiskUse& disk = prefill.traffic.disk;
        EXPECT_EQ(disk.read_pages, 10 * at);
        const Session::Options options = WithPromptCache();
        EXPECT_EQ(disk.read_bytes,
                  10 * at * options.Layout(model_->config).PageBytes() +
                      disk.state_bytes);
        EXPECT_EQ(
            disk.state_bytes,
            at == 0 ? 0 : kPrompt * model_->config.hidden * sizeof(float));
        // The file of the whole text is there now, that of the prompt is gone.
        EXPECT_EQ(Names().size(), 1u);
        EXPECT_EQ(Prompts(), 0u);
      }
    }
  }
}

TEST_F(UnfinishedPromptTest, TypesOfKvMakeNoDifference) {
  for (const auto& [k, v] : {std::pair(DType::kQ8_0, DType::kQ8_0),
                             std::pair(DType::kF32, DType::kBF16)}) {
    Session::Options options = WithPromptCache();
    options.type_k = k;
    options.type_v = v;
    const Ids ids = First(kPrompt);
    const auto plain =
        MakeSession(*model_, {.context = 1700, .type_k = k, .type_v = v});
    const std::vector<float> expected = LogitsOf(*plain, ids);
    for (const Place& place : kPlaces) {
      fs::remove_all(path());
      Stop(*At(std::nullopt, options).session, ids, 4);
      const Tiered tiered = At(place, options);
      const auto prefill =
          Prefill(*tiered.session, ids.data(), ids.size(), kNoProgress);
      EXPECT_EQ(prefill->resumed_layers, 4);
      EXPECT_TRUE(SameBits(NextLogits(*tiered.session), expected));
    }
  }
}

// Sessions that are stopped again and again each go on after the last.
TEST_F(UnfinishedPromptTest, NoLayerIsMadeTwice) {
  for (const Place& place : kPlaces) {
    fs::remove_all(path());
    for (int at = 1; at < kLayers; ++at) {
      const Tiered tiered = At(place, WithPromptCache());
      Stop(*tiered.session, First(kPrompt), at, 100);
      EXPECT_EQ(tiered.session->sequence().resumed_layers(), at - 1);
    }
    EXPECT_EQ(GoOn(place, WithPromptCache()).resumed_layers, kLayers - 1);
  }
}

// In the same session it goes on in memory, within a layer; layers that it
// finishes then are saved, too.
TEST_F(UnfinishedPromptTest, WhatGoesOnInMemoryIsKeptToo) {
  for (const Place& place : kPlaces) {
    for (const int64_t more : {-1, 512}) {  // between layers, or within one
      fs::remove_all(path());
      {
        const Tiered tiered = At(place, WithPromptCache());
        Stop(*tiered.session, First(kPrompt), 2, more);
        Stop(*tiered.session, First(kPrompt), 4);
        EXPECT_EQ(tiered.session->sequence().resumed_layers(), 2);
        EXPECT_EQ(tiered.session->traffic().disk.read_bytes, 0u);
      }
      EXPECT_EQ(GoOn(place, WithPromptCache()).resumed_layers, 4);
    }
  }
}

// The hidden states of a longer prompt are in the host tier anyway: they are
// saved from there, and loaded there.
TEST_F(UnfinishedPromptTest, StatesInTilesAreKeptToo) {
  const Session::Options options = WithPromptCache({.context = 2000});
  for (const Place& from : kPlaces) {
    for (const Place& to : {Place(), Place(Budget::kLeast)}) {
      if (!from.has_value() && !to.has_value()) continue;
      // None of 14 pages is open at the end.
      const Ids ids =
          RandomIds(to.has_value() ? 1800 : 14 * 128, model_->config.vocab);
      const std::vector<float> expected =
          LogitsOf(*MakeSession(*model_, {.context = 2000}), ids);
      fs::remove_all(path());
      {
        const Tiered tiered = At(from, options);
        Stop(*tiered.session, ids, 2, 700);
        Stop(*tiered.session, ids, 4);
        Stop(*tiered.session, ids, 5, 1100);
      }
      EXPECT_EQ(Prompts(), 1u);
      const Tiered tiered = At(to, options);
      Session& session = *tiered.session;
      EXPECT_TRUE(SameBits(LogitsOf(session, ids), expected));
      EXPECT_EQ(session.sequence().resumed_layers(), 5);
      const KvMoves moves = session.traffic().moves;
      EXPECT_EQ(moves.resumed_bytes, 0);
      if (to.has_value()) {
        EXPECT_EQ(session.kv().plan().state_rows, 1536);
        EXPECT_EQ(moves.states_up_bytes, 1800 * model_->config.hidden * 4);
      }
      EXPECT_THAT(session.warnings(), IsEmpty());
    }
  }
}

// If memory has room for one text, pages that are held to be saved make room
// for another prompt.
TEST_F(UnfinishedPromptTest, WhatIsKeptMakesRoomForAnother) {
  const Session::Options options = WithPromptCache();
  const auto model = WithRoomForOne(*model_, options);
  const auto session = MakeSession(*model, options);
  Stop(*session, First(kPrompt), 3);
  Ids other = First(kPrompt);
  other[0] ^= 1;
  EXPECT_TRUE(SameBits(
      LogitsOf(*session, other),
      LogitsOf(*MakeSession(*model_, {.context = options.context}), other)));
  EXPECT_THAT(session->warnings(), IsEmpty());
}

// A session that reads something else meanwhile goes on from disk.
TEST_F(UnfinishedPromptTest, AnotherPromptInBetweenLosesNothing) {
  const auto session = MakeSession(*model_, WithPromptCache());
  Stop(*session, First(kPrompt), 3);
  LogitsOf(*session, Ids(1100, 5));
  session->Truncate(0);
  EXPECT_TRUE(SameBits(LogitsOf(*session, First(kPrompt)), *computed_));
  EXPECT_EQ(session->sequence().resumed_layers(), 3);
  session->prompt_cache()->Stop();
}

// A prompt begins after positions of the session, or of opened KV: its finished
// layers serve no other number of positions.
TEST_F(UnfinishedPromptTest, GoesOnBehindTheSamePositionsAlone) {
  const auto plain = MakeSession(*model_, {.context = 1700});
  const std::vector<float> expected = LogitsOf(*plain, First(1500));
  const auto rest = [](size_t held) {
    return Ids(ids_->begin() + static_cast<std::ptrdiff_t>(held),
               ids_->begin() + 1500);
  };
  for (const Place& place : kPlaces) {
    for (const size_t held : {128, 200}) {
      for (const size_t other : {held, held + 1}) {
        fs::remove_all(path());
        {
          const Tiered tiered = At(place, WithPromptCache());
          LogitsOf(*tiered.session, First(held));
          Stop(*tiered.session, rest(held), 3, 20);
        }
        const Tiered tiered = At(place, WithPromptCache());
        LogitsOf(*tiered.session, First(other));
        EXPECT_TRUE(SameBits(LogitsOf(*tiered.session, rest(other)), expected));
        EXPECT_EQ(tiered.session->sequence().resumed_layers(),
                  other == held ? 3 : 0);
        EXPECT_THAT(tiered.session->warnings(), IsEmpty());
      }
    }
  }
}

// The saved KV of another prompt has the same beginning: the file that saves
// more is used, and one that saves less makes room for it.
TEST_F(UnfinishedPromptTest, ATextOrWhatIsFinishedWhicheverSavesMore) {
  constexpr int kCommon = 1030;
  Ids other = First(kCommon + 10);
  other[kCommon] ^= 1;
  const Ids ids = First(1600);
  const auto plain = MakeSession(*model_, {.context = 1700});
  const std::vector<float> expected = LogitsOf(*plain, ids);
  for (const int layers : {3, 4}) {  // 1,030 of all 6 are 3.9 of 1,600
    fs::remove_all(path());
    Stop(*MakeSession(*model_, WithPromptCache()), ids, layers);
    LogitsOf(*MakeSession(*model_, WithPromptCache()), other);
    EXPECT_EQ(Prompts(), layers == 3 ? 0u : 1u);
    const auto session = MakeSession(*model_, WithPromptCache());
    const auto prefill = Prefill(*session, ids.data(), ids.size(), kNoProgress);
    EXPECT_EQ(prefill->resumed_layers, layers == 3 ? 0 : 4);
    EXPECT_EQ(prefill->cached_tokens, layers == 3 ? kCommon : 0);
    EXPECT_TRUE(SameBits(NextLogits(*session), expected));
  }
  // A prompt that goes on in memory is resumed likewise.
  for (const int layers : {3, 4}) {
    fs::remove_all(path());
    const auto session = MakeSession(*model_, WithPromptCache());
    Stop(*session, ids, layers);
    LogitsOf(*MakeSession(*model_, WithPromptCache()), other);
    const auto prefill = Prefill(*session, ids.data(), ids.size(), kNoProgress);
    EXPECT_EQ(prefill->resumed_layers, layers == 3 ? 0 : 4);
    EXPECT_EQ(prefill->cached_tokens, layers == 3 ? kCommon : 0);
    EXPECT_TRUE(SameBits(NextLogits(*session), expected));
  }
}

// A prompt that began after opened KV goes on after as much of any file's.
TEST_F(UnfinishedPromptTest, ALongerTextOpensAsFarAsThePromptBegan) {
  const auto model = OpenModel({.path = Deepened("llama_rope_linear"),
                                .machine = {.threads = 2},
                                .rope_scale = 4});
  const Ids ids = RandomIds(2400, model->config.vocab);
  const auto begins = [&](int common) {
    Ids text(ids.begin(), ids.begin() + common + 10);
    text[static_cast<size_t>(common)] ^= 1;
    return text;
  };
  const Session::Options options = WithPromptCache({.context = 2500});
  const std::vector<float> expected =
      LogitsOf(*MakeSession(*model, {.context = 2500}), ids);
  for (const Place& place : kPlaces) {
    fs::remove_all(path());
    LogitsOf(*MakeSession(*model, options), begins(1100));
    // 1,100 positions come from the cache.
    Stop(*MakeSession(*model, options), ids, 4, -4 * 1100);
    LogitsOf(*MakeSession(*model, options), begins(1300));
    EXPECT_EQ(Prompts(), 1u);
    Tiered tiered;
    if (place.has_value()) {
      tiered = MakeTiered(*model, options, *place);
    } else {
      tiered.session = MakeSession(*model, options);
    }
    const auto prefill =
        Prefill(*tiered.session, ids.data(), ids.size(), kNoProgress);
    EXPECT_EQ(prefill->resumed_layers, 4);
    EXPECT_EQ(prefill->cached_tokens, 1100);
    EXPECT_TRUE(SameBits(NextLogits(*tiered.session), expected));
    EXPECT_THAT(tiered.session->warnings(), IsEmpty());
  }
}

// A view that is chosen by keys and queries, digests and norms is as if all
// layers had been seen.
TEST_F(UnfinishedPromptTest, EveryPolicyGoesOnAsIfItHadRead) {
  const auto model = OpenModel(
      {.path = CheckpointPath("llama_chat.gguf"), .machine = {.threads = 2}});
  const Ids ids = RepeatedText(60, 20);
  PolicyParams triforce = {.policy = PolicyNamed("triforce"),
                           .proposer = Proposer::kNgram,
                           .verify = VerifyMode::kCoupled,
                           .view = kSmallView};
  PolicyParams sfi = {.policy = PolicyNamed("sfi"),
                      .form = PolicyForm::kPlain,
                      .verify = VerifyMode::kCoupled};
  sfi.Own<SfiParams>().budget = 40;
  sfi.Own<SfiParams>().sink = 2;
  sfi.Own<SfiParams>().window = 20;
  ASSERT_TRUE(sfi.Own<SfiParams>().Set("interval=8").ok());
  PolicyParams speed = {.policy = PolicyNamed("speed"),
                        .form = PolicyForm::kVerified,
                        .verify = VerifyMode::kCoupled,
                        .view = kSmallView};
  ASSERT_TRUE(speed.Own<SpeedParams>().Set("cut=1").ok());
  for (const PolicyParams& params : {triforce, sfi, speed}) {
    const Session::Options options =
        WithPromptCache(params.OptionsFor(*model, {}));
    Session::Options without = options;
    without.texts.reset();
    const GenerateParams generate = DraftedParams(0.8f, 60);
    const auto plain = MakeSession(*model, without);
    LogitsOf(*plain, ids);
    const Report expected = GenerateDrafted(*plain, generate, params);
    ASSERT_TRUE(expected.status.ok()) << expected.status;
    for (const Place& place : kPlaces) {
      fs::remove_all(path());
      const auto at = [&] {
        Tiered made;
        if (place.has_value()) return MakeTiered(*model, options, *place);
        made.session = MakeSession(*model, options);
        return made;
      };
      for (const bool in_another : {true, false}) {
        Tiered tiered = at();
        // The model has two layers, of which the first is done.
        const auto stopped = Prefill(
            *tiered.session, ids.data(), ids.size(),
            [](uint64_t done, uint64_t total) { return 2 * done <= total; });
        ASSERT_EQ(CodeOf(stopped.status()), "cancelled");
        if (in_another) {
          tiered.session.reset();
          tiered = at();
        }
        LogitsOf(*tiered.session, ids);
        EXPECT_EQ(tiered.session->sequence().resumed_layers(), 1);
        const Report report =
            GenerateDrafted(*tiered.session, generate, params);
        ASSERT_TRUE(report.status.ok()) << report.status;
        EXPECT_EQ(report.tokens, expected.tokens);
        tiered.session.reset();
        fs::remove_all(path());
      }
    }
  }
}

// ---- The key ----

TEST_F(UnfinishedPromptTest, OnlyTheSamePromptAndSettingsGoOn) {
  // Returns the number of layers that a session skips when it reads `ids` after
  // another was stopped.
  const auto resumed = [&](const Model& model, const Session::Options& options,
                           const Ids& ids) {
    fs::remove_all(path());
    Stop(*MakeSession(*model_, WithPromptCache()), First(kPrompt), 3);
    const auto session = MakeSession(model, options);
    LogitsOf(*session, ids);
    return session->sequence().resumed_layers();
  };
  EXPECT_EQ(resumed(*model_, WithPromptCache(), First(kPrompt)), 3);
  EXPECT_EQ(resumed(*model_, WithPromptCache(), First(kPrompt + 1)), 0);
  Ids other = First(kPrompt);
  other[700] ^= 1;
  EXPECT_EQ(resumed(*model_, WithPromptCache(), other), 0);
  Session::Options options = WithPromptCache();
  options.type_v = DType::kF32;
  EXPECT_EQ(resumed(*model_, options, First(kPrompt)), 0);
  options = WithPromptCache();
  options.texts->build = "another build";
  EXPECT_EQ(resumed(*model_, options, First(kPrompt)), 0);
  options = WithPromptCache();
  options.texts->begins_anew = true;
  EXPECT_EQ(resumed(*model_, options, First(kPrompt)), 0);
  Model::Options like = model_->options;
  like.compute = Compute::kF32;
  EXPECT_EQ(resumed(*OpenModel(like), WithPromptCache(), First(kPrompt)), 0);
  like = model_->options;
  like.rope_freq_base = 12345;
  EXPECT_EQ(resumed(*OpenModel(like), WithPromptCache(), First(kPrompt)), 0);
  like = model_->options;
  like.machine.threads = 1;
  EXPECT_EQ(resumed(*OpenModel(like), WithPromptCache(), First(kPrompt)), 3);
  // A short prompt is not saved, nor one after filled KV.
  fs::remove_all(path());
  Stop(*MakeSession(*model_, WithPromptCache()), First(1000), 3);
  const auto filled = MakeSession(*model_, WithPromptCache());
  ASSERT_TRUE(FillPrompt(*filled, ids_->data(), 200, 7, kNoProgress).ok());
  Stop(*filled, First(kPrompt), 3);
  EXPECT_THAT(Names(), IsEmpty());
}

TEST_F(UnfinishedPromptTest, OneSessionAtATimeHasIt) {
  const auto first = MakeSession(*model_, WithPromptCache());
  Stop(*first, First(kPrompt), 3);
  // Another session computes all of it, and disturbs nothing.
  EXPECT_EQ(GoOn(std::nullopt, WithPromptCache()).resumed_layers, 0);
  EXPECT_THAT(warnings_, IsEmpty());
  EXPECT_TRUE(SameBits(LogitsOf(*first, First(kPrompt)), *computed_));
}

// ---- Killed processes ----

// A process that is killed at any of its writes leaves the finished layers, but
// for the last. A prompt whose layers are all computed does not wait for the
// disk, so one more may be lost.
TEST_F(UnfinishedPromptTest, AKilledProcessLosesALayerAtMost) {
  struct WatchedDisk : FaultyDisk {
    std::function<void()> before_write;
    ssize_t Write(int file, const std::byte* from, size_t bytes,
                  uint64_t offset) override {
      before_write();
      return FaultyDisk::Write(file, from, bytes, offset);
    }
  } disk;
  struct Left {
    std::string folder;
    int finished;
  };
  int calls = 0;
  for (const Place& place : kPlaces) {
    fs::remove_all(path());
    std::vector<Left> left;
    std::atomic<int> finished{0};
    disk.before_write = [&] {
      if (Prompts() == 0) return;  // the whole text is being written
      left.push_back({folder_.path() + "/left" + std::to_string(calls++),
                      finished.load()});
      fs::copy(path(), left.back().folder);
      fs::permissions(left.back().folder, fs::perms::owner_all);
    };
    {
      const Tiered tiered = At(place, WithPromptCache({}, disk));
      const Ids ids = First(kPrompt);
      EXPECT_TRUE(Prefill(*tiered.session, ids.data(), ids.size(),
                          [&](uint64_t done, uint64_t) {
                            finished = static_cast<int>(done / kPrompt);
                            return true;
                          })
                      .ok());
    }
    ASSERT_GT(left.size(), 12u);
    for (size_t i = 0; i < left.size(); ++i) {
      if (!Tries(i, place)) continue;
      const Left& killed = left[i];
      fs::remove_all(path());
      fs::rename(killed.folder, path());
      const int resumed = GoOn(place, WithPromptCache()).resumed_layers;
      EXPECT_GE(resumed,
                killed.finished - (killed.finished == kLayers ? 2 : 1));
      EXPECT_THAT(warnings_, IsEmpty());
    }
  }
}

// ---- Faults ----

TEST_F(UnfinishedPromptTest, ADamagedPageBeginsThePromptAnew) {
  for (const Place& place : kPlaces) {
    fs::remove_all(path());
    Stop(*At(place, WithPromptCache()).session, First(kPrompt), 4);
    const std::string file = path() + "/" + Names().at(0);
    const auto page = static_cast<int64_t>(
        WithPromptCache().Layout(model_->config).PageBytes());
    std::fstream bytes(file, std::ios::binary | std::ios::in | std::ios::out);
    bytes.seekp(-5 * 10 * page + 3 * 10 * page + 100, std::ios::end);
    bytes.put('x').put('y');
    bytes.close();
    EXPECT_EQ(GoOn(place, WithPromptCache()).resumed_layers, 0);
    EXPECT_THAT(warnings_, ElementsAre(HasSubstr("begins anew")));
    EXPECT_EQ(Prompts(), 0u);
  }
}

TEST_F(UnfinishedPromptTest, ReadsThatFailBeginItAnew) {
  for (const Place& place : kPlaces) {
    size_t turn = 0;
    for (const int64_t call : {0, 1, 2, 6, 7, 20}) {
      if (!Tries(turn++, place)) continue;
      fs::remove_all(path());
      Stop(*At(place, WithPromptCache()).session, First(kPrompt), 4);
      FaultyDisk disk;
      disk.counts_writes = false;
      disk.at_once = static_cast<size_t>(
          WithPromptCache().Layout(model_->config).PageBytes());
      disk.fail_at = call;
      const int resumed = GoOn(place, WithPromptCache({}, disk)).resumed_layers;
      EXPECT_TRUE(disk.failed());
      EXPECT_EQ(resumed, 0) << call;
    }
  }
}

// A full disk ends no prompt: layers that cannot be saved are not, with a
// warning.
TEST_F(UnfinishedPromptTest, ADiskThatIsFullIsAWarning) {
  for (const Place& place : kPlaces) {
    size_t turn = 0;
    for (const int64_t call : {0, 1, 2, 3, 5, 9, 14}) {
      if (!Tries(turn++, place)) continue;
      fs::remove_all(path());
      FaultyDisk disk;
      disk.counts_reads = false;
      disk.fail_at = call;
      disk.more = 1 << 30;
      disk.error = ENOSPC;
      GoOn(place, WithPromptCache({}, disk));
      EXPECT_TRUE(disk.failed());
      EXPECT_THAT(warnings_, ElementsAre(HasSubstr("not kept"))) << call;
      disk.fail_at = 1 << 30;
      // Layers that were written before are valid.
      GoOn(place, WithPromptCache());
      EXPECT_THAT(warnings_, IsEmpty());
    }
  }
}

TEST_F(UnfinishedPromptTest, AFolderThatIsTooSmallKeepsNone) {
  Session::Options options = WithPromptCache();
  const Ids ids = First(kPrompt);
  {
    const auto session = MakeSession(*model_, options);
    Stop(*session, ids, 3);
  }
  const uint64_t bytes = fs::file_size(path() + "/" + Names().at(0));
  fs::remove_all(path());
  options.texts->most_bytes = bytes - 1;
  Stop(*MakeSession(*model_, options), ids, 3);
  EXPECT_THAT(Names(), IsEmpty());
  EXPECT_EQ(GoOn(std::nullopt, options).resumed_layers, 0);
  EXPECT_THAT(warnings_, IsEmpty());
  EXPECT_EQ(Names().size(), 1u);  // the text
}

// A disk whose syncs do not return while there is a Stuck.
struct StuckDisk : FaultyDisk {
  // It ends before sessions do, which wait for their disk.
  class Stuck {
   public:
    explicit Stuck(StuckDisk& disk) : disk_(disk) { disk_.stuck = true; }
    ~Stuck() { disk_.stuck = false; }

   private:
    StuckDisk& disk_;
  };

  int TrySync(int file) override {
    while (stuck) std::this_thread::yield();
    return FaultyDisk::TrySync(file);
  }

  std::atomic<bool> stuck{false};
};

// A disk that is much slower than the prompt does not delay it for long.
TEST_F(UnfinishedPromptTest, APromptGetsAheadOfAStuckDisk) {
  StuckDisk disk;
  {
    Session::Options options = WithPromptCache({}, disk);
    options.texts->waits = std::chrono::milliseconds(100);
    const auto session = MakeSession(*model_, options);
    const StuckDisk::Stuck stuck(disk);
    const Ids ids = First(kPrompt);
    int asked = 0;
    const auto stopped = Prefill(*session, ids.data(), ids.size(),
                                 [&](uint64_t done, uint64_t total) {
                                   ++asked;
                                   return done * kLayers < total * 5;
                                 });
    EXPECT_EQ(CodeOf(stopped.status()), "cancelled");
    EXPECT_GT(asked, 5);
  }
  EXPECT_EQ(GoOn(std::nullopt, WithPromptCache()).resumed_layers, 1);
}

// A refusal to go on takes effect while layers come from disk and while the
// prompt waits for the disk, even if progress is then called only once.
TEST_F(UnfinishedPromptTest, ProgressIsHeardBetweenLayers) {
  const Ids ids = First(kPrompt);
  for (const Place& place : kPlaces) {
    fs::remove_all(path());
    Stop(*At(place, WithPromptCache()).session, ids, 4);
    int told = 0;
    const auto stopped =
        Prefill(*At(place, WithPromptCache()).session, ids.data(), ids.size(),
                [&](uint64_t done, uint64_t) {
                  EXPECT_EQ(done, 0u);
                  return ++told < 3;
                });
    EXPECT_EQ(CodeOf(stopped.status()), "cancelled");
    EXPECT_EQ(told, 3);
    EXPECT_EQ(GoOn(place, WithPromptCache()).resumed_layers, 4);
  }
  StuckDisk disk;
  fs::remove_all(path());
  {
    const auto session = MakeSession(*model_, WithPromptCache({}, disk));
    const StuckDisk::Stuck stuck(disk);
    bool refused = false;
    uint64_t last = 0;
    int again = 0;
    const auto stopped =
        Prefill(*session, ids.data(), ids.size(), [&](uint64_t done, uint64_t) {
          EXPECT_FALSE(refused);
          // Progress repeats a number only when the second layer is computed
          // and the first is still being written.
          again = done == last && done > 0 ? again + 1 : 0;
          last = done;
          refused = again == 1;
          return !refused;
        });
    EXPECT_TRUE(refused);
    EXPECT_EQ(CodeOf(stopped.status()), "cancelled");
  }
  EXPECT_EQ(GoOn(std::nullopt, WithPromptCache()).resumed_layers, 1);
}

// A cancel does not wait for the disk; the layer that is being written is
// saved.
TEST_F(UnfinishedPromptTest, ACancelWaitsForNoDisk) {
  StuckDisk disk;
  {
    const auto session = MakeSession(*model_, WithPromptCache({}, disk));
    Stop(*session, First(kPrompt), 2);
    {
      const StuckDisk::Stuck stuck(disk);
      std::thread cancel([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
        session->cancellation().Cancel();
      });
      const Ids ids = First(kPrompt);
      const auto stopped =
          Prefill(*session, ids.data(), ids.size(), kNoProgress);
      cancel.join();
      EXPECT_EQ(CodeOf(stopped.status()), "cancelled");
    }
    session->cancellation().Clear();
    // The layer that could not be given then is given when it goes on.
    Stop(*session, First(kPrompt), 5);
  }
  EXPECT_EQ(GoOn(std::nullopt, WithPromptCache()).resumed_layers, 5);
}

}  // namespace
}  // namespace tiercel::unfinished_prompt_test

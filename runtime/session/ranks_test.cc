// A session over any number of ranks gives the same bytes as on one, and a
// failure on any of them is one status.

#include <array>
#include <atomic>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <limits>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/system/faults.h"
#include "lib/status/error.h"
#include "offload/disk/faulty_disk_for_test.h"
#include "runtime/generate/generate.h"
#include "runtime/policies/policy.h"
#include "runtime/policies/sadas/sadas_params.h"
#include "runtime/policies/sfi/sfi_params.h"
#include "runtime/policies/speed/speed_params.h"
#include "tests/drafting.h"
#include "tests/tiers.h"

namespace tiercel::ranks_test {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

bool SameBits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() &&
         std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

std::string PathOf(const std::string& name) {
  return CheckpointPath(name + ".gguf");
}

// A model over `ranks` ranks, whose devices hold the least that a session with
// `options` needs.
std::unique_ptr<Model> OpenTiered(const std::string& path, int ranks,
                                  const Session::Options& options,
                                  std::optional<double> rope_scale = {}) {
  Model::Options of = {.path = path,
                       .machine = {.threads = 2},
                       .ranks = ranks,
                       .rope_scale = rope_scale};
  int64_t bytes = 0;
  {
    of.machine.simulation = {{.bytes = int64_t{1} << 40, .link = {kFast}}};
    Model::Options header = of;
    header.weights = false;
    const auto model = OpenModel(header);
    const auto sizes = model->MeasureRanks();
    EXPECT_TRUE(sizes.ok()) << sizes.status();
    for (int rank = 0; rank < ranks; ++rank) {
      const SessionSite site =
          SiteOf(*model, (*sizes)[static_cast<size_t>(rank)], options,
                 model->machine->threads(), rank);
      bytes = std::max(bytes, site.LeastDeviceBytes(options.context));
    }
  }
  of.machine.simulation = {{.bytes = bytes, .link = {kFast, 0}}};
  return OpenModel(of);
}

std::unique_ptr<Model> OpenOver(const std::string& path, int ranks,
                                std::optional<double> rope_scale = {}) {
  return OpenModel({.path = path,
                    .machine = {.threads = 2},
                    .ranks = ranks,
                    .rope_scale = rope_scale});
}

// Checkpoints, and the numbers of ranks that they can be split over: three KV
// heads over two ranks, one KV head that ranks share, biases, norms of heads,
// tied or not.
const std::vector<std::pair<std::string, std::vector<int>>>& Splits() {
  static const auto* const splits =
      new std::vector<std::pair<std::string, std::vector<int>>>{
          {"llama_gqa", {2, 3, 4}}, {"llama_mqa", {2, 3}}, {"llama_mha", {2}},
          {"llama_bias", {2}},      {"qwen2", {2, 3, 4}},  {"qwen3", {2}},
          {"llama_chat", {2}},      {"smollm3", {2}},      {"granite", {3}},
          {"ministral3", {2}},      {"phi3", {3}}};
  return *splits;
}

TEST(RanksTest, LogitsAreThoseOfOneRank) {
  for (const auto& [name, counts] : Splits()) {
    const auto one = OpenOver(PathOf(name), 1);
    const Ids ids = RandomIds(200, one->config.vocab);
    const Session::Options options = {.context = 220};
    const std::vector<float> expected =
        AllLogits(*MakeSession(*one, options), ids, 200);
    for (const int ranks : counts) {
      const auto many = OpenOver(PathOf(name), ranks);
      const auto tiered = OpenTiered(PathOf(name), ranks, options);
      for (const Model* model : {many.get(), tiered.get()}) {
        EXPECT_TRUE(SameBits(AllLogits(*MakeSession(*model, options), ids, 200),
                             expected))
            << name << " over " << ranks;
        // Steps of one row cross the end of a page.
        const auto steps = MakeSession(*model, options);
        const Ids before(ids.begin(), ids.begin() + 120);
        const Ids rest(ids.begin() + 120, ids.begin() + 140);
        ASSERT_TRUE(
            Prefill(*steps, before.data(), before.size(), kNoProgress).ok());
        const auto vocab = static_cast<std::ptrdiff_t>(one->config.vocab);
        EXPECT_TRUE(SameBits(
            AllLogits(*steps, rest, 1),
            {expected.begin() + 120 * vocab, expected.begin() + 140 * vocab}))
            << name << " over " << ranks;
      }
    }
  }
}

// Each rank reads the positions that a view selects for its own heads.
TEST(RanksTest, SelectionsOfHeadsAreThoseOfOneRank) {
  const auto one = OpenOver(PathOf("llama_gqa"), 1);
  const ModelConfig& config = one->config;
  const Ids ids = RandomIds(300, config.vocab);
  View view = View::Window(/*sinks=*/4, /*recent=*/20);
  for (int i = 0; i < config.layers * config.kv_heads; ++i) {
    view.selected.push_back({{16 + i * 24, 32 + i * 24}});
  }
  const auto logits_of = [&](const Model& model) {
    const auto session = MakeSession(model, {.context = 400});
    EXPECT_TRUE(session->Append(ids.data(), ids.size()).ok());
    std::vector<float> last(static_cast<size_t>(config.vocab));
    for (const int64_t rows : {200, 60, 40}) {
      EXPECT_TRUE(
          session->Forward(rows, Phase::kDraft, kNoProgress, view).ok());
      const float* const logits =
          session->runner().RowLogits(rows - 1, 1).value();
      std::copy_n(logits, last.size(), last.begin());
    }
    return last;
  };
  const std::vector<float> expected = logits_of(*one);
  for (const int ranks : {2, 3}) {
    EXPECT_TRUE(
        SameBits(logits_of(*OpenOver(PathOf("llama_gqa"), ranks)), expected))
        << ranks;
  }
}

// Prompts with hidden states in tiles on each rank give the same bytes.
TEST(RanksTest, PromptsInTilesAreThoseOfOneRank) {
  const std::string path = Deepened("llama_chat");
  const auto one = OpenOver(path, 1);
  const Ids ids = RandomIds(2200, one->config.vocab);
  const Session::Options options = {.context = 2400};
  const auto alone = MakeSession(*one, options);
  ASSERT_TRUE(Prefill(*alone, ids.data(), ids.size(), kNoProgress).ok());
  const auto tiered = OpenTiered(path, 2, options);
  const auto session = MakeSession(*tiered, options);
  for (const auto& rank : session->kv().ranks()) {
    ASSERT_EQ(rank->plan.state_rows, 1536);
  }
  // Stopped in the middle of a layer, both go on there.
  ASSERT_EQ(CodeOf(Prefill(*session, ids.data(), ids.size(),
                           [](uint64_t done, uint64_t) { return done < 5000; })
                       .status()),
            "cancelled");
  ASSERT_TRUE(Prefill(*session, ids.data(), ids.size(), kNoProgress).ok());
  EXPECT_EQ(NextLogits(*session), NextLogits(*alone));
  const Traffic traffic = session->traffic();
  EXPECT_GT(traffic.ranks[0].moves.states_up_bytes, 0);
  EXPECT_EQ(traffic.ranks[1].moves.states_up_bytes,
            traffic.ranks[0].moves.states_up_bytes);
}

TEST(RanksTest, TypesOfKvChangeNothing) {
  const auto one = OpenOver(PathOf("llama_rope_linear"), 1);
  const auto two = OpenOver(PathOf("llama_rope_linear"), 2);
  const Ids ids = RandomIds(200, one->config.vocab);
  for (const DType type : {DType::kF32, DType::kBF16, DType::kQ8_0}) {
    const Session::Options options = {.type_k = type, .type_v = type};
    EXPECT_TRUE(SameBits(AllLogits(*MakeSession(*two, options), ids, 64),
                         AllLogits(*MakeSession(*one, options), ids, 64)));
  }
}

TEST(RanksTest, WhatCannotBeSplitIsRefused) {
  for (const auto& [name, ranks] :
       {std::pair("llama_mha", 3), std::pair("llama_gqa", 10),
        std::pair("tiny_vocab", 2)}) {
    const auto model = Model::Open({.path = PathOf(name), .ranks = ranks},
                                   [](uint64_t, uint64_t) { return true; });
    EXPECT_EQ(CodeOf(model.status()), "cannot_split") << name;
    EXPECT_EQ(ClassOf(model.status()), ErrorClass::kUsage);
    EXPECT_THAT(std::string(model.status().message()),
                HasSubstr("over " + std::to_string(ranks) + " ranks"));
  }
}

std::vector<std::pair<std::string, PolicyParams>> Policies() {
  std::vector<std::pair<std::string, PolicyParams>> all;
  all.push_back({"full", {}});
  all.push_back({"triforce",
                 {.policy = PolicyNamed("triforce"),
                  .verify = VerifyMode::kCoupled,
                  .view = kSmallView}});
  for (const PolicyForm form : {PolicyForm::kVerified, PolicyForm::kPlain}) {
    PolicyParams sfi = {.policy = PolicyNamed("sfi"),
                        .form = form,
                        .verify = VerifyMode::kCoupled};
    sfi.Own<SfiParams>().budget = 40;
    sfi.Own<SfiParams>().sink = 2;
    sfi.Own<SfiParams>().window = 20;
    EXPECT_TRUE(sfi.Own<SfiParams>().Set("trigger=fixed,interval=8").ok());
    all.push_back({"sfi", sfi});
    EXPECT_TRUE(
        sfi.Own<SfiParams>().Set("trigger=fixed,interval=8,decay=0.5").ok());
    all.push_back({"sfi that decays", sfi});
    PolicyParams sadas = {.policy = PolicyNamed("sadas"),
                          .form = form,
                          .verify = VerifyMode::kCoupled,
                          .view = kSmallView};
    sadas.Own<SadasParams>().window = 200;
    EXPECT_TRUE(sadas.Own<SadasParams>().Set("gate=always").ok());
    all.push_back({"sadas", sadas});
    PolicyParams speed = {.policy = PolicyNamed("speed"),
                          .form = form,
                          .verify = VerifyMode::kCoupled,
                          .view = kSmallView};
    EXPECT_TRUE(speed.Own<SpeedParams>().Set("cut=4").ok());
    all.push_back({"speed", speed});
  }
  return all;
}

TEST(RanksTest, EveryPolicysTextIsThatOfOneRank) {
  const std::string path = Deepened("llama_gqa");
  const auto one = OpenOver(path, 1);
  const auto two = OpenOver(path, 2);
  const auto four = OpenOver(path, 4);  // two ranks share a KV head
  const Ids prompt = RandomIds(300, one->config.vocab);
  const GenerateParams params = DraftedParams(0.8f, 12);
  for (const auto& [name, policy] : Policies()) {
    const Session::Options options = policy.OptionsFor(*one, {.context = 400});
    const auto text = [&](const Model& model) {
      const auto session = Prefilled(model, prompt, options);
      Ids ids = DraftedText(*session, params, policy);
      // A second answer, after a question.
      EXPECT_TRUE(Prefill(*session, prompt.data(), 30, kNoProgress).ok());
      const Ids more = DraftedText(*session, params, policy);
      ids.insert(ids.end(), more.begin(), more.end());
      return ids;
    };
    const Ids expected = text(*one);
    EXPECT_THAT(expected, SizeIs(24));
    const auto tiered = OpenTiered(path, 3, options);
    const bool plain = policy.form == PolicyForm::kPlain;
    for (const Model* model : {plain ? four.get() : two.get(), tiered.get()}) {
      EXPECT_EQ(text(*model), expected)
          << name << " over " << model->ranks() << (plain ? ", plain" : "");
    }
  }
}

// Each rank's bytes are its share of the formula; the bytes that it gathers
// follow from the split alone.
TEST(RanksTest, EachRankMovesItsShare) {
  const std::string path = Deepened("llama_gqa");
  const Session::Options options = {.context = 600};
  const auto model = OpenTiered(path, 2, options);
  const Ids prompt = RandomIds(400, model->config.vocab);
  const auto session = Prefilled(*model, prompt, options);
  DraftedText(*session, DraftedParams(0, 20), {});
  const Traffic all = session->traffic();
  ASSERT_THAT(all.ranks, SizeIs(2));
  const int64_t steps = 19;
  for (int rank = 0; rank < 2; ++rank) {
    const RankTraffic& own = all.ranks[static_cast<size_t>(rank)];
    const RankKv& of = *session->kv().ranks()[static_cast<size_t>(rank)];
    const int64_t page = of.plan.shape.layout.PageBytes();
    EXPECT_EQ(of.site.layout.kv_heads, 1 + rank);
    // Three pages are full: in each of six layers a step reads those that do
    // not stay, and two layers are fetched ahead for a step after the last.
    const int64_t swept =
        std::max<int64_t>(0, 3 - of.plan.shape.resident_pages);
    EXPECT_GT(rank == 0 ? 1 : swept, 0);
    const int64_t pages = 6 * swept * steps + 2 * swept;
    EXPECT_EQ(own.h2d_bytes, static_cast<uint64_t>(pages * page)) << rank;
    EXPECT_EQ(own.d2h_bytes, static_cast<uint64_t>(6 * 3 * page)) << rank;
    const ModelSplit& split = *model->split;
    EXPECT_EQ(
        own.gathered_bytes,
        static_cast<uint64_t>((400 + steps) * 6 * split.GatheredPerLayer(rank) +
                              (1 + steps) * split.GatheredLogits(rank)));
  }
  uint64_t up = 0;
  for (const LinkUse& use : all.link) up += use.h2d_bytes;
  EXPECT_EQ(up, all.ranks[0].h2d_bytes + all.ranks[1].h2d_bytes);
}

TEST(RanksTest, ForksAndTruncationsLeaveNoTrace) {
  const std::string path = Deepened("llama_gqa");
  const Session::Options options = {.context = 400};
  const auto one = OpenOver(path, 1);
  for (const bool in_tiers : {false, true}) {
    Model::Options of = {.path = path, .machine = {.threads = 2}, .ranks = 2};
    // The device has room for a fork's activations.
    if (in_tiers) {
      of.machine.simulation = {{.bytes = int64_t{64} << 20, .link = {kFast}}};
    }
    const auto model = OpenModel(of);
    const Ids prompt = RandomIds(300, model->config.vocab);
    const auto session = Prefilled(*model, prompt, options);
    const auto fork = *session->Fork();
    const Ids text = DraftedText(*session, DraftedParams(0.8f, 40), {});
    session->Truncate(250);
    ExpectNoTrace(*session, *one, options);
    EXPECT_EQ(DraftedText(*fork, DraftedParams(0.8f, 40), {}), text);
    ExpectNoTrace(*fork, *one, options);
  }
}

// A prompt that a callback stops at any block of rows goes on there.
TEST(RanksTest, AStoppedPromptGoesOn) {
  const std::string path = Deepened("llama_gqa");
  const Session::Options options = {.context = 600};
  const auto one = OpenOver(path, 1);
  const Ids prompt = RandomIds(500, one->config.vocab);
  const std::vector<float> expected =
      NextLogits(*Prefilled(*one, prompt, options));
  for (const bool in_tiers : {false, true}) {
    const auto model =
        in_tiers ? OpenTiered(path, 3, options) : OpenOver(path, 3);
    int calls = 0;
    Prefilled(*model, prompt, options);
    for (int stop = 1;; ++stop) {
      const auto session = MakeSession(*model, options);
      calls = 0;
      uint64_t reached = 0;
      const auto stopped = Prefill(*session, prompt.data(), prompt.size(),
                                   [&](uint64_t done, uint64_t) {
                                     reached = done;
                                     return ++calls < stop;
                                   });
      if (stopped.ok()) break;
      EXPECT_EQ(ClassOf(stopped.status()), ErrorClass::kCancelled);
      EXPECT_THAT(session->sequence().tokens(), SizeIs(0));
      uint64_t from = std::numeric_limits<uint64_t>::max();
      ASSERT_TRUE(Prefill(*session, prompt.data(), prompt.size(),
                          [&](uint64_t done, uint64_t) {
                            from = std::min(from, done);
                            return true;
                          })
                      .ok());
      EXPECT_EQ(from, reached);
      EXPECT_TRUE(SameBits(NextLogits(*session), expected)) << stop;
    }
    EXPECT_GT(calls, 6);
  }
}

TEST(RanksTest, WhatACallbackThrowsIsTheCallers) {
  const auto model = OpenOver(PathOf("llama_gqa"), 3);
  const Ids prompt = RandomIds(200, model->config.vocab);
  const auto session = MakeSession(*model);
  int calls = 0;
  EXPECT_THROW((void)Prefill(*session, prompt.data(), prompt.size(),
                             [&](uint64_t, uint64_t) -> bool {
                               if (++calls == 2) throw std::runtime_error("no");
                               return true;
                             }),
               std::runtime_error);
  EXPECT_THAT(session->sequence().tokens(), SizeIs(0));
  ASSERT_TRUE(
      Prefill(*session, prompt.data(), prompt.size(), kNoProgress).ok());
  EXPECT_TRUE(SameBits(
      NextLogits(*session),
      NextLogits(*Prefilled(*OpenOver(PathOf("llama_gqa"), 1), prompt))));
}

TEST(RanksTest, WhereAQuestionLooksIsTheSame) {
  const std::string path = Deepened("llama_gqa");
  const Ids prompt = RandomIds(500, 67);
  const Reading reading = {5, 400, 410, 450, {RandomIds(20, 67), {7, 8, 9}}};
  const auto one = OpenOver(path, 1);
  const AttentionShares::Found expected =
      Prefilled(*one, prompt)->Attended(reading, kNoProgress).value();
  EXPECT_GT(expected.excess, 0);
  for (const int ranks : {2, 3, 4}) {
    const auto model = OpenOver(path, ranks);
    const AttentionShares::Found found =
        Prefilled(*model, prompt)->Attended(reading, kNoProgress).value();
    EXPECT_EQ(found.shares, expected.shares) << ranks;
    EXPECT_EQ(found.excess, expected.excess) << ranks;
  }
}

TEST(RanksTest, WhatNobodyComputedIsTheSame) {
  const std::string path = PathOf("llama_gqa");
  const Ids prompt = RandomIds(900, 67);
  std::vector<float> expected;
  for (const int ranks : {1, 2, 3, 4}) {
    const auto model = OpenOver(path, ranks);
    const auto session = MakeSession(*model);
    ASSERT_TRUE(
        FillPrompt(*session, prompt.data(), prompt.size(), 7, kNoProgress)
            .ok());
    if (ranks == 1) expected = NextLogits(*session);
    EXPECT_TRUE(SameBits(NextLogits(*session), expected)) << ranks;
  }
}

// KV that is saved by any number of ranks is opened by any other.
TEST(RanksTest, PromptCacheAreOfNoRank) {
  const std::string path = Deepened("llama_rope_linear");
  const Ids prompt = RandomIds(1300, 67);
  for (const int wrote : {1, 2}) {
    const FolderForTest folder;
    Session::Options options = {.context = 1500};
    options.texts = {.path = folder.path() + "/texts", .build = "a build"};
    std::vector<float> expected;
    {
      const auto model = OpenOver(path, wrote, /*rope_scale=*/2);
      const auto session = Prefilled(*model, prompt, options);
      expected = NextLogits(*session);
    }
    const auto opens = [&](const Model& model) {
      const auto session = MakeSession(model, options);
      const auto prefill =
          Prefill(*session, prompt.data(), prompt.size(), kNoProgress);
      ASSERT_TRUE(prefill.ok()) << prefill.status();
      EXPECT_GT(prefill->traffic.disk.read_pages, 0);
      EXPECT_TRUE(SameBits(NextLogits(*session), expected));
    };
    for (const int reads : {1, 2}) {
      opens(*OpenOver(path, reads, /*rope_scale=*/2));
      opens(*OpenTiered(path, reads, options, /*rope_scale=*/2));
    }
  }
}

// If memory has no room, each rank keeps pages of its heads on disk. A failure
// to write them does not condemn the cache file that is opened.
TEST(RanksTest, PagesMayBeOnDisk) {
  const std::string path = Deepened("llama_rope_linear");
  const Ids prompt = RandomIds(1300, 67);
  const FolderForTest folder;
  const std::string texts = folder.path() + "/texts";
  Session::Options options = {.context = 1500};
  const auto alone = OpenOver(path, /*ranks=*/1, /*rope_scale=*/2);
  const auto expected = Prefilled(*alone, prompt, options);
  FaultyDisk disk;
  disk.counts_reads = false;
  options.texts = {.path = texts, .build = "a build", .disk = &disk};
  Model::Options of =
      OpenTiered(path, /*ranks=*/2, options, /*rope_scale=*/2)->options;
  of.machine.host_memory_bytes = 1;
  const auto model = OpenModel(of);
  const auto entries = [&] {
    return std::distance(std::filesystem::directory_iterator(texts),
                         std::filesystem::directory_iterator());
  };
  for (const bool opened : {false, true}) {
    const auto session = Prefilled(*model, prompt, options);
    EXPECT_GT(session->kv().plan().shape.disk_pages, 0);
    EXPECT_EQ(session->traffic().disk.read_pages > 0, opened);
    EXPECT_GT(session->traffic().moves.spilled_pages, 0);
    EXPECT_TRUE(SameBits(NextLogits(*session), NextLogits(*expected)));
  }
  const auto session = MakeSession(*model, options);
  disk.fail_at = disk.calls();
  const auto prefill = Prefill(*session, prompt.data(), prompt.size(),
                               [&](uint64_t done, uint64_t) {
                                 EXPECT_TRUE(disk.failed() || done == 0);
                                 EXPECT_EQ(entries(), 1);
                                 return true;
                               });
  EXPECT_TRUE(prefill.ok()) << prefill.status();
  EXPECT_THAT(session->warnings(), Not(IsEmpty()));
  EXPECT_TRUE(SameBits(NextLogits(*session), NextLogits(*expected)));
}

// ---- Faults ----

class RankFaultsTest : public ::testing::Test {
 protected:
  static constexpr int kRanks = 3;

  RankFaultsTest() {
    policy_ = {.policy = PolicyNamed("triforce"),
               .verify = VerifyMode::kCoupled,
               .view = kSmallView};
    const std::string path = Deepened("llama_gqa");
    const auto one = OpenOver(path, 1);
    options_ = policy_.OptionsFor(*one, {.context = 500});
    model_ = OpenTiered(path, kRanks, options_);
    prompt_ = RandomIds(200, model_->config.vocab);
    expected_ = Text(*Prefilled(*one, prompt_, options_));
  }

  Ids Text(Session& session) const {
    return DraftedText(session, DraftedParams(0.8f, 6), policy_);
  }

  // Has each call fail in a prompt and a generation.
  void FailEach(FailingCall& call, const std::string& code) {
    int64_t at = 1;
    int prompts = 0;
    int texts = 0;
    for (;; at += 1 + at / 3) {
      const auto session = MakeSession(*model_, options_);
      call.Arm(at);
      const absl::Status prefill =
          Prefill(*session, prompt_.data(), prompt_.size(), kNoProgress)
              .status();
      if (!prefill.ok()) {
        ++prompts;
        EXPECT_EQ(CodeOf(prefill), code) << at << prefill;
        EXPECT_THAT(session->sequence().tokens(), SizeIs(0));
        EXPECT_EQ(session->sequence().kv_length(), 0);
        call.Disarm();
        ASSERT_TRUE(
            Prefill(*session, prompt_.data(), prompt_.size(), kNoProgress)
                .ok());
      } else {
        const Report report =
            GenerateDrafted(*session, DraftedParams(0.8f, 6), policy_);
        if (!call.happened()) {
          EXPECT_EQ(report.tokens, expected_);
          break;
        }
        // A failed fetch of a draft's chunk may be repeated without an error.
        if (!report.status.ok()) {
          ++texts;
          EXPECT_EQ(CodeOf(report.status), code) << at;
        }
        call.Disarm();
        session->Truncate(prompt_.size());
      }
      EXPECT_EQ(Text(*session), expected_) << at;
    }
    EXPECT_GT(prompts, 3);
    EXPECT_GT(texts, 2);
  }

  FailingCall allocation_{Callee::kMemory, "allocate"};
  FailingCall copy_{Callee::kLink, "copy"};
  FailingCall gather_{Callee::kRank, "gather"};
  PolicyParams policy_;
  Session::Options options_;
  std::unique_ptr<Model> model_;
  Ids prompt_;
  Ids expected_;
};

TEST_F(RankFaultsTest, ARankThatDiesAtAnyGather) {
  FailEach(gather_, "gather_failed");
}

TEST_F(RankFaultsTest, ARankWhoseCopyFails) { FailEach(copy_, "copy_failed"); }

TEST_F(RankFaultsTest, ARankThatCannotAllocate) {
  int refused = 0;
  for (int64_t at = 1;; ++at) {
    allocation_.Arm(at);
    const auto session = Session::Create(*model_, options_);
    const bool happened = allocation_.happened();
    allocation_.Disarm();
    if (!happened) {
      EXPECT_TRUE(session.ok());
      break;
    }
    ++refused;
    EXPECT_EQ(CodeOf(session.status()), "out_of_memory") << at;
    for (int rank = 0; rank < kRanks; ++rank) {
      EXPECT_EQ(model_->machine_of(rank).memory().used(),
                (*model_->MeasureRanks())[static_cast<size_t>(rank)].bytes);
    }
  }
  EXPECT_GT(refused, 20);
}

TEST_F(RankFaultsTest, ACancelledText) {
  const auto session = Prefilled(*model_, prompt_, options_);
  for (size_t stop = 1; stop < expected_.size(); ++stop) {
    size_t count = 0;
    const Report report = GenerateDrafted(*session, DraftedParams(0.8f, 6),
                                          policy_, [&](const OutputToken&) {
                                            if (++count == stop)
                                              session->cancellation().Cancel();
                                            return true;
                                          });
    EXPECT_EQ(ClassOf(report.status), ErrorClass::kCancelled);
    session->cancellation().Clear();
    session->Truncate(prompt_.size());
    EXPECT_EQ(Text(*session), expected_) << stop;
    session->Truncate(prompt_.size());
  }
}

}  // namespace
}  // namespace tiercel::ranks_test

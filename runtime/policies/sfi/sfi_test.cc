// Slow-Fast Inference end to end: the results of its plain form, and that the
// verified form gives the same text as no drafter.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "lib/status/error.h"
#include "runtime/generate/generate.h"
#include "runtime/policies/policy.h"
#include "runtime/policies/sfi/sfi_params.h"
#include "tests/drafting.h"
#include "tests/golden.h"
#include "tests/tiers.h"

namespace tiercel::sfi_test {
namespace {

PolicyParams Sfi(PolicyForm form, const std::string& settings,
                 int64_t budget = 40, int chunk = 1) {
  PolicyParams params = {.policy = PolicyNamed("sfi"),
                         .form = form,
                         .verify = VerifyMode::kCoupled};
  params.Own<SfiParams>().budget = budget;
  params.Own<SfiParams>().chunk = chunk;
  params.Own<SfiParams>().sink = 2;
  params.Own<SfiParams>().window = 20;
  EXPECT_TRUE(params.Own<SfiParams>().Set(settings).ok());
  return params;
}

class SfiTest : public RepeatedTextTest<5> {
 protected:
  static std::unique_ptr<Session> SessionFor(const PolicyParams& params,
                                             Session::Options options = {}) {
    return Prefilled(*model_, *prompt_, params.OptionsFor(*model_, options));
  }
  static Ids Text() { return {prompt_->begin() + 7, prompt_->begin() + 97}; }
  // The greatest distance between the logits after some of `ids`, each a step
  // of `policy`, and those of `full`, [ids, vocab].
  static float Farthest(Session& session, Policy& policy, const Ids& ids,
                        const std::vector<float>& full) {
    const auto vocab = static_cast<size_t>(session.model().config.vocab);
    float farthest = 0;
    EXPECT_TRUE(ScoreSteps(session, policy, ids.data(), ids.size(),
                           [&](size_t index, const float* logits) {
                             for (size_t i = 0; i < vocab; ++i) {
                               const float other = full[index * vocab + i];
                               farthest = std::max(farthest,
                                                   std::abs(logits[i] - other));
                             }
                             return true;
                           })
                    .ok());
    return farthest;
  }
};

TEST_F(SfiTest, AnIntervalOfOneIsTheModel) {
  for (const DType type : {DType::kF16, DType::kF32}) {
    const Session::Options types = {.type_k = type, .type_v = type};
    const PolicyParams params = Sfi(PolicyForm::kPlain, "interval=1");
    EXPECT_EQ(ScoredSteps(*SessionFor(params, types), params, Text()),
              AllLogits(*Prefilled(*model_, *prompt_, types), Text(), 16));
  }
}

// If every position that is not among the newest is selected, a fast step gives
// the model's logits but for the order of sums.
TEST_F(SfiTest, AChoiceOfEverythingIsTheModel) {
  const Session::Options types = {.type_k = DType::kF32, .type_v = DType::kF32};
  Model::Options exact = model_->options;
  exact.compute = Compute::kF32;
  const auto model = OpenModel(exact);
  ASSERT_EQ(prompt_->size(), 300u);
  const Ids ids = Text();
  const std::vector<float> full =
      AllLogits(*Prefilled(*model, *prompt_, types), ids, 16);
  for (const int chunk : {1, 2, 16, 32}) {
    // The newest begin at 288, so a view of 289 positions is less than the
    // text.
    PolicyParams params = Sfi(PolicyForm::kPlain, "trigger=never,evidence=1",
                              /*budget=*/288, chunk);
    params.Own<SfiParams>().window = 1;
    const auto session =
        Prefilled(*model, *prompt_, params.OptionsFor(*model, types));
    const auto policy = NewPolicy(*session, params);
    ASSERT_TRUE(policy.ok()) << policy.status();
    const float farthest = Farthest(*session, **policy, ids, full);
    EXPECT_EQ((*policy)->report().schedule->fast().steps, std::ssize(ids));
    EXPECT_LT(farthest, 1e-4f) << chunk;
  }
}

// The prompt makes the first selection; the next one depends on the share of it
// that counts.
TEST_F(SfiTest, AChoiceGoesOnWithTheOneBefore) {
  const auto scored = [&](const std::string& decay) {
    const PolicyParams params = Sfi(
        PolicyForm::kPlain, "trigger=fixed,interval=6,gap=1,decay=" + decay);
    return ScoredSteps(*SessionFor(params), params, Text());
  };
  const std::vector<float> all = scored("1");
  const std::vector<float> little = scored("0.001");
  const std::ptrdiff_t first = 6 * model_->config.vocab;
  EXPECT_TRUE(std::equal(all.begin(), all.begin() + first, little.begin()));
  EXPECT_NE(all, little);
}

// A slow step reads the rows that fast steps wrote into the store, in every KV
// head.
TEST_F(SfiTest, ASlowStepReadsWhatFastStepsKept) {
  const auto model = OpenModel({.path = CheckpointPath("llama_mha.gguf"),
                                .machine = {.threads = 2},
                                .compute = Compute::kF32});
  ASSERT_GT(model->config.kv_heads, 1);
  const Ids ids = RandomIds(415, model->config.vocab);
  const Ids prompt(ids.begin(), ids.begin() + 410);
  const Ids text(ids.begin() + 410, ids.end());
  const Session::Options types = {.type_k = DType::kF32, .type_v = DType::kF32};
  // The newest begin at 400: all positions before them are selected.
  PolicyParams params =
      Sfi(PolicyForm::kPlain, "trigger=fixed,interval=3,gap=1,evidence=1", 400);
  params.Own<SfiParams>().window = 1;
  const auto session =
      Prefilled(*model, prompt, params.OptionsFor(*model, types));
  const auto policy = NewPolicy(*session, params);
  ASSERT_TRUE(policy.ok()) << policy.status();
  const std::vector<float> full =
      AllLogits(*Prefilled(*model, prompt, types), text, 16);
  const float farthest = Farthest(*session, **policy, text, full);
  EXPECT_EQ((*policy)->report().schedule->slow_at, (std::vector<int64_t>{3}));
  EXPECT_LT(farthest, 1e-4f);
}

TEST_F(SfiTest, StepsFollowTheSchedule) {
  const PolicyParams params =
      Sfi(PolicyForm::kPlain, "trigger=fixed,interval=7,gap=1");
  const auto session = SessionFor(params);
  const Report report =
      GenerateDrafted(*session, DraftedParams(0.7f, 30), params);
  ASSERT_TRUE(report.status.ok()) << report.status;
  const ScheduleReport& schedule = *report.rounds.schedule;
  EXPECT_EQ(schedule.slow_at, (std::vector<int64_t>{7, 14, 21, 28}));
  EXPECT_EQ(schedule.slow().steps, 4);
  EXPECT_EQ(schedule.fast().steps, 25);
  EXPECT_EQ(report.sweeps, 4);
  EXPECT_EQ(schedule.reason_at, std::vector<std::string_view>(4, "interval"));
}

// The report counts nothing of the tokens that a stop text takes back, but all
// of the tokens that are left.
TEST_F(SfiTest, AStopTextIsCutEverywhere) {
  for (const PolicyForm form : {PolicyForm::kPlain, PolicyForm::kVerified}) {
    const PolicyParams params = Sfi(form, "trigger=fixed,interval=2,gap=1");
    const auto session = SessionFor(params);
    GenerateParams drawn = DraftedParams(0.7f, 60);
    const Report whole = GenerateDrafted(*session, drawn, params);
    const size_t half = whole.text.size() / 2;
    drawn.stops = {whole.text.substr(half, half / 2)};
    session->Truncate(prompt_->size());
    const Report cut = GenerateDrafted(*session, drawn, params);
    ASSERT_TRUE(cut.status.ok()) << cut.status;
    ASSERT_EQ(cut.finish_reason, "stop");
    const int64_t count = std::ssize(cut.tokens);
    ASSERT_GT(count, 2);
    ASSERT_LT(count, 50);
    const ScheduleReport& all = *whole.rounds.schedule;
    const ScheduleReport& schedule = *cut.rounds.schedule;
    std::vector<int64_t> slow_at = all.slow_at;
    std::erase_if(slow_at, [&](int64_t at) { return at >= count; });
    EXPECT_LT(slow_at.size(), all.slow_at.size());
    EXPECT_EQ(schedule.slow_at, slow_at);
    EXPECT_GT(schedule.slow_at.front(), 0);  // the prompt gave the first
    EXPECT_EQ(schedule.slow().steps, std::ssize(slow_at));
    EXPECT_EQ(schedule.coverage_at.size(), slow_at.size());
    EXPECT_LT(schedule.fast().steps, all.fast().steps);
    if (form == PolicyForm::kVerified) continue;
    EXPECT_EQ(schedule.reason_at.size(), slow_at.size());
    EXPECT_EQ(schedule.fast().steps, count - 1 - std::ssize(slow_at));
    EXPECT_GT(cut.sweeps, schedule.slow().steps);  // the sweeps were made
  }
}

// The less a view holds, the less of a row's attention it covers.
TEST_F(SfiTest, CoverageIsThatOfTheViewBefore) {
  const auto coverage = [&](const std::string& settings, int64_t budget,
                            PolicyForm form = PolicyForm::kPlain,
                            int chunk = 1) {
    const PolicyParams params = Sfi(form, settings, budget, chunk);
    const Report report =
        GenerateDrafted(*SessionFor(params), DraftedParams(0.7f, 60), params);
    EXPECT_TRUE(report.status.ok()) << report.status;
    return report.rounds.schedule->coverage_at;
  };
  double last = 1;
  for (const int64_t budget : {200, 100, 24, 3}) {
    const auto shares = coverage("trigger=fixed,interval=10,gap=1", budget);
    ASSERT_EQ(shares.size(), 5u);
    double sum = 0;
    for (const std::optional<double>& share : shares) {
      ASSERT_TRUE(share.has_value());
      EXPECT_GT(*share, 0);
      EXPECT_LT(*share, 1);
      sum += *share / 5;
    }
    EXPECT_LT(sum, last) << budget;
    last = sum;
  }
  const auto of_sweeps = coverage("", 40, PolicyForm::kVerified);
  EXPECT_GT(of_sweeps.size(), 1u);
  for (const std::optional<double>& share : of_sweeps) {
    ASSERT_TRUE(share.has_value());
    EXPECT_GT(*share, 0);
    EXPECT_LE(*share, 1);
  }
  EXPECT_EQ(coverage("trigger=fixed,interval=10,gap=1", 40, PolicyForm::kPlain,
                     /*chunk=*/8),
            std::vector<std::optional<double>>(5));
}

class SfiChoiceTest : public SfiTest {
 protected:
  // The positions that each layer and head selects after sweeps, each with one
  // row that holds and so many drafted rows that do not.
  std::vector<Ids> ChosenAfter(const char* settings,
                               const std::vector<int64_t>& drafted) const {
    Session::Options options;
    options.retrieval =
        Sfi(PolicyForm::kVerified, settings, 40).RetrievalView();
    const Ids more = RepeatedText(60, 2);
    const auto session = Prefilled(*model_, *prompt_, options);
    size_t length = prompt_->size();
    for (const int64_t after : drafted) {
      Ids rows(more.begin() + static_cast<std::ptrdiff_t>(length % 7),
               more.begin() + static_cast<std::ptrdiff_t>(length % 7) + 1);
      rows.resize(static_cast<size_t>(1 + after), 3);
      EXPECT_TRUE(session->Append(rows.data(), rows.size()).ok());
      EXPECT_TRUE(session->Sweep(Phase::kVerify).ok());
      EXPECT_TRUE(session->Keep(++length).ok());
    }
    std::vector<Ids> all;
    for (int layer = 0; layer < model_->config.layers; ++layer) {
      for (int head = 0; head < model_->config.kv_heads; ++head) {
        const auto places =
            session->draft_view().first().kv().Chosen(layer, head);
        Ids& one = all.emplace_back(places.begin(), places.end());
        std::sort(one.begin(), one.end());
      }
    }
    return all;
  }
};

// The selection does not depend on drafted rows that did not hold, except that
// `drafted` counts the last sweep's.
TEST_F(SfiChoiceTest, RowsThatDidNotHoldLeaveNoTrace) {
  for (const char* settings :
       {"queries=64", "queries=2,drafted=63,decay=0.9"}) {
    const auto none = ChosenAfter(settings, {0, 0, 4});
    EXPECT_EQ(ChosenAfter(settings, {40, 40, 4}), none) << settings;
    EXPECT_EQ(ChosenAfter(settings, {62, 62, 4}), none) << settings;
  }
  EXPECT_EQ(ChosenAfter("queries=64", {0, 0, 40}),
            ChosenAfter("queries=64", {0, 0, 4}));
}

TEST_F(SfiChoiceTest, AsManyDraftedRowsChooseAsAreAskedFor) {
  const auto with = [&](const char* settings, int64_t drafted) {
    return ChosenAfter(settings, {0, drafted});
  };
  for (const auto& [settings, rows] :
       {std::pair("drafted=1", 1), {"drafted=20", 20}}) {
    EXPECT_EQ(with(settings, 40), with(settings, rows)) << settings;
    EXPECT_NE(with(settings, rows), with(settings, rows - 1)) << settings;
  }
  EXPECT_NE(with("drafted=63", 40), with("drafted=63", 20));
}

TEST_F(SfiChoiceTest, AsManyRowsOfThePromptChooseAsAreAskedFor) {
  EXPECT_NE(ChosenAfter("evidence=1", {}), ChosenAfter("evidence=16", {}));
  EXPECT_EQ(ChosenAfter("evidence=16", {}), ChosenAfter("", {}));
  EXPECT_EQ(ChosenAfter("queries=9", {}), ChosenAfter("", {}));
}

TEST_F(SfiTest, VerifiedTextIsThatOfNoDrafter) {
  std::vector<DraftLevel> sums(2);
  constexpr int kChunks[] = {1, 8, 2, 32, 64};
  size_t n = 0;
  for (const float temperature : {0.0f, 0.6f, 1.0f}) {
    GenerateParams params = DraftedParams(temperature, 80);
    if (temperature == 0.6f) params.distribution.dry = StrictDry();
    const Ids expected = PlainText(*model_, *prompt_, params);
    for (const char* settings :
         {"", "exclusive=0,nms=0,prior=0", "evidence=1,queries=8,fire=start",
          "decay=0.9", "beside=9", "decay=0.9,drafted=63"}) {
      for (const int64_t budget : {3, 24, 130, 4000}) {
        for (const Proposer proposer : {Proposer::kNone, Proposer::kNgram}) {
          const int chunk = kChunks[n++ % 5];
          PolicyParams choice =
              Sfi(PolicyForm::kVerified, settings, budget, chunk);
          choice.proposer = proposer;
          const auto session = SessionFor(choice);
          const Report report = GenerateDrafted(*session, params, choice);
          ASSERT_EQ(report.tokens, expected)
              << settings << budget << ", chunk " << chunk;
          for (const DraftLevel& level : report.rounds.levels) {
            DraftLevel& sum = sums[std::string(level.drafter) == "retrieval"];
            sum.drafted += level.drafted;
            sum.accepted += level.accepted;
          }
          ExpectNoTrace(*session, *model_);
        }
      }
    }
  }
  for (const DraftLevel& level : sums) {
    EXPECT_GT(level.accepted, 0);
    EXPECT_LT(level.accepted, level.drafted);
  }
}

class SfiChunkTest : public SfiTest, public testing::WithParamInterface<int> {
 protected:
  // A selection of chunks of 16 stands for itself; the others go on with the
  // one before.
  static std::string Decay() { return GetParam() == 16 ? "" : ",decay=0.9"; }
};
INSTANTIATE_TEST_SUITE_P(Chunks, SfiChunkTest, testing::Values(1, 16, 32));

// Plain texts follow from the tokens alone: whatever the session did before,
// whatever their length, cached or not, on one thread or two. A question
// afterwards gives the text of a fresh run.
TEST_P(SfiChunkTest, PlainTextsFollowFromTheTokens) {
  const PolicyParams choice =
      Sfi(PolicyForm::kPlain,
          "trigger=fixed,interval=6,gap=1,evidence=5,queries=4" + Decay(), 40,
          GetParam());
  const auto params = [](int64_t length) {
    return DraftedParams(0.9f, length);
  };
  const auto session = SessionFor(choice);
  const Ids all = DraftedText(*session, params(40), choice);
  for (int64_t length = 1; length <= 40; ++length) {
    session->Truncate(prompt_->size());
    ASSERT_EQ(DraftedText(*session, params(length), choice),
              Ids(all.begin(), all.begin() + length));
  }
  Model::Options one = model_->options;
  one.machine.threads = 1;
  const auto alone = OpenModel(one);
  EXPECT_EQ(
      DraftedText(*Prefilled(*alone, *prompt_, choice.OptionsFor(*alone, {})),
                  params(40), choice),
      all);

  Ids text = *prompt_;
  text.insert(text.end(), all.begin(), all.end());
  // The first question is shorter than the rows that select.
  for (const int64_t asked : {3, 80}) {
    const Ids question(prompt_->begin() + 3, prompt_->begin() + 3 + asked);
    Ids whole = text;
    whole.insert(whole.end(), question.begin(), question.end());
    session->Truncate(prompt_->size());
    ASSERT_EQ(DraftedText(*session, params(40), choice), all);
    ASSERT_TRUE(
        Prefill(*session, question.data(), question.size(), kNoProgress).ok());
    EXPECT_EQ(
        DraftedText(*session, params(30), choice),
        DraftedText(*Prefilled(*model_, whole, choice.OptionsFor(*model_, {})),
                    params(30), choice))
        << asked;
  }
  const absl::StatusOr<std::unique_ptr<Session>> fork = session->Fork();
  ASSERT_TRUE(fork.ok());
  (*fork)->Truncate(prompt_->size());
  EXPECT_EQ(DraftedText(**fork, params(40), choice), all);
  ExpectNoTrace(**fork, *model_);
}

TEST_P(SfiChunkTest, BehindALinkFastStepsBringNothingUp) {
  const auto deep =
      OpenModel({.path = Deepened("llama_chat"), .machine = {.threads = 2}});
  const GenerateParams params = DraftedParams(0.8f, 150);
  const Ids prompt = RepeatedText(60, 12);
  for (const PolicyForm form : {PolicyForm::kPlain, PolicyForm::kVerified}) {
    const PolicyParams choice =
        Sfi(form, "trigger=fixed,interval=20,gap=1", 64, GetParam());
    const Session::Options options = choice.OptionsFor(*deep, {.context = 900});
    const Ids expected =
        DraftedText(*Prefilled(*deep, prompt, options), params, choice);
    for (const Budget budget :
         {Budget::kLeast, Budget::kMiddle, Budget::kAll}) {
      const Tiered tiered = MakeTiered(*deep, options, budget);
      Session& session = *tiered.session;
      ASSERT_TRUE(
          Prefill(session, prompt.data(), prompt.size(), kNoProgress).ok());
      ASSERT_EQ(DraftedText(session, params, choice), expected);
      const LinkLedger link = session.traffic().link;
      for (const Phase phase : {Phase::kFast, Phase::kDraft, Phase::kRefresh}) {
        EXPECT_EQ(link[static_cast<size_t>(phase)].h2d_bytes, 0u);
      }
      ExpectNoTrace(session, *deep);
    }
  }
}

TEST_P(SfiChunkTest, CancelledAnywhereItIsAsItWas) {
  const GenerateParams params = DraftedParams(0.9f, 30);
  for (const PolicyForm form : {PolicyForm::kPlain, PolicyForm::kVerified}) {
    const PolicyParams choice =
        Sfi(form, "trigger=fixed,interval=4,gap=1" + Decay(), 40, GetParam());
    const auto session = SessionFor(choice);
    const Ids expected = StoppedAnywhere(*session, params, choice);
    session->Truncate(prompt_->size());
    EXPECT_EQ(DraftedText(*session, params, choice), expected);
  }
}

// A text shorter than the view is read whole, and when it outgrows the view it
// goes on over it.
TEST_F(SfiTest, ShortTextsAreReadWhole) {
  const PolicyParams choice =
      Sfi(PolicyForm::kPlain, "trigger=fixed,interval=50,gap=1");
  for (const size_t length : {1, 9, 58, 60, 61, 129}) {
    const Ids prompt(prompt_->begin(),
                     prompt_->begin() + static_cast<std::ptrdiff_t>(length));
    const auto session =
        Prefilled(*model_, prompt, choice.OptionsFor(*model_, {}));
    const Report report =
        GenerateDrafted(*session, DraftedParams(0.7f, 20), choice);
    ASSERT_TRUE(report.status.ok()) << report.status;
    const int64_t fits =
        std::clamp<int64_t>(60 - static_cast<int64_t>(length), 0, 19);
    EXPECT_EQ(report.rounds.schedule->slow().steps, fits) << length;
    EXPECT_EQ(report.rounds.schedule->fast().steps, 19 - fits) << length;
  }
}

TEST_F(SfiTest, SettingsAreChecked) {
  SfiParams params;
  ASSERT_TRUE(params.Set("interval=9").ok());
  EXPECT_EQ(params.gap, 9);  // 16, but never more than the interval
  ASSERT_TRUE(SfiParams().Set("interval=64,gap=64").ok());
  for (const auto& [given, drafted] :
       {std::pair("drafted=0", 0), {"drafted=63", 63}}) {
    SfiParams of;
    ASSERT_TRUE(of.Set(given).ok());
    EXPECT_EQ(of.View(/*plain=*/false).selection->drafted, drafted);
    EXPECT_EQ(of.View(/*plain=*/true).selection->drafted, 0);
  }
  for (const char* given : {"beside=8,nms=0", "beside=8"}) {
    SfiParams of;
    ASSERT_TRUE(of.Set(given).ok());
    EXPECT_EQ(of.choice.beside, 8);
    EXPECT_EQ(of.choice.suppression, 0);
  }
  for (const char* wrong :
       {"interval=0", "interval=8,gap=9", "gap=0", "trigger=often", "fire=mid",
        "spacing=wide", "queries=0", "evidence=0", "evidence=65", "prior=2",
        "decay=1.1", "nms=-1", "exclusive=x", "most=3", "beside=-1",
        "beside=129", "beside=8,nms=0.5", "drafted=64"}) {
    EXPECT_EQ(CodeOf(SfiParams().Set(wrong)), "invalid_argument") << wrong;
  }
  const auto ids_only = OpenModel({.path = CheckpointPath("llama_gqa.gguf")});
  EXPECT_FALSE(CheckPolicy(*ids_only, Sfi(PolicyForm::kPlain, "")).ok());
  EXPECT_TRUE(
      CheckPolicy(*ids_only, Sfi(PolicyForm::kPlain, "trigger=fixed")).ok());
  // Only a selection has chunks of less than 8 positions.
  for (const int chunk : {1, 2, 4}) {
    EXPECT_TRUE(
        CheckRetrievalSize({.chunk = chunk, .selection = Selection()}).ok());
    EXPECT_EQ(CodeOf(CheckRetrievalSize({.chunk = chunk})), "invalid_argument");
  }
  for (const int chunk : {-1, 0, 3, 256}) {
    EXPECT_EQ(
        CodeOf(CheckRetrievalSize({.chunk = chunk, .selection = Selection()})),
        "invalid_argument");
  }
}

}  // namespace
}  // namespace tiercel::sfi_test

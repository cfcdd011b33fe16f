// SPEED end to end: the positions and layers that each row of its plain form
// reads, the KV that exists, and that the verified form gives the same text as
// no drafter.

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/status/error.h"
#include "runtime/generate/generate.h"
#include "runtime/policies/policy.h"
#include "runtime/policies/speed/speed_params.h"
#include "runtime/session/sequence_extent.h"
#include "tests/drafting.h"
#include "tests/golden.h"
#include "tests/tiers.h"

namespace tiercel::speed_test {
namespace {

using ::testing::HasSubstr;

PolicyParams Speed(PolicyForm form, const std::string& settings) {
  PolicyParams params = {.policy = PolicyNamed("speed"),
                         .form = form,
                         .verify = VerifyMode::kCoupled,
                         .view = kSmallView};
  EXPECT_TRUE(params.Own<SpeedParams>().Set(settings).ok()) << settings;
  return params;
}

// The view of rows of a text whose prompt is `prompt`, at full depth.
View WholeRows(const Model& model, const PolicyParams& params,
               const Ids& prompt) {
  SequenceExtent extent(*params.OptionsFor(model, {}).extent, /*header=*/{},
                        /*begin=*/0);
  EXPECT_TRUE(extent.BeginAnswer(prompt, 0).ok());
  View view = extent.Reads();
  view.shallow = false;
  return view;
}

// The logits after the prompt and after each of `ids`, which follow it.
std::vector<float> Expected(const Model& model, const Ids& prompt,
                            const Ids& ids, const View& view) {
  const auto session = MakeSession(model);
  const auto vocab = static_cast<size_t>(model.config.vocab);
  std::vector<float> all((1 + ids.size()) * vocab);
  EXPECT_TRUE(session->Append(prompt.data(), prompt.size()).ok());
  const int64_t rows = std::ssize(prompt);
  EXPECT_TRUE(session->Forward(rows, Phase::kPrefill, kNoProgress, view).ok());
  const auto logits = session->runner().RowLogits(rows - 1, 1);
  EXPECT_TRUE(logits.ok());
  std::copy_n(*logits, vocab, all.data());
  for (size_t i = 0; i < ids.size(); ++i) {
    EXPECT_TRUE(session->Append(&ids[i], 1).ok());
    EXPECT_TRUE(session->Forward(1, Phase::kDraft, kNoProgress, view).ok());
    RowLogits(*session, 1, all.data() + (i + 1) * vocab);
  }
  return all;
}

// The logits of Expected, made by the policy in a session that holds the
// prompt.
std::vector<float> Scored(Session& session, const PolicyParams& params,
                          const Ids& ids) {
  EXPECT_TRUE(session.CatchUp(Phase::kPrefill).ok());
  std::vector<float> all = NextLogits(session);
  const std::vector<float> after = ScoredSteps(session, params, ids);
  all.insert(all.end(), after.begin(), after.end());
  return all;
}

class SpeedTest : public RepeatedTextTest<5> {
 protected:
  static void SetUpTestSuite() {
    RepeatedTextTest<5>::SetUpTestSuite();
    const Model::Options options = {.path = Deepened("llama_chat"),
                                    .machine = {.threads = 2}};
    deep_ = OpenModel(options).release();
    reference_ = OpenReference(options).release();
  }
  static void TearDownTestSuite() {
    delete reference_;
    delete deep_;
    RepeatedTextTest<5>::TearDownTestSuite();
  }
  static Ids Answer(size_t count = 40) {
    return {prompt_->begin() + 7,
            prompt_->begin() + 7 + static_cast<std::ptrdiff_t>(count)};
  }
  static Ids Question() {
    return {prompt_->begin() + 3, prompt_->begin() + 90};
  }

  static inline Model* deep_ = nullptr;       // six layers
  static inline Model* reference_ = nullptr;  // the same, on the CPU
};

// The logits are equal bit for bit: no row reads the KV that is not computed.
TEST_F(SpeedTest, RowsAreThoseOfWholePromptsUnderTheSameMask) {
  const Ids ids = Answer();
  for (const char* settings :
       {"", "cut=1", "cut=5", "anchor=0", "cut=2,anchor=5,tail=3",
        "cut=3,tail=70", "anchor=299", "cut=4,tail=299"}) {
    const PolicyParams params = Speed(PolicyForm::kPlain, settings);
    const std::vector<float> expected = Expected(
        *reference_, *prompt_, ids, WholeRows(*deep_, params, *prompt_));
    const auto session =
        Prefilled(*deep_, *prompt_, params.OptionsFor(*deep_, {}));
    ASSERT_EQ(Scored(*session, params, ids), expected) << settings;
  }
}

TEST_F(SpeedTest, EverythingDeepIsTheModel) {
  const Ids ids = Answer();
  const std::vector<float> expected =
      Expected(*reference_, *prompt_, ids, View::Full());
  for (const char* settings : {"cut=6", "tail=300", "cut=1,anchor=300"}) {
    const PolicyParams params = Speed(PolicyForm::kPlain, settings);
    const auto session =
        Prefilled(*deep_, *prompt_, params.OptionsFor(*deep_, {}));
    ASSERT_EQ(Scored(*session, params, ids), expected) << settings;
  }
  const PolicyParams params = Speed(PolicyForm::kPlain, "cut=5");
  EXPECT_NE(Scored(*Prefilled(*deep_, *prompt_, params.OptionsFor(*deep_, {})),
                   params, ids),
            expected);
}

// The report and the plan give the same numbers for either tier: K n + (L - K)
// A + L m.
TEST_F(SpeedTest, NothingExistsOfThePromptAboveTheCut) {
  const Ids prompt = RepeatedText(60, 20);  // nine pages and a half
  const PolicyParams params = Speed(PolicyForm::kPlain, "cut=4,tail=2");
  const Session::Options options = params.OptionsFor(*deep_, {.context = 1500});
  const GenerateParams greedy = DraftedParams(0, 30);
  const Tiered tiered = MakeTiered(*deep_, options, Budget::kLeast);
  ASSERT_EQ(tiered.session->kv().plan().shape.resident_pages, 0);
  const auto in_place = Prefilled(*deep_, prompt, options);
  ASSERT_TRUE(
      Prefill(*tiered.session, prompt.data(), prompt.size(), kNoProgress).ok());
  const int64_t page = in_place->kv().plan().shape.layout.PageBytes();
  // Below the cut all pages exist in four layers; above it the first page and
  // the prompt's last exist in two more. On a GPU no KV in place is the host's.
  EXPECT_EQ(in_place->kv().memory().host,
            TestedDevice() == DeviceKind::kCpu ? page * (10 * 4 + 2 * 2) : 0);
  EXPECT_EQ(tiered.session->kv().memory().host, page * (9 * 4 + 1 * 2));
  for (Session* session : {in_place.get(), tiered.session.get()}) {
    const Report report = GenerateDrafted(*session, greedy, params);
    ASSERT_TRUE(report.status.ok()) << report.status;
    // The last token's row has not been computed.
    const int64_t m = 2 + 30 - 1;
    const int64_t n = std::ssize(prompt) - 2;
    EXPECT_EQ(report.kv_entries, 4 * n + 2 * 1 + 6 * m);
    EXPECT_EQ(report.rounds.fast.seconds > 0, true);
    EXPECT_EQ(report.rounds.verify.seconds, 0);
  }
  const nlohmann::json ledger =
      NewReport(*tiered.session, {.traffic = tiered.session->traffic()})
          .ToJson()["ledger"];
  EXPECT_EQ(ledger["formula"]["closed_pages"], 9 * 4 + 2);
  EXPECT_EQ(ledger["d2h_bytes"], page * (9 * 4 + 2));
  // 29 steps stage nine pages in each layer below the cut and the first above;
  // the next step's first two layers have been staged too.
  EXPECT_EQ(ledger["formula"]["swept_pages"], 29 * (9 * 4 + 1 * 2) + 2 * 9);
  EXPECT_EQ(ledger["h2d_bytes"], page * (29 * (9 * 4 + 1 * 2) + 2 * 9));
  // Above the cut it plans ten of twelve pages: the first, and those of an
  // answer of 1,024 positions.
  EXPECT_EQ(tiered.session->kv().plan().host_kv, page * (12 * 4 + 10 * 2));
  Session::Options longer = options;
  longer.context = 100 * kPageTokens;
  longer.extent->tail = 0;
  const Tiered large = MakeTiered(*deep_, longer, Budget::kLeast);
  EXPECT_EQ(large.session->kv().plan().host_kv,
            page * (100 * 4 + (1 + 1024 / kPageTokens + 1) * 2));
}

// Each row of an answer is computed once, also if the answer fills pages.
TEST_F(SpeedTest, AStepComputesOneRow) {
  const Ids prompt = RepeatedText(60, 20);
  const PolicyParams params = Speed(PolicyForm::kPlain, "cut=4,tail=2");
  const Session::Options options = params.OptionsFor(*deep_, {.context = 1500});
  const Tiered tiered = MakeTiered(*deep_, options, Budget::kLeast);
  Session& session = *tiered.session;
  ASSERT_TRUE(Prefill(session, prompt.data(), prompt.size(), kNoProgress).ok());
  const Report report = GenerateDrafted(session, DraftedParams(0, 120), params);
  ASSERT_TRUE(report.status.ok()) << report.status;
  // The first page exists in six layers, and so do those with the answer, of
  // which the first, the tenth of the text, is full at position 1,280.
  int64_t swept = 0;
  int64_t staged = 9;
  int64_t length = std::ssize(prompt);
  for (int step = 0; step < 119; ++step) {
    swept += 4 * staged + 2 * (staged > 9 ? 2 : 1);
    staged = length++ / kPageTokens;
  }
  swept += 2 * staged;
  const nlohmann::json formula =
      NewReport(session, {.traffic = session.traffic()})
          .ToJson()["ledger"]["formula"];
  EXPECT_EQ(formula["swept_pages"], swept);
  EXPECT_EQ(formula["reopened_pages"], 0);
  EXPECT_EQ(formula["closed_pages"], 9 * 4 + 2 + 6);
}

TEST_F(SpeedTest, TextIsTheSameInEveryTier) {
  const Ids prompt = RepeatedText(60, 12);
  for (const char* settings : {"cut=3", "cut=5,tail=200,anchor=140"}) {
    const PolicyParams params = Speed(PolicyForm::kPlain, settings);
    const Session::Options options =
        params.OptionsFor(*deep_, {.context = 1100});
    const GenerateParams drawn = DraftedParams(0.8f, 150);
    const Ids expected =
        DraftedText(*Prefilled(*reference_, prompt, options), drawn, params);
    for (const Budget budget :
         {Budget::kLeast, Budget::kMiddle, Budget::kAll}) {
      for (const int threads : {1, 2}) {
        const Tiered tiered =
            MakeTiered(*deep_, options, budget, kFast, threads);
        ASSERT_TRUE(
            Prefill(*tiered.session, prompt.data(), prompt.size(), kNoProgress)
                .ok());
        ASSERT_EQ(DraftedText(*tiered.session, drawn, params), expected)
            << settings;
      }
    }
  }
}

// A second turn that drops earlier answers equals a first turn of the whole
// text. One that keeps them reads them as they were computed.
TEST_F(SpeedTest, AnEarlierAnswerIsPromptUnlessItIsKept) {
  const GenerateParams drawn = DraftedParams(0.8f, 40);
  const Ids question = Question();
  for (const char* settings : {"cut=4,past=drop", "cut=4,past=keep"}) {
    const PolicyParams params = Speed(PolicyForm::kPlain, settings);
    const Session::Options options =
        params.OptionsFor(*deep_, {.context = 1100});
    const Tiered tiered = MakeTiered(*deep_, options, Budget::kLeast);
    Ids text = *prompt_;
    for (Session* session :
         {MakeSession(*deep_, options).release(), tiered.session.get()}) {
      const std::unique_ptr<Session> owned(
          session == tiered.session.get() ? nullptr : session);
      text = *prompt_;
      ASSERT_TRUE(
          Prefill(*session, text.data(), text.size(), kNoProgress).ok());
      const Ids first = DraftedText(*session, drawn, params);
      text.insert(text.end(), first.begin(), first.end());
      text.insert(text.end(), question.begin(), question.end());
      const auto prefill =
          Prefill(*session, question.data(), question.size(), kNoProgress);
      ASSERT_TRUE(prefill.ok());
      EXPECT_EQ(prefill->computed_tokens(), std::ssize(question) + 1);
      const Ids second = DraftedText(*session, drawn, params);
      const auto fresh = Prefilled(*reference_, text, options);
      const bool dropped = settings[11] == 'd';
      EXPECT_EQ(second == DraftedText(*fresh, drawn, params), dropped)
          << settings;
      EXPECT_EQ(KvEntries(*session) - KvEntries(*fresh), dropped ? 0 : 2 * 40)
          << settings;
    }
    if (settings[11] == 'd') continue;
    // Above the cut the second answer reads the anchor, the first answer but
    // for its last token, and itself.
    View view = WholeRows(*deep_, params, text);
    view.pinned = {{299, 339}, {std::ssize(text) - 1, kAllPositions}};
    // The first answer itself was computed over its own prompt alone.
    const auto session = MakeSession(*reference_);
    View before = WholeRows(*deep_, params, *prompt_);
    ASSERT_TRUE(session->Append(text.data(), text.size()).ok());
    ASSERT_TRUE(
        session->Forward(339, Phase::kPrefill, kNoProgress, before).ok());
    ASSERT_TRUE(session
                    ->Forward(session->sequence().pending(), Phase::kPrefill,
                              kNoProgress, view)
                    .ok());
    std::vector<float> expected(static_cast<size_t>(deep_->config.vocab));
    const auto logits = session->runner().RowLogits(std::ssize(text) - 340, 1);
    ASSERT_TRUE(logits.ok());
    std::copy_n(*logits, expected.size(), expected.data());
    ASSERT_TRUE(tiered.session != nullptr);
    tiered.session->Truncate(text.size());
    ASSERT_TRUE(tiered.session->CatchUp(Phase::kVerify).ok());
    EXPECT_EQ(NextLogits(*tiered.session), expected);
  }
}

// The hidden states of a long prompt move in tiles, whose blocks above the cut
// differ from those below it.
TEST_F(SpeedTest, LongPromptsMayBeInTiles) {
  const Ids prompt = RandomIds(1900, deep_->config.vocab);
  for (const char* settings : {"cut=4,tail=700", "cut=2,anchor=5,tail=3"}) {
    const PolicyParams params = Speed(PolicyForm::kPlain, settings);
    const Session::Options options =
        params.OptionsFor(*deep_, {.context = 2000});
    const auto plain = MakeSession(*reference_, options);
    const Tiered tiered = MakeTiered(*deep_, options, Budget::kLeast);
    ASSERT_LT(tiered.session->kv().plan().state_rows, std::ssize(prompt));
    std::vector<std::vector<float>> logits;
    for (Session* session : {plain.get(), tiered.session.get()}) {
      ASSERT_TRUE(
          Prefill(*session, prompt.data(), prompt.size(), kNoProgress).ok());
      logits.push_back(NextLogits(*session));
      const std::vector<float> after = ScoredSteps(*session, params, Answer());
      logits.back().insert(logits.back().end(), after.begin(), after.end());
    }
    EXPECT_EQ(logits[1], logits[0]) << settings;
  }
}

// The text does not depend on how the prompt came to be known, nor on how long
// the text is.
TEST_F(SpeedTest, PlainTextsFollowFromTheTokens) {
  const PolicyParams params = Speed(PolicyForm::kPlain, "cut=4");
  const Session::Options options = params.OptionsFor(*deep_, {});
  const auto drawn = [](int64_t length) { return DraftedParams(0.9f, length); };
  const auto session = Prefilled(*deep_, *prompt_, options);
  const Ids all = DraftedText(*session, drawn(40), params);
  for (int64_t length = 1; length <= 40; ++length) {
    session->Truncate(prompt_->size());
    ASSERT_EQ(DraftedText(*session, drawn(length), params),
              Ids(all.begin(), all.begin() + length));
  }
  // An answer goes on as if it had not been stopped, in a fork too.
  session->Truncate(prompt_->size());
  const Ids first = DraftedText(*session, drawn(15), params);
  const absl::StatusOr<std::unique_ptr<Session>> fork = session->Fork();
  ASSERT_TRUE(fork.ok());
  for (Session* const goes_on : {session.get(), fork->get()}) {
    Ids text = first;
    const Ids second = DraftedText(*goes_on, drawn(25), params);
    text.insert(text.end(), second.begin(), second.end());
    EXPECT_EQ(text, all);
  }
  // The prompt ends within a former one, or within its answer.
  for (const size_t length : {size_t{200}, prompt_->size() + 9}) {
    Ids text = *prompt_;
    text.insert(text.end(), all.begin(), all.end());
    text.resize(length);
    session->Truncate(prompt_->size());
    ASSERT_EQ(DraftedText(*session, drawn(40), params), all);
    session->Truncate(length);
    ASSERT_TRUE(Prefill(*session, nullptr, 0, kNoProgress).ok());
    EXPECT_EQ(
        DraftedText(*session, drawn(20), params),
        DraftedText(*Prefilled(*reference_, text, options), drawn(20), params))
        << length;
    session->Truncate(std::min(length, prompt_->size()));
    const Ids rest(prompt_->begin() + static_cast<std::ptrdiff_t>(
                                          session->sequence().tokens().size()),
                   prompt_->end());
    ASSERT_TRUE(Prefill(*session, rest.data(), rest.size(), kNoProgress).ok());
  }
}

// A stopped prompt leaves the answer as it was, and the answer goes on.
TEST_F(SpeedTest, AnAnswerGoesOnAfterAPromptThatWasStopped) {
  const PolicyParams params = Speed(PolicyForm::kPlain, "cut=4");
  const auto drawn = [](int64_t length) { return DraftedParams(0.9f, length); };
  const auto whole =
      Prefilled(*reference_, *prompt_, params.OptionsFor(*reference_, {}));
  const Ids all = DraftedText(*whole, drawn(40), params);
  const auto session =
      Prefilled(*deep_, *prompt_, params.OptionsFor(*deep_, {}));
  Ids text = DraftedText(*session, drawn(15), params);
  const Ids question = Question();
  ASSERT_FALSE(Prefill(*session, question.data(), question.size(),
                       [](uint64_t done, uint64_t) { return done == 0; })
                   .ok());
  const Ids second = DraftedText(*session, drawn(25), params);
  text.insert(text.end(), second.begin(), second.end());
  EXPECT_EQ(text, all);
}

TEST_F(SpeedTest, AStoppedPromptGoesOn) {
  const Ids prompt = RepeatedText(60, 12);
  const PolicyParams params =
      Speed(PolicyForm::kPlain, "cut=3,tail=70,anchor=130");
  const Session::Options options = params.OptionsFor(*deep_, {.context = 1100});
  const auto whole = Prefilled(*reference_, prompt, options);
  uint64_t asks = 0;
  uint64_t last = 0;
  const uint64_t expected_total = 720 * 3 + (70 + 130) * 3;
  const Tiered counted = MakeTiered(*deep_, options, Budget::kLeast);
  ASSERT_TRUE(Prefill(*counted.session, prompt.data(), prompt.size(),
                      [&](uint64_t done, uint64_t total) {
                        EXPECT_EQ(total, expected_total);
                        EXPECT_GE(done, last);
                        last = done;
                        ++asks;
                        return true;
                      })
                  .ok());
  EXPECT_EQ(last, expected_total);
  for (uint64_t stop = 1; stop < asks; ++stop) {
    const Tiered tiered = MakeTiered(*deep_, options, Budget::kLeast);
    uint64_t count = 0;
    uint64_t reached = 0;
    EXPECT_EQ(ClassOf(Prefill(*tiered.session, prompt.data(), prompt.size(),
                              [&](uint64_t done, uint64_t /*total*/) {
                                reached = done;
                                return ++count < stop;
                              })
                          .status()),
              ErrorClass::kCancelled);
    bool first = true;
    ASSERT_TRUE(Prefill(*tiered.session, prompt.data(), prompt.size(),
                        [&](uint64_t done, uint64_t /*total*/) {
                          EXPECT_TRUE(!std::exchange(first, false) ||
                                      done == reached);
                          return true;
                        })
                    .ok());
    ASSERT_EQ(NextLogits(*tiered.session), NextLogits(*whole)) << stop;
  }
}

TEST_F(SpeedTest, VerifiedTextIsThatOfNoDrafter) {
  std::vector<DraftLevel> sums(2);
  for (const float temperature : {0.0f, 0.6f, 1.0f}) {
    GenerateParams drawn = DraftedParams(temperature, 80);
    if (temperature == 0.6f) drawn.distribution.dry = StrictDry();
    const Ids expected = PlainText(*deep_, *prompt_, drawn);
    for (const char* settings : {"", "cut=5", "cut=1", "cut=5,anchor=20"}) {
      for (const Proposer proposer : {Proposer::kNone, Proposer::kNgram}) {
        PolicyParams params = Speed(PolicyForm::kVerified, settings);
        params.proposer = proposer;
        params.gamma2 = DraftLength::Fixed(6);
        const Session::Options options =
            params.OptionsFor(*deep_, {.context = 600});
        for (const bool behind_a_link : {false, true}) {
          const Tiered tiered = MakeTiered(*deep_, options, Budget::kLeast);
          const auto in_place = MakeSession(*deep_, options);
          Session& session = behind_a_link ? *tiered.session : *in_place;
          ASSERT_TRUE(
              Prefill(session, prompt_->data(), prompt_->size(), kNoProgress)
                  .ok());
          const Report report = GenerateDrafted(session, drawn, params);
          ASSERT_EQ(report.tokens, expected) << settings << temperature;
          for (const DraftLevel& level : report.rounds.levels) {
            const bool middle = std::string(level.drafter) == "retrieval";
            sums[middle ? 0 : 1].drafted += level.drafted;
            sums[middle ? 0 : 1].accepted += level.accepted;
          }
          EXPECT_EQ(KvEntries(session), 6 * session.sequence().kv_length());
          ExpectNoTrace(session, *deep_);
        }
      }
    }
  }
  for (const DraftLevel& level : sums) {
    EXPECT_GT(level.accepted, 0);
    EXPECT_LT(level.accepted, level.drafted);
  }
}

// With a view as large as the text a draft's row reads the positions of the
// mask in the KV that the model wrote: equal in exact arithmetic, but for the
// order of folding.
TEST_F(SpeedTest, ADraftOverTheWholeTextReadsTheMask) {
  const auto exact = OpenModel({.path = Deepened("llama_chat"),
                                .machine = {.threads = 2},
                                .compute = Compute::kF32});
  const Ids prompt = RepeatedText(60, 12);
  const Ids ids = RepeatedText(41, 6);  // an answer beyond window and growth
  for (const char* settings : {"cut=4", "cut=3,anchor=17,tail=37"}) {
    PolicyParams params = Speed(PolicyForm::kVerified, settings);
    params.view.budget = 1100;
    Session::Options options = params.OptionsFor(*deep_, {.context = 1100});
    options.type_k = options.type_v = DType::kF32;
    const View mask = WholeRows(*exact, params, prompt);
    Session::Options whole = options;
    whole.retrieval.reset();
    whole.extent.reset();
    const auto masked = Prefilled(*exact, prompt, whole);
    options.retrieval->keeps_types = true;
    const auto session = Prefilled(*exact, prompt, options);
    const auto vocab = static_cast<size_t>(exact->config.vocab);
    float greatest = 0;
    std::vector<float> expected(vocab);
    for (const int32_t id : ids) {
      ASSERT_TRUE(session->draft_view().Forward(&id, 1, 6).ok());
      const auto drafted = session->runner().RowLogits(0, 1);
      ASSERT_TRUE(drafted.ok());
      ASSERT_TRUE(masked->Append(&id, 1).ok());
      ASSERT_TRUE(masked->Forward(1, Phase::kDraft, kNoProgress, mask).ok());
      RowLogits(*masked, 1, expected.data());
      for (size_t j = 0; j < vocab; ++j) {
        greatest = std::max(greatest, std::abs((*drafted)[j] - expected[j]));
      }
      masked->Truncate(masked->sequence().tokens().size() - 1);
      for (Session* const reads : {masked.get(), session.get()}) {
        ASSERT_TRUE(reads->Append(&id, 1).ok());
        ASSERT_TRUE(reads->Sweep(Phase::kVerify).ok());
        ASSERT_TRUE(reads->Keep(reads->sequence().tokens().size()).ok());
      }
      ASSERT_TRUE(session->draft_view().Refresh().ok());
    }
    EXPECT_LT(greatest, 1e-4f) << settings;
  }
}

TEST_F(SpeedTest, CancelledAnywhereItIsAsItWas) {
  const GenerateParams drawn = DraftedParams(0.9f, 30);
  for (const PolicyForm form : {PolicyForm::kPlain, PolicyForm::kVerified}) {
    const PolicyParams params = Speed(form, "cut=4");
    const auto session =
        Prefilled(*deep_, *prompt_, params.OptionsFor(*deep_, {}));
    const Ids expected = StoppedAnywhere(*session, drawn, params);
    session->Truncate(prompt_->size());
    EXPECT_EQ(DraftedText(*session, drawn, params), expected);
  }
}

TEST_F(SpeedTest, WhatCannotBeIsRefused) {
  const auto refusal = [&](const std::string& settings, PolicyForm form) {
    PolicyParams params = {.policy = PolicyNamed("speed"), .form = form};
    absl::Status status = params.Own<SpeedParams>().Set(settings);
    if (status.ok()) status = CheckPolicy(*deep_, params);
    EXPECT_EQ(ClassOf(status), ErrorClass::kUsage) << settings;
    return std::string(status.message());
  };
  for (const PolicyForm form : {PolicyForm::kPlain, PolicyForm::kVerified}) {
    for (const char* cut : {"0", "7", "-1", "1000", "10000000000"}) {
      EXPECT_EQ(refusal(absl::StrCat("cut=", cut), form),
                absl::StrCat("settings of speed: cut: got ", cut,
                             ", need 1 to the model's 6 layers"));
    }
    EXPECT_THAT(refusal("cut=few", form),
                HasSubstr("cut: got \"few\", need 1 to the model's layers"));
    EXPECT_THAT(refusal("tail=0", form), HasSubstr("tail: got \"0\""));
    EXPECT_THAT(refusal("tail=long", form), HasSubstr("tail: got \"long\""));
    EXPECT_THAT(refusal("anchor=-1", form), HasSubstr("anchor: got \"-1\""));
    EXPECT_THAT(refusal("past=some", form), HasSubstr("drop, keep"));
    EXPECT_THAT(refusal("interval=8", form), HasSubstr("interval"));
    EXPECT_THAT(refusal("cut=3,cut=4", form), HasSubstr("twice"));
  }
  // A view must hold the anchor; the plain form has no view.
  EXPECT_THAT(refusal("anchor=1025", PolicyForm::kVerified),
              HasSubstr("anchor: got 1025, need 0 to the budget's 1024"));
  for (const PolicyParams& fits :
       {Speed(PolicyForm::kVerified, "anchor=32"),  // kSmallView's budget
        Speed(PolicyForm::kPlain, "anchor=33"),
        Speed(PolicyForm::kBaseline, "anchor=33")}) {
    EXPECT_TRUE(CheckPolicy(*deep_, fits).ok());
  }
  // A tail longer than the prompt is refused when the prompt comes, and the
  // session is as it was.
  const PolicyParams params = Speed(PolicyForm::kPlain, "tail=301");
  const auto session = MakeSession(*deep_, params.OptionsFor(*deep_, {}));
  const auto prefill =
      Prefill(*session, prompt_->data(), prompt_->size(), kNoProgress);
  EXPECT_EQ(ClassOf(prefill.status()), ErrorClass::kUsage);
  EXPECT_THAT(std::string(prefill.status().message()),
              HasSubstr("tail: got 301, need 1 to the prompt's 300"));
  EXPECT_TRUE(session->sequence().tokens().empty());
  const auto score = Score(*session, prompt_->data(), 10, 1,
                           [](size_t, const float*) { return true; });
  EXPECT_EQ(ClassOf(score), ErrorClass::kUsage);
}

}  // namespace
}  // namespace tiercel::speed_test

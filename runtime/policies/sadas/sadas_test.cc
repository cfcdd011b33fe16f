// SADAS end to end: the positions that each row of its plain form reads, and
// that the verified form gives the same text as no drafter.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "lib/status/error.h"
#include "runtime/generate/generate.h"
#include "runtime/policies/policy.h"
#include "runtime/policies/sadas/sadas_params.h"
#include "tests/drafting.h"
#include "tests/golden.h"
#include "tests/tiers.h"

namespace tiercel::sadas_test {
namespace {

constexpr int64_t kWindow = 40;

PolicyParams Sadas(PolicyForm form, const std::string& settings,
                   int64_t window = kWindow) {
  PolicyParams params = {.policy = PolicyNamed("sadas"),
                         .form = form,
                         .verify = VerifyMode::kCoupled,
                         .view = kSmallView};
  params.Own<SadasParams>().window = window;
  EXPECT_TRUE(params.Own<SadasParams>().Set(settings).ok());
  return params;
}

class SadasTest : public RepeatedTextTest<5> {
 protected:
  static std::unique_ptr<Session> SessionFor(const PolicyParams& params) {
    return Prefilled(*model_, *prompt_, params.OptionsFor(*model_, {}));
  }

  // The logits where row i reads view(i), computed directly.
  template <typename ViewAt>
  static std::vector<float> Expected(const Ids& ids, ViewAt view,
                                     const View& prompt = View::Full()) {
    const auto session = MakeSession(*model_);
    EXPECT_TRUE(session->Append(prompt_->data(), prompt_->size()).ok());
    EXPECT_TRUE(session
                    ->Forward(std::ssize(*prompt_), Phase::kPrefill,
                              kNoProgress, prompt)
                    .ok());
    std::vector<float> all(ids.size() * Vocab());
    for (size_t i = 0; i < ids.size(); ++i) {
      EXPECT_TRUE(session->Append(&ids[i], 1).ok());
      EXPECT_TRUE(
          session->Forward(1, Phase::kDraft, kNoProgress, view(i)).ok());
      RowLogits(*session, 1, all.data() + i * Vocab());
    }
    return all;
  }

  static size_t Vocab() { return static_cast<size_t>(model_->config.vocab); }
  static Ids Tag(const std::string& text) {
    Ids ids;
    EXPECT_TRUE(
        model_->tokenizer->Encode(text, Tokenizer::Special::kParse, &ids).ok());
    return ids;
  }
  // Thirty tokens of text, a thought of as many, thirty more.
  static Ids Thought() {
    Ids ids(prompt_->begin() + 5, prompt_->begin() + 35);
    for (const Ids& more :
         {Tag("<think>"), Ids(prompt_->begin() + 9, prompt_->begin() + 39),
          Tag("</think>"), Ids(prompt_->begin() + 1, prompt_->begin() + 31)}) {
      ids.insert(ids.end(), more.begin(), more.end());
    }
    return ids;
  }
};

TEST_F(SadasTest, EachRowReadsWhatItsModeSays) {
  const Ids ids = Thought();
  const size_t open = 30 + Tag("<think>").size() - 1;
  const size_t close = open + 30 + Tag("</think>").size();
  const View window = View::Window(0, kWindow);
  const auto thinks = [&](size_t row) { return row >= open && row < close; };
  const auto check = [&](const std::string& settings, auto view_at,
                         const View& prompt = View::Full()) {
    const PolicyParams params = Sadas(PolicyForm::kPlain, settings);
    const auto session = SessionFor(params);
    EXPECT_EQ(ScoredSteps(*session, params, ids),
              Expected(ids, view_at, prompt))
        << settings;
  };
  check("", [&](size_t i) { return thinks(i) ? window : View::Full(); });
  check("gate=always", [&](size_t) { return window; });
  check("think=on",
        [&](size_t i) { return i < close ? window : View::Full(); });
  check(
      "gate=literal",
      [&](size_t i) { return i < close ? window : View::Full(); }, window);
  const auto prompt = std::ssize(*prompt_);
  View pinned = window;
  pinned.pinned = {{0, prompt}};
  check("pin=prompt",
        [&](size_t i) { return thinks(i) ? pinned : View::Full(); });
  // The window of the closing tag's row, and all positions since.
  const int64_t kept = prompt + static_cast<int64_t>(close) + 1 - kWindow;
  View answer = View::Window(0, 1);
  answer.pinned = {{kept, kAllPositions}};
  check("answer=kept", [&](size_t i) {
    return thinks(i) ? window : i < open ? View::Full() : answer;
  });
}

TEST_F(SadasTest, SinksStayInTheWindow) {
  const Ids ids = Thought();
  PolicyParams params = Sadas(PolicyForm::kPlain, "gate=always");
  params.Own<SadasParams>().sink = 3;
  EXPECT_EQ(ScoredSteps(*SessionFor(params), params, ids),
            Expected(ids, [](size_t) { return View::Window(3, kWindow); }));
}

// A window as long as the text gives the model's own logits, bit for bit.
TEST_F(SadasTest, AWindowOfTheWholeTextIsTheModel) {
  const Ids ids = Thought();
  for (const int64_t window : {1000, 1 << 20}) {
    for (const char* settings : {"think=on", "gate=literal", "gate=always"}) {
      const PolicyParams params = Sadas(PolicyForm::kPlain, settings, window);
      EXPECT_EQ(ScoredSteps(*SessionFor(params), params, ids),
                AllLogits(*Prefilled(*model_, *prompt_), ids, 16))
          << window << ", " << settings;
    }
  }
}

TEST_F(SadasTest, VerifiedTextIsThatOfNoDrafter) {
  ScheduleReport::Steps drafted;
  std::vector<DraftLevel> sums(4);
  for (const float temperature : {0.0f, 0.6f, 1.0f}) {
    GenerateParams params = DraftedParams(temperature, 80);
    if (temperature == 0.6f) params.distribution.dry = StrictDry();
    const Ids expected = PlainText(*model_, *prompt_, params);
    for (const char* settings :
         {"think=on", "think=off", "gate=always", "think=on,pin=prompt"}) {
      for (const Proposer proposer :
           {Proposer::kNone, Proposer::kNgram, Proposer::kSelf}) {
        PolicyParams choice = Sadas(PolicyForm::kVerified, settings);
        choice.proposer = proposer;
        choice.gamma2 = DraftLength::Fixed(6);
        const auto session = SessionFor(choice);
        const Report report = GenerateDrafted(*session, params, choice);
        ASSERT_EQ(report.tokens, expected) << settings << temperature;
        ASSERT_TRUE(report.rounds.schedule.has_value());
        EXPECT_FALSE(report.rounds.schedule->plain);
        for (const DraftLevel& level : report.rounds.levels) {
          DraftLevel& sum = sums[std::string(level.drafter) == "window"      ? 0
                                 : std::string(level.drafter) == "retrieval" ? 1
                                 : std::string(level.drafter) == "ngram"     ? 2
                                                                         : 3];
          sum.drafted += level.drafted;
          sum.accepted += level.accepted;
        }
        ExpectNoTrace(*session, *model_);
      }
    }
  }
  for (const DraftLevel& level : sums) {
    EXPECT_GT(level.accepted, 0);
    EXPECT_LT(level.accepted, level.drafted);
  }
}

// The first token after a prompt needs no sweep; a text that goes on without
// one needs it.
TEST_F(SadasTest, EverySweepIsCounted) {
  const PolicyParams choice = Sadas(PolicyForm::kBaseline, "gate=always");
  const auto session = SessionFor(choice);
  for (const int64_t sweeps : {4, 5}) {
    const Report report =
        GenerateDrafted(*session, DraftedParams(0.7f, 5), choice);
    ASSERT_TRUE(report.status.ok()) << report.status;
    EXPECT_EQ(report.rounds.schedule->slow().steps, sweeps);
  }
}

// Every form forces the same tokens, the baseline too.
TEST_F(SadasTest, AThoughtThatIsCutShortIsClosed) {
  const Ids tag = Tag("</think>");
  const GenerateParams params = DraftedParams(0.8f, 60);
  const std::string settings = "think=on,most=17";
  std::vector<Ids> texts;
  for (const PolicyForm form :
       {PolicyForm::kBaseline, PolicyForm::kVerified, PolicyForm::kPlain}) {
    PolicyParams choice = Sadas(form, settings);
    if (form == PolicyForm::kVerified) choice.proposer = Proposer::kNgram;
    const auto session = SessionFor(choice);
    const Report report = GenerateDrafted(*session, params, choice);
    ASSERT_TRUE(report.status.ok()) << report.status;
    ASSERT_EQ(report.tokens.size(), 60u);
    EXPECT_EQ(Ids(report.tokens.begin() + 17,
                  report.tokens.begin() + 17 + std::ssize(tag)),
              tag);
    const int64_t closed = 17 + std::ssize(tag) - 1;
    EXPECT_EQ(report.rounds.schedule->segments,
              (std::vector<ScheduleReport::Segment>{{"think", 0, closed},
                                                    {"answer", closed, 60}}));
    texts.push_back(report.tokens);
    if (form == PolicyForm::kPlain) {
      // The first token is the prompt's; the last is not read any more.
      EXPECT_EQ(report.rounds.schedule->fast().steps, closed);
      EXPECT_EQ(report.rounds.schedule->slow().steps, 59 - closed);
      EXPECT_EQ(report.sweeps, 59 - closed);
    }
  }
  EXPECT_EQ(texts[0], texts[1]);
  EXPECT_NE(texts[0], texts[2]);
  EXPECT_NE(texts[0], PlainText(*model_, *prompt_, params));
}

// The end of the thought may be anywhere in a drafted block.
TEST_F(SadasTest, AThoughtIsCutShortAnywhereInABlock) {
  const Ids tag = Tag("</think>");
  const GenerateParams params = DraftedParams(0.4f, 60);
  for (int most = 2; most < 30; ++most) {
    PolicyParams choice =
        Sadas(PolicyForm::kVerified, "think=on,most=" + std::to_string(most));
    choice.proposer = Proposer::kNgram;
    const Ids text = DraftedText(*SessionFor(choice), params, choice);
    ASSERT_EQ(Ids(text.begin() + most, text.begin() + most + std::ssize(tag)),
              tag)
        << most;
  }
}

TEST_F(SadasTest, ResidualTextsReplay) {
  PolicyParams choice = Sadas(PolicyForm::kVerified, "think=on,most=20");
  choice.verify = VerifyMode::kResidual;
  choice.proposer = Proposer::kNgram;
  const auto session = SessionFor(choice);
  const Ids all = DraftedText(*session, DraftedParams(1.0f, 40), choice);
  for (int64_t length = 1; length <= 40; ++length) {
    session->Truncate(prompt_->size());
    ASSERT_EQ(DraftedText(*session, DraftedParams(1.0f, length), choice),
              Ids(all.begin(), all.begin() + length));
  }
}

// Plain texts follow from the tokens alone, whatever their length and whatever
// the session did before; a question afterwards gives the text of a fresh run.
TEST_F(SadasTest, PlainTextsFollowFromTheTokens) {
  const PolicyParams choice = Sadas(PolicyForm::kPlain, "think=on,most=20");
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
  // It goes on from its own text, and from a question after it, as from any
  // text.
  Ids text = *prompt_;
  text.insert(text.end(), all.begin(), all.end());
  const auto fresh = Prefilled(*model_, text, choice.OptionsFor(*model_, {}));
  const absl::StatusOr<std::unique_ptr<Session>> fork = session->Fork();
  ASSERT_TRUE(fork.ok());
  const Ids second = DraftedText(*fresh, params(30), choice);
  EXPECT_EQ(DraftedText(**fork, params(30), choice), second);

  const Ids question(prompt_->begin() + 3, prompt_->begin() + 90);
  text.insert(text.end(), question.begin(), question.end());
  const auto asked = Prefilled(*model_, text, choice.OptionsFor(*model_, {}));
  const absl::StatusOr<PrefillReport> prefill =
      Prefill(*session, question.data(), question.size(), kNoProgress);
  ASSERT_TRUE(prefill.ok());
  EXPECT_EQ(prefill->cached_tokens, std::ssize(*prompt_));
  EXPECT_EQ(DraftedText(*session, params(30), choice),
            DraftedText(*asked, params(30), choice));
  // A reader of everything finds nothing that was computed over the window.
  session->Truncate(text.size() - question.size());
  ExpectNoTrace(*session, *model_);
}

TEST_F(SadasTest, BehindALinkThinkingBringsNothingUp) {
  const auto deep =
      OpenModel({.path = Deepened("llama_chat"), .machine = {.threads = 2}});
  const GenerateParams params = DraftedParams(0.8f, 120);
  const Ids prompt = RepeatedText(60, 12);
  for (const PolicyForm form : {PolicyForm::kPlain, PolicyForm::kVerified}) {
    PolicyParams choice = Sadas(form, "think=on,most=70", /*window=*/200);
    choice.Own<SadasParams>().sink = 2;
    const Session::Options options = choice.OptionsFor(*deep, {.context = 900});
    const auto in_place = Prefilled(*deep, prompt, options);
    const Ids expected = DraftedText(*in_place, params, choice);
    for (const Budget budget :
         {Budget::kLeast, Budget::kMiddle, Budget::kAll}) {
      const Tiered tiered = MakeTiered(*deep, options, budget);
      Session& session = *tiered.session;
      ASSERT_TRUE(
          Prefill(session, prompt.data(), prompt.size(), kNoProgress).ok());
      ASSERT_EQ(DraftedText(session, params, choice), expected);
      const LinkLedger link = session.traffic().link;
      const auto up = [&](Phase phase) {
        return link[static_cast<size_t>(phase)].h2d_bytes;
      };
      EXPECT_EQ(up(Phase::kFast), 0u);
      EXPECT_EQ(up(Phase::kDraft), 0u);
      if (budget == Budget::kLeast) {
        EXPECT_GT(up(Phase::kVerify), 0u);
      }
      ExpectNoTrace(session, *deep);
    }
  }
}

TEST_F(SadasTest, CancelledAnywhereItIsAsItWas) {
  const GenerateParams params = DraftedParams(0.9f, 30);
  for (const PolicyForm form : {PolicyForm::kPlain, PolicyForm::kVerified}) {
    const PolicyParams choice = Sadas(form, "think=on,most=12");
    const auto session = SessionFor(choice);
    const Ids expected = StoppedAnywhere(*session, params, choice);
    session->Truncate(prompt_->size());
    EXPECT_EQ(DraftedText(*session, params, choice), expected);
  }
}

TEST_F(SadasTest, FormsAndTagsAreChecked) {
  const auto refused = [&](const PolicyParams& params, const Model& model) {
    const absl::Status status = CheckPolicy(model, params);
    return !status.ok() && CodeOf(status) == "invalid_argument";
  };
  const auto ids_only = OpenModel({.path = CheckpointPath("llama_gqa.gguf")});
  ASSERT_EQ(ids_only->tokenizer, nullptr);
  const PolicyForm plain = PolicyForm::kPlain;
  EXPECT_TRUE(refused(Sadas(plain, ""), *ids_only));
  EXPECT_TRUE(refused(Sadas(plain, "gate=literal"), *ids_only));
  EXPECT_TRUE(CheckPolicy(*ids_only, Sadas(plain, "gate=always")).ok());
  EXPECT_TRUE(CheckPolicy(*ids_only, Sadas(plain, "think=on")).ok());
  EXPECT_TRUE(CheckPolicy(*model_, Sadas(plain, "")).ok());
  for (const PolicyKind* policy :
       {PolicyNamed("full"), PolicyNamed("triforce")}) {
    EXPECT_TRUE(refused({.policy = policy, .form = plain}, *model_));
  }
  PolicyParams drafts = Sadas(plain, "");
  drafts.proposer = Proposer::kNgram;
  EXPECT_TRUE(refused(drafts, *model_));
}

}  // namespace
}  // namespace tiercel::sadas_test

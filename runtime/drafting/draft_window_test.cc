// A small model drafts: the tokens that it holds of the text, the target's use
// of its drafts, and the models that are accepted.

#include "runtime/drafting/draft_window.h"

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/status/error.h"
#include "runtime/generate/generate.h"
#include "runtime/model/draft_model.h"
#include "runtime/policies/policy.h"
#include "tests/drafting.h"
#include "tests/golden.h"
#include "tests/tiers.h"

namespace tiercel::draft_window_test {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::unique_ptr<Model> OpenGolden(const std::string& name) {
  return OpenModel({.path = CheckpointPath(name), .machine = {.threads = 2}});
}

TEST(DraftWindowTest, MovesOnInBlocks) {
  for (const DraftWindow& window :
       {DraftWindow{.sink = 16, .recent = 512}, DraftWindow{4, 8},
        DraftWindow{0, 1}, DraftWindow{1, 64}}) {
    int64_t moves = 0;
    int64_t last = window.RecentBegin(window.sink);
    EXPECT_EQ(last, window.sink);
    for (int64_t length = 0; length < 5000; ++length) {
      const int64_t begin = window.RecentBegin(length);
      if (length <= window.sink + 2 * window.recent) {
        ASSERT_EQ(begin, std::min(length, window.sink)) << length;
        continue;
      }
      ASSERT_GT(length - begin, window.recent) << length;
      ASSERT_LE(length - begin, 2 * window.recent) << length;
      ASSERT_TRUE(begin == last || begin == last + window.recent) << length;
      moves += begin != last;
      last = begin;
    }
    EXPECT_EQ(moves, (4999 - window.sink - window.recent - 1) / window.recent);
  }
}

TEST(DraftWindowTest, AsMuchAsTheDraftModelHasRoomFor) {
  const DraftWindow window;
  EXPECT_EQ(window.Within(window.Context())->recent, 512);
  EXPECT_EQ(window.Within(int64_t{1} << 30)->recent, 512);
  EXPECT_EQ(window.Within(window.Context() - 1)->recent, 511);
  EXPECT_EQ(window.Within(82)->recent, 1);
  for (int64_t context : {82, 83, 84, 500, 1103, 1104, 1105}) {
    EXPECT_LE(window.Within(context)->Context(), context);
  }
  const absl::Status none = window.Within(81).status();
  EXPECT_EQ(CodeOf(none), "draft_context");
  EXPECT_THAT(none.message(), HasSubstr("81"));
  EXPECT_THAT(none.message(), HasSubstr("82"));
}

class DraftWindowKvTest : public testing::Test {
 protected:
  static constexpr DraftWindow kWindow = {.sink = 4, .recent = 16};

  static void SetUpTestSuite() {
    model_ = OpenGolden("llama_chat.gguf").release();
    prompt_ = new Ids(RepeatedText(100, 3));
  }
  static void TearDownTestSuite() {
    delete prompt_;
    delete model_;
  }

  inline static const SharedTokens kAllShared = {1 << 20, {}};

  // A target and its own session.
  struct Small {
    Small(const Model& model, const DistributionParams& distribution,
          const DraftWindow& window, int64_t answer_begin = 0,
          const SharedTokens& shared = kAllShared)
        : session(MakeSession(model, {.context = window.Context()})),
          target(std::make_unique<ModelTarget>(
              *session, distribution,
              std::make_unique<DraftWindowKv>(*session, window, shared,
                                              answer_begin),
              &shared.never())) {}
    ModelTarget* operator->() const { return target.get(); }

    const std::unique_ptr<Session> session;
    const std::unique_ptr<ModelTarget> target;
  };
  // The drafter over such a target, cancelled together with `whole`.
  struct SmallDraft {
    SmallDraft(Session& whole, const DistributionParams& distribution,
               const PolicyParams& choice)
        : session(MakeSession(*choice.draft_model,
                              {.context = choice.draft_window.Context()})),
          innermost(
              whole, distribution,
              {.kind = Proposer::kSmall,
               .verify = choice.verify,
               .draft_session = session.get(),
               .draft_window = choice.draft_window,
               .shared = std::make_shared<const SharedTokens>(kAllShared)}) {
      session->cancellation().Follow(whole.cancellation());
    }
    absl::StatusOr<DraftBlock> Draft(const Ids& text) const {
      return innermost.drafter()->Draft(text, 6,
                                        {.seed = 3, .start = std::ssize(text)});
    }

    const std::unique_ptr<Session> session;
    const InnermostDrafter innermost;
  };

  // The tokens of `text` that a draft over `window` must hold.
  static Ids Seen(const Ids& text, const DraftWindow& window) {
    Ids seen(text);
    const int64_t begin = window.RecentBegin(std::ssize(text));
    seen.erase(seen.begin() + std::min(window.sink, begin),
               seen.begin() + begin);
    return seen;
  }

  static Ids Text(size_t length) {
    Ids text;
    while (text.size() < length) {
      text.insert(text.end(), prompt_->begin(), prompt_->begin() + 100);
      text.push_back(static_cast<int32_t>(text.size() % 384));
    }
    text.resize(length);
    return text;
  }

  static GenerateParams Params(float temperature, int64_t max_tokens = 200) {
    return DraftedParams(temperature, max_tokens);
  }

  static std::unique_ptr<Session> WithView(const Model& model = *model_,
                                           const Ids& prompt = *prompt_) {
    return Prefilled(model, prompt, {.retrieval = kSmallView});
  }

  static Ids Plain(const Model& model, const GenerateParams& params,
                   const Ids& prompt = *prompt_) {
    return PlainText(model, prompt, params);
  }

  static PolicyParams Choice(const Model& draft, VerifyMode verify,
                             const DraftWindow& window = kWindow) {
    return {.proposer = Proposer::kSmall,
            .verify = verify,
            .draft_model = &draft,
            .draft_window = window};
  }
  static PolicyParams TriForce(PolicyParams choice) {
    choice.policy = PolicyNamed("triforce");
    return choice;
  }

  static Model* model_;
  static Ids* prompt_;
};

Model* DraftWindowKvTest::model_ = nullptr;
Ids* DraftWindowKvTest::prompt_ = nullptr;

// At every length, whatever it was asked before, it holds the window, and gives
// the distribution of a fresh session.
TEST_F(DraftWindowKvTest, HoldsTheWindowOfTheText) {
  const DistributionParams distribution = {.temperature = 0.8f,
                                           .repeat_penalty = 1.2f};
  const Ids text = Text(250);
  for (const DraftWindow& window :
       {kWindow, DraftWindow{0, 8}, DraftWindow{16, 64}}) {
    const auto small = Small(*model_, distribution, window);
    // The lengths go onwards, back over a slide, and to another text.
    for (int64_t length : {1,   2,   9,   36,  37,  38, 52, 53, 54, 52,  70,
                           250, 249, 100, 101, 250, 3,  84, 85, 85, 120, 36}) {
      Ids tokens(text.begin(), text.begin() + length);
      if (length == 101) tokens[60] = 5;
      ASSERT_TRUE(small->Begin(tokens).ok());
      ASSERT_EQ(small.session->sequence().tokens(), Seen(tokens, window))
          << length;
      const auto fresh = Small(*model_, distribution, window);
      ASSERT_TRUE(fresh->Begin(tokens).ok());
      for (int32_t next : {7, 8, 9}) {
        const auto distributions = small->Distributions({});
        const auto expected = fresh->Distributions({});
        ASSERT_TRUE(distributions.ok() && expected.ok())
            << distributions.status();
        ASSERT_EQ(distributions->size(), 1u);
        ASSERT_EQ(distributions->at(0).ids, expected->at(0).ids) << length;
        ASSERT_EQ(distributions->at(0).probabilities,
                  expected->at(0).probabilities);
        ASSERT_TRUE(small->Keep(0, {next}).ok());
        ASSERT_TRUE(fresh->Keep(0, {next}).ok());
      }
    }
  }
}

// The answer is all of its tokens, or those that the window shows behind its
// gap.
TEST_F(DraftWindowKvTest, KnowsWhereTheAnswerBegins) {
  const Ids text = Text(250);
  const auto answer = [&](const DraftWindow& window, int64_t begin,
                          int64_t length) {
    const auto small = Small(*model_, {}, window, begin);
    const Ids tokens(text.begin(), text.begin() + length);
    EXPECT_TRUE(small->Begin(tokens).ok());
    const Ids& held = small.session->sequence().tokens();
    return Ids(held.begin() + small.session->sequence().answer_begin(),
               held.end());
  };
  const auto from = [&](int64_t begin, int64_t length) {
    return Ids(text.begin() + begin, text.begin() + length);
  };
  const DraftWindow window = {4, 16};
  EXPECT_EQ(answer(window, 0, 30), from(0, 30));
  EXPECT_EQ(answer(window, 2, 30), from(2, 30));
  EXPECT_EQ(answer(window, 30, 30), Ids());
  for (const int64_t length : {40, 100, 250}) {
    const int64_t seen = window.RecentBegin(length);
    EXPECT_EQ(answer(window, length, length), Ids());
    EXPECT_EQ(answer(window, length - 5, length), from(length - 5, length));
    EXPECT_EQ(answer(window, seen, length), from(seen, length));
    EXPECT_EQ(answer(window, 2, length), from(seen, length));
  }
}

// The target checks a block of proposals in one pass.
TEST_F(DraftWindowKvTest, ChecksBlocksToo) {
  const Ids text = Text(90);
  const auto small = Small(*model_, {.temperature = 1.0f}, kWindow);
  const auto single = Small(*model_, {.temperature = 1.0f}, kWindow);
  ASSERT_TRUE(small->Begin(text).ok() && single->Begin(text).ok());
  const auto distributions = small->Distributions({3, 4, 5});
  ASSERT_TRUE(distributions.ok()) << distributions.status();
  ASSERT_EQ(distributions->size(), 4u);
  for (size_t i = 0; i < 4; ++i) {
    const auto one = single->Distributions({});
    ASSERT_TRUE(one.ok());
    EXPECT_EQ(distributions->at(i).ids, one->at(0).ids);
    EXPECT_EQ(distributions->at(i).probabilities, one->at(0).probabilities);
    ASSERT_TRUE(single->Keep(0, {static_cast<int32_t>(3 + i)}).ok());
  }
  ASSERT_TRUE(small->Keep(1, {9}).ok());
  Ids tokens = Seen(text, kWindow);
  tokens.push_back(3);
  tokens.push_back(9);
  EXPECT_EQ(small.session->sequence().tokens(), tokens);
}

// A mask sees the whole text, and of a block what was kept.
TEST_F(DraftWindowKvTest, KnowsTheWholeText) {
  const Ids text = Text(90);
  const auto session = MakeSession(*model_, {.context = kWindow.Context()});
  DraftWindowKv kv(*session, kWindow, kAllShared, /*answer_begin=*/0);
  ASSERT_TRUE(kv.Begin(text).ok());
  EXPECT_EQ(kv.text(), text);
  EXPECT_LT(kv.tokens().size(), text.size());
  Ids with = text;
  with.insert(with.end(), {3, 4, 5});
  ASSERT_TRUE(kv.Pass({3, 4, 5}, {}).ok());
  EXPECT_EQ(kv.text(), with);
  const size_t left_out = text.size() + 3 - kv.tokens().size();
  ASSERT_TRUE(kv.Keep(text.size() - left_out + 1, {9}).ok());
  with.resize(text.size() + 1);
  with.push_back(9);
  EXPECT_EQ(kv.text(), with);
}

// A draft model's session is cancelled with the session that it drafts for, and
// its KV stays on the device.
TEST_F(DraftWindowKvTest, ADraftSessionGoesWithItsSession) {
  const auto target = MakeTiered(*model_, {.context = 500}, Budget::kMiddle);
  const auto small = OpenModel(
      {.path = CheckpointPath("llama_chat.gguf"),
       .machine = {
           .threads = 2,
           .simulation = {{.bytes = int64_t{1} << 30, .link = {kFast, 0}}}}});
  const PolicyParams params = {.proposer = Proposer::kSmall,
                               .draft_model = small.get()};
  auto made = NewDraftSession(params);
  ASSERT_TRUE(made.ok()) << made.status();
  Session& draft = **made;
  const auto policy = Policy::Create(*target.session, params, *std::move(made));
  ASSERT_TRUE(policy.ok()) << policy.status();

  const Ids text = Text(300);
  ASSERT_TRUE(Prefill(draft, text.data(), text.size(), kNoProgress).ok());
  EXPECT_EQ(draft.kv().memory().host, 0);
  EXPECT_EQ(draft.kv().plan().host_kv, 0);
  EXPECT_FALSE(draft.cancellation().cancelled());
  target.session->cancellation().Cancel();
  EXPECT_TRUE(draft.cancellation().cancelled());
}

// Most of the time only new tokens are computed.
TEST_F(DraftWindowKvTest, ComputesOnlyWhatIsNew) {
  const auto small = Small(*model_, {}, kWindow);
  Ids text = Text(100);
  int64_t rows = 0;
  for (int i = 0; i < 160; ++i) {
    ASSERT_TRUE(small->Begin(text).ok());
    rows += small.session->sequence().pending();
    ASSERT_TRUE(small->Distributions({}).ok());
    ASSERT_TRUE(small->Keep(0, {1}).ok());  // does not hold
    text.push_back(2 + i % 300);
  }
  // The rows are the first window, one for each token, and after each of the
  // ten moves the part of the text that is still seen.
  EXPECT_LE(rows, 36 + 160 + 10 * 17);
  EXPECT_GE(rows, 160);
}

TEST_F(DraftWindowKvTest, CoupledTextIsThatOfNoDrafter) {
  const auto deep =
      OpenModel({.path = Deepened("llama_chat"), .machine = {.threads = 2}});
  for (const Model* target : {static_cast<const Model*>(model_),
                              static_cast<const Model*>(deep.get())}) {
    for (float temperature : {0.0f, 0.7f}) {
      GenerateParams params = Params(temperature);
      params.distribution.repeat_penalty = temperature > 0 ? 1.1f : 1.0f;
      if (temperature > 0) params.distribution.dry = StrictDry();
      const Ids expected = Plain(*target, params);
      for (int64_t recent : {8, 64}) {
        PolicyParams choice =
            Choice(*model_, VerifyMode::kCoupled, {4, recent});
        for (int64_t length : {0, 1, 63}) {
          choice.gamma1.reset();
          if (length > 0) choice.gamma1 = DraftLength::Fixed(length);
          const auto session = Prefilled(*target, *prompt_);
          const Report report = GenerateDrafted(*session, params, choice);
          ASSERT_EQ(report.tokens, expected)
              << temperature << " " << recent << " " << length;
          ASSERT_EQ(report.rounds.levels.size(), 1u);
          EXPECT_STREQ(report.rounds.levels[0].drafter, "small");
        }
        for (int64_t length : {1, 6}) {
          choice.gamma1 = DraftLength::Fixed(length);
          choice.gamma2 = DraftLength::Fixed(length == 1 ? 2 : 11);
          const auto session = WithView(*target);
          const Report report =
              GenerateDrafted(*session, params, TriForce(choice));
          ASSERT_EQ(report.tokens, expected)
              << temperature << " " << recent << " " << length;
          ASSERT_EQ(report.rounds.levels.size(), 2u);
          EXPECT_STREQ(report.rounds.levels[0].drafter, "small");
          EXPECT_GT(report.rounds.levels[0].drafted, 0);
          if (length == 6) ExpectNoTrace(*session, *target);
        }
      }
    }
  }
}

// The target's own model drafts over a window that holds the whole text.
TEST_F(DraftWindowKvTest, TheSameModelIsNearlyAlwaysRight) {
  for (VerifyMode verify : {VerifyMode::kCoupled, VerifyMode::kResidual}) {
    const PolicyParams choice = Choice(*model_, verify, {16, 512});
    const auto session = Prefilled(*model_, *prompt_);
    const Report report = GenerateDrafted(*session, Params(0.8f), choice);
    const DraftLevel& level = report.rounds.levels.at(0);
    EXPECT_GT(level.drafted, 150);
    // Sums in another order differ in their last bits, which a draw may show.
    EXPECT_GE(level.accepted, level.drafted - 2);
    EXPECT_LE(report.sweeps, 200 / 9 + 3);
  }
}

// The models have nothing in common but their vocabulary: most drafts are
// rejected, and leave no trace.
TEST_F(DraftWindowKvTest, WhatIsRejectedLeavesNothing) {
  const auto target = OpenGolden("qwen3.gguf");
  const auto draft = OpenGolden("llama_gqa.gguf");
  const Ids prompt = RandomIds(300, target->config.vocab);
  for (VerifyMode verify : {VerifyMode::kCoupled, VerifyMode::kResidual}) {
    const GenerateParams params = Params(0.9f);
    const PolicyParams choice = Choice(*draft, verify, {4, 8});
    for (bool triforce : {false, true}) {
      const auto session =
          triforce ? WithView(*target, prompt) : Prefilled(*target, prompt);
      const Report report = GenerateDrafted(
          *session, params, triforce ? TriForce(choice) : choice);
      const DraftLevel& level = report.rounds.levels.at(0);
      EXPECT_GT(level.accepted, 0);
      EXPECT_LT(level.accepted, level.drafted / 2);
      if (verify == VerifyMode::kCoupled) {
        EXPECT_EQ(report.tokens, Plain(*target, params, prompt));
      }
      ExpectNoTrace(*session, *target);
    }
  }
}

// Residual texts differ from the plain one, but are the same every time,
// whatever the length asked for.
TEST_F(DraftWindowKvTest, ResidualTextsReplay) {
  const auto deep =
      OpenModel({.path = Deepened("llama_chat"), .machine = {.threads = 2}});
  for (int64_t recent : {8, 64}) {
    const PolicyParams full =
        Choice(*model_, VerifyMode::kResidual, {4, recent});
    for (const PolicyParams& choice : {full, TriForce(full)}) {
      const auto session = WithView(*deep);
      const Ids all = DraftedText(*session, Params(1.0f), choice);
      ExpectNoTrace(*session, *deep);
      for (int64_t length : {1, 77, 199}) {
        session->Truncate(prompt_->size());
        ASSERT_EQ(DraftedText(*session, Params(1.0f, length), choice),
                  Ids(all.begin(), all.begin() + length))
            << length;
      }
      EXPECT_EQ(DraftedText(*WithView(*deep), Params(1.0f), choice), all);
      GenerateParams other = Params(1.0f);
      other.seed = 8;
      EXPECT_NE(DraftedText(*WithView(*deep), other, choice), all);
      EXPECT_EQ(DraftedText(*WithView(*deep), Params(0.0f), choice),
                Plain(*deep, Params(0.0f)));
    }
  }
}

// One process and one draft model take a prompt, its continuation, and another
// prompt.
TEST_F(DraftWindowKvTest, PromptAfterPrompt) {
  const GenerateParams params = Params(0.8f, 60);
  const PolicyParams choice = Choice(*model_, VerifyMode::kResidual);
  const Ids other = Text(170);
  const auto session = Prefilled(*model_, *prompt_);
  const Ids first = DraftedText(*session, params, choice);
  ASSERT_TRUE(Prefill(*session, other.data(), other.size(), kNoProgress).ok());
  const Ids second = DraftedText(*session, params, choice);
  const auto beside = Prefilled(*model_, other);
  const Ids third = DraftedText(*beside, params, choice);

  Ids all = *prompt_;
  all.insert(all.end(), first.begin(), first.end());
  all.insert(all.end(), other.begin(), other.end());
  EXPECT_EQ(DraftedText(*Prefilled(*model_, all), params, choice), second);
  session->Truncate(prompt_->size());
  EXPECT_EQ(DraftedText(*session, params, choice), first);
  EXPECT_EQ(DraftedText(*Prefilled(*model_, other), params, choice), third);

  // One drafter over several texts drafts as if each had one of its own.
  const SmallDraft drafter(*session, params.distribution, choice);
  for (const Ids& text : {all, other, *prompt_, other, all}) {
    const SmallDraft fresh(*session, params.distribution, choice);
    const absl::StatusOr<DraftBlock> block = drafter.Draft(text);
    ASSERT_TRUE(block.ok()) << block.status();
    EXPECT_EQ(block->tokens, fresh.Draft(text)->tokens);
  }

  // One policy over two generations gives the same as two policies.
  const auto policy = NewPolicy(*session, choice);
  ASSERT_TRUE(policy.ok()) << policy.status();
  for (const auto& [length, expected] :
       {std::pair(prompt_->size(), first), {all.size(), second}}) {
    session->Truncate(0);
    ASSERT_TRUE(Prefill(*session, all.data(), length, kNoProgress).ok());
    EXPECT_EQ(Generate(*session, **policy, {}, params, nullptr).tokens,
              expected);
  }
}

TEST_F(DraftWindowKvTest, CancelledAnywhereItIsAsItWas) {
  const GenerateParams params = Params(0.9f, 24);
  const PolicyParams full = Choice(*model_, VerifyMode::kResidual, {4, 8});
  for (const PolicyParams& choice : {full, TriForce(full)}) {
    const auto session = WithView();
    const Ids expected = DraftedText(*session, params, choice);
    for (size_t stop = 1; stop < expected.size(); ++stop) {
      session->Truncate(prompt_->size());
      size_t count = 0;
      const Report report =
          GenerateDrafted(*session, params, choice,
                          [&](const OutputToken&) { return ++count < stop; });
      ASSERT_EQ(ClassOf(report.status), ErrorClass::kCancelled);
      ASSERT_EQ(report.tokens,
                Ids(expected.begin(),
                    expected.begin() + static_cast<std::ptrdiff_t>(stop)));
    }
    ExpectNoTrace(*session, *model_);

    // The draft model is cancelled with the session while it drafts.
    session->Truncate(prompt_->size());
    const SmallDraft drafter(*session, params.distribution, full);
    session->cancellation().Cancel();
    EXPECT_EQ(ClassOf(drafter.Draft(*prompt_).status()),
              ErrorClass::kCancelled);
    session->cancellation().Clear();
    const absl::StatusOr<DraftBlock> after = drafter.Draft(*prompt_);
    ASSERT_TRUE(after.ok()) << after.status();
    EXPECT_EQ(after->tokens, SmallDraft(*session, params.distribution, full)
                                 .Draft(*prompt_)
                                 ->tokens);
    EXPECT_EQ(DraftedText(*session, params, choice), expected);
  }
}

TEST_F(DraftWindowKvTest, BehindALinkTheTextIsTheSame) {
  const auto deep =
      OpenModel({.path = Deepened("llama_chat"), .machine = {.threads = 2}});
  const Session::Options options = {.context = 520};
  const GenerateParams params = Params(0.8f);
  const Ids expected = Plain(*deep, params);
  const Tiered tiered = MakeTiered(*deep, options, Budget::kLeast);
  ASSERT_TRUE(
      Prefill(*tiered.session, prompt_->data(), prompt_->size(), kNoProgress)
          .ok());
  EXPECT_EQ(DraftedText(*tiered.session, params,
                        Choice(*model_, VerifyMode::kCoupled)),
            expected);
}

// A draft may fill the context.
TEST_F(DraftWindowKvTest, ShortPromptsAndFullContexts) {
  for (size_t length : {1, 3, 4, 5, 35, 37}) {
    const Ids prompt = Text(length);
    const Session::Options options = {.context =
                                          static_cast<int64_t>(length) + 90};
    const GenerateParams params = Params(0.7f, 0);
    const auto plain = Prefilled(*model_, prompt, options);
    const Report expected = Generate(*plain, params, nullptr);
    ASSERT_TRUE(expected.status.ok()) << expected.status;
    const auto session = Prefilled(*model_, prompt, options);
    EXPECT_EQ(
        DraftedText(*session, params, Choice(*model_, VerifyMode::kCoupled)),
        expected.tokens)
        << length;
    EXPECT_EQ(session->sequence().room(), 0);
  }
}

class DraftModelTest : public DraftWindowKvTest {
 protected:
  static constexpr TokenType kUnusedType = TokenType::kUnused;

  // The model llama_chat with some tokens changed.
  template <typename Change>
  static std::unique_ptr<Model> WithToken(Change change) {
    std::unique_ptr<Model> model = OpenGolden("llama_chat.gguf");
    absl::StatusOr<TokenizerSpec> spec =
        SpecFromGguf(model->checkpoint->metadata());
    EXPECT_TRUE(spec.ok());
    spec->merges.clear();  // they need all of their tokens
    change(&*spec);
    absl::StatusOr<std::unique_ptr<Tokenizer>> tokenizer =
        Tokenizer::Create(*std::move(spec));
    EXPECT_TRUE(tokenizer.ok()) << tokenizer.status();
    model->tokenizer = *std::move(tokenizer);
    return model;
  }

  static std::string Refusal(const Model& target, const Model& draft) {
    const auto session = MakeSession(target);
    const absl::Status status =
        NewPolicy(*session, Choice(draft, VerifyMode::kResidual)).status();
    EXPECT_EQ(CodeOf(status), "draft_vocabulary") << status;
    EXPECT_EQ(ClassOf(status), ErrorClass::kInput);
    EXPECT_EQ(CodeOf(CheckDraftModel(target, draft).status()),
              "draft_vocabulary");
    return std::string(status.message());
  }
};

TEST_F(DraftModelTest, NeedsTheSameVocabulary) {
  const auto mha = OpenGolden("llama_mha.gguf");  // 131 tokens
  EXPECT_THAT(Refusal(*model_, *mha), HasSubstr("it has 131 tokens"));
  EXPECT_THAT(Refusal(*model_, *mha), HasSubstr("the model 384"));
  EXPECT_THAT(Refusal(*mha, *model_), HasSubstr("it has 384 tokens"));

  // More than one token in twenty is another.
  const std::string text = "\"<|endoftext|>\"";  // token 0, a control token
  const auto renamed = WithToken([](TokenizerSpec* spec) {
    spec->tokens[0].text = "<|\x01other|>";
    for (size_t i = 360; i < 380; ++i) spec->tokens[i].text += "x";
  });
  EXPECT_THAT(Refusal(*model_, *renamed),
              AllOf(HasSubstr("of 384 tokens that are used 21 differ"),
                    HasSubstr("token 0 is \"<|\\001other|>\" (control), the "
                              "model's is " +
                              text + " (control)")));
  const auto unused = WithToken([](TokenizerSpec* spec) {
    for (size_t i = 360; i < 380; ++i) spec->tokens[i].type = kUnusedType;
  });
  EXPECT_THAT(Refusal(*unused, *model_), HasSubstr("the model's is not used;"));
  EXPECT_THAT(Refusal(*model_, *unused), HasSubstr("token 360 is not used"));

  const auto same = WithToken([](TokenizerSpec*) {});
  EXPECT_TRUE(CheckDraftModel(*model_, *same).ok());
  const auto deep =
      OpenModel({.path = Deepened("llama_chat"), .machine = {.threads = 2}});
  EXPECT_TRUE(CheckDraftModel(*deep, *model_).ok());
  // Without a tokenizer only the ids can be compared.
  same->tokenizer.reset();
  EXPECT_TRUE(CheckDraftModel(*model_, *same).ok());
  EXPECT_TRUE(CheckDraftModel(*same, *model_).ok());
}

// Padding that neither uses is no difference, and a token that differs is never
// drafted nor read.
TEST_F(DraftModelTest, AFewTokensMayDiffer) {
  const auto other = WithToken([](TokenizerSpec* spec) {
    spec->tokens[7].text += "x";
    spec->tokens[0].type = kUnusedType;
    spec->tokens[9].type = TokenType::kControl;
  });
  for (const auto& [target, draft] :
       {std::pair(&*model_, &*other), std::pair(&*other, &*model_)}) {
    const absl::StatusOr<SharedTokens> shared =
        CheckDraftModel(*target, *draft);
    ASSERT_TRUE(shared.ok()) << shared.status();
    EXPECT_THAT(shared->never(), ElementsAre(0, 7, 9));
    EXPECT_EQ(shared->ReadFor(8), 8);
    for (const int32_t id : {0, 7, 9, 384}) {
      EXPECT_EQ(shared->ReadFor(id), 1) << id;
    }
  }
  // A draft with fewer rows than its target has tokens.
  const auto padded = WithToken([](TokenizerSpec* spec) {
    for (size_t i = 300; i < 384; ++i) spec->tokens[i].type = kUnusedType;
  });
  const auto shorter =
      WithToken([](TokenizerSpec* spec) { spec->tokens.resize(300); });
  shorter->config.vocab = 300;
  EXPECT_TRUE(CheckDraftModel(*padded, *shorter).ok());
  EXPECT_TRUE(CheckDraftModel(*shorter, *padded).ok());
}

// A draft whose vocabulary lacks tokens of the text leaves the text as it is.
TEST_F(DraftModelTest, DraftsWithoutTheTokensThatDiffer) {
  const Ids expected = Plain(*model_, Params(0.7f));
  const auto other = WithToken([&](TokenizerSpec* spec) {
    spec->tokens[static_cast<size_t>(expected[1])].text += "x";
    spec->tokens[static_cast<size_t>(prompt_->back())].text += "y";
  });
  const SharedTokens shared = *CheckDraftModel(*model_, *other);
  ASSERT_EQ(shared.never().size(), 2u);
  for (const float temperature : {0.0f, 1.5f}) {
    const DraftWindow window = {.sink = 4, .recent = 32};
    Small small(*other, {.temperature = temperature}, window, 0, shared);
    ASSERT_TRUE(small->Begin(*prompt_).ok());
    EXPECT_NE(small.session->sequence().tokens().back(), prompt_->back());
    const auto made = small->Distributions({});
    ASSERT_TRUE(made.ok()) << made.status();
    for (size_t i = 0; i < (*made)[0].ids.size(); ++i) {
      if ((*made)[0].probabilities[i] == 0) continue;
      EXPECT_THAT(shared.never(),
                  ::testing::Not(::testing::Contains((*made)[0].ids[i])));
    }
  }
  const auto session = Prefilled(*model_, *prompt_);
  EXPECT_EQ(
      DraftedText(*session, Params(0.7f), Choice(*other, VerifyMode::kCoupled)),
      expected);
}

TEST_F(DraftModelTest, NeedsAModelWithWeightsAndContext) {
  const auto session = MakeSession(*model_);
  PolicyParams choice = {.proposer = Proposer::kSmall};
  const auto header =
      OpenModel({.path = CheckpointPath("llama_chat.gguf"), .weights = false});
  EXPECT_TRUE(CheckDraftModel(*model_, *header).ok());
  choice.draft_model = header.get();
  EXPECT_EQ(CodeOf(NewPolicy(*session, choice).status()), "no_weights");
  const auto narrow = OpenGolden("llama_chat.gguf");
  narrow->config.context = 81;
  choice.draft_model = narrow.get();
  EXPECT_EQ(CodeOf(NewPolicy(*session, choice).status()), "draft_context");
  narrow->config.context = 82;
  choice.verify = VerifyMode::kCoupled;
  const auto full = Prefilled(*model_, *prompt_);
  EXPECT_EQ(DraftedText(*full, Params(0.5f), choice),
            Plain(*model_, Params(0.5f)));
}

}  // namespace
}  // namespace tiercel::draft_window_test

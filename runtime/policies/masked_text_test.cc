// A mask of the caller is obeyed under every policy, form and drafter: the text
// is the one without drafts, and nothing forbidden is drafted.

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/status/error.h"
#include "runtime/generate/generate.h"
#include "runtime/policies/policy.h"
#include "runtime/policies/policy_kind.h"
#include "runtime/policies/sadas/sadas_params.h"
#include "tests/drafting.h"
#include "tests/golden.h"

namespace tiercel::masked_text_test {
namespace {

constexpr DraftWindow kShortWindow = {.sink = 4, .recent = 16};

// Forbids a third of the vocabulary, by all the tokens before.
class ThirdForbidden {
 public:
  explicit ThirdForbidden(std::span<const int32_t> output) {
    for (const int32_t token : output) {
      hash_ = hash_ * 31 + static_cast<uint32_t>(token);
    }
  }
  bool Allows(int32_t id) const {
    return (hash_ + static_cast<uint32_t>(id)) % 3 != 0;
  }

 private:
  uint32_t hash_ = 1;
};

// Returns true if each token of `output` is allowed behind those before it.
bool IsAllowed(std::span<const int32_t> output) {
  for (size_t i = 0; i < output.size(); ++i) {
    if (!ThirdForbidden(output.first(i)).Allows(output[i])) return false;
  }
  return true;
}

template <typename Allows>
void KeepOnly(std::span<uint32_t> allowed, const Allows& allows) {
  const auto bits = static_cast<int32_t>(allowed.size() * 32);
  for (int32_t id = 0; id < bits; ++id) {
    if (!allows(id)) {
      allowed[static_cast<size_t>(id) / 32] &= ~(uint32_t{1} << (id % 32));
    }
  }
}

class MaskedTextTest : public RepeatedTextTest<4> {
 protected:
  // Only allowed outputs are asked about, so drafts heed the mask, too.
  static TokenMask::Rule Third() {
    return [](std::span<const int32_t> output, std::span<uint32_t> allowed) {
      if (!output.empty()) {
        const ThirdForbidden before(output.first(output.size() - 1));
        EXPECT_TRUE(before.Allows(output.back()));
      }
      const ThirdForbidden mask(output);
      KeepOnly(allowed, [&](int32_t id) { return mask.Allows(id); });
      return absl::OkStatus();
    };
  }

  static GenerateParams Params(float temperature, TokenMask::Rule mask,
                               int64_t max_tokens = 48) {
    GenerateParams params = DraftedParams(temperature, max_tokens);
    params.mask = std::move(mask);
    return params;
  }

  static std::vector<PolicyParams> Choices(VerifyMode verify) {
    std::vector<PolicyParams> choices;
    for (const char* const name :
         {"full", "triforce", "sfi", "sadas", "speed"}) {
      for (const Proposer proposer : {Proposer::kNone, Proposer::kNgram,
                                      Proposer::kSelf, Proposer::kSmall}) {
        const std::string policy = name;
        PolicyParams choice = policy == "sfi" ? SmallSfi() : SmallTriforce();
        choice.policy = PolicyNamed(policy);
        choice.proposer = proposer;
        choice.verify = verify;
        choice.gamma1 = DraftLength::Fixed(3);
        choice.gamma2 = DraftLength::Fixed(7);
        choice.branches = policy == "triforce" ? 2 : 0;
        choice.draft_model = model_;
        choice.draft_window = kShortWindow;
        if (policy == "sadas") Think("think=on", &choice);
        choices.push_back(choice);
      }
    }
    return choices;
  }
  static std::vector<PolicyParams> PlainChoices() {
    std::vector<PolicyParams> choices = {SmallSfi(PolicyForm::kPlain)};
    for (const char* const name : {"sadas", "speed"}) {
      choices.push_back({.policy = PolicyNamed(name),
                         .form = PolicyForm::kPlain,
                         .view = kSmallView});
    }
    Think("think=on", &choices[1]);
    return choices;
  }
  static void Think(const std::string& settings, PolicyParams* choice) {
    choice->Own<SadasParams>().window = 24;
    EXPECT_TRUE(choice->Own<SadasParams>().Set(settings).ok());
  }

  static std::string NameOf(const PolicyParams& choice) {
    return std::string(choice.policy->name()) + ", proposer " +
           std::to_string(static_cast<int>(choice.proposer));
  }
  static std::unique_ptr<Session> SessionFor(const PolicyParams& choice) {
    return Prefilled(*model_, *prompt_, choice.OptionsFor(*model_, {}));
  }
};

TEST_F(MaskedTextTest, DraftedTextIsThatOfNoDrafter) {
  int64_t accepted = 0;
  for (const float temperature : {0.0f, 0.8f}) {
    const GenerateParams params = Params(temperature, Third());
    const Ids expected = PlainText(*model_, *prompt_, params);
    EXPECT_TRUE(IsAllowed(expected));
    EXPECT_NE(expected, PlainText(*model_, *prompt_, Params(temperature, {})));
    for (const VerifyMode verify :
         {VerifyMode::kCoupled, VerifyMode::kResidual}) {
      for (const PolicyParams& choice : Choices(verify)) {
        SCOPED_TRACE(NameOf(choice));
        const auto session = SessionFor(choice);
        const Report report = GenerateDrafted(*session, params, choice);
        ASSERT_TRUE(report.status.ok()) << report.status;
        if (verify == VerifyMode::kCoupled || temperature == 0) {
          ASSERT_EQ(report.tokens, expected);
        }
        EXPECT_TRUE(IsAllowed(report.tokens));
        for (const DraftLevel& level : report.rounds.levels) {
          accepted += level.accepted;
        }
        ExpectNoTrace(*session, *model_, choice.OptionsFor(*model_, {}));
      }
    }
  }
  EXPECT_GT(accepted, 100);
}

TEST_F(MaskedTextTest, PlainFormsObeyIt) {
  for (const PolicyParams& choice : PlainChoices()) {
    for (const float temperature : {0.0f, 0.8f}) {
      const Ids text = DraftedText(*SessionFor(choice),
                                   Params(temperature, Third()), choice);
      EXPECT_TRUE(IsAllowed(text)) << NameOf(choice);
      EXPECT_NE(text, DraftedText(*SessionFor(choice), Params(temperature, {}),
                                  choice));
    }
  }
}

TEST_F(MaskedTextTest, AMaskThatAllowsAllChangesNothing) {
  const auto all = [](std::span<const int32_t>, std::span<uint32_t>) {
    return absl::OkStatus();
  };
  std::vector<PolicyParams> choices = PlainChoices();
  for (const PolicyParams& choice : Choices(VerifyMode::kResidual)) {
    choices.push_back(choice);
  }
  for (const PolicyParams& choice : choices) {
    EXPECT_EQ(DraftedText(*SessionFor(choice), Params(0.8f, all), choice),
              DraftedText(*SessionFor(choice), Params(0.8f, {}), choice))
        << NameOf(choice);
  }
}

// Every call has an output of its own.
TEST_F(MaskedTextTest, TheOutputIsThatOfOneCall) {
  const auto session = Prefilled(*model_, *prompt_);
  for (int call = 0; call < 3; ++call) {
    const Report report =
        GenerateDrafted(*session, Params(0.8f, Third(), 10), PolicyParams());
    ASSERT_TRUE(report.status.ok()) << report.status;
    EXPECT_TRUE(IsAllowed(report.tokens));
  }
  EXPECT_EQ(session->sequence().tokens().size(), prompt_->size() + 30);
}

// The text goes as far as it may, and the session goes on without the mask as
// if there had been none.
TEST_F(MaskedTextTest, WhereNothingIsAllowedTheTextEnds) {
  const Ids expected = PlainText(*model_, *prompt_, Params(0.8f, Third()));
  for (const size_t length : {0, 1, 13}) {
    const auto dead = [&](std::span<const int32_t> output,
                          std::span<uint32_t> allowed) {
      EXPECT_LE(output.size(), length);
      const ThirdForbidden mask(output);
      KeepOnly(allowed, [&](int32_t id) {
        return output.size() < length && mask.Allows(id);
      });
      return absl::OkStatus();
    };
    std::vector<PolicyParams> choices = Choices(VerifyMode::kCoupled);
    for (const PolicyParams& choice : PlainChoices()) choices.push_back(choice);
    for (const PolicyParams& choice : choices) {
      SCOPED_TRACE(NameOf(choice));
      const auto session = SessionFor(choice);
      const Report report =
          GenerateDrafted(*session, Params(0.8f, dead), choice);
      EXPECT_EQ(CodeOf(report.status), "nothing_allowed");
      ASSERT_EQ(report.tokens.size(), length);
      if (choice.form == PolicyForm::kPlain) continue;
      ASSERT_EQ(report.tokens,
                Ids(expected.begin(),
                    expected.begin() + static_cast<std::ptrdiff_t>(length)));
      Ids held = *prompt_;
      held.insert(held.end(), report.tokens.begin(), report.tokens.end());
      EXPECT_EQ(session->sequence().tokens(), held);
      ExpectNoTrace(*session, *model_, choice.OptionsFor(*model_, {}));
    }
  }
}

TEST_F(MaskedTextTest, AnErrorOfTheMaskLosesNothing) {
  const Ids expected = PlainText(*model_, *prompt_, Params(0.8f, Third()));
  for (const PolicyParams& choice : Choices(VerifyMode::kCoupled)) {
    SCOPED_TRACE(NameOf(choice));
    for (const int last : {1, 2, 5, 20, 37}) {
      int calls = 0;
      const auto fails = [&](std::span<const int32_t> output,
                             std::span<uint32_t> allowed) {
        if (++calls == last) return CancelledError();
        const ThirdForbidden mask(output);
        KeepOnly(allowed, [&](int32_t id) { return mask.Allows(id); });
        return absl::OkStatus();
      };
      const auto session = SessionFor(choice);
      const Report report =
          GenerateDrafted(*session, Params(0.8f, fails), choice);
      EXPECT_EQ(calls, last);
      EXPECT_EQ(ClassOf(report.status), ErrorClass::kCancelled);
      EXPECT_EQ(report.finish_reason, "cancelled");
      ASSERT_EQ(
          report.tokens,
          Ids(expected.begin(), expected.begin() + std::ssize(report.tokens)));
      EXPECT_EQ(session->sequence().tokens().size(),
                prompt_->size() + report.tokens.size());
      ExpectNoTrace(*session, *model_, choice.OptionsFor(*model_, {}));
    }
  }
}

// A token that alone is allowed, and ends texts, ends the text, whatever is
// drafted behind it.
TEST_F(MaskedTextTest, AnEndThatAloneIsAllowedEndsTheText) {
  const auto ending =
      OpenModel({.path = CheckpointPath("llama_chat.gguf"), .machine = {}});
  constexpr int32_t kEnd = 11;
  ending->config.eos_ids = {kEnd};
  const auto rule = [](std::span<const int32_t> output,
                       std::span<uint32_t> allowed) {
    EXPECT_LE(output.size(), 9u);  // not asked behind the end
    const bool ends = output.size() == 9;
    const ThirdForbidden mask(output);
    KeepOnly(allowed, [&](int32_t id) {
      return ends ? id == kEnd : id != kEnd && mask.Allows(id);
    });
    return absl::OkStatus();
  };
  GenerateParams params = Params(0.8f, rule);
  params.ignore_eos = false;
  const Ids expected = PlainText(*ending, *prompt_, params);
  EXPECT_EQ(expected.size(), 9u);
  for (PolicyParams choice : Choices(VerifyMode::kCoupled)) {
    SCOPED_TRACE(NameOf(choice));
    choice.draft_model = ending.get();
    const auto session =
        Prefilled(*ending, *prompt_, choice.OptionsFor(*ending, {}));
    const Report report = GenerateDrafted(*session, params, choice);
    EXPECT_EQ(report.finish_reason, "stop");
    EXPECT_EQ(report.tokens, expected);
  }
}

// The tag that ends a thought comes though the mask forbids it.
TEST_F(MaskedTextTest, AForcedTagIsStrongerThanTheMask) {
  Ids tag;
  ASSERT_TRUE(
      model_->tokenizer->Encode("</think>", Tokenizer::Special::kParse, &tag)
          .ok());
  const auto rule = [&](std::span<const int32_t>, std::span<uint32_t> allowed) {
    KeepOnly(allowed, [&](int32_t id) {
      return std::find(tag.begin(), tag.end(), id) == tag.end();
    });
    return absl::OkStatus();
  };
  std::vector<Ids> texts;
  for (const PolicyForm form :
       {PolicyForm::kBaseline, PolicyForm::kVerified, PolicyForm::kPlain}) {
    PolicyParams choice = {.policy = PolicyNamed("sadas"),
                           .form = form,
                           .verify = VerifyMode::kCoupled,
                           .view = kSmallView};
    if (form == PolicyForm::kVerified) choice.proposer = Proposer::kNgram;
    Think("think=on,most=9", &choice);
    const Ids text =
        DraftedText(*SessionFor(choice), Params(0.8f, rule), choice);
    ASSERT_EQ(text.size(), 48u);
    EXPECT_EQ(Ids(text.begin() + 9, text.begin() + 9 + std::ssize(tag)), tag);
    const auto is_tag = [&](int32_t id) {
      return std::find(tag.begin(), tag.end(), id) != tag.end();
    };
    EXPECT_EQ(std::count_if(text.begin(), text.end(), is_tag), std::ssize(tag));
    texts.push_back(text);
  }
  EXPECT_EQ(texts[0], texts[1]);
}

}  // namespace
}  // namespace tiercel::masked_text_test

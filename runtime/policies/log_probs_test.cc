// The log-probabilities that come with tokens are those of the model's own
// logits, under every policy, whatever the sampler does.

#include "kernels/token/log_probs.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
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

namespace tiercel::log_probs_test {
namespace {

constexpr int64_t kTop = 5;

class LogProbsTest : public RepeatedTextTest<4> {
 protected:
  // Everything that a sampler may do, so that its distribution is another one.
  static GenerateParams Params() {
    GenerateParams params = DraftedParams(0.6f, 40);
    params.distribution.top_k = 30;
    params.distribution.repeat_penalty = 1.3f;
    params.distribution.dry = StrictDry();
    params.top_log_probs = kTop;
    params.mask = [](std::span<const int32_t> output,
                     std::span<uint32_t> allowed) {
      for (uint32_t& word : allowed) {
        word &= output.size() % 2 == 0 ? 0x77777777u : 0xBBBBBBBBu;
      }
      return absl::OkStatus();
    };
    return params;
  }

  static std::unique_ptr<Session> SessionFor(const PolicyParams& choice) {
    return Prefilled(*model_, *prompt_, choice.OptionsFor(*model_, {}));
  }

  // The tokens of a text with their log-probabilities.
  static Ids Texted(const GenerateParams& params, const PolicyParams& choice,
                    std::vector<TokenLogProbs>* log_probs) {
    const auto session = SessionFor(choice);
    Ids given;
    const Report report = GenerateDrafted(
        *session, params, choice, [&](const OutputToken& token) {
          given.push_back(token.id);
          EXPECT_EQ(token.log_probs != nullptr,
                    params.top_log_probs.has_value());
          if (token.log_probs != nullptr) {
            log_probs->push_back(*token.log_probs);
          }
          return true;
        });
    EXPECT_TRUE(report.status.ok()) << report.status;
    EXPECT_EQ(report.tokens, given);
    return given;
  }

  // Checks those of ids[i] against row i of `logits`.
  static void ExpectOf(const std::vector<float>& logits,
                       std::span<const int32_t> ids,
                       std::span<const TokenLogProbs> got) {
    const auto vocab = static_cast<size_t>(model_->config.vocab);
    ASSERT_EQ(got.size(), ids.size());
    ASSERT_EQ(logits.size(), ids.size() * vocab);
    bool cannot_be_drawn = false;
    for (size_t i = 0; i < ids.size(); ++i) {
      const TokenLogProbs want =
          LogProbsOf({logits.data() + i * vocab, vocab}, ids[i], kTop);
      EXPECT_EQ(got[i].log_prob, want.log_prob) << i;
      EXPECT_EQ(got[i].top_ids, want.top_ids) << i;
      EXPECT_EQ(got[i].top_log_probs, want.top_log_probs) << i;
      cannot_be_drawn |= want.log_prob < want.top_log_probs.back();
    }
    EXPECT_TRUE(cannot_be_drawn);  // the sampler made a difference
  }

  // The logits of each of `ids` behind the prompt, by the model alone.
  static std::vector<float> LogitsBefore(const Ids& ids) {
    const Ids prompt(prompt_->begin(), prompt_->end() - 1);
    Ids rows = {prompt_->back()};
    rows.insert(rows.end(), ids.begin(), ids.end() - 1);
    return AllLogits(*Prefilled(*model_, prompt), rows, 8);
  }
};

TEST_F(LogProbsTest, AreTheModelsUnderEveryPolicy) {
  const std::pair<Proposer, VerifyMode> kinds[] = {
      {Proposer::kNone, VerifyMode::kCoupled},
      {Proposer::kNgram, VerifyMode::kResidual},
      {Proposer::kSmall, VerifyMode::kCoupled}};
  for (const std::string name : {"full", "triforce", "sfi", "sadas", "speed"}) {
    for (const auto& [proposer, verify] : kinds) {
      SCOPED_TRACE(name + ", proposer " +
                   std::to_string(static_cast<int>(proposer)));
      PolicyParams choice = name == "sfi" ? SmallSfi() : SmallTriforce();
      choice.policy = PolicyNamed(name);
      choice.proposer = proposer;
      choice.verify = verify;
      choice.branches = name == "triforce" ? 3 : 0;
      choice.draft_model = model_;
      std::vector<TokenLogProbs> log_probs;
      const Ids ids = Texted(Params(), choice, &log_probs);
      ExpectOf(LogitsBefore(ids), ids, log_probs);
    }
  }
}

TEST_F(LogProbsTest, DoNotChangeTheText) {
  GenerateParams without = Params();
  without.top_log_probs = {};
  for (const VerifyMode verify :
       {VerifyMode::kCoupled, VerifyMode::kResidual}) {
    PolicyParams choice = SmallTriforce();
    choice.proposer = Proposer::kNgram;
    choice.verify = verify;
    std::vector<TokenLogProbs> log_probs;
    const Ids ids = Texted(Params(), choice, &log_probs);
    EXPECT_EQ(Texted(without, choice, &log_probs), ids);
  }
}

TEST_F(LogProbsTest, OfPlainFormsAreThoseOfTheirRows) {
  for (const char* const name : {"sfi", "sadas", "speed"}) {
    PolicyParams choice = std::string(name) == "sfi"
                              ? SmallSfi(PolicyForm::kPlain)
                              : PolicyParams{.policy = PolicyNamed(name),
                                             .form = PolicyForm::kPlain,
                                             .view = kSmallView};
    if (std::string(name) == "sadas") {
      choice.Own<SadasParams>().window = 24;
      ASSERT_TRUE(choice.Own<SadasParams>().Set("think=on,most=9").ok());
    }
    SCOPED_TRACE(name);
    std::vector<TokenLogProbs> log_probs;
    const Ids ids = Texted(Params(), choice, &log_probs);
    // The first token's are the prompt's.
    const Ids rows(ids.begin(), ids.end() - 1);
    ExpectOf(ScoredSteps(*SessionFor(choice), choice, rows),
             std::span(ids).subspan(1), std::span(log_probs).subspan(1));
    const std::vector<float> full = LogitsBefore(ids);
    const auto vocab = static_cast<size_t>(model_->config.vocab);
    const auto last = std::span(full).last(vocab);
    EXPECT_NE(LogProbsOf(last, ids.back(), kTop).log_prob,
              log_probs.back().log_prob);
  }
}

TEST_F(LogProbsTest, AsManyAsTwenty) {
  for (const int64_t top : {-1, 0, 20, 21}) {
    GenerateParams params = DraftedParams(0, 2);
    params.top_log_probs = top;
    std::vector<size_t> sizes;
    const auto session = Prefilled(*model_, *prompt_);
    const Report report = GenerateDrafted(
        *session, params, PolicyParams(), [&](const OutputToken& token) {
          sizes.push_back(token.log_probs->top_ids.size());
          return true;
        });
    if (top < 0 || top > 20) {
      EXPECT_EQ(CodeOf(report.status), "invalid_sampling");
    } else {
      EXPECT_EQ(sizes, std::vector<size_t>(2, static_cast<size_t>(top)));
    }
  }
}

}  // namespace
}  // namespace tiercel::log_probs_test

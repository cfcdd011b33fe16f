#ifndef TIERCEL_TESTS_DRAFTING_H_
#define TIERCEL_TESTS_DRAFTING_H_

// Generations with drafts, and checks of the state that they leave.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "lib/status/error.h"
#include "runtime/drafting/rounds.h"
#include "runtime/drafting/session_kv.h"
#include "runtime/generate/generate.h"
#include "runtime/policies/policy.h"
#include "runtime/policies/policy_kind.h"
#include "runtime/policies/sfi/sfi_params.h"
#include "tests/golden.h"

namespace tiercel {

using Ids = std::vector<int32_t>;

// A view so small that most of a text of 300 tokens is not in it.
inline constexpr RetrievalSize kSmallView = {
    .chunk = 8, .budget = 32, .sink = 8, .window = 16};

// Policies over views so small.
inline PolicyParams SmallTriforce() {
  PolicyParams policy;
  policy.policy = PolicyNamed("triforce");
  policy.view = kSmallView;
  return policy;
}
inline PolicyParams SmallSfi(PolicyForm form = PolicyForm::kVerified) {
  PolicyParams policy;
  policy.policy = PolicyNamed("sfi");
  policy.form = form;
  auto& own = policy.Own<SfiParams>();
  own.budget = 64;
  own.chunk = 8;
  own.sink = 2;
  own.window = 20;
  return policy;
}

// The beginning of a text of llama_chat, repeated, so that looking back finds
// something.
inline Ids RepeatedText(size_t length, int rounds) {
  const Ids tokens = ReadTokens(CheckpointPath("llama_chat/tokens.txt"));
  Ids text;
  for (int round = 0; round < rounds; ++round) {
    text.insert(text.end(), tokens.begin(),
                tokens.begin() + static_cast<std::ptrdiff_t>(length));
  }
  return text;
}

// The model llama_chat and a text that repeats itself kRounds times; all tests
// of a fixture share them.
template <int kRounds>
class RepeatedTextTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    model_ = OpenModel({.path = CheckpointPath("llama_chat.gguf"),
                        .machine = {.threads = 2}})
                 .release();
    prompt_ = new Ids(RepeatedText(60, kRounds));
  }
  static void TearDownTestSuite() {
    delete prompt_;
    delete model_;
  }

  static inline Model* model_ = nullptr;
  static inline Ids* prompt_ = nullptr;
};

inline std::unique_ptr<Session> Prefilled(
    const Model& model, const Ids& prompt,
    const Session::Options& options = {}) {
  std::unique_ptr<Session> session = MakeSession(model, options);
  EXPECT_TRUE(
      Prefill(*session, prompt.data(), prompt.size(), kNoProgress).ok());
  return session;
}

inline GenerateParams DraftedParams(float temperature, int64_t max_tokens) {
  return {.max_tokens = max_tokens,
          .seed = 7,
          .distribution = {.temperature = temperature},
          .ignore_eos = true,
          .stops = {}};
}

// Parameters of DRY that change any text: one token is a repetition.
inline DryParams StrictDry() {
  SequenceBreakers breakers;
  breakers.Add({3});
  breakers.Add({7, 8});
  return {.multiplier = 1.5f,
          .allowed_length = 1,
          .breakers = std::make_shared<SequenceBreakers>(breakers)};
}

inline Report GenerateDrafted(Session& session, const GenerateParams& params,
                              const PolicyParams& policy_params,
                              const Transcript::OnToken& on_token = nullptr) {
  const absl::StatusOr<std::unique_ptr<Policy>> policy =
      NewPolicy(session, policy_params);
  EXPECT_TRUE(policy.ok()) << policy.status();
  return Generate(session, **policy, {}, params, on_token);
}

// Calls use() with a model that gives the expected results: `model` itself, or
// the same one on the CPU.
template <typename Use>
auto WithReference(const Model& model, const Use& use) {
  if (!model.machine->device().apart()) return use(model);
  Model::Options options = model.options;
  options.machine = {.threads = options.machine.threads};
  const auto on_cpu = OpenReference(options);
  on_cpu->config = model.config;  // a test may have changed it
  return use(*on_cpu);
}

// The text behind a prompt without drafts.
inline Ids PlainText(const Model& model, const Ids& prompt,
                     const GenerateParams& params) {
  return WithReference(model, [&](const Model& reference) {
    const auto session = Prefilled(reference, prompt);
    const Report report = Generate(*session, params, nullptr);
    EXPECT_TRUE(report.status.ok()) << report.status;
    return report.tokens;
  });
}
inline Ids DraftedText(Session& session, const GenerateParams& params,
                       const PolicyParams& policy_params) {
  const Report report = GenerateDrafted(session, params, policy_params);
  EXPECT_TRUE(report.status.ok()) << report.status;
  return report.tokens;
}

// The logits [ids, vocab] after each of `ids`, which follow the session's
// tokens, each by a step of the policy's plain form.
inline std::vector<float> ScoredSteps(Session& session,
                                      const PolicyParams& params,
                                      const Ids& ids) {
  const auto policy = NewPolicy(session, params);
  EXPECT_TRUE(policy.ok()) << policy.status();
  std::vector<float> all;
  EXPECT_TRUE(ScoreSteps(session, **policy, ids.data(), ids.size(),
                         [&](size_t /*index*/, const float* logits) {
                           all.insert(all.end(), logits,
                                      logits + session.model().config.vocab);
                           return true;
                         })
                  .ok());
  return all;
}

// The text of a request, which is also stopped at each of its tokens and then
// must give the tokens before. The session holds its prompt before, and nearly
// all of the text after.
inline Ids StoppedAnywhere(Session& session, const GenerateParams& params,
                           const PolicyParams& policy_params) {
  const size_t prompt = session.sequence().tokens().size();
  Ids expected = DraftedText(session, params, policy_params);
  for (size_t stop = 1; stop < expected.size(); ++stop) {
    session.Truncate(prompt);
    size_t count = 0;
    const Report report =
        GenerateDrafted(session, params, policy_params,
                        [&](const OutputToken&) { return ++count < stop; });
    EXPECT_EQ(ClassOf(report.status), ErrorClass::kCancelled) << stop;
    EXPECT_EQ(report.tokens,
              Ids(expected.begin(),
                  expected.begin() + static_cast<std::ptrdiff_t>(stop)));
  }
  return expected;
}

// Proposes the tokens that a function returns.
class ScriptedDrafter final : public Drafter {
 public:
  using Script = std::function<Ids(const Ids& tokens, int64_t most)>;
  explicit ScriptedDrafter(Script script) : script_(std::move(script)) {}

  const char* name() const override { return "scripted"; }
  absl::StatusOr<DraftBlock> Draft(const Ids& tokens, int64_t most,
                                   const DrawKey& /*key*/) override {
    DraftBlock block;
    block.tokens = script_(tokens, most);
    for (int32_t id : block.tokens)
      block.distributions.push_back({{id}, {1.0f}});
    return block;
  }

 private:
  const Script script_;
};

// A generation with the test's own drafter.
struct ScriptedParams : GenerateParams {
  ScriptedParams() = default;
  ScriptedParams(const GenerateParams& params)  // NOLINT: adds to it
      : GenerateParams(params) {}

  Drafter* drafter = nullptr;
  DraftLength draft_length = DraftLength::Fixed(8);
  bool over_view = false;
  VerifyMode verify = VerifyMode::kResidual;
};

class ScriptedPolicy final : public Policy {
 public:
  ScriptedPolicy(Session& session, const ScriptedParams& params)
      : session_(session), params_(params) {}

  absl::Status Begin(const DistributionParams& distribution,
                     uint64_t seed) override {
    target_.emplace(session_, distribution,
                    std::make_unique<SessionKv>(session_));
    rounds_.emplace(session_, *target_,
                    Rounds::Options{.seed = seed,
                                    .verify = params_.verify,
                                    .drafter = params_.drafter,
                                    .length = params_.draft_length,
                                    .over_view = params_.over_view});
    return rounds_->Begin();
  }
  absl::StatusOr<VerifiedBlock> NextBlock() override { return rounds_->Next(); }
  RoundsReport report() const override { return rounds_->report(); }

 private:
  Session& session_;
  const ScriptedParams params_;
  std::optional<ModelTarget> target_;
  std::optional<Rounds> rounds_;
};

inline Report Generate(Session& session, const ScriptedParams& params,
                       const Transcript::OnToken& on_token,
                       const PrefillReport& prefill = {}) {
  ScriptedPolicy policy(session, params);
  return Generate(session, policy, prefill, params, on_token);
}

// Checks that drafts left no trace: the next logits have the same bytes as in a
// session of `model` with `options` that was given the same tokens, of which
// there are 20 or more.
inline void ExpectNoTrace(Session& session, const Model& model,
                          const Session::Options& options = {}) {
  const Ids tokens = session.sequence().tokens();
  ASSERT_GE(tokens.size(), 20u);
  const Ids more(tokens.begin(), tokens.begin() + 20);
  const std::vector<float> expected =
      WithReference(model, [&](const Model& reference) {
        return AllLogits(*Prefilled(reference, tokens, options), more, 20);
      });
  EXPECT_EQ(AllLogits(session, more, 1), expected);
  session.Truncate(tokens.size());
}

}  // namespace tiercel

#endif  // TIERCEL_TESTS_DRAFTING_H_

// Families whose layers or steps differ from llama's go through the whole
// runtime: the text of every policy is the same over two ranks, and on a
// simulated device that is too small for the KV, as on the CPU; and drafts that
// are coupled leave the text that there is without them.

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "runtime/policies/policy.h"
#include "runtime/policies/sfi/sfi_params.h"
#include "runtime/policies/speed/speed_params.h"
#include "runtime/session/batch.h"
#include "tests/drafting.h"
#include "tests/golden.h"
#include "tests/tiers.h"

namespace tiercel {
namespace {

struct PolicyCase {
  std::string name;
  PolicyParams params;
};

std::vector<PolicyCase> Policies() {
  std::vector<PolicyCase> all = {{"full", {}}, {"triforce", SmallTriforce()}};
  for (const PolicyForm form : {PolicyForm::kVerified, PolicyForm::kPlain}) {
    PolicyParams sfi = SmallSfi(form);
    EXPECT_TRUE(sfi.Own<SfiParams>().Set("trigger=fixed,interval=8").ok());
    all.push_back({"sfi", sfi});
    PolicyParams speed = {
        .policy = PolicyNamed("speed"), .form = form, .view = kSmallView};
    EXPECT_TRUE(speed.Own<SpeedParams>().Set("cut=1").ok());
    all.push_back({"speed", speed});
  }
  for (PolicyCase& policy : all) policy.params.verify = VerifyMode::kCoupled;
  return all;
}

class FamiliesTest : public testing::TestWithParam<const char*> {
 protected:
  std::unique_ptr<Model> Open(int ranks) const {
    return OpenModel({.path = CheckpointPath(GetParam()),
                      .machine = {.threads = 2},
                      .ranks = ranks});
  }
};

TEST_P(FamiliesTest, EveryPolicysTextIsTheSameEverywhere) {
  const auto one = Open(1);
  const auto two = Open(2);
  // A view shows some of the text; a page is full.
  const Ids prompt = RandomIds(200, one->config.vocab);
  const GenerateParams params = DraftedParams(0.8f, 12);
  const Ids plain = PlainText(*one, prompt, params);
  for (const PolicyCase& policy : Policies()) {
    const Session::Options options =
        policy.params.OptionsFor(*one, {.context = 240});
    const auto text = [&](Session& session) {
      EXPECT_TRUE(
          Prefill(session, prompt.data(), prompt.size(), kNoProgress).ok());
      return DraftedText(session, params, policy.params);
    };
    const Ids expected = text(*MakeSession(*one, options));
    if (policy.params.form == PolicyForm::kVerified) {
      EXPECT_EQ(expected, plain) << policy.name;
    }
    EXPECT_EQ(text(*MakeSession(*two, options)), expected) << policy.name;
    const Tiered tiered = MakeTiered(*one, options, Budget::kLeast);
    EXPECT_EQ(text(*tiered.session), expected) << policy.name;
  }
}

// Sessions of other lengths have other frequencies, also in the passes that
// they share.
TEST(RopeLengthTest, EachSessionOfABatchHasItsOwn) {
  const auto model =
      OpenModel({.path = CheckpointPath("phi3"), .machine = {.threads = 2}});
  const Ids prompt = RandomIds(30, model->config.vocab);
  const auto session_of = [&](int64_t context) {
    return Prefilled(*model, prompt, {.context = context});
  };
  const auto go_on = [](Session& session) {
    return DraftedText(session, DraftedParams(0.8f, 20), {});
  };
  const int64_t contexts[] = {64, 256, 60};
  std::vector<std::unique_ptr<Session>> sessions;
  std::vector<Ids> alone;
  for (const int64_t context : contexts) {
    sessions.push_back(session_of(context));
    alone.push_back(go_on(*session_of(context)));
  }
  EXPECT_EQ(NextLogits(*sessions[0]), NextLogits(*sessions[2]));
  EXPECT_NE(NextLogits(*sessions[0]), NextLogits(*sessions[1]));
  EXPECT_EQ(alone[0], alone[2]);
  EXPECT_NE(alone[0], alone[1]);
  const auto batch = Batch::Create(*sessions.front()).value();
  std::vector<Ids> together(sessions.size());
  std::vector<Batch::Call> calls;
  for (size_t i = 0; i < sessions.size(); ++i) {
    calls.push_back(
        {*sessions[i], [&, i] { together[i] = go_on(*sessions[i]); }});
  }
  ASSERT_TRUE(batch->Run(std::move(calls)).ok());
  EXPECT_GT(batch->passes().steps, batch->passes().passes);
  EXPECT_EQ(together, alone);
}

// The prompt cache opens a text for sessions with the frequencies that it was
// read with.
TEST(RopeLengthTest, AnotherSessionsTextIsNotOpened) {
  const std::string from = CheckpointPath("llama_chat");
  const std::string to = ScratchFolder() + "/dynamic";
  std::filesystem::copy(from, to);
  nlohmann::json config =
      nlohmann::json::parse(std::ifstream(from + "/config.json"));
  config["max_position_embeddings"] = 1100;
  config["rope_scaling"] = {{"rope_type", "dynamic"}, {"factor", 2.0}};
  std::ofstream(to + "/config.json") << config;
  const auto model = OpenModel({.path = to, .machine = {.threads = 2}});
  const Ids ids = RandomIds(1060, model->config.vocab);
  const auto cached = [&](int64_t context) {
    const auto session = MakeSession(
        *model, {.context = context,
                 .texts = {{.path = to + "/texts", .build = "a build"}}});
    const auto prefill = Prefill(*session, ids.data(), ids.size(), kNoProgress);
    EXPECT_TRUE(prefill.ok()) << prefill.status();
    const auto computed = Prefilled(*model, ids, {.context = context});
    EXPECT_EQ(NextLogits(*session), NextLogits(*computed));
    return prefill->cached_tokens;
  };
  EXPECT_EQ(cached(1100), 0);
  EXPECT_EQ(cached(1500), 0);
  EXPECT_EQ(cached(1600), 0);
  EXPECT_EQ(cached(1500), 1059);
  EXPECT_EQ(cached(1090), 1059);
}

INSTANTIATE_TEST_SUITE_P(Checkpoints, FamiliesTest,
                         testing::Values("smollm3", "granite", "ministral3",
                                         "phi3"));

}  // namespace
}  // namespace tiercel

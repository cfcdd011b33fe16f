// Families whose layers or steps differ from llama's go through the whole
// runtime: the text of every policy is the same over two ranks, and on a
// simulated device that is too small for the KV, as on the CPU; and drafts that
// are coupled leave the text that there is without them.

#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "runtime/policies/policy.h"
#include "runtime/policies/sfi/sfi_params.h"
#include "runtime/policies/speed/speed_params.h"
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
  std::vector<PolicyCase> all = {{"full", {}},
                                 {"triforce",
                                  {.policy = PolicyNamed("triforce"),
                                   .verify = VerifyMode::kCoupled,
                                   .view = kSmallView}}};
  for (const PolicyForm form : {PolicyForm::kVerified, PolicyForm::kPlain}) {
    PolicyParams sfi = {.policy = PolicyNamed("sfi"),
                        .form = form,
                        .verify = VerifyMode::kCoupled};
    sfi.Own<SfiParams>().budget = 40;
    sfi.Own<SfiParams>().sink = 2;
    sfi.Own<SfiParams>().window = 20;
    EXPECT_TRUE(sfi.Own<SfiParams>().Set("trigger=fixed,interval=8").ok());
    all.push_back({"sfi", sfi});
    PolicyParams speed = {.policy = PolicyNamed("speed"),
                          .form = form,
                          .verify = VerifyMode::kCoupled,
                          .view = kSmallView};
    EXPECT_TRUE(speed.Own<SpeedParams>().Set("cut=1").ok());
    all.push_back({"speed", speed});
  }
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
  // A view shows some of the text; two pages are full.
  const Ids prompt = RandomIds(260, one->config.vocab);
  const GenerateParams params = DraftedParams(0.8f, 12);
  const Ids plain = PlainText(*one, prompt, params);
  for (const PolicyCase& policy : Policies()) {
    const Session::Options options =
        policy.params.OptionsFor(*one, {.context = 320});
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

INSTANTIATE_TEST_SUITE_P(Checkpoints, FamiliesTest,
                         testing::Values("smollm3", "granite"));

}  // namespace
}  // namespace tiercel

// A mixture of experts under every policy, over ranks, behind links and with
// layers in the host tier: several texts at once are what each is alone on the
// CPU.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/system/testing.h"
#include "runtime/plan/plan.h"
#include "runtime/policies/sadas/sadas_params.h"
#include "runtime/policies/speed/speed_params.h"
#include "runtime/session/batch_texts_for_test.h"

namespace tiercel::experts_test {
namespace {

class ExpertsTest : public BatchTextsTest {
 protected:
  static void SetUpTestSuite() { SetUpWith("qwen3moe"); }

  static std::vector<PolicyParams> EveryPolicy() {
    std::vector<PolicyParams> all = Policies();
    PolicyParams sadas = {.policy = PolicyNamed("sadas"), .view = kSmallView};
    sadas.Own<SadasParams>().window = 200;
    EXPECT_TRUE(sadas.Own<SadasParams>().Set("gate=always").ok());
    all.push_back(sadas);
    PolicyParams speed = {.policy = PolicyNamed("speed"),
                          .verify = VerifyMode::kCoupled,
                          .view = kSmallView};
    all.push_back(speed);
    return all;
  }
};

TEST_F(ExpertsTest, EachTextIsWhatItIsAlone) {
  int turn = 0;
  for (const PolicyParams& policy : EveryPolicy()) {
    SCOPED_TRACE(policy.policy->name());
    std::vector<Job> jobs = Jobs(policy);
    jobs.resize(2);
    for (Job& job : jobs) job.params.max_tokens = 17;
    const std::vector<Report> expected = Expected(jobs);
    const SessionOptions options = OptionsOf(policy, kForks);
    // By turns over ranks and with streamed layers.
    const int ranks = ++turn % 2 == 0 ? 1 : 2 + turn / 2 % 2;
    const auto model = OpenTiered(options, ranks, ranks == 1 ? 4 : 0);
    ASSERT_NE(model, nullptr);
    const auto sessions = Forks(MakeSession(*model, options), jobs);
    const std::vector<Report> reports = AtOnce(jobs, sessions);
    for (size_t i = 0; i < jobs.size(); ++i) {
      ASSERT_TRUE(reports[i].status.ok()) << reports[i].status;
      ASSERT_EQ(reports[i].tokens, expected[i].tokens)
          << i << " over " << ranks;
    }
  }
}

// Dense layers lie between those with experts.
TEST_F(ExpertsTest, LogitsOverRanksAreThoseOfOne) {
  for (const char* name : {"qwen3moe", "qwen3moe_mixed"}) {
    const auto open = [&](int ranks) {
      return OpenModel({.path = CheckpointPath(name),
                        .machine = {.threads = 2},
                        .ranks = ranks});
    };
    const auto one = open(1);
    const Ids ids = RandomIds(150, one->config.vocab);
    const std::vector<float> expected = AllLogits(*MakeSession(*one), ids, 150);
    for (const int ranks : {2, 3}) {
      const auto many = open(ranks);
      for (const size_t rows : {1, 64}) {
        EXPECT_TRUE(
            SameBits(AllLogits(*MakeSession(*many), ids, rows), expected))
            << name << " over " << ranks << ", " << rows << " rows";
      }
    }
  }
}

TEST_F(ExpertsTest, AModelKnowsWhatRowsRead) {
  const auto sizes = MeasureWeights(*like_->checkpoint, like_->config).value();
  EXPECT_EQ(sizes.bytes_per_token, like_->weights->bytes_per_token());
  EXPECT_EQ(like_->BytesPerToken(), sizes.bytes_per_token);
  EXPECT_GT(sizes.expert_bytes, 0);
  // A token reads two of six experts.
  EXPECT_NEAR(like_->MoreOfRows(100),
              1 + 2.0 * static_cast<double>(sizes.expert_bytes) /
                      static_cast<double>(sizes.bytes_per_token),
              1e-3);
}

// inspect and plan say what experts there are, and what of them a token reads.
TEST_F(ExpertsTest, AreDescribed) {
  const auto described = [](const std::string& name) {
    const auto model =
        OpenModel({.path = CheckpointPath(name), .weights = false});
    nlohmann::json plan = DescribePlan(*model, {.context = 256}).value();
    return std::pair(model->Describe()["config"]["experts"], plan["experts"]);
  };
  nlohmann::json expected = {
      {"count", 5}, {"used", 3}, {"ffn", 24}, {"normed", false}, {"layers", 1}};
  const auto [config, plan] = described("qwen3moe_mixed");
  EXPECT_EQ(config, expected);
  // Three experts of two matrices of 32 rows, padded from 24, and one of 32.
  expected["bytes_per_token"] = 3 * 4 * (2 * 32 * 32 + 32 * 24);
  EXPECT_EQ(plan, expected);
  const auto [no_experts, none] = described("qwen3");
  EXPECT_TRUE(no_experts.is_null() && none.is_null());
}

}  // namespace
}  // namespace tiercel::experts_test

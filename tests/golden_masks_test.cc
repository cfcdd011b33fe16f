// Compares rows that read only a part of the text with transformers under the
// same masks (tests/golden/make_masked.py), by the plain forms of SPEED and
// SADAS.

#include <cmath>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "runtime/policies/policy.h"
#include "runtime/policies/sadas/sadas_params.h"
#include "runtime/policies/speed/speed_params.h"
#include "tests/drafting.h"
#include "tests/golden.h"

namespace tiercel {
namespace {

constexpr double kAsExact = 1e-4;  // see golden_logits_test
constexpr size_t kPrompt = 90;     // as in make_masked.py

class GoldenMasksTest : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    const std::string path = CheckpointPath(GetParam());
    model_ = OpenModel(
        {.path = path, .machine = {.threads = 2}, .compute = Compute::kF32});
    ids_ = ReadTokens(path + "/tokens.txt");
    ASSERT_EQ(ids_.size(), 160u);
  }

  // Compares the logits of the prompt's last row and of all rows after it.
  void Expect(const PolicyParams& params, const std::string& golden,
              size_t first) {
    Session::Options options = {.type_k = DType::kF32, .type_v = DType::kF32};
    options.extent = params.OptionsFor(*model_, {}).extent;
    const auto session = MakeSession(*model_, options);
    ASSERT_TRUE(Prefill(*session, ids_.data(), kPrompt, kNoProgress).ok());
    std::vector<float> got = NextLogits(*session);
    const size_t vocab = got.size();
    const std::vector<float> after = ScoredSteps(
        *session, params,
        Ids(ids_.begin() + static_cast<std::ptrdiff_t>(kPrompt), ids_.end()));
    got.insert(got.end(), after.begin(), after.end());
    const std::vector<float> expected =
        ReadNpy(CheckpointPath(GetParam()) + "/" + golden,
                (ids_.size() - first) * vocab);
    const size_t skipped = (kPrompt - 1 - first) * vocab;
    ASSERT_EQ(got.size(), expected.size() - skipped);
    for (size_t i = 0; i < got.size(); ++i) {
      ASSERT_LE(std::fabs(got[i] - expected[skipped + i]), kAsExact)
          << golden << ", logit " << i;
    }
  }

  std::unique_ptr<Model> model_;
  std::vector<int32_t> ids_;
};

TEST_P(GoldenMasksTest, SpeedIsTransformersUnderItsMask) {
  PolicyParams params = {.policy = PolicyNamed("speed"),
                         .form = PolicyForm::kPlain};
  ASSERT_TRUE(params.Own<SpeedParams>().Set("cut=1,anchor=2,tail=4").ok());
  Expect(params, "speed.npy", kPrompt - 4);
}

TEST_P(GoldenMasksTest, SadasIsTransformersUnderItsMask) {
  PolicyParams params = {.policy = PolicyNamed("sadas"),
                         .form = PolicyForm::kPlain};
  params.Own<SadasParams>().window = 24;
  params.Own<SadasParams>().sink = 3;
  // The row of the token that ends the thought reads everything.
  ASSERT_TRUE(params.Own<SadasParams>().Set("think=on,most=41").ok());
  Expect(params, "sadas.npy", kPrompt - 1);
}

INSTANTIATE_TEST_SUITE_P(Checkpoints, GoldenMasksTest,
                         testing::Values("llama_mha", "llama_gqa", "qwen3",
                                         "smollm3", "granite", "ministral3"));

}  // namespace
}  // namespace tiercel

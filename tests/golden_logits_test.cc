// Compares the whole decoder with transformers (tests/golden/README.md): every
// architecture, shape, RoPE scaling and weight type, from both file formats.

#include <cmath>
#include <iterator>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/golden.h"

namespace tiercel {
namespace {

// Float32 arithmetic on logits of deviation 2 is off by about 1e-5, in
// transformers too (manifest.json); a wrong term is off by 0.01 and more.
constexpr double kTolerance = 1e-4;

const Session::Options kF32Kv = {.type_k = DType::kF32, .type_v = DType::kF32};

void ExpectNear(const std::vector<float>& got,
                const std::vector<float>& expected) {
  ASSERT_EQ(got.size(), expected.size());
  size_t wrong = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    if (std::fabs(got[i] - expected[i]) <= kTolerance) continue;
    if (wrong++ < 3) {
      ADD_FAILURE() << "logit " << i << ": " << got[i] << ", expected "
                    << expected[i];
    }
  }
  EXPECT_EQ(wrong, 0u);
}

struct Golden {
  std::string checkpoint;
  std::string tokens;
  std::string logits;
  size_t count = 160;  // the number of tokens that are read
};

std::vector<Golden> Goldens() {
  std::vector<Golden> goldens;
  for (const char* name :
       {"llama_mha", "llama_gqa", "llama_mqa", "llama_bias", "llama_chat",
        "llama_rope_llama3", "llama_rope_yarn", "llama_rope_linear", "qwen2",
        "qwen3", "smollm3", "granite", "ministral3", "phi3", "qwen3moe",
        "qwen3moe_mixed"}) {
    const std::string path = CheckpointPath(name);
    for (const char* form : {"", ".gguf"}) {
      // GGUF has no dense layers between those with experts.
      if (*form != 0 && path.ends_with("_mixed")) continue;
      goldens.push_back(
          {path + form, path + "/tokens.txt", path + "/golden.npy"});
    }
  }
  // A session of other factors, and scaling that GGUF lacks.
  const std::string phi = CheckpointPath("phi3");
  for (const char* form : {"", ".gguf"}) {
    goldens.push_back(
        {phi + form, phi + "/tokens.txt", phi + "/short.npy", 64});
  }
  // In GGUF granite4 is Granite's architecture.
  for (const char* name : {"llama_rope_dynamic", "granite4"}) {
    const std::string path = CheckpointPath(name);
    goldens.push_back({path, path + "/tokens.txt", path + "/golden.npy"});
  }
  const std::string bias = CheckpointPath("llama_bias");
  goldens.push_back({bias + "-00001-of-00004.gguf", bias + "/tokens.txt",
                     bias + "/golden.npy"});
  for (const char* name :
       {"quant32/f16", "quant32/bf16", "quant32/q8_0", "quant32/q4_0",
        "quant32/q4_1", "quant32/q5_0", "quant32/q5_1", "quant32/iq4_nl",
        "quant32/mxfp4", "quant256/q4_k", "quant256/q5_k", "quant256/q6_k",
        "quant256/iq4_xs", "quant256/q3_k", "quant256/q2_k",
        "quant_experts/q4_k"}) {
    const std::string path = CheckpointPath(name);
    goldens.push_back({path + ".gguf",
                       path.substr(0, path.rfind('/')) + "/tokens.txt",
                       path + ".npy"});
  }
  return goldens;
}

class GoldenLogitsTest : public testing::TestWithParam<Golden> {
 protected:
  void SetUp() override {
    ids_ = ReadTokens(GetParam().tokens);
    ASSERT_EQ(ids_.size(), 160u);
    ids_.resize(GetParam().count);
  }

  // Computes in exact arithmetic, with every op's body for `device`.
  void ExpectGolden(DeviceKind device, Session::Options options) {
    options.context = std::ssize(ids_);  // the length that transformers sees
    const auto model = OpenModel({.path = GetParam().checkpoint,
                                  .machine = {.device = device, .threads = 2},
                                  .compute = Compute::kF32});
    ASSERT_NE(model, nullptr);
    const auto vocab = static_cast<size_t>(model->config.vocab);
    const auto session = MakeSession(*model, options);
    ExpectNear(AllLogits(*session, ids_, 0),
               ReadNpy(GetParam().logits, ids_.size() * vocab));
  }

  std::vector<int32_t> ids_;
};

TEST_P(GoldenLogitsTest, ExactArithmeticIsTransformers) {
  ExpectGolden(DeviceKind::kCpu, kF32Kv);
}

TEST_P(GoldenLogitsTest, ReferenceOpsAreTransformers) {
  ExpectGolden(DeviceKind::kRef, kF32Kv);
}

// RoPE is relative; angles in float would be off by 0.01 rad out there.
TEST_P(GoldenLogitsTest, Position120000IsPosition0) {
  Session::Options options = kF32Kv;
  options.first_position = 120000;
  const auto header =
      OpenModel({.path = GetParam().checkpoint, .weights = false});
  const ModelConfig& config = header->config;
  if (config.query_growth > 0 ||
      config.RopeLength(std::ssize(ids_)) != config.RopeLength(120000)) {
    GTEST_SKIP() << "positions are absolute in this model";
  }
  ExpectGolden(DeviceKind::kCpu, options);
}

// Row invariance is equality of bytes, not a tolerance, with quantised
// activations too.
TEST_P(GoldenLogitsTest, RowsAndThreadsChangeNoBit) {
  for (Compute compute : {Compute::kQ8, Compute::kF32}) {
    std::vector<float> first;
    for (int threads : {1, 2, 3}) {
      const auto model = OpenModel(
          {.path = GetParam().checkpoint,
           .machine = {.device = DeviceKind::kCpu, .threads = threads},
           .compute = compute});
      ASSERT_NE(model, nullptr);
      for (size_t rows : {1, 7, 64, 512}) {
        const auto session = MakeSession(*model);
        const std::vector<float> logits = AllLogits(*session, ids_, rows);
        if (first.empty()) first = logits;
        ASSERT_EQ(std::memcmp(first.data(), logits.data(),
                              first.size() * sizeof(float)),
                  0)
            << threads << " threads, " << rows << " rows";
      }
    }
  }
}

std::string NameOfGolden(const testing::TestParamInfo<Golden>& info) {
  std::string name = info.param.checkpoint;
  name = name.substr(CheckpointPath("").size());
  if (info.param.count < 160) name += "_short";
  for (char& c : name) {
    if (!isalnum(static_cast<unsigned char>(c))) c = '_';
  }
  return name;
}

INSTANTIATE_TEST_SUITE_P(All, GoldenLogitsTest, testing::ValuesIn(Goldens()),
                         NameOfGolden);

}  // namespace
}  // namespace tiercel

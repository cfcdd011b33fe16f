// Tests of the warning for prompts that end below a checkpoint's last layer.

#include "runtime/policies/speed/prompt_depth.h"

#include <memory>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/status/error.h"
#include "models/format/files_for_test.h"
#include "models/format/gguf.h"
#include "models/format/gguf_writer_for_test.h"
#include "models/format/json.h"
#include "models/format/safetensors.h"

namespace tiercel {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

// The file has the three keys, or none if `cut` is 0.
std::unique_ptr<Checkpoint> Gguf(uint32_t cut, uint32_t anchor,
                                 const std::string& past) {
  GgufWriter w;
  w.Key<std::string>("general.architecture", "llama");
  if (cut > 0) {
    w.Key<uint32_t>("tiercel.speed.cut", cut);
    w.Key<uint32_t>("tiercel.speed.anchor", anchor);
    w.Key<std::string>("tiercel.speed.past", past);
  }
  return OpenGguf("m.gguf", MemoryOpener({{"m.gguf", w.Bytes()}})).value();
}

std::unique_ptr<Checkpoint> Directory(const json& config) {
  return OpenSafetensors(
             "d", MemoryOpener({{"d/config.json", WriteJson(config)},
                                {"d/model.safetensors",
                                 std::string("\2\0\0\0\0\0\0\0{}", 10)}}))
      .value();
}

TEST(PromptDepthTest, ThreeQuartersOfTheLayersOfItsOwnAccord) {
  ModelConfig config;
  for (const auto& [layers, cut] :
       {std::pair(32, 24), std::pair(30, 22), std::pair(28, 21),
        std::pair(2, 1), std::pair(1, 1)}) {
    config.layers = layers;
    EXPECT_EQ(PromptDepth().Of(config).cut, cut);
    EXPECT_EQ(PromptDepth{.cut = 1}.Of(config).cut, 1);
    EXPECT_TRUE(CheckPromptDepth(config, {.cut = layers}).ok());
    EXPECT_EQ(ClassOf(CheckPromptDepth(config, {.cut = layers + 1})),
              ErrorClass::kUsage);
  }
}

TEST(PromptDepthTest, WhoWasTrainedForItIsNotWarned) {
  const PromptDepth asked = {.cut = 24, .anchor = 1};
  EXPECT_EQ(UntrainedFor(*Gguf(24, 1, "drop"), asked), "");
  EXPECT_EQ(UntrainedFor(*Directory({{"speed", {{"cut", 24}}}}), asked), "");
  EXPECT_EQ(UntrainedFor(
                *Directory({{"speed",
                             {{"cut", 24}, {"anchor", 4}, {"past", "keep"}}}}),
                {.cut = 24, .anchor = 4, .keeps_past = true}),
            "");
}

TEST(PromptDepthTest, OthersAreToldWhatTheyWereTrainedFor) {
  const PromptDepth asked = {.cut = 24, .anchor = 1};
  for (const json& config : {json::object(), json{{"speed", 24}},
                             json{{"speed", {{"cut", "24"}}}}}) {
    EXPECT_THAT(UntrainedFor(*Directory(config), asked),
                HasSubstr("does not say that it was trained"));
  }
  EXPECT_THAT(UntrainedFor(*Gguf(0, 0, ""), asked), HasSubstr("layer 24"));
  EXPECT_THAT(UntrainedFor(*Gguf(22, 1, "drop"), asked),
              HasSubstr("trained for cut=22, anchor=1, past=drop"));
  EXPECT_THAT(UntrainedFor(*Gguf(24, 0, "drop"), asked),
              HasSubstr("trained for cut=24, anchor=0, past=drop"));
  EXPECT_THAT(UntrainedFor(*Gguf(24, 1, "keep"), asked),
              HasSubstr("got cut=24, anchor=1, past=drop, the checkpoint was "
                        "trained for cut=24, anchor=1, past=keep"));
}

}  // namespace
}  // namespace tiercel

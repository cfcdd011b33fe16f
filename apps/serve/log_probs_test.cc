#include "apps/serve/log_probs.h"

#include <string>
#include <string_view>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "include/tiercel.hpp"

namespace tiercel::serve {
namespace {

using ::testing::ElementsAre;

const std::vector<Spelling> kVocabulary = {
    {"The", false},  {" cat", false},    {"\xe2\x98", false},
    {"\x83", false}, {"</think>", true}, {" \xe2", false}};
enum { kThe, kCat, kSnow, kMan, kTag, kSpace };

LogProbs Made(Endpoint endpoint, bool wanted = true) {
  Request request;
  request.endpoint = endpoint;
  if (wanted) request.sampling.top_log_probs = 2;
  return LogProbs(request, [](int32_t id) {
    return kVocabulary.at(static_cast<size_t>(id));
  });
}

// Adds a token with the two likeliest of its place: kCat, and itself.
void Add(LogProbs& log_probs, int32_t id, std::string_view text,
         std::string_view thought = "") {
  log_probs.Add({id, text, thought, -0.5f, {{kCat, -0.25f}, {id, -0.5f}}});
}

std::vector<std::string> TokensOf(const Json& document) {
  std::vector<std::string> tokens;
  for (const Json& token : document.at("content")) {
    tokens.push_back(token.at("token").get<std::string>());
  }
  return tokens;
}

TEST(LogProbsTest, AChatHasTokensWithTheLikeliest) {
  LogProbs log_probs = Made(Endpoint::kChat);
  Add(log_probs, kThe, "The");
  const Json cat = {{"token", " cat"},
                    {"logprob", -0.25},
                    {"bytes", {0x20, 0x63, 0x61, 0x74}}};
  const Json the = {
      {"token", "The"}, {"logprob", -0.5}, {"bytes", {0x54, 0x68, 0x65}}};
  Json token = the;
  token["top_logprobs"] = Json::array({cat, the});
  EXPECT_EQ(log_probs.Whole(),
            Json({{"content", Json::array({token})}, {"refusal", nullptr}}));
}

TEST(LogProbsTest, ACompletionHasLists) {
  LogProbs log_probs = Made(Endpoint::kCompletion);
  Add(log_probs, kThe, "The");
  Add(log_probs, kSnow, "");
  Add(log_probs, kMan, "\xe2\x98\x83");
  Add(log_probs, kCat, " c");  // a stop text cut it
  const Json whole = log_probs.Whole();
  EXPECT_EQ(whole.at("tokens"),
            Json({"The", "bytes:\\xe2\\x98", "bytes:\\x83", " cat"}));
  EXPECT_EQ(whole.at("token_logprobs"), Json({-0.5, -0.5, -0.5, -0.5}));
  EXPECT_EQ(whole.at("text_offset"), Json({0, 3, 3, 4}));
  EXPECT_EQ(whole.at("top_logprobs").at(0),
            Json({{" cat", -0.25}, {"The", -0.5}}));
  // One text is there once, as the likelier token.
  EXPECT_EQ(whole.at("top_logprobs").at(3), Json({{" cat", -0.25}}));
}

TEST(LogProbsTest, PartsOfACharacterHaveTheirBytes) {
  LogProbs log_probs = Made(Endpoint::kChat);
  Add(log_probs, kThe, "The");
  Add(log_probs, kSpace, " ");
  const Json content = log_probs.Whole().at("content");
  EXPECT_EQ(content.at(1).at("token"), " \\xe2");
  EXPECT_EQ(content.at(1).at("bytes"), Json({0x20, 0xe2}));
}

TEST(LogProbsTest, AControlTokenHasNoBytes) {
  LogProbs log_probs = Made(Endpoint::kChat);
  Add(log_probs, kThe, "The");
  Add(log_probs, kTag, "");
  const Json tag = log_probs.Whole().at("content").at(1);
  EXPECT_EQ(tag.at("token"), "</think>");
  EXPECT_TRUE(tag.at("bytes").is_null());
}

TEST(LogProbsTest, AThoughtIsLeftOut) {
  LogProbs log_probs = Made(Endpoint::kChat);
  Add(log_probs, kTag, "");
  Add(log_probs, kThe, "", "The");
  Add(log_probs, kSnow, "");
  Add(log_probs, kMan, "", "\xe2\x98\x83");
  Add(log_probs, kTag, "");
  EXPECT_TRUE(log_probs.Rest().is_null());
  // The answer begins with a character of two tokens, behind the tag.
  Add(log_probs, kSnow, "");
  Add(log_probs, kMan, "\xe2\x98\x83");
  Add(log_probs, kTag, "");
  EXPECT_THAT(TokensOf(log_probs.Whole()),
              ElementsAre("\\xe2\\x98", "\\x83", "</think>"));
}

TEST(LogProbsTest, AnAnswerThatEndsWithinAThoughtHasNone) {
  LogProbs log_probs = Made(Endpoint::kChat);
  Add(log_probs, kTag, "");
  Add(log_probs, kThe, "", "The");
  Add(log_probs, kTag, "");
  EXPECT_TRUE(log_probs.Rest().is_null());
  EXPECT_EQ(log_probs.Whole().at("content"), Json::array());
}

TEST(LogProbsTest, ACompletionHasAllTokens) {
  LogProbs log_probs = Made(Endpoint::kCompletion);
  Add(log_probs, kTag, "");
  EXPECT_EQ(log_probs.Rest().at("tokens"), Json({"</think>"}));
}

TEST(LogProbsTest, EachChunkHasItsOwn) {
  LogProbs log_probs = Made(Endpoint::kCompletion);
  Add(log_probs, kThe, "The");
  EXPECT_EQ(log_probs.Rest().at("text_offset"), Json({0}));
  Add(log_probs, kSnow, "");
  Add(log_probs, kMan, "\xe2\x98\x83");
  EXPECT_EQ(log_probs.Rest().at("text_offset"), Json({3, 3}));
  EXPECT_TRUE(log_probs.Rest().is_null());
}

TEST(LogProbsTest, WhoDoesNotAskGetsNone) {
  LogProbs log_probs = Made(Endpoint::kChat, /*wanted=*/false);
  Add(log_probs, kThe, "The");
  EXPECT_TRUE(log_probs.Rest().is_null());
  EXPECT_TRUE(log_probs.Whole().is_null());
}

TEST(LogProbsTest, ATokenIsSpelledAsWithinAText) {
  auto params = defaults<tiercel_model_params>();
  params.path = "tests/golden/checkpoints/llama_chat.gguf";
  params.load = TIERCEL_LOAD_HEADER;
  const auto model = cli::Model::Open(params, nullptr);
  ASSERT_TRUE(model.ok()) << model.status();
  const auto ids =
      model->Tokenize("a falcon<|im_end|>", TIERCEL_PARSE_SPECIAL, {});
  ASSERT_TRUE(ids.ok()) << ids.status();
  std::string text;
  for (const int32_t id : *ids) {
    const auto spelled = SpellingOf(*model, id);
    ASSERT_TRUE(spelled.ok()) << spelled.status();
    EXPECT_EQ(spelled->is_control, spelled->bytes == "<|im_end|>");
    text += spelled->bytes;
  }
  EXPECT_EQ(text, "a falcon<|im_end|>");
}

}  // namespace
}  // namespace tiercel::serve

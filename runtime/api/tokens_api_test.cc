// Tokens and texts through tiercel.h: one by one, and of a conversation that
// goes on; what a program may ask before either.

#include <cstring>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "include/tiercel.h"
#include "nlohmann/json.hpp"
#include "runtime/api/api_fixture_for_test.h"

namespace tiercel::api_test {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;

class TokensApiTest : public ApiTest {
 protected:
  tiercel_detokenizer* Detokenizer(const std::vector<int32_t>& before = {}) {
    tiercel_detokenizer* made = nullptr;
    EXPECT_EQ(tiercel_detokenizer_create(model_, before.data(), before.size(),
                                         &made, &error_),
              TIERCEL_OK)
        << error_.message;
    return made;
  }
  std::string Add(tiercel_detokenizer* detokenizer, int32_t id) {
    const char* text = nullptr;
    size_t bytes = 0;
    EXPECT_EQ(tiercel_detokenizer_add(detokenizer, id, &text, &bytes, &error_),
              TIERCEL_OK)
        << error_.message;
    return {text, bytes};
  }
  std::string End(tiercel_detokenizer* detokenizer) {
    const char* text = nullptr;
    size_t bytes = 0;
    EXPECT_EQ(tiercel_detokenizer_end(detokenizer, &text, &bytes, &error_),
              TIERCEL_OK);
    return {text, bytes};
  }
};

TEST_F(TokensApiTest, TextComesOnceItIsWhole) {
  const std::string text = "a\u00e9 \u732b, b";
  const std::vector<int32_t> ids = Tokenize(text);
  ASSERT_GT(ids.size(), 6u);  // the bytes of the characters are tokens
  tiercel_detokenizer* const decoder = Detokenizer();
  std::string said;
  bool waited = false;
  for (const int32_t id : ids) {
    const std::string piece = Add(decoder, id);
    waited = waited || piece.empty();
    said += piece;
  }
  EXPECT_EQ(said, text);
  EXPECT_TRUE(waited);
  EXPECT_EQ(End(decoder), "");
  // At the end it says what is not completed, and another text begins.
  const std::vector<int32_t> cat = Tokenize("\u732b");
  ASSERT_EQ(cat.size(), 3u);
  EXPECT_EQ(Add(decoder, cat[0]), "");
  EXPECT_EQ(End(decoder), "\ufffd");
  EXPECT_EQ(Add(decoder, ids[0]), "a");
  tiercel_detokenizer_free(decoder);
  // It goes on behind the first byte of a character, without the model's
  // handle.
  tiercel_detokenizer* const behind = Detokenizer({cat[0]});
  tiercel_model_free(model_);
  model_ = nullptr;
  EXPECT_EQ(Add(behind, cat[1]), "");
  EXPECT_EQ(Add(behind, cat[2]), "\u732b");
  tiercel_detokenizer_free(behind);
  tiercel_detokenizer_free(nullptr);
}

TEST_F(TokensApiTest, AWrongTokenChangesNothing) {
  const std::vector<int32_t> cat = Tokenize("\u732b");
  tiercel_detokenizer* const decoder = Detokenizer();
  Add(decoder, cat[0]);
  const char* text = nullptr;
  size_t bytes = 0;
  EXPECT_EQ(tiercel_detokenizer_add(decoder, 1 << 20, &text, &bytes, &error_),
            TIERCEL_INVALID_INPUT);
  EXPECT_STREQ(error_.code, "invalid_token");
  EXPECT_EQ(tiercel_detokenizer_add(decoder, cat[1], nullptr, &bytes, &error_),
            TIERCEL_USAGE);
  EXPECT_EQ(tiercel_detokenizer_add(nullptr, 1, &text, &bytes, &error_),
            TIERCEL_USAGE);
  Add(decoder, cat[1]);
  EXPECT_EQ(Add(decoder, cat[2]), "\u732b");
  tiercel_detokenizer_free(decoder);
  tiercel_detokenizer* none = nullptr;
  const int32_t wrong = -1;
  EXPECT_EQ(tiercel_detokenizer_create(model_, &wrong, 1, &none, &error_),
            TIERCEL_INVALID_INPUT);
  EXPECT_EQ(none, nullptr);
}

TEST_F(TokensApiTest, AnAnswerGoesOn) {
  auto user = Sized<tiercel_message>();
  user.role = "user";
  user.content = "Who?";
  user.content_bytes = 4;
  tiercel_message assistant = user;
  assistant.role = "assistant";
  assistant.content = "It was";
  assistant.content_bytes = 6;
  const tiercel_message messages[] = {user, assistant};
  auto settings = Sized<tiercel_chat_settings>();
  settings.continue_last = 1;
  std::vector<int32_t> ids(256);
  size_t size = ids.size();
  ASSERT_EQ(tiercel_chat_tokens_with(model_, messages, 2, &settings, nullptr,
                                     ids.data(), &size, &error_),
            TIERCEL_OK)
      << error_.message;
  std::string text(4096, '\0');
  size_t bytes = text.size();
  ASSERT_EQ(tiercel_detokenize(model_, ids.data(), size, TIERCEL_PARSE_SPECIAL,
                               text.data(), &bytes, &error_),
            TIERCEL_OK);
  text.resize(bytes);
  EXPECT_THAT(text, HasSubstr("Who?"));
  EXPECT_THAT(text, EndsWith("It was"));
  size = ids.size();
  EXPECT_EQ(tiercel_chat_tokens_with(model_, messages, 1, &settings, nullptr,
                                     ids.data(), &size, &error_),
            TIERCEL_USAGE);
  EXPECT_STREQ(error_.message,
               "continue_last: got a last message of \"user\", need one of "
               "\"assistant\"");
}

TEST_F(TokensApiTest, TokensWithinATextAreThoseOfItsBytes) {
  std::vector<int32_t> ids(64);
  size_t count = ids.size();
  const std::string said = " caf\xC3\xA9 <|im_end|>";
  ASSERT_EQ(
      tiercel_tokenize(model_, said.data(), said.size(), TIERCEL_PARSE_SPECIAL,
                       nullptr, ids.data(), &count, &error_),
      TIERCEL_OK);
  std::string joined;
  for (size_t i = 0; i < count; ++i) {
    char bytes[64];
    size_t size = sizeof bytes;
    ASSERT_EQ(tiercel_detokenize(model_, &ids[i], 1, TIERCEL_WITHIN_TEXT, bytes,
                                 &size, &error_),
              TIERCEL_OK)
        << error_.message;
    joined.append(bytes, size);
  }
  EXPECT_EQ(joined, " caf\xC3\xA9 ");
  const int32_t wrong = 1 << 20;
  size_t size = 0;
  EXPECT_EQ(tiercel_detokenize(model_, &wrong, 1, TIERCEL_WITHIN_TEXT, nullptr,
                               &size, &error_),
            TIERCEL_INVALID_INPUT);
  EXPECT_STREQ(error_.code, "invalid_token");
}

TEST_F(TokensApiTest, AModelNamesItsEndsAndItsTemplate) {
  auto info = Sized<tiercel_model_info>();
  ASSERT_EQ(tiercel_model_get_info(model_, &info, &error_), TIERCEL_OK);
  const nlohmann::json tokenizer =
      JsonFrom([&](char* json, size_t* size, tiercel_error* error) {
        return tiercel_model_describe(model_, json, size, error);
      })["tokenizer"];
  EXPECT_EQ(info.bos_id, tokenizer["bos"]["id"].get<int64_t>());
  EXPECT_EQ(info.eos_id, tokenizer["eos"]["id"].get<int64_t>());
  EXPECT_NE(info.bos_id, info.eos_id);
  const std::vector<int64_t> ends(info.end_ids,
                                  info.end_ids + info.num_end_ids);
  EXPECT_THAT(ends, testing::Contains(info.eos_id));
  ASSERT_NE(info.chat_template, nullptr);
  EXPECT_NE(std::strstr(info.chat_template, "messages"), nullptr);

  tiercel_model* const ids_only =
      Open("tests/golden/checkpoints/llama_mha.gguf", TIERCEL_LOAD_HEADER);
  ASSERT_EQ(tiercel_model_get_info(ids_only, &info, &error_), TIERCEL_OK);
  EXPECT_EQ(info.bos_id, -1);
  EXPECT_EQ(info.eos_id, -1);
  EXPECT_EQ(info.chat_template, nullptr);
  EXPECT_EQ(info.num_end_ids, 0u);
  tiercel_detokenizer* none = nullptr;
  EXPECT_EQ(tiercel_detokenizer_create(ids_only, nullptr, 0, &none, &error_),
            TIERCEL_INVALID_INPUT);
  EXPECT_STREQ(error_.code, "no_tokenizer");
  tiercel_model_free(ids_only);
}

TEST(DevicesApiTest, TheCpuIsFirstAndEachGpuIsUsableOrSaysWhy) {
  const nlohmann::json devices = JsonFrom(tiercel_devices);
  ASSERT_GE(devices.size(), 2u);
  EXPECT_EQ(devices[0]["device"], "cpu");
  EXPECT_GT(devices[0]["threads"].get<int>(), 0);
  for (size_t i = 1; i < devices.size(); ++i) {
    EXPECT_EQ(devices[i]["device"], "cuda");
    EXPECT_NE(devices[i]["usable"].get<bool>(), devices[i].contains("why"));
  }
  auto error = Sized<tiercel_error>();
  EXPECT_EQ(tiercel_devices(nullptr, nullptr, &error), TIERCEL_USAGE);
}

}  // namespace
}  // namespace tiercel::api_test

#include "models/chat/chat_tokens.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/status/error.h"

namespace tiercel::chat_tokens_test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr TokenType kNormal = TokenType::kNormal;
constexpr TokenType kControl = TokenType::kControl;
constexpr TokenType kUser = TokenType::kUserDefined;

// A vocabulary of the letters and of `more`, whose ids begin at kFirst.
constexpr int32_t kFirst = 95;
std::unique_ptr<Tokenizer> WithTokens(
    const std::vector<std::pair<std::string, TokenType>>& more) {
  TokenizerSpec spec;
  for (char c = '!'; c <= '~'; ++c) {
    spec.tokens.push_back({std::string(1, c), kNormal, 0});
  }
  spec.tokens.push_back({"\u0120", kNormal, 0});  // the space
  for (const auto& [text, type] : more) spec.tokens.push_back({text, type, 0});
  auto tokenizer = Tokenizer::Create(std::move(spec));
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status();
  return *std::move(tokenizer);
}

std::vector<int32_t> Ends(const Tokenizer& tokenizer,
                          std::string_view source = "") {
  std::unique_ptr<ChatTemplate> chat;
  if (!source.empty()) chat = *ChatTemplate::Parse(source);
  return EndsOfTurn(tokenizer, chat.get());
}

// A template with `end` behind each message.
std::string Ending(const std::string& end) {
  return "{% for m in messages %}[{{ m.role }}]{{ m.content }}" + end +
         "{% endfor %}{% if add_generation_prompt %}[assistant]{% endif %}";
}

// Returns whether the template, of plain text, begins a thought behind `said`.
bool Begins(const std::string& behind, const std::string& said,
            ChatSettings settings = {}) {
  const auto tokenizer = WithTokens({{"\u010a", kNormal}});  // the line feed
  const auto chat = ChatTemplate::Parse(
      "{% for m in messages %}[{{ m.role }}]{{ m.content }}{% endfor %}" +
      behind);
  EXPECT_TRUE(chat.ok()) << chat.status();
  std::vector<int32_t> prompt;
  EXPECT_TRUE(
      EncodeChat(**chat, *tokenizer, {{"user", said}}, settings, {}, &prompt)
          .ok());
  return BeginsThought(chat->get(), *tokenizer, ThoughtTags(), prompt);
}

TEST(BeginsThoughtTest, WhereTheTemplateDoes) {
  EXPECT_TRUE(Begins("[a] <think>", "x"));
  EXPECT_FALSE(Begins("[a] <think></think>", "x"));
  EXPECT_FALSE(Begins("[a]", "x"));
  // The thought may have begun, in any number of pieces and of any length.
  EXPECT_TRUE(Begins("[a]<think>{{ 'Well' }}, \\x41 {{ bos_token }}", "x"));
  EXPECT_TRUE(Begins("[a]<think>" + std::string(300, 'w'), "x"));
  // A message begins none.
  for (const char* said : {"<think>", "is <think>", "</think> <think>[a]"}) {
    EXPECT_FALSE(Begins("[a]", said)) << said;
    EXPECT_FALSE(Begins("", said)) << said;
    EXPECT_TRUE(Begins("[a]<think>", said)) << said;
  }
}

TEST(BeginsThoughtTest, AsTheTemplateIsTold) {
  const char* behind = "[a]{% if enable_thinking %}<think>So {% endif %}";
  EXPECT_FALSE(Begins(behind, "x"));
  EXPECT_FALSE(Begins(behind, "x", {.think = false}));
  EXPECT_TRUE(Begins(behind, "x", {.think = true}));
  // A thought that the template begins nevertheless is closed.
  EXPECT_TRUE(Begins("<think>so ", "x", {.think = true}));
  EXPECT_FALSE(Begins("<think>so ", "x", {.think = false}));
  // Other variables are not known here.
  EXPECT_TRUE(Begins("[a]{% if deep %}<think>{% endif %}", "x",
                     {.variables = {{"deep", true}}}));
}

// Returns the conversation as text, or the code of the error.
std::string Continued(const std::string& source,
                      const std::vector<ChatMessage>& messages) {
  const auto tokenizer = WithTokens({{"<|end|>", kControl}});
  const auto chat = ChatTemplate::Parse(source);
  EXPECT_TRUE(chat.ok()) << chat.status();
  std::vector<int32_t> ids;
  const absl::Status status = EncodeChat(**chat, *tokenizer, messages,
                                         {.continue_last = true}, {}, &ids);
  if (!status.ok()) return CodeOf(status);
  return *tokenizer->Decode(ids, Tokenizer::Special::kParse);
}

TEST(EncodeChatTest, TheLastMessageGoesOn) {
  const ChatMessage user = {"user", "Who?"};
  const std::string chat = Ending("<|end|>");
  EXPECT_EQ(Continued(chat, {user, {"assistant", "It was"}}),
            "[user]Who?<|end|>[assistant]It was");
  // Its wording is no control token, and an earlier one like it is left.
  EXPECT_EQ(Continued(chat, {{"assistant", "Hm"}, user, {"assistant", "Hm"}}),
            "[assistant]Hm<|end|>[user]Who?<|end|>[assistant]Hm");
  // Without a text it begins.
  EXPECT_EQ(Continued(chat, {user, {"assistant", ""}}),
            "[user]Who?<|end|>[assistant]");
  // The template may cut white space.
  const std::string trims =
      "{% for m in messages %}[{{ m.content | trim }}]<|end|>{% endfor %}";
  EXPECT_EQ(Continued(trims, {user, {"assistant", "It was "}}),
            "[Who?]<|end|>[It was");
  // A thought goes on while there is no answer.
  const std::string thinks =
      "{% for m in messages %}[{% if m.reasoning_content %}("
      "{{ m.reasoning_content }}){% endif %}{{ m.content }}]{% endfor %}";
  EXPECT_EQ(Continued(thinks, {user, {"assistant", "", "It may"}}),
            "[Who?][(It may");
  EXPECT_EQ(Continued(thinks, {user, {"assistant", "Yes", "It may"}}),
            "[Who?][(It may)Yes");
}

TEST(EncodeChatTest, WhatCannotGoOnIsAnError) {
  const ChatMessage user = {"user", "Who?"};
  EXPECT_EQ(Continued(Ending(""), {user}), "invalid_argument");
  EXPECT_EQ(Continued(Ending(""), {}), "invalid_argument");
  EXPECT_EQ(Continued("{% for m in messages %}{{ m.content | upper }}"
                      "{% endfor %}",
                      {user, {"assistant", "It was"}}),
            "cannot_continue");
  for (const ChatMessage& last : {ChatMessage{"assistant", "It was"},
                                  ChatMessage{"assistant", "", "It may"}}) {
    EXPECT_EQ(Continued("{{ messages[0].content }}", {user, last}),
              "cannot_continue");
  }
}

TEST(BeginsThoughtTest, PromptsOfOtherMakes) {
  const auto tokenizer = WithTokens({{"<|a|>", kControl}});
  const auto begins = [&](const char* text) {
    std::vector<int32_t> prompt;
    EXPECT_TRUE(
        tokenizer->Encode(text, Tokenizer::Special::kParse, &prompt).ok());
    return BeginsThought(/*chat_template=*/nullptr, *tokenizer, ThoughtTags(),
                         prompt);
  };
  EXPECT_TRUE(begins("x<|a|><think> "));
  EXPECT_FALSE(begins("x<think><|a|>"));
  EXPECT_FALSE(begins("<think>so"));
  EXPECT_FALSE(begins(""));
}

TEST(EndsOfTurnTest, KnownSpellingsOfControlTokens) {
  for (const char* text :
       {"<|im_end|>", "<|eot_id|>", "<|eom_id|>", "<end_of_turn>", "<|end|>",
        "<|return|>", "<|endoftext|>", "<|end_of_text|>", "</s>", "<EOT>",
        "<turn|>", "<|END_OF_TURN_TOKEN|>"}) {
    EXPECT_THAT(Ends(*WithTokens({{"<|im_start|>", kControl},
                                  {text, kControl},
                                  {"<|user|>", kControl}})),
                ElementsAre(kFirst + 1))
        << text;
  }
}

TEST(EndsOfTurnTest, ATextOfThisKindIsControlWhateverTheFileSays) {
  const auto t = WithTokens({{"<|im_end|>", kUser},
                             {"<end_of_turn>", kNormal},
                             {"</s>", kNormal},
                             {"<EOT>", kUser}});
  EXPECT_THAT(Ends(*t), ElementsAre(kFirst, kFirst + 1));
  std::vector<int32_t> ids;
  ASSERT_TRUE(t->Encode("<|im_end|>", Tokenizer::Special::kPlain, &ids).ok());
  EXPECT_EQ(ids.size(), 10u);
  // A word stays one where a text of this kind is common.
  EXPECT_FALSE(t->IsControl(kFirst + 2));
  EXPECT_FALSE(t->IsControl(kFirst + 3));
}

TEST(EndsOfTurnTest, WhereATurnHasPartsTheirEndIsNoEnd) {
  const auto t = WithTokens({{"<|end|>", kControl},
                             {"<|return|>", kControl},
                             {"<|call|>", kControl}});
  EXPECT_THAT(Ends(*t, Ending("<|end|>")), ElementsAre(kFirst + 1, kFirst + 2));
}

TEST(EndsOfTurnTest, TheTemplatesOwn) {
  const auto t = WithTokens({{"<sep>", kControl},
                             {"<next>", kControl},
                             {"<word>", kUser},
                             {"\u0120\u0120", kUser}});
  EXPECT_THAT(Ends(*t), IsEmpty());
  EXPECT_THAT(Ends(*t, Ending("<sep><next>")), ElementsAre(kFirst));
  EXPECT_THAT(Ends(*t, Ending(" <next>")), ElementsAre(kFirst + 1));
  EXPECT_THAT(Ends(*t, Ending("<word>")), ElementsAre(kFirst + 2));
  EXPECT_THAT(Ends(*t, Ending("bye<sep>")), IsEmpty());
  EXPECT_THAT(Ends(*t, Ending("")), IsEmpty());
}

// A turn may end where the next message begins, and the last one otherwise.
TEST(EndsOfTurnTest, WithAndWithoutAMessageBehindIt) {
  const auto t = WithTokens(
      {{"<user>", kControl}, {"<assistant>", kControl}, {"<over>", kControl}});
  EXPECT_THAT(Ends(*t,
                   "{% for m in messages %}<{{ m.role }}>{{ m.content }}"
                   "{% endfor %}"),
              ElementsAre(kFirst));
  EXPECT_THAT(
      Ends(*t,
           "{% for m in messages %}{% if m.role == 'user' %}<user>"
           "{{ m.content }}{% else %}<assistant>{{ m.content | trim }}"
           "{% endif %}{% endfor %}{% if messages[-1].role == 'assistant' %}"
           "<over>{% endif %}"),
      ElementsAre(kFirst, kFirst + 2));
}

TEST(EndsOfTurnTest, OfATemplateThatRefusesTheConversation) {
  const auto t = WithTokens({{"<sep>", kControl}, {"<|im_end|>", kControl}});
  EXPECT_THAT(Ends(*t, "{{ raise_exception('no') }}"), ElementsAre(kFirst + 1));
}

}  // namespace
}  // namespace tiercel::chat_tokens_test

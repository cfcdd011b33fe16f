#include "models/chat/thought_tags.h"

#include <memory>
#include <string>

#include "gtest/gtest.h"

namespace tiercel {
namespace {

TEST(ThoughtTagsTest, AreThoseThatTheTemplateNames) {
  const auto tags_of = [](const char* source) {
    const auto chat = ChatTemplate::Parse(source);
    EXPECT_TRUE(chat.ok()) << chat.status();
    return ThoughtTagsOf(chat->get(), /*tokenizer=*/nullptr);
  };
  EXPECT_EQ(tags_of("{{ 'x' }}").open, "<think>");
  EXPECT_EQ(tags_of("{{ m.split('</think>')[-1] }}").close, "</think>");
  const ThoughtTags mistral = tags_of("[THINK]{{ t }}[/THINK]");
  EXPECT_EQ(mistral.open, "[THINK]");
  EXPECT_EQ(mistral.close, "[/THINK]");
  EXPECT_EQ(tags_of("<seed:think></seed:think>").open, "<seed:think>");
  EXPECT_EQ(ThoughtTagsOf(nullptr, nullptr).close, "</think>");
}

TEST(ThoughtTagsTest, AreThoseThatTheTemplateWrites) {
  const auto open_of = [](const std::string& thought,
                          const std::string& none = "") {
    const auto chat = ChatTemplate::Parse(
        "{% for m in messages %}<|{{ m.role }}|>\n{% if m.reasoning_content "
        "%}" +
        thought + "{% else %}" + none +
        "{% endif %}{{ m.content }}<|end|>\n{% endfor %}");
    EXPECT_TRUE(chat.ok()) << chat.status();
    const ThoughtTags tags = ThoughtTagsOf(chat->get(), nullptr);
    return tags.open + " " + tags.close;
  };
  const std::string own = "<cot>\n{{ m.reasoning_content }}\n</cot>\n\n";
  const std::string usual = "<think> </think>";
  EXPECT_EQ(open_of(own), "<cot> </cot>");
  EXPECT_EQ(open_of("{{ '<|t|>' ~ m.reasoning_content | trim }}<|/t|>"),
            "<|t|> <|/t|>");
  // Sentences are no tags, nor is what begins another turn.
  EXPECT_EQ(open_of("I thought: {{ m.reasoning_content }} And so:"), usual);
  EXPECT_EQ(open_of("{{ m.reasoning_content }}</cot>"), usual);
  EXPECT_EQ(open_of("<cot>{{ m.reasoning_content }}"), usual);
  EXPECT_EQ(open_of(own, "<cot></cot>"), usual);
  EXPECT_EQ(open_of("<cot>"), usual);
}

TEST(ThoughtTagsTest, ATextMayEndInAThought) {
  const ThoughtTags tags;
  const auto ends = [&](std::string_view text) {
    return EndsInThought(text, tags);
  };
  EXPECT_TRUE(ends("<|assistant|>\n<think>\n"));
  EXPECT_TRUE(ends("<think>"));
  EXPECT_FALSE(ends("<think>\n\n</think>\n\n"));
  EXPECT_TRUE(ends("<think>a</think><think>"));
  EXPECT_TRUE(ends("<think>\nOkay, "));
  EXPECT_FALSE(ends("<think>Okay,</think>"));
  EXPECT_FALSE(ends(""));
}

}  // namespace
}  // namespace tiercel

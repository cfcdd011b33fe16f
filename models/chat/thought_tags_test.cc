#include "models/chat/thought_tags.h"

#include <memory>

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

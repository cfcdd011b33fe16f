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

TEST(ThoughtTagsTest, APromptMayEndInAThought) {
  const ThoughtTags tags;
  EXPECT_TRUE(EndsInThought("<|assistant|>\n<think>\n", tags));
  EXPECT_TRUE(EndsInThought("<think>", tags));
  EXPECT_FALSE(EndsInThought("<think>\n\n</think>\n\n", tags));
  EXPECT_FALSE(EndsInThought("<think> so", tags));
  EXPECT_FALSE(EndsInThought("", tags));
}

}  // namespace
}  // namespace tiercel

// A thought is told from its answer, however the text was cut.

#include "runtime/generate/thought_splitter.h"

#include <string>
#include <string_view>

#include "gtest/gtest.h"

namespace tiercel {
namespace {

struct Parts {
  std::string thought;
  std::string answer;

  friend bool operator==(const Parts&, const Parts&) = default;
  friend std::ostream& operator<<(std::ostream& out, const Parts& parts) {
    return out << "{" << parts.thought << "} {" << parts.answer << "}";
  }
};

// The parts of `text`, given out as they become certain; it grows by `piece`
// bytes at a time.
Parts Split(const std::string& text, size_t piece, bool thinks) {
  ThoughtSplitter splitter(ThoughtTags{}, thinks);
  Parts parts;
  size_t given = 0;
  const auto give = [&](std::string_view now, bool whole) {
    const size_t end = splitter.Advance(now, whole);
    EXPECT_GE(end, given);
    EXPECT_LE(end, now.size());
    parts.thought += splitter.ThoughtIn(now, given, end);
    parts.answer += splitter.AnswerIn(now, given, end);
    given = end;
  };
  for (size_t size = 0; size < text.size(); size += piece) {
    give(std::string_view(text).substr(0, size), /*whole=*/false);
  }
  give(text, /*whole=*/false);
  give(text, /*whole=*/true);
  EXPECT_EQ(given, text.size());
  EXPECT_EQ(splitter.ThoughtIn(text, 0, text.size()), parts.thought);
  EXPECT_EQ(splitter.AnswerIn(text, 0, text.size()), parts.answer);
  return parts;
}

TEST(ThoughtSplitterTest, TellsTheThoughtFromTheAnswer) {
  const struct {
    std::string text;
    bool thinks;
    Parts parts;
  } cases[] = {
      {"<think>hm</think>Yes.", false, {"hm", "Yes."}},
      {"\n<think>\nhm, so\n</think>\n\n Yes. \n", false, {"hm, so", "Yes. \n"}},
      {"hm </think> Yes.", true, {"hm", "Yes."}},
      {"\n hm", true, {"hm", ""}},
      {"<think>\n\n</think>\n\nYes.", false, {"", "Yes."}},
      {"<think></think>", false, {"", ""}},
      {"<think>a < b </th </thin", false, {"a < b </th </thin", ""}},
      {"<think>cut \n", false, {"cut", ""}},
      {"<think>", false, {"", ""}},
      {"</think>Yes.", true, {"", "Yes."}},
      // Only a thought at the beginning is one.
      {"Yes. <think>no</think>", false, {"", "Yes. <think>no</think>"}},
      {"<think>a</think>b<think>c</think>", false, {"a", "b<think>c</think>"}},
      {"<thinker>", false, {"", "<thinker>"}},
      {"  <thi", false, {"", "  <thi"}},
      {"</think>", false, {"", "</think>"}},
      {"", false, {"", ""}},
      {" \n", false, {"", " \n"}},
      {"", true, {"", ""}},
  };
  for (const auto& c : cases) {
    for (const size_t piece : {1, 2, 3, 7, 100}) {
      EXPECT_EQ(Split(c.text, piece, c.thinks), c.parts) << c.text << piece;
    }
  }
}

// Text that is shown never changes, so a tag is held back until it is
// known not to be one.
TEST(ThoughtSplitterTest, HoldsBackNoMoreThanATag) {
  ThoughtSplitter splitter(ThoughtTags{}, /*thinks=*/false);
  EXPECT_EQ(splitter.Advance("<think", false), 0u);
  EXPECT_EQ(splitter.Advance("<think>ab", false), 9u);
  EXPECT_EQ(splitter.Advance("<think>ab <", false), 9u);
  EXPECT_EQ(splitter.Advance("<think>ab </think", false), 9u);
  EXPECT_EQ(splitter.Advance("<think>ab </thinks", false), 18u);
  EXPECT_EQ(splitter.Advance("<think>ab </thinks</think>c", false), 27u);
}

}  // namespace
}  // namespace tiercel

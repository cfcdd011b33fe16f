#include "runtime/generate/stop_matcher.h"

#include "gtest/gtest.h"

namespace tiercel {
namespace {

// Feeds `text` in pieces of `size` bytes; returns the output.
std::string Run(const std::vector<std::string>& stops, std::string_view text,
                size_t size, bool* matched) {
  StopMatcher matcher(stops);
  std::string out;
  for (size_t i = 0; i < text.size() && !matcher.matched(); i += size) {
    out += matcher.Push(text.substr(i, size));
  }
  out += matcher.Finish();
  *matched = matcher.matched();
  return out;
}

void Expect(const std::vector<std::string>& stops, std::string_view text,
            std::string_view expected, bool expected_match) {
  for (size_t size = 1; size <= text.size() + 1; ++size) {
    bool matched = false;
    EXPECT_EQ(Run(stops, text, size, &matched), expected) << size;
    EXPECT_EQ(matched, expected_match) << size;
  }
}

TEST(StopMatcherTest, WithoutStopsTextPasses) {
  Expect({}, "abc", "abc", false);
}

TEST(StopMatcherTest, CutsBeforeTheStop) {
  Expect({"END"}, "a ENEND b", "a EN", true);
}

TEST(StopMatcherTest, UnfinishedStopComesOutAtTheEnd) {
  Expect({"END"}, "the EN", "the EN", false);
}

TEST(StopMatcherTest, StopThatIsAPrefixOfItself) {
  Expect({"aab"}, "aaab!", "a", true);
  Expect({"abab"}, "abaabab", "aba", true);
}

TEST(StopMatcherTest, OfSeveralTheOneThatEndsFirst) {
  Expect({"abc", "b"}, "xabc", "xa", true);
  Expect({"ab", "b"}, "xab", "x", true);
  Expect({"b", "ab"}, "xab", "x", true);
}

TEST(StopMatcherTest, AShortStopDoesNotLetGoOfALongOne) {
  Expect({"ENDING", "Q"}, "the ENDING", "the ", true);
  Expect({"Q", "ENDING"}, "the ENDING", "the ", true);
}

TEST(StopMatcherTest, StopOfManyBytes) {
  Expect({"\n\nQ:"}, "A: 1\n\n\nQ: 2", "A: 1\n", true);
}

TEST(StopMatcherTest, HoldsBackNoMoreThanItMust) {
  StopMatcher matcher({"END"});
  EXPECT_EQ(matcher.Push("abcE"), "abc");
  EXPECT_EQ(matcher.Push("x"), "Ex");
  EXPECT_EQ(matcher.Push("EN"), "");
  EXPECT_EQ(matcher.Push("E"), "EN");
}

}  // namespace
}  // namespace tiercel

#include "runtime/policies/sfi/sfi_schedule.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace tiercel::sfi_schedule_test {
namespace {

using Options = SfiSchedule::Options;

TEST(SfiScheduleTest, TokensAreKnownByTheirText) {
  for (const char* ender :
       {".", "?", "!", ".\n", ".\n\n", ". ", ".\"", ".\u201d", "?\"\n", "!)",
        "\u3002", "\uff1f", "\uff01", "\u3002\u300d", ".'\""}) {
    EXPECT_EQ(KindOf(ender), TokenKind::kEnder) << ender;
  }
  for (const char* closer : {"\"", "'", ")", "\u201d", "\"\n", "')", "]"}) {
    EXPECT_EQ(KindOf(closer), TokenKind::kCloser) << closer;
  }
  for (const char* blank : {"\n", "\n\n", " \n", "\r\n"}) {
    EXPECT_EQ(KindOf(blank), TokenKind::kBlank) << blank;
  }
  for (const char* word : {"", " ", "a", " the", "...", "?!", ".5", " .", "Mr.",
                           "\u201c", "(", ",", ";"}) {
    EXPECT_EQ(KindOf(word), TokenKind::kWord) << word;
  }
}

// Ids are letters: w is a word, . ends a sentence, ) closes, n ends a line.
Options Letters(Options options = {}) {
  std::vector<TokenKind> kinds(128, TokenKind::kWord);
  kinds['.'] = TokenKind::kEnder;
  kinds[')'] = TokenKind::kCloser;
  kinds['n'] = TokenKind::kBlank;
  options.kinds = std::make_shared<const std::vector<TokenKind>>(kinds);
  return options;
}

// The reason why each token's row reads everything, by its first letter: s, i,
// r or f; - if it does not.
std::string Reasons(const Options& options, const std::string& text,
                    int64_t length = 0) {
  SfiSchedule schedule(options, length);
  std::string reasons;
  for (const char letter : text) {
    schedule.Advance(letter);
    const std::string name = NameOf(schedule.reason());
    reasons += schedule.slow() ? name[0] : '-';
  }
  return reasons;
}

TEST(SfiScheduleTest, TheEndOfASentenceIsSlow) {
  const Options options = Letters({.interval = 64, .gap = 3});
  EXPECT_EQ(Reasons(options, "www.www.www"), "---s---s---");
  // An end that comes too early is dropped, not put off.
  EXPECT_EQ(Reasons(options, "w.wwwwww.w"), "--------s-");
  EXPECT_EQ(Reasons(options, "www.w.wwww"), "---s------");
  // A closer behind an end is no second end, nor are points in a row.
  EXPECT_EQ(Reasons(options, "www.)www"), "---s----");
  EXPECT_EQ(Reasons(Letters({.gap = 1}), "ww...ww"), "--s----");
  // A decimal's point counts as an end.
  EXPECT_EQ(Reasons(options, "wwww3.14ww"), "-----s----");
}

TEST(SfiScheduleTest, OrTheBeginningOfTheNext) {
  const Options options = Letters({.interval = 64, .gap = 3, .at_start = true});
  EXPECT_EQ(Reasons(options, "www.www.www"), "----s---s--");
  EXPECT_EQ(Reasons(options, "www.)nnwww"), "-------s--");
  EXPECT_EQ(Reasons(options, "www."), "----");
}

TEST(SfiScheduleTest, SoIsWhatComesAfterAnInterval) {
  const Options options = Letters({.interval = 5, .gap = 2});
  EXPECT_EQ(Reasons(options, "wwwwwwwwwww"), "----i----i-");
  // Every slow step restarts the count.
  EXPECT_EQ(Reasons(options, "www.wwwwwwww"), "---s----i---");
  EXPECT_EQ(Reasons(Letters({.interval = 1, .gap = 1}), "ww.ww"), "iisii");
  EXPECT_EQ(Reasons(Letters({.trigger = SfiTrigger::kFixed, .interval = 3}),
                    "w..ww.w"),
            "--i--i-");
}

TEST(SfiScheduleTest, HalfTheIntervalMayBeTheGap) {
  Options options = Letters({.interval = 12, .gap = 2});
  EXPECT_EQ(Reasons(options, "www.wwww.www"), "---s----s---");
  options.half_gap = true;
  EXPECT_EQ(Reasons(options, "www.wwww.www"), "--------s---");
  options.interval = 3;  // half of it is less than the gap
  EXPECT_EQ(Reasons(options, "w.ww.w"), "-s--s-");
}

TEST(SfiScheduleTest, WhileEverythingIsInViewItIsRead) {
  const Options options = Letters({.interval = 4, .gap = 1, .everything = 13});
  EXPECT_EQ(Reasons(options, "wwwwwwwww", /*length=*/10), "fff---i--");
  EXPECT_EQ(Reasons(options, "wwwww", /*length=*/13), "---i-");
}

TEST(SfiScheduleTest, AtRandomOrNever) {
  const std::string text(4000, 'w');
  EXPECT_EQ(Reasons(Letters({.trigger = SfiTrigger::kNever}), text),
            std::string(4000, '-'));
  const std::string random =
      Reasons(Letters({.trigger = SfiTrigger::kRandom, .interval = 8}), text);
  const auto slow = std::count(random.begin(), random.end(), 'r');
  EXPECT_NEAR(static_cast<double>(slow), 500, 5 * 21);  // standard deviations
  EXPECT_EQ(random.find('i'), std::string::npos);
  // A token's position alone decides, not the tokens before it.
  EXPECT_EQ(Reasons(Letters({.trigger = SfiTrigger::kRandom, .interval = 8}),
                    std::string(1000, '.'), /*length=*/3000),
            random.substr(3000));
}

TEST(SfiScheduleTest, CopiesAreDrafts) {
  SfiSchedule schedule(Letters({.interval = 64, .gap = 2}), 0);
  for (const char letter : std::string("www")) schedule.Advance(letter);
  SfiSchedule draft = schedule;
  draft.Advance('.');
  EXPECT_TRUE(draft.slow());
  EXPECT_TRUE(draft.at_boundary());
  schedule.Advance('w');
  EXPECT_FALSE(schedule.slow());
  schedule.Advance('.');
  EXPECT_TRUE(schedule.slow());
}

}  // namespace
}  // namespace tiercel::sfi_schedule_test

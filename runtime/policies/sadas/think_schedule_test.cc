#include "runtime/policies/sadas/think_schedule.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace tiercel::think_schedule_test {
namespace {

using Ids = std::vector<int32_t>;
using Options = ThinkSchedule::Options;

// Tags of one id: 1 opens, 2 closes.
const Options kTags = {.open = {1}, .close = {2}};

// The mode of each token's own row: w reads the window, . reads everything.
std::string Modes(ThinkSchedule schedule, const Ids& ids) {
  std::string modes;
  for (const int32_t id : ids) {
    schedule.Advance(id);
    modes += schedule.windowed() ? 'w' : '.';
  }
  return modes;
}
std::string Modes(const Options& options, const Ids& ids,
                  const Ids& header = {}) {
  return Modes(ThinkSchedule(options, 100, header), ids);
}

TEST(ThinkScheduleTest, TheWindowIsReadBetweenTheTags) {
  // The row of the opening tag reads the window, that of the closing tag does
  // not.
  EXPECT_EQ(Modes(kTags, {5, 1, 6, 7, 2, 8}), ".www..");
  // A tag without its counterpart, and a text that ends within a thought.
  EXPECT_EQ(Modes(kTags, {5, 2, 6}), "...");
  EXPECT_EQ(Modes(kTags, {5, 6, 7}), "...");
  EXPECT_EQ(Modes(kTags, {1, 6, 7}), "www");
  EXPECT_EQ(Modes(kTags, {1, 1, 6, 2, 2, 7}), "www...");
}

TEST(ThinkScheduleTest, TheLatchHoldsAfterTheFirstThought) {
  const Ids again = {1, 6, 2, 7, 1, 8, 2, 9};
  EXPECT_EQ(Modes(kTags, again), "ww......");
  Options open = kTags;
  open.latch = false;
  EXPECT_EQ(Modes(open, again), "ww..ww..");
  // A closing tag latches though nothing was open.
  EXPECT_EQ(Modes(kTags, {2, 1, 6}), "...");
  EXPECT_EQ(Modes(open, {2, 1, 6}), ".ww");
}

TEST(ThinkScheduleTest, TheGateSaysWhatTheStateIsFor) {
  const Ids ids = {5, 1, 6, 2, 7, 1, 8};
  Options options = kTags;
  options.gate = ThinkGate::kLiteral;
  EXPECT_EQ(Modes(options, ids), "www....");
  options.gate = ThinkGate::kAlways;
  EXPECT_EQ(Modes(options, ids), "wwwwwww");
}

TEST(ThinkScheduleTest, TagsOfSeveralIds) {
  Options options;
  options.open = {1, 1, 3};
  options.close = {4, 1, 4};
  // A tag counts at its last id, and a failed match may hold the beginning of
  // the tag.
  EXPECT_EQ(Modes(options, {1, 1, 1, 3, 9, 4, 1, 4, 9}), "...wwww..");
  EXPECT_EQ(Modes(options, {1, 3, 1, 1, 3, 4, 4, 1, 4}), "....wwww.");
  EXPECT_EQ(Modes(options, {1, 1, 3, 4, 1, 9, 1, 4}), "..wwwwww");
}

TEST(ThinkScheduleTest, ATemplatesHeaderCounts) {
  EXPECT_EQ(Modes(kTags, {6, 2, 7}, /*header=*/{9, 1}), "w..");
  // A turn that begins with an empty thought has thought.
  EXPECT_EQ(Modes(kTags, {6, 1, 7}, /*header=*/{9, 1, 2}), "...");
  Options options;
  options.open = {3, 4};
  EXPECT_EQ(Modes(options, {4, 5}, /*header=*/{9, 3}), "ww");
}

TEST(ThinkScheduleTest, ItMayBeginOpen) {
  Options options = kTags;
  options.begins_open = true;
  EXPECT_EQ(Modes(options, {5, 2, 6}), "w..");
  // Without tags it never ends.
  EXPECT_EQ(Modes(Options{.begins_open = true}, {5, 1, 2}), "www");
}

// The text where the schedule forces ids; all others come from `free` in order.
Ids Forced(const Options& options, const Ids& free, size_t length) {
  ThinkSchedule schedule(options, 0, {});
  Ids ids;
  auto next = free.begin();
  while (ids.size() < length) {
    ids.push_back(schedule.forced().has_value() ? *schedule.forced() : *next++);
    schedule.Advance(ids.back());
  }
  return ids;
}

TEST(ThinkScheduleTest, AfterTheMostTheClosingTagIsForced) {
  Options options = {.begins_open = true, .most = 3};
  options.open = {1};
  options.close = {7, 8};
  const Ids free = {10, 11, 12, 13, 14, 15, 16, 17};
  EXPECT_EQ(Forced(options, free, 7), (Ids{10, 11, 12, 7, 8, 13, 14}));
  options.most = 1;
  EXPECT_EQ(Forced(options, free, 4), (Ids{10, 7, 8, 11}));
  // The opening tag is not part of the thought; a thought that ended by itself
  // is left alone.
  options.begins_open = false;
  options.most = 2;
  EXPECT_EQ(Forced(options, {10, 1, 11, 12, 13, 14}, 7),
            (Ids{10, 1, 11, 12, 7, 8, 13}));
  EXPECT_EQ(Forced(options, {1, 7, 8, 11, 12, 13}, 6),
            (Ids{1, 7, 8, 11, 12, 13}));
  // A tag within a thought, or within the other tag, does not begin it anew.
  EXPECT_EQ(Forced(options, {1, 10, 1, 11, 12, 13}, 6),
            (Ids{1, 10, 1, 7, 8, 11}));
  options.close = {7, 1, 8};
  EXPECT_EQ(Forced(options, {1, 10, 11, 12, 13}, 7),
            (Ids{1, 10, 11, 7, 1, 8, 12}));
  options.close = {7, 8};
  // With the latch a second tag opens nothing, without it a new thought.
  const Ids twice = {1, 10, 11, 12, 1, 13, 14, 15, 16, 17};
  EXPECT_EQ(Forced(options, twice, 9), (Ids{1, 10, 11, 7, 8, 12, 1, 13, 14}));
  options.latch = false;
  EXPECT_EQ(Forced(options, twice, 11),
            (Ids{1, 10, 11, 7, 8, 12, 1, 13, 14, 7, 8}));
}

TEST(ThinkScheduleTest, WithoutATagTheStateEndsAlone) {
  const Options options = {.begins_open = true, .most = 3};
  EXPECT_EQ(Modes(options, {5, 5, 5, 5}), "ww..");
  EXPECT_EQ(Forced(options, {5, 6, 7, 8}, 4), (Ids{5, 6, 7, 8}));
}

// A scored text is not forced.
TEST(ThinkScheduleTest, AScoredTextEndsItsThinkingWhereTheTagIsNot) {
  Options options = {.begins_open = true, .most = 2};
  options.open = {1};
  options.close = {7, 8};
  EXPECT_EQ(Modes(options, {5, 5, 5, 5}), "ww..");
  EXPECT_EQ(Modes(options, {5, 5, 7, 5, 5}), "www..");
  EXPECT_EQ(Modes(options, {5, 5, 7, 8, 5}), "www..");
}

TEST(ThinkScheduleTest, KnowsWhereItClosed) {
  ThinkSchedule schedule(kTags, 100, {9, 1});
  for (const int32_t id : {5, 6}) schedule.Advance(id);
  EXPECT_FALSE(schedule.closed_at().has_value());
  for (const int32_t id : {2, 7, 8}) schedule.Advance(id);
  EXPECT_EQ(schedule.closed_at(), 102);
}

// A copy is independent: tokens that are drafted and dropped leave no trace.
TEST(ThinkScheduleTest, CopiesAreDrafts) {
  Options options = kTags;
  options.open = {1, 3};
  ThinkSchedule schedule(options, 0, {});
  schedule.Advance(1);
  ThinkSchedule draft = schedule;
  draft.Advance(3);
  EXPECT_TRUE(draft.windowed());
  EXPECT_FALSE(schedule.windowed());
  schedule.Advance(4);
  EXPECT_FALSE(schedule.windowed());
  draft.Advance(2);
  EXPECT_FALSE(draft.windowed());
}

}  // namespace
}  // namespace tiercel::think_schedule_test

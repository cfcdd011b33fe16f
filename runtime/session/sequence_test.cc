// A sequence alone: its tokens, the part of their KV that is provisional or was
// drawn, and the marks of prompts and answers.

#include "runtime/session/sequence.h"

#include <cstdint>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/status/error.h"

namespace tiercel::sequence_test {
namespace {

using ::testing::ElementsAre;

// A sequence of the tokens 0 to `count` - 1.
Sequence Counting(size_t count, std::optional<SequenceExtent> extent = {}) {
  Sequence sequence(/*begin=*/0, /*context=*/100, std::move(extent));
  std::vector<int32_t> ids(count);
  std::iota(ids.begin(), ids.end(), 0);
  sequence.Append(ids.data(), ids.size());
  return sequence;
}

TEST(SequenceTest, KvLagsBehindTokens) {
  Sequence sequence = Counting(5);
  EXPECT_THAT(sequence.tokens(), ElementsAre(0, 1, 2, 3, 4));
  EXPECT_EQ(sequence.kv_length(), 0);
  EXPECT_EQ(sequence.pending(), 5);
  EXPECT_EQ(sequence.room(), 95);
  sequence.AddKv(3, /*as_prompt=*/true);
  EXPECT_EQ(sequence.kv_length(), 3);
  EXPECT_EQ(sequence.pending(), 2);
  sequence.Truncate(4);
  EXPECT_EQ(sequence.kv_length(), 3);
  EXPECT_EQ(sequence.pending(), 1);
  sequence.Truncate(2);
  EXPECT_THAT(sequence.tokens(), ElementsAre(0, 1));
  EXPECT_EQ(sequence.kv_length(), 2);
  EXPECT_EQ(sequence.pending(), 0);
  sequence.TruncateKv(1);
  EXPECT_EQ(sequence.tokens().size(), 2u);
  EXPECT_EQ(sequence.pending(), 1);
  sequence.TruncateKv(7);
  EXPECT_EQ(sequence.kv_length(), 1);
}

TEST(SequenceTest, AllBehindProvisionalKvIsProvisional) {
  Sequence sequence = Counting(9);
  sequence.AddKv(3, /*as_prompt=*/true);
  EXPECT_TRUE(sequence.IsSettled());
  sequence.AddKv(2, /*as_prompt=*/false);
  sequence.AddKv(2, /*as_prompt=*/true);
  EXPECT_FALSE(sequence.IsSettled());
  EXPECT_EQ(sequence.settled(), 3);
  sequence.TruncateKv(4);
  EXPECT_EQ(sequence.settled(), 3);
  sequence.TruncateKv(sequence.settled());
  EXPECT_TRUE(sequence.IsSettled());
  sequence.AddKv(1, /*as_prompt=*/true);
  EXPECT_EQ(sequence.settled(), 4);
  sequence.TruncateKv(2);
  EXPECT_EQ(sequence.settled(), 2);
}

TEST(SequenceTest, DrawnKvIsNotComputedUntilItIsCutOff) {
  Sequence sequence = Counting(20);
  sequence.AddKv(4, /*as_prompt=*/true);
  sequence.FillKv(0);
  EXPECT_TRUE(sequence.IsComputed());
  sequence.FillKv(6);
  EXPECT_EQ(sequence.kv_length(), 10);
  EXPECT_TRUE(sequence.IsSettled());
  EXPECT_FALSE(sequence.IsComputed());
  sequence.FillKv(2);
  sequence.TruncateKv(5);
  EXPECT_FALSE(sequence.IsComputed());
  sequence.TruncateKv(4);
  EXPECT_TRUE(sequence.IsComputed());
  sequence.AddKv(5, /*as_prompt=*/true);
  EXPECT_TRUE(sequence.IsComputed());
  // Behind provisional KV the drawn one is provisional too.
  sequence.AddKv(1, /*as_prompt=*/false);
  sequence.FillKv(3);
  EXPECT_EQ(sequence.settled(), 9);
}

TEST(SequenceTest, AnswerBeginsWithinTheTokens) {
  Sequence sequence = Counting(8);
  sequence.BeginAnswer(6);
  EXPECT_EQ(sequence.answer_begin(), 6);
  sequence.Truncate(7);
  EXPECT_EQ(sequence.answer_begin(), 6);
  sequence.Truncate(4);
  EXPECT_EQ(sequence.answer_begin(), 4);
}

TEST(SequenceTest, AbandonedPromptLeavesTheAnswerBeforeIt) {
  Sequence sequence = Counting(6);
  EXPECT_TRUE(sequence.prompt_begins());
  sequence.AddKv(6, /*as_prompt=*/true);
  sequence.EndPrompt(std::nullopt);
  EXPECT_FALSE(sequence.prompt_begins());
  sequence.BeginPrompt();
  EXPECT_TRUE(sequence.prompt_begins());
  sequence.NoteResumed(3);
  const std::vector<int32_t> more = {7, 8, 9};
  sequence.Append(more.data(), more.size());
  sequence.AddKv(2, /*as_prompt=*/true);
  sequence.AbandonPrompt();
  EXPECT_EQ(sequence.tokens().size(), 6u);
  EXPECT_EQ(sequence.kv_length(), 6);
  EXPECT_FALSE(sequence.prompt_begins());
  EXPECT_EQ(sequence.resumed_layers(), 3);
  sequence.BeginPrompt();
  EXPECT_EQ(sequence.resumed_layers(), 0);
}

TEST(SequenceTest, NextRowsBelongToTheAnswerOrToANewPrompt) {
  Sequence sequence =
      Counting(10, SequenceExtent({.full_layers = 2, .sinks = 1, .tail = 3},
                                  /*header=*/{}, 0));
  absl::StatusOr<std::optional<SequenceExtent>> next = sequence.NextExtent();
  ASSERT_TRUE(next.ok()) << next.status();
  EXPECT_EQ((*next)->answer_begin(), 7);
  EXPECT_EQ(sequence.extent()->answer_begin(), 0);  // nothing has changed yet
  sequence.AddKv(10, /*as_prompt=*/true);
  sequence.EndPrompt(*next);
  const int32_t more[] = {10, 11};
  sequence.Append(more, 2);
  EXPECT_EQ((*sequence.NextExtent())->answer_begin(), 7);
  sequence.BeginPrompt();
  EXPECT_EQ((*sequence.NextExtent())->answer_begin(), 9);
  sequence.AbandonPrompt();
  EXPECT_EQ((*sequence.NextExtent())->answer_begin(), 7);
  // Without its tail the prompt has not ended.
  sequence.Truncate(7);
  EXPECT_TRUE(sequence.prompt_begins());
  sequence.Truncate(2);
  EXPECT_EQ(CodeOf(sequence.NextExtent().status()), "invalid_argument");
}

TEST(SequenceTest, CopiesAreIndependent) {
  Sequence sequence = Counting(6);
  sequence.AddKv(6, /*as_prompt=*/true);
  Sequence copy = sequence;
  copy.Truncate(2);
  EXPECT_EQ(sequence.tokens().size(), 6u);
  EXPECT_EQ(sequence.kv_length(), 6);
  EXPECT_EQ(copy.kv_length(), 2);
}

}  // namespace
}  // namespace tiercel::sequence_test

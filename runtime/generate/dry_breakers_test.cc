#include "runtime/generate/dry_breakers.h"

#include <cstdint>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/golden.h"

namespace tiercel::breakers_test {
namespace {

using Ids = std::vector<int32_t>;

class BreakersTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    model_ = OpenModel({.path = CheckpointPath("llama_chat.gguf"),
                        .machine = {.threads = 1}})
                 .release();
  }
  static void TearDownTestSuite() { delete model_; }

  static const Tokenizer& tokenizer() { return *model_->tokenizer; }
  static Ids Encode(std::string_view text) {
    Ids ids;
    EXPECT_TRUE(
        tokenizer().Encode(text, Tokenizer::Special::kPlain, &ids).ok());
    return ids;
  }
  static std::string Piece(int32_t id) {
    return *tokenizer().Piece(id, Tokenizer::Special::kParse);
  }

  static inline Model* model_ = nullptr;
};

TEST_F(BreakersTest, EveryTokenThatHoldsTheTextBreaks) {
  const SequenceBreakers breakers = BreakersOf(tokenizer(), {"e", "\n"});
  int holding = 0;
  for (int32_t id = 0; id < tokenizer().vocab(); ++id) {
    const bool holds = Piece(id).find_first_of("e\n") != std::string::npos;
    holding += holds ? 1 : 0;
    EXPECT_EQ(breakers.IsBreaker(id), holds) << id << " " << Piece(id);
  }
  EXPECT_GT(holding, 10);
}

// A breaker counts however the text is cut into tokens: it may begin within one
// token and go on in the next ones.
TEST_F(BreakersTest, ABreakerMayBeSpeltBySeveralTokens) {
  const std::string text = "zq: ";
  const SequenceBreakers breakers = BreakersOf(tokenizer(), {text});
  const Ids spelt = Encode(text);
  ASSERT_GT(spelt.size(), 1u);
  const Ids after = Encode("xx");
  Ids ids = Encode("abc");
  EXPECT_EQ(breakers.AfterLast(ids), ids.size());
  ids.insert(ids.end(), spelt.begin(), spelt.end());
  EXPECT_EQ(breakers.AfterLast(ids), 0u);
  ids.insert(ids.end(), after.begin(), after.end());
  EXPECT_EQ(breakers.AfterLast(ids), after.size());
  // Half of a breaker is none.
  EXPECT_EQ(breakers.AfterLast(spelt), 0u);
  EXPECT_EQ(breakers.AfterLast({spelt.data(), spelt.size() - 1}),
            spelt.size() - 1);
}

// The breaker begins at the end of a token, and the next tokens spell the rest.
TEST_F(BreakersTest, ABreakerMayBeginWithinAToken) {
  int32_t two = -1;
  for (int32_t id = 0; id < tokenizer().vocab() && two < 0; ++id) {
    const std::string piece = Piece(id);
    if (!tokenizer().IsControl(id) && piece.size() == 2 && piece[0] != piece[1])
      two = id;
  }
  ASSERT_GE(two, 0);
  const SequenceBreakers breakers =
      BreakersOf(tokenizer(), {Piece(two).substr(1) + "#"});
  Ids ids = {two};
  EXPECT_EQ(breakers.AfterLast(ids), 1u);
  const Ids rest = Encode("#");
  ids.insert(ids.end(), rest.begin(), rest.end());
  EXPECT_EQ(breakers.AfterLast(ids), 0u);
}

TEST_F(BreakersTest, TheyAreMadeOnceForTheSameTexts) {
  KnownBreakers known;
  EXPECT_EQ(known.Of(&tokenizer(), {}), nullptr);
  EXPECT_EQ(known.Of(nullptr, {"e"}), nullptr);
  const auto first = known.Of(&tokenizer(), {"e"});
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(known.Of(&tokenizer(), {"e"}), first);
  const auto other = known.Of(&tokenizer(), {"a"});
  EXPECT_NE(other, first);
  const Ids a = Encode("a");
  EXPECT_TRUE(other->IsBreaker(a.front()));
  EXPECT_FALSE(first->IsBreaker(a.front()));  // as it was
}

}  // namespace
}  // namespace tiercel::breakers_test

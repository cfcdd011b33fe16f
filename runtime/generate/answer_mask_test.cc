// A mask of an answer does not meet the thought before it.

#include "runtime/generate/answer_mask.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/golden.h"

namespace tiercel::answer_mask_test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

using Ids = std::vector<int32_t>;

class AnswerMaskTest : public testing::Test {
 protected:
  void SetUp() override {
    model_ = OpenModel(
        {.path = CheckpointPath("llama_chat.gguf"), .weights = false});
    ASSERT_NE(model_, nullptr);
    // The beginning of a word may end this tag: "</" and "the".
    tags_ = {.open = "<t>", .close = "</t"};
    the_ = Ids{IdsOf("the")}.at(0);
    ASSERT_THAT(IdsOf("the"), ElementsAre(the_));
  }

  Ids IdsOf(std::string_view text) {
    Ids ids;
    EXPECT_TRUE(
        model_->tokenizer->Encode(text, Tokenizer::Special::kPlain, &ids).ok());
    return ids;
  }

  // Each byte of `text` as a token of its own, so that none joins two parts.
  Ids Spelled(std::string_view text) {
    Ids ids;
    for (const char c : text) {
      for (const int32_t id : IdsOf(std::string_view(&c, 1))) ids.push_back(id);
    }
    return ids;
  }

  void Make(bool thinks) {
    absl::StatusOr<AnswerMask> made = AnswerMask::Create(
        [this](std::span<const int32_t> output, std::span<uint32_t> allowed) {
          asked_.emplace_back(output.begin(), output.end());
          for (uint32_t& word : allowed) word = 0;
          return absl::OkStatus();
        },
        model_->tokenizer.get(), tags_, thinks);
    ASSERT_TRUE(made.ok()) << made.status();
    mask_ = std::make_unique<AnswerMask>(*std::move(made));
  }

  // The tokens that may follow, and in asked_ those that the mask is asked
  // about.
  TokenSet Ask(const Ids& output) {
    asked_.clear();
    TokenSet allowed(model_->config.vocab);
    const absl::Status status = mask_->Ask(output, allowed.words());
    EXPECT_TRUE(status.ok()) << status;
    return allowed;
  }

  std::unique_ptr<Model> model_;
  ThoughtTags tags_;
  int32_t the_ = 0;
  std::unique_ptr<AnswerMask> mask_;
  std::vector<Ids> asked_;
};

TEST_F(AnswerMaskTest, SeesWhatIsBehindTheThought) {
  Make(/*thinks=*/true);
  const Ids thought = Spelled("I think </t");
  const Ids answer = Spelled("\n\nyes");
  for (size_t size = 0; size < thought.size(); ++size) {
    EXPECT_FALSE(Ask(Ids(thought.begin(),
                         thought.begin() + static_cast<ptrdiff_t>(size)))
                     .IsEmpty());
    EXPECT_THAT(asked_, IsEmpty()) << size;
  }
  for (size_t size = 0; size <= answer.size(); ++size) {
    const Ids part(answer.begin(),
                   answer.begin() + static_cast<ptrdiff_t>(size));
    Ids output = thought;
    output.insert(output.end(), part.begin(), part.end());
    EXPECT_TRUE(Ask(output).IsEmpty());
    EXPECT_THAT(asked_, ElementsAre(part));
  }
}

TEST_F(AnswerMaskTest, SeesAllOfAnOutputWithoutAThought) {
  Make(/*thinks=*/false);
  for (const char* text : {"", "\n", "<t", "yes", "yes <t>a</t no"}) {
    const Ids output = Spelled(text);
    EXPECT_TRUE(Ask(output).IsEmpty());
    EXPECT_THAT(asked_, ElementsAre(output)) << text;
  }
  // A thought that the output begins with is none of it.
  EXPECT_FALSE(Ask(Spelled(" <t>I thi")).IsEmpty());
  EXPECT_THAT(asked_, IsEmpty());
}

TEST_F(AnswerMaskTest, NoTokenEndsAThoughtAndBeginsAnAnswer) {
  Make(/*thinks=*/true);
  EXPECT_TRUE(Ask(Spelled("a the")).Has(the_));
  const TokenSet behind_half_a_tag = Ask(Spelled("a </"));
  EXPECT_FALSE(behind_half_a_tag.Has(the_));
  EXPECT_TRUE(behind_half_a_tag.Has(Spelled("t").at(0)));
  EXPECT_TRUE(Ask(Spelled("a </ ")).Has(the_));
}

TEST_F(AnswerMaskTest, AnOutputMayBeginWithTheTokenThatOpensAThought) {
  tags_.open = "<|im_start|>";
  tags_.open_id = model_->tokenizer->ControlNamed(tags_.open);
  ASSERT_TRUE(tags_.open_id.has_value());
  Make(/*thinks=*/false);
  for (const char* text : {"", " \n"}) {
    TokenSet allowed = Ask(Spelled(text));
    EXPECT_TRUE(allowed.Has(*tags_.open_id));
    allowed.Remove(*tags_.open_id);
    EXPECT_TRUE(allowed.IsEmpty());
  }
  EXPECT_TRUE(Ask(Spelled("y")).IsEmpty());
  EXPECT_TRUE(Ask(Spelled("<|")).IsEmpty());
  EXPECT_FALSE(Ask({*tags_.open_id}).IsEmpty());
  EXPECT_THAT(asked_, IsEmpty());
}

TEST_F(AnswerMaskTest, GoesBackToWhatADraftLeft) {
  Make(/*thinks=*/true);
  Ids other = Spelled("I kno</t");
  Ask(Spelled("I think </tyes"));
  Ask(other);
  EXPECT_THAT(asked_, ElementsAre(Ids()));
  Ask(Spelled("I th"));
  EXPECT_THAT(asked_, IsEmpty());
  other.push_back(the_);
  Ask(other);
  EXPECT_THAT(asked_, ElementsAre(Ids{the_}));
}

}  // namespace
}  // namespace tiercel::answer_mask_test

#include "apps/commands/requests.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tiercel::cli {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

BookOptions InFrench() {
  BookOptions book;
  book.words = 50;
  book.language = "French";
  return book;
}

TEST(RequestsTest, AQuestionSaysHowItIsAnswered) {
  EXPECT_THAT(QuestionTalk({}, "TEXT", "Who?").message(),
              EndsWith("TEXT\n\nAnswer from the text above: Who?"));
  EXPECT_THAT(QuestionTalk(InFrench(), "TEXT", "Who?").message(),
              EndsWith("TEXT\n\nAnswer from the text above in about 50 words, "
                       "in French: Who?"));
  BookOptions own = InFrench();
  own.instruction = "Answer like a pirate.";
  EXPECT_THAT(QuestionTalk(own, "TEXT", "Who?").message(),
              EndsWith("TEXT\n\nAnswer like a pirate. Write in French. Who?"));
}

// The length is that of the answer, not of what each part says.
TEST(RequestsTest, PartsAnswerInTheSameLanguage) {
  const std::string part = PartQuestionTalk(InFrench(), "T", "Who?").message();
  EXPECT_THAT(part, HasSubstr("alone, in French, and quote"));
  EXPECT_THAT(part, Not(HasSubstr("50 words")));
  EXPECT_THAT(JoinAnswersTalk(InFrench(), "T", "Who?").message(),
              EndsWith("above in about 50 words, in French: Who?"));
  EXPECT_THAT(PartQuestionTalk({}, "T", "Who?").message(),
              HasSubstr("from the part above alone, and quote"));
  BookOptions own;
  own.instruction = "Find it.";
  EXPECT_THAT(PartQuestionTalk(own, "T", "Who?").message(),
              EndsWith("T\n\nFind it. If the part says nothing about it, write "
                       "only: Nothing. Question: Who?"));
}

// One reading of a text serves every question, however it is answered.
TEST(RequestsTest, TheTextComesFirst) {
  const std::string begin = "Read the following text.\n\nTEXT\n\n";
  EXPECT_THAT(QuestionTalk({}, "TEXT", "Who?").message(), StartsWith(begin));
  EXPECT_THAT(QuestionTalk(InFrench(), "TEXT", "Who?").message(),
              StartsWith(begin));
}

}  // namespace
}  // namespace tiercel::cli

#include "apps/serve/page.h"

#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "apps/commands/requests.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tiercel::serve {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string PolicyOf(const HttpReply& reply) {
  return std::map<std::string, std::string>(
      reply.headers.begin(), reply.headers.end())["Content-Security-Policy"];
}

TEST(PageTest, OnlyItsOwnScriptRuns) {
  const HttpReply reply = PageReply();
  const std::string policy = PolicyOf(reply);
  for (const char* rule :
       {"default-src 'none'; ", "connect-src 'self'; ", "base-uri 'none'; ",
        "form-action 'none'; ", "frame-ancestors 'none'; ",
        "require-trusted-types-for 'script'; trusted-types 'none'"}) {
    EXPECT_THAT(policy, HasSubstr(rule));
  }
  EXPECT_THAT(policy, Not(HasSubstr("unsafe")));
  const std::string begin = "script-src 'nonce-";
  const size_t place = policy.find(begin);
  ASSERT_NE(place, policy.npos);
  const std::string nonce = policy.substr(place + begin.size(), 32);
  EXPECT_EQ(nonce.find_first_not_of("0123456789abcdef"), nonce.npos);
  for (const char* tag : {"script", "style"}) {
    EXPECT_THAT(policy,
                HasSubstr(absl::StrCat(tag, "-src 'nonce-", nonce, "'; ")));
    EXPECT_THAT(reply.body,
                HasSubstr(absl::StrCat("<", tag, " nonce=\"", nonce, "\">\n")));
  }
  EXPECT_NE(PolicyOf(PageReply()), policy);
}

TEST(PageTest, ItIsOneFile) {
  const std::string page = PageReply().body;
  EXPECT_EQ(page.substr(0, 15), "<!DOCTYPE html>");
  EXPECT_EQ(page.substr(page.size() - 8), "</html>\n");
  for (const char* foreign : {"@STYLE@", "@SCRIPT@", "NONCE", "src=", "@import",
                              "url(", "innerHTML", "insertAdjacent", "eval("}) {
    EXPECT_THAT(page, Not(HasSubstr(foreign)));
  }
}

// The page asks in the words of the commands, as a program would write them.
TEST(PageTest, ItAsksAsTheCommandsDo) {
  const std::string page = PageReply().body;
  for (const cli::Conversation& talk :
       {cli::QuestionTalk({}, "${text}", "${question}"),
        cli::SummaryTalk({}, "${text}")}) {
    EXPECT_THAT(
        page, HasSubstr(absl::StrReplaceAll(talk.message(), {{"\n", "\\n"}})));
  }
}

}  // namespace
}  // namespace tiercel::serve

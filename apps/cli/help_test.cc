#include "apps/cli/help.h"

#include "gtest/gtest.h"

namespace tiercel::cli {
namespace {

TEST(HelpTest, TextsAreBrokenBetweenWords) {
  EXPECT_EQ(
      HelpText({"Words",
                {{"-s", "short"},
                 {"--so-long-that-no-text-follows", "a text"},
                 {"--two-lines N",
                  "more than the fifty-four characters that are left of one "
                  "line"}}}),
      "\nWords:\n"
      "  -s                      short\n"
      "  --so-long-that-no-text-follows\n"
      "                          a text\n"
      "  --two-lines N           more than the fifty-four characters that are "
      "left of\n"
      "                          one line\n");
}

}  // namespace
}  // namespace tiercel::cli

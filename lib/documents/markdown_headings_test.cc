#include "lib/documents/markdown_headings.h"

#include <string>

#include "gtest/gtest.h"
#include "lib/documents/plain_text_for_test.h"

namespace tiercel::document {
namespace {

TEST(MarkdownHeadingsTest, MarksOfWordsAreLeftOut) {
  std::string text;
  std::string tree;
  for (const auto& [heading, title] :
       {std::pair("# **The Mill**", "The Mill"),
        std::pair("# _The_ road to __it__", "The road to it"),
        std::pair("# [The Sea](sea.md) ![of *it*][pic]", "The Sea of it"),
        std::pair("# The Sky {#sky}", "The Sky"),
        std::pair("# Learning C#", "Learning C#"),
        std::pair("# Learning F# ##", "Learning F#"),
        std::pair("# `a*b*` and ``c`d``", "a*b* and c`d"),
        std::pair("# A \\* star <a name=\"x\"></a>", "A * star"),
        std::pair("# snake_case_words * 2", "snake_case_words * 2"),
        std::pair("# [no link] \"quoted\"", "[no link] \"quoted\"")}) {
    text += std::string(heading) + "\n\nIt rains.\n\n";
    tree += "1 |" + std::string(title) + "\n";
  }
  const Document document = ReadAsText(text);
  std::string found;
  for (const Section& section : document.sections) {
    found += "1 " + section.label + "|" + section.title + "\n";
  }
  EXPECT_EQ(found, tree);
}

TEST(MarkdownHeadingsTest, HeadingsNeedNoBlankLines) {
  EXPECT_EQ(Tree("# The Mill\n## Morning\nrun it and wait until all is done, "
                 "or go\n\n# The Road\nIt rains.\n## Night\n\nx\n"),
            "1 |The Mill\n2 |Morning\n1 |The Road\n2 |Night\n");
  // Comments of a program or a shell are none.
  EXPECT_EQ(
      Tree("# One\n\nx\n\n# Two\n\nx\n\n# To install\nmake install\n# To "
           "clean\nmake clean\n\n# A comment of\n# two lines\n\nLANG=C\n"
           "# no\n\n# It is a comment.\n# It has two lines.\n\n# Three\n\nx\n"),
      "1 |One\n1 |Two\n1 |Three\n");
}

TEST(MarkdownHeadingsTest, CodeAndCommentsHaveNoHeadings) {
  EXPECT_EQ(Tree("# One\n\n```x = 1``` is code.\n\n~~~\nuse ``` here\n```\n\n"
                 "# no\n\n~~~\n\n````sh\n```\n\n# no\n\n```\n````\n\n<!--\n"
                 "# no\n\n# no\n-->\n\n# Two\n\nx\n"),
            "1 |One\n1 |Two\n");
}

}  // namespace
}  // namespace tiercel::document

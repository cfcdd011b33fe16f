#include "apps/notes/notes.h"

#include <cmark.h>

#include <cstdlib>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tiercel::reader {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

Notes ExampleNotes() {
  return {.title = "A <Book>",
          .author = "N. N.",
          .sections = {{"Summary",
                        "summary",
                        {{"It ends.\nWell.", "Chapter 1, page 2", "part-1"}}},
                       {"Chapter 1", "part-1", {{"* one", "", ""}}}},
          .footer = "made by a model"};
}

std::string HtmlOf(const std::string& markdown) {
  char* html = cmark_markdown_to_html(markdown.data(), markdown.size(),
                                      CMARK_OPT_UNSAFE);
  std::string copy = html;
  free(html);
  return copy;
}

size_t CountOf(std::string_view what, std::string_view text) {
  size_t count = 0;
  for (size_t at = text.find(what); at != std::string_view::npos;
       at = text.find(what, at + 1)) {
    ++count;
  }
  return count;
}

TEST(NotesTest, AsText) {
  EXPECT_EQ(Render(ExampleNotes(), NotesFormat::kText),
            "A <Book>\nN. N.\n\nSummary\n\nIt ends.\nWell.\n"
            "[Chapter 1, page 2]\n\nChapter 1\n\n* one\n\nmade by a model\n");
}

TEST(NotesTest, AsMarkdown) {
  EXPECT_EQ(Render(ExampleNotes(), NotesFormat::kMarkdown),
            "# A \\<Book\\>\n\nN. N.\n\n- [Summary](#summary)\n"
            "- [Chapter 1](#part-1)\n\n## <a id=\"summary\"></a>Summary\n\n"
            "It ends.\\\nWell.\n\n*[Chapter 1, page 2](#part-1)*\n\n"
            "## <a id=\"part-1\"></a>Chapter 1\n\n\\* one\n\n---\n\n"
            "made by a model\n");
  // One section needs no list, and has no other to lead to.
  Notes one = ExampleNotes();
  one.sections.pop_back();
  EXPECT_EQ(Render(one, NotesFormat::kMarkdown),
            "# A \\<Book\\>\n\nN. N.\n\n## Summary\n\nIt ends.\\\nWell.\n\n"
            "*Chapter 1, page 2*\n\n---\n\nmade by a model\n");
}

TEST(NotesTest, AsOneFileOfHtml) {
  const std::string html = Render(ExampleNotes(), NotesFormat::kHtml);
  EXPECT_THAT(html, HasSubstr("<title>A &lt;Book&gt;</title>"));
  EXPECT_THAT(html, HasSubstr("name=\"viewport\""));
  EXPECT_THAT(html, HasSubstr("<p>It ends.<br />\nWell.</p>\n"
                              "<p class=\"place\"><a href=\"#part-1\">"
                              "Chapter 1, page 2</a></p>"));
  EXPECT_THAT(html, HasSubstr("<section id=\"part-1\">\n<h2>Chapter 1</h2>"));
  EXPECT_THAT(html, HasSubstr("<p>* one</p>"));
  EXPECT_THAT(html, Not(HasSubstr("http://")));
  EXPECT_THAT(html, Not(HasSubstr("src=")));
}

// Any text, in any place, is shown and does nothing.
TEST(NotesTest, TextIsNoMarkup) {
  const std::string hostile[] = {"<script>alert(1)</script>",
                                 "<img src=x onerror=alert(1)>",
                                 "[x](javascript:alert(1))",
                                 "![x](http://x/y.png)",
                                 "</section><h1>",
                                 "&lt;script&gt;",
                                 "\"><script>",
                                 "`code` *bold* __b__ ~~s~~",
                                 "# heading",
                                 "- item",
                                 "+ item",
                                 "1. one",
                                 "12) two",
                                 "> quote",
                                 "    code",
                                 "\tcode",
                                 "===",
                                 "---",
                                 "***",
                                 "```\nx",
                                 "a\n===",
                                 "a\r===",
                                 "a\r# b",
                                 "a\r\n- b",
                                 "a\r```\rb",
                                 "[a]: http://x",
                                 "| a | b |\n|---|---|",
                                 "<http://x>",
                                 "http://x.y www.x.y a@b.c",
                                 "a\\",
                                 "\\<b>",
                                 "&#60;b>"};
  for (const std::string& text : hostile) {
    const std::string html = HtmlOf(EscapeMarkdown(text));
    EXPECT_EQ(html.substr(0, 3), "<p>") << text << "\n" << html;
    EXPECT_EQ(html.find('<', 1), html.find("<br />") == std::string::npos
                                     ? html.find("</p>")
                                     : html.find("<br />"))
        << text << "\n"
        << html;
    Notes notes = {
        .title = text, .author = text, .sections = {}, .footer = text};
    notes.sections.push_back({text, "part-1", {{text, text, "part-1"}}});
    notes.sections.push_back({text, "part-2", {}});
    const std::string page = Render(notes, NotesFormat::kHtml);
    for (const char* never : {"<script", "<img", "<h3", "<code", "<em", "<ol",
                              "javascript:alert(1)\"", "href=\"http"}) {
      EXPECT_THAT(page, Not(HasSubstr(never))) << text;
    }
    EXPECT_EQ(CountOf("<h1", page), 1u) << text;
    const std::string file = HtmlOf(Render(notes, NotesFormat::kMarkdown));
    EXPECT_EQ(CountOf("<h1", file), 1u) << text;
    EXPECT_EQ(CountOf("<h2", file), 2u) << text << "\n" << file;
    for (const char* never : {"<pre", "<code", "<ol", "<h3"}) {
      EXPECT_THAT(file, Not(HasSubstr(never))) << text << "\n" << file;
    }
    EXPECT_EQ(CountOf("<ul", file), 1u) << text << "\n" << file;
    EXPECT_EQ(CountOf("<li", file), 2u) << text << "\n" << file;
    EXPECT_EQ(CountOf("<a href=\"#part-1\">", file), 2u) << text << "\n"
                                                         << file;
    EXPECT_EQ(CountOf("<a ", file), 5u) << text << "\n" << file;
  }
}

TEST(NotesTest, ParagraphsAreBetweenBlankLines) {
  EXPECT_THAT(Paragraphs("\n a\nb \n \n\nc"), ElementsAre("a\nb", "c"));
  EXPECT_THAT(Paragraphs(" \n"), ElementsAre());
  EXPECT_THAT(Paragraphs("a\rb\r\n\r\nc\r\rd"), ElementsAre("a\nb", "c", "d"));
}

}  // namespace
}  // namespace tiercel::reader

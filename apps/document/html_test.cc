#include "apps/document/html.h"

#include "gtest/gtest.h"

namespace tiercel::document {
namespace {

std::string TextOf(std::string_view html) {
  Document document;
  EXPECT_TRUE(ReadHtml(html, &document));
  return document.text;
}

std::string Repeated(std::string_view part, int times) {
  std::string text;
  for (int i = 0; i < times; ++i) text += part;
  return text;
}

TEST(HtmlTest, ParagraphsAndHeadingsAreApart) {
  EXPECT_EQ(TextOf("<h1>Title</h1><p>One\n  two.</p><p>Three.<h2>Next</h2>x"),
            "Title\n\nOne two.\n\nThree.\n\nNext\n\nx\n");
}

TEST(HtmlTest, WhiteSpaceCollapsesAcrossElements) {
  EXPECT_EQ(TextOf("<p> a <b> b</b>\t<i>c </i> d<span>e</span>&nbsp;f </p>"),
            "a b c de f\n");
}

TEST(HtmlTest, EntitiesAreDecoded) {
  EXPECT_EQ(TextOf("<p>&lt;a&gt; &amp; &eacute; &#8212; &#x1F600; &nosuch;"),
            "<a> & é — 😀 &nosuch;\n");
}

TEST(HtmlTest, SoftHyphensAreDropped) {
  EXPECT_EQ(TextOf("<p>hy&shy;phen zero&#8203;width"), "hyphen zerowidth\n");
}

TEST(HtmlTest, ListsHaveMarkersAndNest) {
  EXPECT_EQ(TextOf("a<ul><li>b<li>c<ul><li>d</ul><li><p>e</p><p>f</p></ul>g"),
            "a\n\n- b\n- c\n  - d\n- e\n\n  f\n\ng\n");
  EXPECT_EQ(TextOf("<ol><li>x<li>y</ol>"), "1. x\n2. y\n");
}

TEST(HtmlTest, EmptyItemsLeaveNoMarkers) {
  EXPECT_EQ(TextOf("<ul><li></li><li>a</ul><p>b"), "- a\n\nb\n");
}

TEST(HtmlTest, DefinitionsAreIndented) {
  EXPECT_EQ(TextOf("<dl><dt>t<dd><p>d</p><dt>u<dd>e</dl>f"),
            "t\n    d\nu\n    e\n\nf\n");
}

TEST(HtmlTest, PreformattedTextStaysAsItIs) {
  EXPECT_EQ(TextOf("<p>a</p><pre>\n  x  y\n\n\tz\n</pre><p>b</p>"),
            "a\n\n  x  y\n\n\tz\n\nb\n");
}

TEST(HtmlTest, LineBreaksAndRows) {
  EXPECT_EQ(TextOf("a<br>b<br><br>c"), "a\nb\n\nc\n");
  EXPECT_EQ(TextOf("<table><tr><th>h<th>i<tr><td>1<td>2</table>"),
            "h | i\n1 | 2\n");
}

TEST(HtmlTest, WhatIsNotTextIsLeftOut) {
  EXPECT_EQ(TextOf("<head><title>t</title><style>p{}</style></head>"
                   "<script>var x = '<p>no</p>';</script><nav>menu</nav>"
                   "<div role=navigation>n</div><p hidden>h</p>"
                   "<template><p>no</p></template><!-- c -->"
                   "<h1>yes<a class=headerlink href=#>¶</a></h1>"),
            "yes\n");
}

TEST(HtmlTest, EveryElementThatIsNoTextIsLeftOut) {
  for (const std::string tag :
       {"script", "style", "nav", "template", "noscript", "iframe", "object",
        "svg", "button", "textarea", "audio", "video", "canvas"}) {
    EXPECT_EQ(TextOf("<div>a<" + tag + ">no</" + tag + ">b"), "ab\n") << tag;
  }
  EXPECT_EQ(TextOf("<p>a<select><option>no</select>b"), "ab\n");
  for (const std::string attribute :
       {"hidden", "role=navigation", "role=search", "aria-hidden=true"}) {
    EXPECT_EQ(TextOf("<p>a<span " + attribute + ">no</span>b"), "ab\n")
        << attribute;
  }
  for (const std::string attribute :
       {"role=note", "aria-hidden=false", "class=headerlink"}) {
    EXPECT_EQ(TextOf("<p>a<span " + attribute + ">yes</span>b"), "ayesb\n")
        << attribute;
  }
}

TEST(HtmlTest, WhatStandsApartAndWhatStartsALine) {
  for (const std::string tag :
       {"h1", "h2", "h3", "h4", "h5", "h6", "p", "blockquote", "figure",
        "figcaption", "section", "article", "dl"}) {
    EXPECT_EQ(TextOf("a<" + tag + ">b</" + tag + ">c"), "a\n\nb\n\nc\n") << tag;
  }
  EXPECT_EQ(TextOf("a<hr>b"), "a\n\nb\n");
  EXPECT_EQ(TextOf("<table><caption>t</caption><tr><td>1</table>"), "t\n\n1\n");
  for (const std::string tag : {"div", "address", "aside", "main", "header",
                                "footer", "fieldset", "details", "summary"}) {
    EXPECT_EQ(TextOf("a<" + tag + ">b</" + tag + ">c"), "a\nb\nc\n") << tag;
  }
  EXPECT_EQ(TextOf("a<form>b"), "a\nb\n");
}

TEST(HtmlTest, TheTitleIsRead) {
  Document document;
  ASSERT_TRUE(ReadHtml("<title> A\n &amp; B </title><p>x", &document));
  EXPECT_EQ(document.title, "A & B");
  ASSERT_TRUE(ReadHtml("<p>x", &document));
  EXPECT_EQ(document.title, "");
}

TEST(HtmlTest, EmptyAndBrokenPages) {
  EXPECT_EQ(TextOf(""), "");
  EXPECT_EQ(TextOf("<"), "<\n");
  EXPECT_EQ(TextOf("<p"), "");
  EXPECT_EQ(TextOf("</p></div>x<b><p>y</b>z"), "x\n\nyz\n");
}

TEST(HtmlTest, DeepNestingEndsWithoutRecursion) {
  Document document;
  EXPECT_TRUE(ReadHtml(Repeated("<span>", 20'000) + "x", &document));
  EXPECT_EQ(document.text, "x\n");
  // Deep enough to take long: read or refused, but it ends.
  ReadHtml(Repeated("<div>", 200'000), &document);
}

TEST(HtmlTest, MisnestedFormattingIsRefusedNotBuilt) {
  // Every paragraph opens again what the one before it left open.
  std::string html = "<p>";
  for (int i = 0; i < 5000; ++i) html += "<b id=" + std::to_string(i) + ">";
  html += Repeated("<p>x", 20'000);  // 1e8 nodes, were they built
  Document document;
  EXPECT_FALSE(ReadHtml(html, &document));
}

TEST(HtmlTest, ALargePageTakesNoMoreThanSoMuchMemory) {
  // A tree of 25 bytes a byte.
  const std::string paragraph = "<p><i>falcon</i> and more words here";
  Document document;
  EXPECT_TRUE(ReadHtml(Repeated(paragraph, 30'000), &document));    // 26 MB
  EXPECT_FALSE(ReadHtml(Repeated(paragraph, 350'000), &document));  // 318 MB
}

TEST(HtmlTest, ManyAttributesEnd) {
  std::string html = "<p ";
  for (int i = 0; i < 50'000; ++i) {
    html.append("a").append(std::to_string(i)).append(" ");
  }
  Document document;
  ReadHtml(html + ">x", &document);
}

TEST(HtmlTest, CharsetIsFoundWhereBrowsersLook) {
  EXPECT_EQ(DeclaredCharset("<meta charset=\"Latin1\">"), "latin1");
  EXPECT_EQ(DeclaredCharset("<META http-equiv=Content-Type "
                            "content='text/html; charset=utf-8'>"),
            "utf-8");
  EXPECT_EQ(DeclaredCharset("<?xml version='1.0' encoding='ISO-8859-1'?>"),
            "iso-8859-1");
  EXPECT_EQ(DeclaredCharset("<meta name=x><meta charset = 'utf-8'/>"), "utf-8");
  EXPECT_EQ(DeclaredCharset("<meta charset=utf-8>" + Repeated(" ", 1024)),
            "utf-8");
  EXPECT_EQ(DeclaredCharset(Repeated(" ", 1024) + "<meta charset=utf-8>"), "");
  EXPECT_EQ(DeclaredCharset("<?xml version='1.0'?><p encoding='utf-16'>"), "");
  EXPECT_EQ(DeclaredCharset("<meta name=x><p>charset=utf-8"), "");
  EXPECT_EQ(DeclaredCharset("<meta charset"), "");
}

}  // namespace
}  // namespace tiercel::document

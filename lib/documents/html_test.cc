#include "lib/documents/html.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tiercel::document {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

bool ReadHtml(std::string_view html, Document* document) {
  std::optional<HtmlPage> page = ReadHtmlPage(html);
  if (page.has_value()) FillFrom(*std::move(page), document);
  return page.has_value();
}

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

TEST(HtmlTest, ItemsHaveTheNumbersOfTheirList) {
  EXPECT_EQ(TextOf("<ol start=12><li>a<li>b<li value=20>c<li>d</ol>"),
            "12. a\n13. b\n20. c\n21. d\n");
  EXPECT_EQ(TextOf("<ol reversed><li>a<li>b</ol>"), "2. a\n1. b\n");
  EXPECT_EQ(TextOf("<ol start=x><li value=y>a</ol>"), "1. a\n");
  EXPECT_EQ(TextOf("<ol type=a start=26><li>a<li>b</ol>"), "z. a\naa. b\n");
  EXPECT_EQ(TextOf("<ol type=I start=4><li>a<li type=1>b</ol>"),
            "IV. a\n5. b\n");
  EXPECT_EQ(TextOf("<ol style='list-style: lower-roman inside'><li>a</ol>"),
            "i. a\n");
  EXPECT_EQ(TextOf("<ol style='list-style-type:none'><li>7) a</ol>"),
            "  7) a\n");
}

TEST(HtmlTest, QuotationsHaveTheMarksOfTheirLanguage) {
  EXPECT_EQ(TextOf("He said <q>go <q>now</q></q>, <q>and</q> went."),
            "He said “go ‘now’”, “and” went.\n");
  EXPECT_EQ(TextOf("<html lang=de-AT><q>ja</q>"), "„ja“\n");
  EXPECT_EQ(TextOf("<html lang=fr><q>oui</q>"), "« oui »\n");
  EXPECT_EQ(TextOf("<q><b> “has</b> them”</q>"), "“has them”\n");
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
        "svg", "button", "textarea", "audio", "video", "canvas", "rt", "rp"}) {
    EXPECT_EQ(TextOf("<div>a<" + tag + ">no</" + tag + ">b"), "ab\n") << tag;
  }
  EXPECT_EQ(TextOf("<p>a<select><option>no</select>b"), "ab\n");
  for (const std::string attribute :
       {"hidden", "role=navigation", "role=search", "role=contentinfo",
        "aria-hidden=true", "class=link-target"}) {
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
  // Nesting that would take long: the page is read or refused, but soon.
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
  // The tree takes 25 bytes per byte of HTML.
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

std::string ToString(const std::vector<Section>& sections) {
  std::string lines;
  for (const Section& s : sections) {
    lines += std::to_string(s.level) + " " + s.label + "|" + s.title + " at " +
             std::to_string(s.begin) + " " + s.anchor + "\n";
  }
  return lines;
}

TEST(HtmlTest, HeadingsAreSections) {
  Document document;
  ASSERT_TRUE(
      ReadHtml("<h1>Book</h1>a<h2 id=one>1. <i>One</i>\n and more</h2><p>b"
               "<section id=x><span id=y></span><h4>1.1. Part</h4>c</section>"
               "<h2>2. Two.</h2>d<h2> </h2>e",
               &document));
  EXPECT_EQ(document.text,
            "Book\n\na\n\n1. One and more\n\nb\n\n1.1. Part\n\nc\n\n2. Two."
            "\n\nd\n\ne\n");
  EXPECT_EQ(ToString(document.sections),
            "1 |Book at 0 \n"
            "2 1|One and more at 9 one\n"
            "3 1.1|Part at 29 y\n"
            "2 2|Two at 43 \n");
}

// Returns the sections of a page, each with its level.
std::string OutlineOf(std::string_view html) {
  Document document;
  EXPECT_TRUE(ReadHtml(html, &document));
  FinishOutline(&document);
  std::string lines;
  for (const Section& s : document.sections) {
    const size_t end = document.text.find('\n', s.begin);
    lines += std::to_string(s.level) + " " + s.label + "|" + s.title + "|" +
             document.text.substr(s.begin, end - s.begin) + "\n";
  }
  return lines;
}

TEST(HtmlTest, AHeadingDoesNotHideChaptersInParagraphs) {
  const std::string prose = "<p>" + Repeated("The river ran on. ", 20);
  std::string chapters;
  for (const std::string number : {"I", "II", "III"}) {
    chapters += "<p align=center>CHAPTER " + number + "</p>" + prose;
  }
  const std::string outline =
      "1 CHAPTER I||CHAPTER I\n1 CHAPTER II||CHAPTER II\n"
      "1 CHAPTER III||CHAPTER III\n";
  EXPECT_EQ(OutlineOf(chapters), outline);
  EXPECT_EQ(OutlineOf("<h1>The Mill</h1>" + chapters), outline);
  EXPECT_EQ(OutlineOf("<h1>The Mill</h1><h2>by A. Writer</h2>" + chapters),
            outline);
  EXPECT_EQ(OutlineOf("<title>T</title><h2>Preface</h2>" + prose + chapters),
            "1 |Preface|Preface\n" + outline);
  EXPECT_EQ(OutlineOf(chapters + "<h3>Of this site</h3>x"),
            outline + "1 |Of this site|Of this site\n");
  EXPECT_EQ(OutlineOf("<title>T</title><h1>Part One</h1>" + chapters +
                      "<h1>Part Two</h1>" + chapters)
                .substr(0, 50),
            "1 Part One||Part One\n2 CHAPTER I||CHAPTER I\n2 CHAP");
}

TEST(HtmlTest, HeadingsUnderLabelsInParagraphsAreTheirTitles) {
  const std::string prose = "<p>" + Repeated("The river ran on. ", 20);
  EXPECT_EQ(
      OutlineOf("<p>CHAPTER I<h2>The Mill</h2>" + prose + "<h3>Morning</h3>" +
                prose + "<p>CHAPTER II<h2>The Road</h2>" + prose + prose),
      "1 CHAPTER I|The Mill|CHAPTER I\n2 |Morning|Morning\n"
      "1 CHAPTER II|The Road|CHAPTER II\n");
}

TEST(HtmlTest, WhatIsDeclaredIsKeptWhereLittleSpeaksForMore) {
  const std::string prose = "<p>" + Repeated("The river ran on. ", 20);
  // Chapters are declared; some lines that look like them are none.
  EXPECT_EQ(
      OutlineOf("<h2>Chapter 1</h2>" + prose + "<p>Chapter 7</p>" + prose +
                "<p>Chapter 8</p>" + prose + "<h2>Chapter 2</h2>" + prose),
      "1 Chapter 1||Chapter 1\n1 Chapter 2||Chapter 2\n");
  // Numbers within stories are no chapters of the book.
  std::string stories;
  for (const std::string title : {"The Mill", "The Road"}) {
    stories += "<h2>" + title + "</h2>";
    for (const std::string number : {"I", "II", "III"}) {
      stories += "<p>" + number + "</p>" + prose + prose;
    }
  }
  EXPECT_EQ(OutlineOf(stories), "1 |The Mill|The Mill\n1 |The Road|The Road\n");
  // More headings speak for themselves than labels.
  std::string many;
  for (int i = 0; i < 6; ++i) many += "<h2>Hill" + prose + "</h2>" + prose;
  EXPECT_EQ(OutlineOf("<p>Part One</p>" + many + "<p>Part Two</p>" + many)
                .find("Part"),
            std::string::npos);
}

TEST(HtmlTest, LinesOfATitlePageAreNoSections) {
  Document document;
  ASSERT_TRUE(ReadHtml(
      "<h1>Guide</h1><h2 class=subtitle>To it</h2><h3 class='x author'>A. B."
      "</h3><h4 class=edition>2nd</h4><h2>One</h2>a<h2>Two</h2>b",
      &document));
  EXPECT_EQ(document.text,
            "Guide\n\nTo it\n\nA. B.\n\n2nd\n\nOne\n\na\n\n"
            "Two\n\nb\n");
  ASSERT_EQ(document.sections.size(), 3u);
  EXPECT_EQ(document.sections[1].title, "One");
}

TEST(HtmlTest, PlacesOfThePage) {
  const auto page = ReadHtmlPage(
      "<html lang=de><head><meta name=Author content=' A  B '></head><p id=a>é"
      "<p>x <a href='b.html#c' id=l>y</a><ul><li id=i>z</ul>"
      "<span role=doc-pagebreak aria-label=xii></span>w<p id=end>");
  ASSERT_TRUE(page.has_value());
  EXPECT_EQ(page->text, "é\n\nx y\n\n- z\n\nw\n");
  EXPECT_EQ(page->language, "de");
  EXPECT_EQ(page->author, "A B");
  ASSERT_EQ(page->links.size(), 1u);
  EXPECT_EQ(page->links[0].href, "b.html#c");
  EXPECT_EQ(page->links[0].depth, 0);
  EXPECT_THAT(page->anchors,
              UnorderedElementsAre(Pair("a", 0), Pair("l", 6), Pair("i", 11),
                                   Pair("end", 15)));
  ASSERT_EQ(page->pages.size(), 1u);
  EXPECT_EQ(page->pages[0].number, "xii");
  EXPECT_EQ(page->pages[0].begin, 14u);
}

TEST(HtmlTest, NumbersOfNotesAreInBrackets) {
  EXPECT_EQ(TextOf("a<a class='footnote-reference brackets'>1</a> "
                   "b<a role=doc-noteref><sup>2</sup></a> "
                   "c<a class=brackets>[3]</a> d<a>4</a>"),
            "a[1] b[2] c[3] d4\n");
  // Raised links are such numbers, and so are links to what is named a note.
  EXPECT_EQ(TextOf("a<sup><a href=#n>1</a></sup> b<a href=x.html#n><sup>2</sup>"
                   "</a> c<a href=#n><span class='x super'>3</span></a> "
                   "d<a href=#n style='vertical-align: super'>4</a> "
                   "e<sup>[<a class=footnote href=#_footnotedef_5>5</a>]</sup> "
                   "f<sup><a href=#n>6</a>,<a href=#m>7</a></sup> "
                   "g<sup><a href=#n>*</a></sup> h<a href=#fn:8>8</a> "
                   "i<sup role=doc-noteref><a href=#fn:9>9</a></sup> "
                   "j<sup><a href=#n>b</a></sup> k<a href=#_ftnref1>10</a>"),
            "a[1] b[2] c[3] d[4] e[5] f[6],[7] g[*] h[8] i[9] j[b] k[10]\n");
  EXPECT_EQ(TextOf("x<sup>2</sup> 1<sup>st</sup> chapter <a href=#c>2</a> "
                   "1<sup><a href=#s>st</a></sup> <a href=#notes>3</a> "
                   "<sup><a href=#t>TM</a></sup> <a href=#fn1>below</a>"),
            "x2 1st chapter 2 1st 3 TM below\n");
}

TEST(HtmlTest, ChineseAndJapanese) {
  // There is no space at a line end and no reading; spaces that are meant stay.
  EXPECT_EQ(
      TextOf("<p>日本\n語と漢<ruby>字<rp>(</rp><rt>じ</rt><rp>)</rp></ruby> "
             "は\nabc\nです"),
      "日本語と漢字 は abc です\n");
}

TEST(HtmlTest, HeadingsAreReadAsTheyAreShown) {
  const auto page = ReadHtmlPage(
      "<h2><span>1.1</span>Mill</h2><h2><b>C</b>HAPTER I<i>I</i></h2>"
      "<h2><span>2</span> <b>The</b>re</h2>"
      "<h2>Road<span class='x mw-editsection'>[<a href=e>edit</a>]</span></h2>"
      "<h2 id=s>Sea <a href=#s>#</a></h2><h2><a id=t href=#t>¶</a>Sky</h2>"
      "<div role=heading aria-level=3>Hill</div><p role=heading>Dale</p>"
      "<p>x <a href=#y>#</a>");
  ASSERT_TRUE(page.has_value());
  std::string headings;
  for (const Heading& heading : page->headings) {
    headings += std::to_string(heading.level) + " " + heading.text + "|" +
                page->text.substr(heading.begin, 3) + "|" + heading.anchor +
                "\n";
  }
  EXPECT_EQ(headings,
            "2 1.1 Mill|1.1|\n2 CHAPTER II|CHA|\n2 2 There|2 T|\n"
            "2 Road|Roa|\n2 Sea|Sea|s\n2 Sky|Sky|t\n3 Hill|Hil|\n");
  EXPECT_THAT(page->text, HasSubstr("Hill\n\nDale\n\nx #\n"));
}

TEST(HtmlTest, ImagesOfLettersAreLetters) {
  EXPECT_EQ(TextOf("<p><img alt=T>he mill<img alt='A mill at night'> "
                   "<ruby><rb><img alt=喰></rb><rt>く</rt></ruby>い<p>x"),
            "The mill 喰い\n\nx\n");
  const auto page = ReadHtmlPage(
      "<h2><img alt='I. The Mill'></h2>a<h2><img alt=ornament>Night</h2>b"
      "<p><math alttext='x^2'><mi>x</mi><mn>2</mn></math>");
  ASSERT_TRUE(page.has_value());
  ASSERT_EQ(page->headings.size(), 2u);
  EXPECT_EQ(page->headings[0].text, "I. The Mill");
  EXPECT_EQ(page->headings[1].text, "Night");
  EXPECT_EQ(page->text, "I. The Mill\n\na\n\nNight\n\nb\n\nx^2\n");
}

TEST(HtmlTest, FormulasAreWrittenOnce) {
  EXPECT_EQ(TextOf("<p>is <math><semantics><mrow><mfrac><mn>1</mn><mn>2</mn>"
                   "</mfrac><msup><mi>x</mi><mn>3</mn></msup></mrow>"
                   "<annotation encoding='application/x-tex'>\\frac12x^3"
                   "</annotation></semantics></math> or so"),
            "is 1/2 x^3 or so\n");
  EXPECT_EQ(
      TextOf("<p><math><mn>3</mn><mfrac><mn>1</mn><mn>2</mn></mfrac></math> or "
             "<math><mfrac><mrow><mi>a</mi><mo>+</mo><mi>b</mi></mrow>"
             "<mrow><mn>2</mn></mrow></mfrac></math> or <math><munderover>"
             "<mo>S</mo><mrow><mi>i</mi><mo>=</mo><mn>1</mn></mrow><mi>n</mi>"
             "</munderover></math>"),
      "3 1/2 or (a+b)/2 or S_(i=1)^n\n");
}

TEST(HtmlTest, NumbersOfPrintedPagesAreNoText) {
  const auto page = ReadHtmlPage(
      "<p>to the <span class=pagenum id=Page_12>[Pg 12]</span>garden un"
      "<span class='x pageno'><a id=Page_13>13</a></span>der it "
      "<span epub:type=pagebreak>xiv</span>was <a id=page_15></a>late "
      "<span class=pagenum>not one</span> <a id=pages>5</a>"
      "<div role=doc-pagebreak aria-label='Page 16'><p>text</div>");
  ASSERT_TRUE(page.has_value());
  EXPECT_EQ(page->text, "to the garden under it was late not one 5\n\ntext\n");
  std::string pages;
  for (const Page& mark : page->pages) {
    pages += mark.number + "|" + page->text.substr(mark.begin, 3) + "\n";
  }
  EXPECT_EQ(pages, "12|gar\n13|der\nxiv|was\n15|lat\n16|tex\n");
}

TEST(HtmlTest, HeadingsHaveNoNotes) {
  const auto page = ReadHtmlPage(
      "<h1>The Mill<sup><a href=#n class=noteref>1</a></sup></h1>a"
      "<h1>Bridge<a epub:type=noteref href=#m>2</a> x<sup>2</sup></h1>b"
      "<h1>Night [<a href=#o>3</a>]</h1>c<h1>Day<sup>*</sup> [4]</h1>d"
      "<h1>1984 <a href=#p>Again</a></h1>e");
  ASSERT_TRUE(page.has_value());
  std::string titles;
  for (const Heading& heading : page->headings) titles += heading.text + "\n";
  EXPECT_EQ(titles, "The Mill\nBridge x2\nNight\nDay [4]\n1984 Again\n");
  EXPECT_THAT(page->text, HasSubstr("Bridge[2] x2"));
}

TEST(HtmlTest, BlocksAndHiddenElementsAreThoseOfBrowsers) {
  EXPECT_EQ(TextOf("<center>A</center><center>B</center><fieldset><legend>c"
                   "</legend>d</fieldset><dialog open>e</dialog>f"
                   "<listing>g  h</listing><dir><li>i</dir>"
                   "<p style='color:red; DISPLAY : none'>no</p>"
                   "<p style='display:nonesuch-not'>j<p style='color:red'>k"),
            "A\nB\nc\nd\ne\nf\n\ng  h\n\n- i\n\nk\n");
}

TEST(HtmlTest, AFrameSetHasLinksAndNoText) {
  const auto page = ReadHtmlPage(
      "<title>t</title><frameset><frame src=a.html><frame src=b.html>"
      "<noframes><body>none</body></noframes></frameset>");
  ASSERT_TRUE(page.has_value());
  EXPECT_EQ(page->text, "");
  EXPECT_THAT(page->frames, ElementsAre("a.html", "b.html"));
}

TEST(HtmlTest, GutenbergsFrameIsLeftOutAndSaid) {
  Document document;
  ASSERT_TRUE(
      ReadHtml("<title>The Mill | Project Gutenberg</title>"
               "<section id=pg-header><h2>The Project</h2><div><p><strong>Title"
               "</strong>: The Mill</p><div><p><strong>Author</strong>: Ann "
               "Bell</p></div><p><strong>Language</strong>: French</p></div>"
               "<div>*** START ***</div></section><p>x<section "
               "id=pg-footer>end</section>",
               &document));
  EXPECT_EQ(document.text, "x\n");
  EXPECT_EQ(document.title + "|" + document.author + "|" + document.language,
            "The Mill|Ann Bell|fr");
  EXPECT_THAT(document.warnings, ElementsAre(HasSubstr("Gutenberg")));
  Document old;
  ASSERT_TRUE(ReadHtml(
      "<title>The Project Gutenberg eBook of T</title><pre>\n"
      "Title: A Tale\n\nAuthor: W\n\n*** START OF THIS PROJECT GUTENBERG "
      "EBOOK A TALE ***\n</pre><h2>I</h2>x<h2>II</h2>y<pre>\n*** END OF THIS "
      "PROJECT GUTENBERG EBOOK A TALE ***\nlicence\n</pre><h2>no</h2>",
      &old));
  EXPECT_THAT(old.text, HasSubstr("I\n\nx\n\nII\n\ny"));
  EXPECT_EQ(old.text.find("PROJECT"), std::string::npos);
  EXPECT_EQ(old.title + ", " + old.author, "A Tale, W");
  ASSERT_EQ(old.sections.size(), 2u);
  EXPECT_EQ(old.text.substr(old.sections[1].begin, 2), "II");
}

}  // namespace
}  // namespace tiercel::document

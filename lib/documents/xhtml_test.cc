#include "lib/documents/xhtml.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/documents/html.h"
#include "lib/documents/xml.h"

namespace tiercel::document {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string TextOfXhtml(const std::string& xhtml) {
  const auto page = ReadHtmlPage(XhtmlAsHtml(xhtml));
  return page.has_value() ? page->text : "too complex";
}

TEST(XhtmlTest, PagesThatAreNotWellFormedHaveEmptyElements) {
  EXPECT_EQ(
      XhtmlAsHtml("<a id=\"x\"/><br/><p class='/>'>b</p><!-- <i/> --><i />"
                  "<script src='x'/> < 1/>"),
      "<a id=\"x\"></a><br/><p class='/>'>b</p><!-- <i/> --><i ></i>"
      "<script src='x'></script> < 1/>");
  EXPECT_EQ(TextOfXhtml("<title/><body>a<script/>b</body>"), "ab\n");
  EXPECT_EQ(TextOfXhtml("<p>a &eacute; &nosuch; <b>c"), "a é &nosuch; c\n");
}

TEST(XhtmlTest, ElementsWithPrefixesAreElements) {
  EXPECT_EQ(
      TextOfXhtml("<x:html xmlns:x='http://www.w3.org/1999/xhtml'><x:body>"
                  "<x:h1>A</x:h1><x:p>b<x:br/>c</x:p></x:body></x:html>"),
      "A\n\nb\nc\n");
}

TEST(XhtmlTest, TextIsThatOfXml) {
  EXPECT_EQ(
      TextOfXhtml("<!DOCTYPE html [<!ENTITY who 'the &#x201C;man'>"
                  "<!ENTITY hellip 'and so on'>]><html><body><p>&who; &amp; "
                  "<![CDATA[<b> &amp;]]> 1 &lt; 2&hellip;</p><pre>\n\nx</pre>"
                  "<p>caf&eacute;</p><script>no</script></body></html>"),
      "the “man & <b> &amp; 1 < 2and so on\n\n\n\nx\n\ncafé\n");
}

TEST(XhtmlTest, AttributesKeepTheirMeaning) {
  const std::string html = XhtmlAsHtml(
      "<html xmlns='http://www.w3.org/1999/xhtml' xml:lang='de' "
      "xmlns:e='http://www.idpf.org/2007/ops'><body><p title='a&quot;&lt;b' "
      "e:type='pagebreak'/></body></html>");
  EXPECT_THAT(html, HasSubstr("<html xml:lang=\"de\">"));
  EXPECT_THAT(html, HasSubstr("<p title=\"a&quot;&lt;b\" "
                              "epub:type=\"pagebreak\"></p>"));
}

// Entities of other files are not read, and none swells without end: such a
// page is read as one that is not well-formed.
TEST(XhtmlTest, HostileEntities) {
  for (const char* declarations :
       {"<!ENTITY x SYSTEM 'file:///etc/passwd'>",
        "<!ENTITY % y SYSTEM 'file:///etc/passwd'> %y;",
        "<!ENTITY % y '<!ENTITY x SYSTEM \"file:///etc/passwd\">'> %y;"}) {
    EXPECT_THAT(TextOfXhtml(std::string("<!DOCTYPE html [") + declarations +
                            "]><html><body><p>a&x;b</p></body></html>"),
                Not(HasSubstr("root:")));
  }
  std::string bomb = "<!DOCTYPE html [<!ENTITY a0 'aaaaaaaaaa'>";
  for (int i = 1; i < 12; ++i) {
    bomb += "<!ENTITY a" + std::to_string(i) + " '";
    for (int j = 0; j < 10; ++j) bomb += "&a" + std::to_string(i - 1) + ";";
    bomb += "'>";
  }
  EXPECT_LT(TextOfXhtml(bomb + "]><html><body>&a11;</body></html>").size(),
            size_t{1} << 20);
  EXPECT_EQ(TextOfXhtml("<!DOCTYPE html [<!ENTITY a '&b;'><!ENTITY b '&a;'>]>"
                        "<html><body>x</body></html>"),
            "x\n");
}

// A page that is not well-formed is read as HTML.
TEST(XhtmlTest, DeclarationsAreNoText) {
  const std::string declarations =
      "<!ENTITY who 'the man'><!ENTITY x SYSTEM \"a]>b.xml\">\n<!-- ]> ' -->"
      "<?a ]> ?><!ENTITY y PUBLIC '-//A' 'http://localhost/]>'>"
      "<!ENTITY % z SYSTEM 'z'>";
  const std::string body =
      " ><html xmlns='http://www.w3.org/1999/xhtml'><body><p>Then &who; "
      "went.</p>";
  for (const std::string before :
       {"", "\n", "<?xml version='1.0'?>\n<!-- <!DOCTYPE a [ -->\n"}) {
    const std::string start =
        before + "<!DOCTYPE html PUBLIC '-//' \"[\" [" + declarations + "]";
    EXPECT_EQ(TextOfXhtml(start + body + "</body></html>"),
              "Then the man went.\n");
    EXPECT_EQ(TextOfXhtml(start + body), "Then &who; went.\n");
    EXPECT_EQ(WithoutDeclarations(start + body),
              before + "<!DOCTYPE html PUBLIC '-//' \"[\" " + body);
  }
  for (const std::string page :
       {"", "<", "x <!DOCTYPE html []>", "<!DOCTYPE html><p>[a]>",
        "<!DOCTYPE html [<!ENTITY a 'b'", "<p><!DOCTYPE html []>"}) {
    EXPECT_EQ(WithoutDeclarations(page), page);
  }
}

TEST(XhtmlTest, DeepPagesDoNotExhaustTheStack) {
  std::string deep;
  for (int i = 0; i < 100'000; ++i) deep += "<b>";
  XhtmlAsHtml("<html>" + deep);
  std::string closed = deep;
  for (int i = 0; i < 100'000; ++i) closed += "</b>";
  XhtmlAsHtml("<html>" + closed + "</html>");
  const XmlTree tree("<html>" + closed + "</html>", XmlTree::Repair::kParts);
  EXPECT_EQ(TextOfXhtml("<html>x"), "x\n");
}

}  // namespace
}  // namespace tiercel::document

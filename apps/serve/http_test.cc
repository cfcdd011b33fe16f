#include "apps/serve/http.h"

#include "gtest/gtest.h"

namespace tiercel::serve {
namespace {

TEST(HttpTest, ValuesOfAQueryAreDecoded) {
  EXPECT_EQ(QueryValue("name=a%20b%C3%A9+c.epub", "name"),
            "a b\xc3\xa9 c.epub");
  EXPECT_EQ(QueryValue("names=1&name=2&name=3", "name"), "2");
  EXPECT_EQ(QueryValue("a=b=c", "a"), "b=c");
  EXPECT_EQ(QueryValue("a=%26%3d", "a"), "&=");
  for (const char* query : {"", "name", "&&", "name=", "a=name", "nam=e"}) {
    EXPECT_EQ(QueryValue(query, "name"), "") << query;
  }
  // An escape that is none is kept.
  for (const char* value : {"%", "%4", "%zz", "100%"}) {
    EXPECT_EQ(QueryValue(std::string("a=") + value, "a"), value);
  }
}

}  // namespace
}  // namespace tiercel::serve

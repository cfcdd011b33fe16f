#include "models/format/json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "lib/status/error.h"

namespace tiercel::json_test {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string CodeFor(std::string_view text) {
  const absl::StatusOr<nlohmann::json> document = ParseJson("a file", text);
  if (document.ok()) return "";
  EXPECT_THAT(std::string(document.status().message()), StartsWith("a file: "));
  EXPECT_LT(document.status().message().size(), 400u);
  return CodeOf(document.status());
}

TEST(ParseJson, BuildsTheSameDocumentAsTheLibrary) {
  for (const std::string text :
       {R"({"a":[1,-2,3.5,true,false,null,"x"],"b":{"c":[[],{}],"d":{}}})",
        "[]", "{}", "1", "\"\"", "null", "[[[1],2],[3,[4]]]",
        R"([{"a":[{"b":1},{"b":2}]},18446744073709551615])",
        " \n {\"k\" : \"\\u00e9\\n\\ud83d\\ude00\"} \n"}) {
    const absl::StatusOr<nlohmann::json> document = ParseJson("t", text);
    ASSERT_TRUE(document.ok()) << document.status();
    EXPECT_EQ(*document, nlohmann::json::parse(text));
  }
}

TEST(ParseJson, RefusesWhatIsNotOneDocument) {
  for (const std::string_view text :
       {std::string_view(""), std::string_view("{"), std::string_view("}"),
        std::string_view("{} {}"), std::string_view("[1,]"),
        std::string_view("{'a':1}"), std::string_view("NaN"),
        std::string_view("[1e999]"), std::string_view("// c\n1"),
        std::string_view("\"\xff\""), std::string_view("\"\xed\xa0\x80\""),
        std::string_view("{}\0", 3), std::string_view("{}\0PK", 5),
        std::string_view("\"a\0b\"", 5)}) {
    EXPECT_EQ(CodeFor(text), "invalid_json") << text;
  }
}

TEST(ParsePythonJson, TakesNumbersThatPythonAloneWrites) {
  const std::string text =
      R"({"a":NaN,"b":[Infinity,-Infinity , 1],"c":"NaN \" Infinity","\\":NaN})";
  const auto document = ParsePythonJson("f", text);
  ASSERT_TRUE(document.ok()) << document.status();
  EXPECT_EQ(*document, nlohmann::json::parse(
                           R"({"a":"NaN","b":["Infinity","-Infinity",1],)"
                           R"("c":"NaN \" Infinity","\\":"NaN"})"));
  EXPECT_EQ(*ParsePythonJson("f", R"({"a":[1,null]})"),
            nlohmann::json::parse(R"({"a":[1,null]})"));
  for (const char* other :
       {"{NaN:1}", "{Infinity\n :1}", "nan", "-NaN", "1NaN", "NaNNaN",
        "+Infinity", "\"NaN", "Infinit", "[NaN"}) {
    EXPECT_FALSE(ParsePythonJson("f", other).ok()) << other;
  }
}

TEST(ParseJson, KeepsTheOrderOfMembersWhereThatIsWanted) {
  constexpr char kText[] = R"({"b":[{"z":1,"a":{}},2],"a":"x","c":{"y":[]}})";
  const auto document = ParseOrderedJson("t", kText);
  ASSERT_TRUE(document.ok()) << document.status();
  EXPECT_EQ(document->dump(), kText);
  EXPECT_FALSE(ParseOrderedJson("t", R"({"b": 1, "a": 2, "b": 3})").ok());
}

TEST(ParseJson, OrderedIntegersAreNoFractions) {
  EXPECT_EQ(ParseOrderedJson("t", "[18446744073709551616]").status().message(),
            "t: got 18446744073709551616, need integers of at most 64 bits");
  EXPECT_FALSE(ParseOrderedJson("t", "[-9223372036854775809]").ok());
  EXPECT_TRUE(ParseOrderedJson("t", "[-9223372036854775808, 1e20]").ok());
  EXPECT_EQ(*ParseJson("t", "18446744073709551616"), 18446744073709551616.0);
}

TEST(ParseJson, RefusesDuplicateKeys) {
  EXPECT_EQ(CodeFor(R"({"a":1,"b":2,"a":3})"), "invalid_json");
  EXPECT_EQ(CodeFor(R"([{"x":{"a":1,"a":1}}])"), "invalid_json");
  EXPECT_EQ(CodeFor(R"({"a":1,"\u0061":2})"), "invalid_json");
  EXPECT_EQ(CodeFor(R"({"a":{"a":{"a":1}}})"), "");
}

TEST(ParseJson, DepthIsAtMost64) {
  EXPECT_EQ(CodeFor(std::string(64, '[') + std::string(64, ']')), "");
  EXPECT_EQ(CodeFor(std::string(65, '[') + std::string(65, ']')),
            "invalid_json");
  EXPECT_EQ(CodeFor(std::string(1'000'000, '[')), "invalid_json");
  std::string objects;
  for (int i = 0; i < 100'000; ++i) objects += "{\"a\":";
  EXPECT_EQ(CodeFor(objects), "invalid_json");
}

TEST(ParseJson, SaysWhere) {
  EXPECT_THAT(
      std::string(ParseJson("f", "{\n  \"a\": 1,\n  b\n}").status().message()),
      HasSubstr("line 3"));
}

TEST(ParseJson, MessagesStayShort) {
  EXPECT_EQ(CodeFor("\"" + std::string(1 << 20, 'x')), "invalid_json");
  const std::string key(1 << 20, 'k');
  EXPECT_EQ(CodeFor("{\"" + key + "\":1,\"" + key + "\":2}"), "invalid_json");
}

TEST(ParseJson, SkipsAByteOrderMark) {
  EXPECT_EQ(CodeFor("\xef\xbb\xbf{}"), "");
  EXPECT_EQ(CodeFor("\xef\xbb\xbf\xef\xbb\xbf{}"), "invalid_json");
}

TEST(WriteJson, ReplacesInvalidUtf8) {
  EXPECT_EQ(WriteJson(nlohmann::json("a\xff z")), "\"a\xef\xbf\xbd z\"");
  EXPECT_EQ(WriteJson(nlohmann::json({{"k", {1, 2}}})), R"({"k":[1,2]})");
}

}  // namespace
}  // namespace tiercel::json_test

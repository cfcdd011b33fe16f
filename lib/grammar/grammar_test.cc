// Grammars allow the texts that their schema or their rules do, token by token,
// and what would be obeyed in part is refused.

#include "lib/grammar/grammar.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/status/error.h"

namespace tiercel::grammar_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using Kind = GrammarSource::Kind;

constexpr int32_t kEnd = 256;
constexpr int32_t kControl = 257;

// Each byte is a token; then one that ends a text, a control token, and words.
GrammarVocabulary Tokens() {
  GrammarVocabulary made;
  for (int byte = 0; byte < 256; ++byte) {
    made.tokens.push_back(std::string(1, static_cast<char>(byte)));
  }
  made.tokens.push_back("");
  made.tokens.push_back("");
  made.tokens.push_back("\"name\"");
  made.tokens.push_back("true");
  made.ends = {kEnd};
  return made;
}

std::string Nested(const std::string& open, const std::string& close, int n) {
  std::string text;
  for (int i = 0; i < n; ++i) text += open;
  for (int i = 0; i < n; ++i) text += close;
  return text;
}

std::string WithProperties(int n) {
  std::string text = R"({"properties":{)";
  for (int i = 0; i < n; ++i) {
    text += (i == 0 ? "\"" : ",\"") + std::to_string(i) + "\":{}";
  }
  return text + "}}";
}

absl::Status Checked(Kind kind, const std::string& text) {
  return CheckGrammar({kind, text, "the grammar"});
}

TEST(GrammarCheckTest, WhatAGrammarWouldNotObeyIsRefused) {
  const struct {
    Kind kind;
    std::string text;
    std::string said;
  } kWrong[] = {
      {Kind::kJsonSchema, "{", "the grammar: it is no JSON"},
      {Kind::kJsonSchema, "[1]", "it is no JSON schema"},
      {Kind::kJsonSchema, R"({"anyOf":[{}],"properties":{}})",
       "got properties beside anyOf, which are not supported together"},
      {Kind::kJsonSchema,
       R"({"properties":{"a":{"items":{"$ref":"#","minLength":1}}}})",
       "got minLength beside $ref"},
      {Kind::kJsonSchema, R"({"items":{"not":{"type":"string"}}})",
       "not is not supported"},
      {Kind::kJsonSchema, R"({"uniqueItems":true})",
       "uniqueItems is not supported"},
      {Kind::kJsonSchema,
       R"({"uniqueItems":false,"items":{"const":{"not":1}}})", ""},
      {Kind::kJsonSchema, R"({"propertyNames":{"maxLength":2}})", ""},
      {Kind::kJsonSchema, R"({"type":"object","oneOf":[{}]})",
       "got type beside oneOf"},
      {Kind::kJsonSchema, R"({"allOf":[{}],"oneOf":[{}]})",
       "got oneOf beside allOf, need one of them"},
      {Kind::kJsonSchema, R"({"prefixItems":[{"maxItems":10001}]})",
       "maxItems: got 10001, need 0 to 10000"},
      {Kind::kJsonSchema, R"({"type":"string","minLength":1e300})",
       "minLength: got 1e+300"},
      {Kind::kJsonSchema, Nested(R"({"items":)", "}", 65), "nested 65 deep"},
      {Kind::kJsonSchema, Nested("[", "]", 30000), "nested 30000 deep"},
      {Kind::kJsonSchema, std::string(kMostGrammarBytes + 1, ' '),
       "got 65537 bytes, need at most 65536"},
      {Kind::kJsonSchema,
       R"({"type":"string","pattern":")" + Nested("(a|", ")", 65) + "\"}",
       "nested 65 deep"},
      {Kind::kJsonSchema,
       R"({"patternProperties":{")" + Nested("(", ")", 400) + "\":{}}}",
       "nested 400 deep"},
      {Kind::kJsonSchema, R"({"type":"string","pattern":"^\"a$"})",
       "a pattern with quotes"},
      {Kind::kJsonSchema, R"({"type":"string","pattern":"a\\n"})",
       "a pattern with quotes"},
      {Kind::kJsonSchema, "{\"type\":\"string\",\"pattern\":\"\xC3\xA9\"}",
       "a pattern with quotes"},
      {Kind::kJsonSchema, R"({"type":"string","pattern":"a{1,101}"})",
       "repeats something 101 times"},
      {Kind::kJsonSchema, R"({"type":"string","pattern":"^\\d{4}-[a-z]+\\.$"})",
       ""},
      {Kind::kGbnf, "root ::= " + Nested("(", ")", 60), ""},
      {Kind::kGbnf, "# a \" mark\nroot ::= " + Nested("(", ")", 65),
       "nested 65 deep"},
      {Kind::kGbnf, "root ::= " + Nested("(", ")", 65), "nested 65 deep"},
      {Kind::kGbnf, "root ::= [a-z]{1,100000}", "got 100000 repetitions"},
      {Kind::kGbnf, R"(root ::= "{100000}" [{100000}])", ""},
      {Kind::kJsonSchema,
       R"({"properties":{"a":{"const":{"anyOf":1,"properties":2}},
                         "b":{"type":"object","enum":[{"maxItems":99999}]}}})",
       ""},
      {Kind::kJsonSchema, R"({"type":"string","enum":["a"],"maxLength":2})",
       "got maxLength beside enum"},
      {Kind::kJsonSchema, R"({"const":"a","enum":["a"]})",
       "got const beside enum, need one of them"},
      {Kind::kJsonSchema, R"({"$dynamicRef":"#a"})",
       "$dynamicRef is not supported"},
      {Kind::kJsonSchema, R"({"items":{"maxLength":3}})",
       R"(got maxLength without "type": "string")"},
      {Kind::kJsonSchema, R"({"type":["null","string"],"minimum":3})",
       R"(got minimum without "type": "number")"},
      {Kind::kJsonSchema, R"({"type":["null","integer"],"minimum":3})", ""},
      {Kind::kJsonSchema, R"({"properties":{"a":{}},"required":["a","b"]})",
       R"(required: "b" is none of the properties)"},
      {Kind::kJsonSchema,
       R"({"properties":{"anyOf":{},"properties":{"type":"string"}}})", ""},
      {Kind::kJsonSchema,
       R"({"$defs":{"a":{}},"anyOf":[{}],"title":"t","description":"d"})", ""},
      {Kind::kJsonSchema, R"({"minimun":1})", "minimun is not supported"},
      {Kind::kJsonSchema, R"({"contains":false})", "contains is not supported"},
      {Kind::kJsonSchema, R"({"x-order":[1],"type":"null"})", ""},
      {Kind::kJsonSchema, R"({"items":[{}]})", "got array, need a schema"},
      {Kind::kJsonSchema, R"({"anyOf":{}})", "anyOf: got object, need schemas"},
      {Kind::kJsonSchema, R"({"items":{"$id":"a"}})", "$id is not supported"},
      {Kind::kJsonSchema, R"({"$id":"a","type":"null"})", ""},
      {Kind::kJsonSchema, R"({"required":["a"]})",
       R"(required: "a" is none of the properties)"},
      {Kind::kJsonSchema, R"({"required":[1],"properties":{"a":{}}})",
       "required: 1 is none"},
      {Kind::kJsonSchema,
       R"({"properties":{},"propertyNames":{"maxLength":1}})",
       "got properties beside propertyNames"},
      {Kind::kJsonSchema, R"({"properties":{},"patternProperties":{"a":{}}})",
       "got properties beside patternProperties"},
      {Kind::kJsonSchema, R"({"propertyNames":{"type":"integer","minimum":1}})",
       "need a schema of strings"},
      {Kind::kJsonSchema, R"({"propertyNames":{}})",
       "need a schema of strings"},
      {Kind::kJsonSchema, R"({"propertyNames":true})",
       "need a schema of strings"},
      {Kind::kJsonSchema,
       R"({"propertyNames":{"$ref":"#/$defs/a"},"$defs":{"a":{}}})",
       "need a schema of strings"},
      {Kind::kJsonSchema, R"({"propertyNames":{"enum":["a",1]}})",
       R"(got 1 beside "type": "string")"},
      {Kind::kJsonSchema, R"({"type":"string","pattern":"a","format":"date"})",
       "got pattern beside format"},
      {Kind::kJsonSchema, R"({"type":"string","format":"json-pointer"})",
       "format json-pointer is not supported"},
      {Kind::kJsonSchema, R"({"type":"string","enum":["a",2]})",
       R"(got 2 beside "type": "string")"},
      {Kind::kJsonSchema, R"({"type":["integer","null"],"enum":[2.0,null]})",
       ""},
      {Kind::kJsonSchema, R"({"type":"integer","const":2.5})", "got 2.5"},
      {Kind::kJsonSchema, R"({"const":12345678901234567890})",
       "got 12345678901234567890, need at most 9223372036854775807"},
      {Kind::kJsonSchema, R"({"type":[]})", "type: got none"},
      {Kind::kJsonSchema, R"({"type":["string","strange"]})",
       R"(type: got "strange")"},
      {Kind::kJsonSchema, R"({"type":"string","maxLength":-1})",
       "maxLength: got -1, need 0"},
      {Kind::kJsonSchema, R"({"type":"string","maxLength":"9"})",
       R"(maxLength: got "9")"},
      {Kind::kJsonSchema, R"({"type":"number","minimum":1e-7})",
       "minimum: got 1e-07"},
      {Kind::kJsonSchema, R"({"type":"number","exclusiveMaximum":-1e-7})",
       "exclusiveMaximum: got -1e-07"},
      {Kind::kJsonSchema, R"({"type":"number","minimum":0,"maximum":0.5})", ""},
      {Kind::kJsonSchema,
       R"({"type":"number","exclusiveMinimum":1,"maximum":1.000001})",
       "apart, need at least"},
      {Kind::kJsonSchema, R"({"type":"integer","minimum":3,"maximum":3})", ""},
      {Kind::kJsonSchema, R"({"minProperties":2})", "a name may recur"},
      {Kind::kJsonSchema, R"({"minProperties":1})", ""},
      {Kind::kJsonSchema, R"({"properties":{"a":{},"b":{}},"minProperties":2})",
       ""},
      {Kind::kJsonSchema,
       R"({"properties":{"a":{}},"additionalProperties":{},"minProperties":2})",
       "a name may recur"},
      {Kind::kJsonSchema, WithProperties(256), ""},
      {Kind::kJsonSchema, WithProperties(257),
       "properties: got 257, need at most 256"},
      {Kind::kJsonSchema, R"({"$ref":"#"})", "refers to itself"},
      {Kind::kJsonSchema,
       R"({"$defs":{"a":{"$ref":"#/$defs/b"},"b":{"anyOf":[{"type":"null"},
           {"$ref":"#/$defs/a"}]}},"type":"null"})",
       "refers to itself"},
      {Kind::kJsonSchema, R"({"$ref":"#/default","default":{"type":"null"}})",
       R"($ref: "#/default" names no schema)"},
      {Kind::kJsonSchema,
       R"({"anyOf":[{"$ref":"#/anyOf/1/properties/a~1b"},
                    {"properties":{"a/b":{"type":"null"}}}]})",
       ""},
      {Kind::kJsonSchema, R"({"anyOf":[{"$ref":"#/anyOf/2"},{}]})",
       "names no schema"},
      {Kind::kJsonSchema, R"({"$ref":7})", "$ref: got number, need a string"},
      {Kind::kJsonSchema, "true", ""},
      {Kind::kJson, "", ""},
  };
  for (const auto& [kind, text, said] : kWrong) {
    const absl::Status status = Checked(kind, text);
    if (said.empty()) {
      EXPECT_TRUE(status.ok()) << text << status;
      continue;
    }
    EXPECT_EQ(CodeOf(status), "invalid_grammar") << text.substr(0, 99);
    EXPECT_THAT(status.message(),
                AllOf(HasSubstr("the grammar: "), HasSubstr(said)));
  }
}

class GrammarTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!CheckHasGrammars().ok()) GTEST_SKIP() << "this build has no grammars";
    absl::StatusOr<std::unique_ptr<GrammarCompiler>> made =
        GrammarCompiler::Create(Tokens(), /*threads=*/2);
    ASSERT_TRUE(made.ok()) << made.status();
    compiler_ = *std::move(made);
  }

  void Compile(Kind kind, const std::string& text) {
    absl::StatusOr<std::shared_ptr<const Grammar>> made =
        compiler_->Compile({kind, text, "the grammar"});
    ASSERT_TRUE(made.ok()) << made.status() << text;
    mask_ = GrammarMask::Create(*std::move(made));
  }

  // The tokens that may follow `output`.
  std::vector<bool> Allowed(const std::vector<int32_t>& output) {
    const size_t tokens = Tokens().tokens.size();
    std::vector<uint32_t> bits((tokens + 31) / 32, ~0u);
    const absl::Status status = mask_->Ask(output, bits);
    EXPECT_TRUE(status.ok()) << status;
    std::vector<bool> allowed;
    for (size_t i = 0; i < tokens; ++i) {
      allowed.push_back((bits[i / 32] >> (i % 32) & 1) != 0);
    }
    return allowed;
  }

  // True if each token of the text may follow those before, and then the end.
  bool Takes(std::string_view text) {
    std::vector<int32_t> output;
    for (const char c : text) {
      const auto id = static_cast<int32_t>(static_cast<unsigned char>(c));
      if (!Allowed(output)[static_cast<size_t>(id)]) return false;
      output.push_back(id);
    }
    return Allowed(output)[kEnd];
  }

  std::unique_ptr<GrammarCompiler> compiler_;
  std::unique_ptr<GrammarMask> mask_;
};

constexpr char kPerson[] = R"({
  "type": "object",
  "properties": {
    "name": {"type": "string", "maxLength": 5},
    "age": {"type": "integer", "minimum": 0, "maximum": 150},
    "kind": {"enum": ["owl", "hawk"]}
  },
  "required": ["name", "age"]
})";

TEST_F(GrammarTest, ASchemaAllowsItsTexts) {
  Compile(Kind::kJsonSchema, kPerson);
  EXPECT_TRUE(Takes(R"({"name":"Ann","age":42})"));
  EXPECT_TRUE(Takes(R"({ "name": "Ann", "age": 150, "kind": "owl" })"));
  EXPECT_TRUE(Takes("{\"name\":\"\xC3\xA9\",\"age\":0}"));
  EXPECT_FALSE(Takes(R"({"name":"Ann","age":151})"));
  EXPECT_FALSE(Takes(R"({"name":"Annabe","age":1})"));
  EXPECT_FALSE(Takes(R"({"name":"Ann"})"));
  EXPECT_FALSE(Takes(R"({"age":42,"name":"Ann"})"));
  EXPECT_FALSE(Takes(R"({"name":"Ann","age":42,"more":1})"));
  EXPECT_FALSE(Takes(R"({"name":"Ann","age":42}x)"));
  EXPECT_FALSE(Takes(R"({"name":"Ann","age":42,"kind":"crow"})"));
}

TEST_F(GrammarTest, NamesAreStringsOfTheirSchema) {
  Compile(
      Kind::kJsonSchema,
      R"({"type":"object","propertyNames":{"type":"string","maxLength":2}})");
  EXPECT_TRUE(Takes(R"({"ab":1})"));
  EXPECT_FALSE(Takes(R"({"abc":1})"));
  EXPECT_FALSE(Takes("{1:1}"));
  Compile(Kind::kJsonSchema,
          R"({"type":"object","propertyNames":{"maxLength":2}})");
  EXPECT_TRUE(Takes(R"({"ab":1})"));
  EXPECT_FALSE(Takes(R"({"abc":1})"));
  EXPECT_FALSE(Takes("{1:1}"));
}

TEST_F(GrammarTest, NoControlCharacterStandsInAString) {
  for (const char* schema :
       {R"({"type":"string","maxLength":9})", R"({"type":"string"})",
        R"({"type":"string","pattern":".*"})"}) {
    Compile(Kind::kJsonSchema, schema);
    EXPECT_TRUE(Takes("\"a b\"")) << schema;
    // A backslash begins an escape, or stands nowhere.
    const std::vector<bool> escaped = Allowed({'"', '\\'});
    EXPECT_FALSE(escaped['"'] && Allowed({'"', '\\', '"'})[kEnd]) << schema;
    EXPECT_FALSE(escaped['x']) << schema;
    const std::vector<bool> within = Allowed({'"', 'a'});
    EXPECT_TRUE(within['b']);
    for (size_t c = 0; c < 0x20; ++c) {
      EXPECT_FALSE(within[c]) << schema << " " << c;
    }
  }
}

TEST_F(GrammarTest, WordsAreTokensAndControlTokensAreNone) {
  Compile(Kind::kJsonSchema, kPerson);
  const std::vector<bool> first = Allowed({'{'});
  EXPECT_TRUE(first[258]);   // "name"
  EXPECT_FALSE(first[259]);  // true
  EXPECT_FALSE(first[kControl]);
  EXPECT_FALSE(first[kEnd]);
  EXPECT_TRUE(Allowed({'{', 258})[':']);
}

TEST_F(GrammarTest, AnyOutputMayBeAskedAboutInAnyOrder) {
  Compile(Kind::kJsonSchema, kPerson);
  const std::vector<bool> begin = Allowed({});
  const std::vector<bool> key = Allowed({'{', '"'});
  Allowed({'{', '"', 'n', 'a'});
  EXPECT_EQ(Allowed({'{', '"'}), key);
  EXPECT_TRUE(Allowed({'{', 258, ':'})['"']);
  // Nothing may follow what is not allowed, or an end.
  EXPECT_EQ(Allowed({'{', 'x'}), std::vector<bool>(begin.size(), false));
  EXPECT_EQ(Allowed({}), begin);
}

TEST_F(GrammarTest, AnyJsonObject) {
  Compile(Kind::kJson, "");
  EXPECT_TRUE(Takes(R"({"a":[1,-2.5e3,null,{"b":"\u00e9"}]})"));
  EXPECT_FALSE(Takes("[1]"));
  EXPECT_FALSE(Takes("{\"a\":1,}"));
}

TEST_F(GrammarTest, GbnfRules) {
  Compile(Kind::kGbnf,
          "root ::= answer (\", \" answer)*  # a list\n"
          "answer ::= \"yes\" | \"no\" | [0-9]{2,3}\n");
  EXPECT_TRUE(Takes("yes"));
  EXPECT_TRUE(Takes("no, 12, 345, yes"));
  EXPECT_FALSE(Takes("no, 1"));
  EXPECT_FALSE(Takes("maybe"));
  EXPECT_FALSE(Takes(""));
}

TEST_F(GrammarTest, WhatCannotBeCompiledIsAnError) {
  const std::pair<Kind, std::string> kWrong[] = {
      {Kind::kGbnf, "root = \"a\""},
      {Kind::kGbnf, "answer ::= \"a\""},
      {Kind::kGbnf, "root ::= other"},
      {Kind::kGbnf, "root ::= *"},
      {Kind::kGbnf, ""},
      {Kind::kJsonSchema, R"({"type":"strange"})"},
      {Kind::kJsonSchema, R"({"$ref":"#/$defs/none"})"},
      {Kind::kJsonSchema, R"({"$ref":"https://example.org/a"})"},
      {Kind::kJsonSchema, R"({"type":"number","multipleOf":0.1})"},
      {Kind::kJsonSchema, R"({"type":"string","pattern":"(a"})"},
      {Kind::kJsonSchema, "false"},
  };
  for (const auto& [kind, text] : kWrong) {
    const auto made = compiler_->Compile({kind, text, "the grammar"});
    EXPECT_EQ(CodeOf(made.status()), "invalid_grammar")
        << text.substr(0, 99) << made.status();
    EXPECT_THAT(made.status().message(), HasSubstr("the grammar: "));
  }
  // It goes on after errors.
  Compile(Kind::kJsonSchema, kPerson);
  EXPECT_TRUE(Takes(R"({"name":"Ann","age":42})"));
}

TEST_F(GrammarTest, ASchemaMayReferToItself) {
  Compile(Kind::kJsonSchema, R"({
    "type": "object",
    "properties": {"next": {"anyOf": [{"$ref": "#"}, {"type": "null"}]}},
    "required": ["next"]})");
  EXPECT_TRUE(Takes(R"({"next":{"next":null}})"));
  EXPECT_FALSE(Takes(R"({"next":{}})"));
}

}  // namespace
}  // namespace tiercel::grammar_test

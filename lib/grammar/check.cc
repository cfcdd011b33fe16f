#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "lib/grammar/grammar.h"
#include "lib/status/error.h"
#include "lib/status/status_macros.h"
#include "lib/text/nesting.h"
#include "nlohmann/json.hpp"

namespace tiercel {
namespace {

using Json = nlohmann::json;

absl::Status Invalid(const GrammarSource& source, const std::string& problem) {
  return InputError("invalid_grammar",
                    absl::StrCat(source.name, ": ", problem));
}

constexpr NestingSigns kGbnfNesting = {"(", ")", "\"[", '#'};
constexpr NestingSigns kPatternNesting = {"(", ")", ""};

// Keywords whose numbers count repetitions.
constexpr std::array<std::string_view, 6> kCounts = {
    "minLength", "maxLength",     "minItems",
    "maxItems",  "minProperties", "maxProperties"};
// A grammar obeys one of these alone; members that describe the schema may
// stand beside it.
constexpr std::array<std::string_view, 6> kAlone = {"$ref",  "anyOf", "oneOf",
                                                    "allOf", "const", "enum"};
constexpr std::array<std::string_view, 13> kBeside = {
    "$schema",  "$id",       "$defs",        "definitions", "title",
    "default",  "$comment",  "examples",     "description", "deprecated",
    "readOnly", "writeOnly", "discriminator"};

// Keywords that a grammar cannot obey, but for values that ask for nothing.
constexpr std::array<std::string_view, 14> kNotObeyed = {"multipleOf",
                                                         "dependencies",
                                                         "$dynamicRef",
                                                         "$recursiveRef",
                                                         "not",
                                                         "if",
                                                         "then",
                                                         "else",
                                                         "uniqueItems",
                                                         "contains",
                                                         "minContains",
                                                         "maxContains",
                                                         "dependentRequired",
                                                         "dependentSchemas"};

// Keywords that constrain values of one type alone, which a schema must name.
struct Typed {
  std::string_view keyword;
  std::string_view type;
};
constexpr std::array<Typed, 7> kTyped = {{{"minLength", "string"},
                                          {"maxLength", "string"},
                                          {"pattern", "string"},
                                          {"minimum", "number"},
                                          {"maximum", "number"},
                                          {"exclusiveMinimum", "number"},
                                          {"exclusiveMaximum", "number"}}};

bool Has(std::span<const std::string_view> names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

absl::Status CheckDepth(const GrammarSource& source, int depth) {
  if (depth <= kMostGrammarDepth) return absl::OkStatus();
  return Invalid(source,
                 absl::StrCat("it is nested ", depth, " deep, need at most ",
                              kMostGrammarDepth));
}

// The largest number in braces, which repeats what stands before them.
int64_t RepeatsOf(std::string_view text) {
  int64_t most = 0;
  int64_t number = 0;
  bool braced = false;
  char quote = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quote != 0) {
      if (c == '\\') ++i;
      if (c == quote) quote = 0;
    } else if (c == '"' || c == '[') {
      quote = c == '[' ? ']' : c;
    } else if (c == '{' || c == '}') {
      braced = c == '{';
    }
    const bool digit = braced && quote == 0 && c >= '0' && c <= '9';
    number = digit ? std::min(number * 10 + (c - '0'), int64_t{1} << 40) : 0;
    most = std::max(most, number);
  }
  return most;
}

// Checks a regular expression. xgrammar reads its groups by recursion, and
// writes a character that JSON escapes as it is.
absl::Status CheckPattern(const GrammarSource& source,
                          std::string_view pattern) {
  constexpr size_t kMostBytes = 1024;
  constexpr int64_t kMostRepeats = 100;
  if (pattern.size() > kMostBytes || RepeatsOf(pattern) > kMostRepeats) {
    return Invalid(source,
                   absl::StrCat("a pattern has ", pattern.size(),
                                " bytes and repeats something ",
                                RepeatsOf(pattern), " times, need at most ",
                                kMostBytes, " and ", kMostRepeats));
  }
  for (size_t i = 0; i < pattern.size(); ++i) {
    const char next = i + 1 < pattern.size() ? pattern[i + 1] : '\0';
    const bool escaped = pattern[i] == '\\';
    if (pattern[i] == '"' || pattern[i] < ' ' || pattern[i] > '~' ||
        (escaped && std::string_view("\"\\0nrtfvxuc").find(next) !=
                        std::string_view::npos)) {
      return Invalid(
          source,
          "a pattern with quotes, backslashes, control or other than "
          "ASCII characters is not supported");
    }
    if (escaped) ++i;
  }
  return CheckDepth(source, NestingOf(pattern, kPatternNesting));
}

absl::Status CheckSchema(const GrammarSource& source, const Json& schema);

// The schemas in the value of `keyword`: those that it names, or it is.
absl::Status CheckBelow(const GrammarSource& source, const std::string& keyword,
                        const Json& value) {
  constexpr std::array<std::string_view, 4> kNamed = {
      "properties", "patternProperties", "$defs", "definitions"};
  // These are data, whatever they look like.
  constexpr std::array<std::string_view, 4> kData = {"const", "enum", "default",
                                                     "examples"};
  if (Has(kData, keyword)) return absl::OkStatus();
  const bool named = Has(kNamed, keyword);
  if (keyword == "propertyNames" && value.is_object() &&
      !value.contains("type")) {
    Json names = value;
    names["type"] = "string";  // as all names are
    return CheckSchema(source, names);
  }
  if (keyword == "pattern" && value.is_string()) {
    return CheckPattern(source, value.get<std::string>());
  }
  if (keyword == "patternProperties" && value.is_object()) {
    for (const auto& [pattern, below] : value.items()) {
      RETURN_IF_ERROR(CheckPattern(source, pattern));
    }
  }
  if (value.is_object() && !named) return CheckSchema(source, value);
  if (!value.is_structured()) return absl::OkStatus();
  for (const Json& below : value) {
    RETURN_IF_ERROR(CheckSchema(source, below));
  }
  return absl::OkStatus();
}

// Returns true if the values of a schema may be of this type, as it says.
bool Names(const Json& schema, std::string_view type) {
  const Json types = schema.value("type", Json());
  const auto is = [&](const Json& one) {
    return one == type || (type == "number" && one == "integer");
  };
  return types.is_array() ? std::any_of(types.begin(), types.end(), is)
                          : is(types);
}

// Checks the keywords whose effect depends on others of the same schema.
absl::Status CheckTogether(const GrammarSource& source, const Json& schema) {
  for (const auto& [keyword, type] : kTyped) {
    if (!schema.contains(keyword) || Names(schema, type)) continue;
    return Invalid(
        source, absl::StrCat("got ", std::string(keyword),
                             " without \"type\": \"", std::string(type), "\""));
  }
  const Json properties = schema.value("properties", Json());
  for (const Json& name : schema.value("required", Json::array())) {
    if (!name.is_string() || !properties.is_object() ||
        properties.contains(name.get<std::string>())) {
      continue;
    }
    return Invalid(source, absl::StrCat("required: ", name.dump(),
                                        " is none of the properties"));
  }
  return absl::OkStatus();
}

absl::Status CheckSchema(const GrammarSource& source, const Json& schema) {
  if (!schema.is_object()) return absl::OkStatus();
  std::optional<std::string> alone;
  for (const std::string_view keyword : kAlone) {
    if (!schema.contains(keyword)) continue;
    if (alone.has_value()) {
      return Invalid(
          source, absl::StrCat("got ", *alone, " beside ", std::string(keyword),
                               ", need one of them"));
    }
    alone = std::string(keyword);
  }
  for (const auto& [keyword, value] : schema.items()) {
    const bool listed = alone == "const" || alone == "enum";
    if (alone.has_value() && keyword != *alone && !Has(kBeside, keyword) &&
        !(listed && keyword == "type")) {
      return Invalid(source,
                     absl::StrCat("got ", keyword, " beside ", *alone,
                                  ", which are not supported together"));
    }
    if (Has(kNotObeyed, keyword) && value != false) {
      return Invalid(source, absl::StrCat(keyword, " is not supported"));
    }
    if (Has(kCounts, keyword) && value.is_number() &&
        !(std::fabs(value.get<double>()) <= kMostGrammarRepeats)) {
      return Invalid(source,
                     absl::StrCat(keyword, ": got ", value.dump(),
                                  ", need at most ", kMostGrammarRepeats));
    }
    RETURN_IF_ERROR(CheckBelow(source, keyword, value));
  }
  return CheckTogether(source, schema);
}

}  // namespace

absl::Status CheckGrammar(const GrammarSource& source) {
  const std::string& text = source.text;
  if (source.kind == GrammarSource::Kind::kJson) return absl::OkStatus();
  if (text.size() > kMostGrammarBytes) {
    return Invalid(source,
                   absl::StrCat("got ", text.size(), " bytes, need at most ",
                                kMostGrammarBytes));
  }
  const bool gbnf = source.kind == GrammarSource::Kind::kGbnf;
  const int depth = NestingOf(text, gbnf ? kGbnfNesting : kJsonNesting);
  RETURN_IF_ERROR(CheckDepth(source, depth));
  if (gbnf) {
    const int64_t repeats = RepeatsOf(text);
    if (repeats <= kMostGrammarRepeats) return absl::OkStatus();
    return Invalid(source,
                   absl::StrCat("got ", repeats, " repetitions, need at most ",
                                kMostGrammarRepeats));
  }
  const Json schema = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!schema.is_object() && !schema.is_boolean()) {
    return Invalid(source, schema.is_discarded()
                               ? "it is no JSON"
                               : "it is no JSON schema: need an object");
  }
  return CheckSchema(source, schema);
}

}  // namespace tiercel

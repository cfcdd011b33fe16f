#include <algorithm>
#include <string>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "lib/grammar/grammar.h"
#include "lib/grammar/schema_check.h"
#include "lib/status/error.h"
#include "lib/status/status_macros.h"
#include "lib/text/nesting.h"
#include "nlohmann/json.hpp"

namespace tiercel {
namespace {

using Json = nlohmann::json;

constexpr NestingSigns kGbnfNesting = {"(", ")", "\"[", '#'};
constexpr NestingSigns kPatternNesting = {"(", ")", ""};

absl::Status CheckDepth(const GrammarSource& source, int depth) {
  if (depth <= kMostGrammarDepth) return absl::OkStatus();
  return InvalidGrammar(
      source, absl::StrCat("it is nested ", depth, " deep, need at most ",
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

}  // namespace

absl::Status InvalidGrammar(const GrammarSource& source,
                            const std::string& problem) {
  return InputError("invalid_grammar",
                    absl::StrCat(source.name, ": ", problem));
}

// Checks a regular expression. xgrammar reads its groups by recursion, and
// writes a character that JSON escapes as it is.
absl::Status CheckPattern(const GrammarSource& source,
                          std::string_view pattern) {
  constexpr size_t kMostBytes = 1024;
  constexpr int64_t kMostRepeats = 100;
  if (pattern.size() > kMostBytes || RepeatsOf(pattern) > kMostRepeats) {
    return InvalidGrammar(
        source, absl::StrCat("a pattern has ", pattern.size(),
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
      return InvalidGrammar(
          source,
          "a pattern with quotes, backslashes, control or other than "
          "ASCII characters is not supported");
    }
    if (escaped) ++i;
  }
  return CheckDepth(source, NestingOf(pattern, kPatternNesting));
}

absl::Status CheckGrammar(const GrammarSource& source) {
  const std::string& text = source.text;
  if (source.kind == GrammarSource::Kind::kJson) return absl::OkStatus();
  if (text.size() > kMostGrammarBytes) {
    return InvalidGrammar(
        source, absl::StrCat("got ", text.size(), " bytes, need at most ",
                             kMostGrammarBytes));
  }
  const bool gbnf = source.kind == GrammarSource::Kind::kGbnf;
  const int depth = NestingOf(text, gbnf ? kGbnfNesting : kJsonNesting);
  RETURN_IF_ERROR(CheckDepth(source, depth));
  if (gbnf) {
    const int64_t repeats = RepeatsOf(text);
    if (repeats <= kMostGrammarRepeats) return absl::OkStatus();
    return InvalidGrammar(
        source, absl::StrCat("got ", repeats, " repetitions, need at most ",
                             kMostGrammarRepeats));
  }
  const Json schema = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!schema.is_object() && !schema.is_boolean()) {
    return InvalidGrammar(source, schema.is_discarded()
                                      ? "it is no JSON"
                                      : "it is no JSON schema: need an object");
  }
  return CheckSchema(source, schema);
}

}  // namespace tiercel

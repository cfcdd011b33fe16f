#include "lib/grammar/schema_check.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "lib/status/error.h"
#include "lib/status/status_macros.h"

namespace tiercel {
namespace {

using Json = nlohmann::json;

// The schemas in a keyword's value: none, it is one, a list, or named ones.
enum class Below { kNone, kOne, kList, kNamed };

// All keywords that a grammar obeys, and those that describe a schema alone.
// What is not here would be obeyed in part, or not at all.
struct Keyword {
  std::string_view name;
  Below below = Below::kNone;
  bool describes = false;
};
constexpr Keyword kKeywords[] = {
    {.name = "$schema", .describes = true},
    {.name = "$id", .describes = true},
    {.name = "$comment", .describes = true},
    {.name = "$defs", .below = Below::kNamed, .describes = true},
    {.name = "definitions", .below = Below::kNamed, .describes = true},
    {.name = "title", .describes = true},
    {.name = "description", .describes = true},
    {.name = "default", .describes = true},
    {.name = "examples", .describes = true},
    {.name = "deprecated", .describes = true},
    {.name = "readOnly", .describes = true},
    {.name = "writeOnly", .describes = true},
    {.name = "discriminator", .describes = true},
    {.name = "type"},
    {.name = "const"},
    {.name = "enum"},
    {.name = "$ref"},
    {.name = "anyOf", .below = Below::kList},
    {.name = "oneOf", .below = Below::kList},
    {.name = "allOf", .below = Below::kList},
    {.name = "properties", .below = Below::kNamed},
    {.name = "patternProperties", .below = Below::kNamed},
    {.name = "additionalProperties", .below = Below::kOne},
    {.name = "propertyNames", .below = Below::kOne},
    {.name = "required"},
    {.name = "minProperties"},
    {.name = "maxProperties"},
    {.name = "items", .below = Below::kOne},
    {.name = "prefixItems", .below = Below::kList},
    {.name = "minItems"},
    {.name = "maxItems"},
    {.name = "uniqueItems"},
    {.name = "minLength"},
    {.name = "maxLength"},
    {.name = "pattern"},
    {.name = "format"},
    {.name = "minimum"},
    {.name = "maximum"},
    {.name = "exclusiveMinimum"},
    {.name = "exclusiveMaximum"},
};

// Keywords that constrain values of one type alone, which a schema must name.
struct Typed {
  std::string_view keyword;
  std::string_view type;
};
constexpr Typed kTyped[] = {
    {"minLength", "string"},       {"maxLength", "string"},
    {"pattern", "string"},         {"minimum", "number"},
    {"maximum", "number"},         {"exclusiveMinimum", "number"},
    {"exclusiveMaximum", "number"}};

// A grammar obeys one of each of these lists alone.
constexpr std::array<std::string_view, 6> kChoices = {"$ref",  "anyOf", "oneOf",
                                                      "allOf", "const", "enum"};
constexpr std::array<std::string_view, 3> kNames = {
    "properties", "patternProperties", "propertyNames"};
constexpr std::array<std::string_view, 2> kTexts = {"pattern", "format"};

constexpr std::array<std::string_view, 7> kTypes = {
    "null", "boolean", "integer", "number", "string", "array", "object"};
// Formats in which xgrammar writes characters that JSON escapes.
constexpr std::array<std::string_view, 2> kUnescaped = {
    "json-pointer", "relative-json-pointer"};

// Compiling takes time by the square of the members that may be absent.
constexpr size_t kMostProperties = 256;
// A grammar writes numbers with six decimals, of which bounds must leave some.
constexpr double kLeastBound = 1e-6;
constexpr double kLeastRange = 2e-6;

const Keyword* Find(std::string_view name) {
  const auto* const found = std::find_if(
      std::begin(kKeywords), std::end(kKeywords),
      [&](const Keyword& keyword) { return keyword.name == name; });
  return found == std::end(kKeywords) ? nullptr : found;
}

bool Has(std::span<const std::string_view> names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool IsWhole(const Json& value) {
  return value.is_number() &&
         std::trunc(value.get<double>()) == value.get<double>();
}

bool IsOf(const Json& value, std::string_view type) {
  if (type == "integer") return IsWhole(value);
  return type == value.type_name();
}

// Returns true if a schema names no type but strings, or has a keyword that
// allows only some. Of others a grammar would make names without quotes.
bool IsOfStrings(const Json& schema) {
  if (!schema.is_object()) return false;
  if (schema.contains("type")) return schema["type"] == "string";
  constexpr std::string_view kSome[] = {"minLength", "maxLength", "pattern",
                                        "format",    "const",     "enum"};
  return std::any_of(
      std::begin(kSome), std::end(kSome),
      [&](std::string_view name) { return schema.contains(name); });
}

// Returns the list of types that a schema names; null: it names none.
Json TypesOf(const Json& schema) {
  const Json types = schema.value("type", Json());
  return types.is_array() || types.is_null() ? types : Json::array({types});
}

class Checker {
 public:
  Checker(const GrammarSource& source, const Json& root)
      : source_(source), root_(root) {}

  // Checks all schemas, and then that each ends.
  absl::Status CheckAll() {
    RETURN_IF_ERROR(Check(root_));
    for (const Json* const schema : schemas_) {
      RETURN_IF_ERROR(CheckEnds(*schema));
    }
    return absl::OkStatus();
  }

 private:
  // Checks a schema and those in it. One of names is of strings, whether it
  // says so or not.
  absl::Status Check(const Json& schema, bool of_names = false);
  absl::Status Wrong(const std::string& problem) const {
    return InvalidGrammar(source_, problem);
  }
  absl::Status CheckValue(const std::string& keyword, const Json& value) const;
  absl::Status CheckBelow(const std::string& keyword, const Json& value);
  absl::Status CheckType(const Json& schema, const Json& types) const;
  absl::Status CheckAlone(const Json& schema) const;
  absl::Status CheckMembers(const Json& schema) const;
  // Returns the schema that a reference names. Errors: invalid_grammar.
  absl::StatusOr<const Json*> Target(const std::string& reference) const;
  absl::Status CheckEnds(const Json& schema);

  const GrammarSource& source_;
  const Json& root_;
  std::vector<const Json*> schemas_;  // all that were checked
  std::set<const Json*> open_;        // schemas whose ends are being looked for
  std::set<const Json*> ends_;        // schemas that are known to end
};

// Checks counts, bounds, patterns and formats.
absl::Status Checker::CheckValue(const std::string& keyword,
                                 const Json& value) const {
  if (keyword.ends_with("imum") || keyword.ends_with("Minimum") ||
      keyword.ends_with("Maximum")) {
    if (value.is_number() && (value.get<double>() == 0 ||
                              std::fabs(value.get<double>()) >= kLeastBound)) {
      return absl::OkStatus();
    }
    return Wrong(absl::StrCat(keyword, ": got ", value.dump(),
                              ", need a number that is 0 or not within ",
                              kLeastBound, " of it"));
  }
  if (keyword.starts_with("min") || keyword.starts_with("max")) {
    if (IsWhole(value) && value.get<double>() >= 0 &&
        value.get<double>() <= kMostGrammarRepeats) {
      return absl::OkStatus();
    }
    return Wrong(absl::StrCat(keyword, ": got ", value.dump(), ", need 0 to ",
                              kMostGrammarRepeats));
  }
  if (keyword == "uniqueItems" && value != false) {
    return Wrong("uniqueItems is not supported");
  }
  if (keyword == "pattern" || keyword == "format" || keyword == "$ref") {
    if (!value.is_string()) {
      return Wrong(absl::StrCat(keyword, ": got ", value.type_name(),
                                ", need a string"));
    }
    const auto text = value.get<std::string>();
    if (keyword == "pattern") return CheckPattern(source_, text);
    if (keyword == "format" && Has(kUnescaped, text)) {
      return Wrong(absl::StrCat("format ", text, " is not supported"));
    }
  }
  return absl::OkStatus();
}

absl::Status Checker::CheckBelow(const std::string& keyword,
                                 const Json& value) {
  switch (Find(keyword)->below) {
    case Below::kNone:
      return absl::OkStatus();
    case Below::kOne:
      if (keyword == "propertyNames" && !IsOfStrings(value)) {
        return Wrong("propertyNames: need a schema of strings");
      }
      return Check(value, /*of_names=*/keyword == "propertyNames");
    case Below::kList:
      if (!value.is_array() || value.empty()) break;
      for (const Json& below : value) RETURN_IF_ERROR(Check(below));
      return absl::OkStatus();
    case Below::kNamed:
      if (!value.is_object()) break;
      if (value.size() > kMostProperties && keyword.ends_with("roperties")) {
        return Wrong(absl::StrCat(keyword, ": got ", value.size(),
                                  ", need at most ", kMostProperties));
      }
      for (const auto& [name, below] : value.items()) {
        if (keyword == "patternProperties") {
          RETURN_IF_ERROR(CheckPattern(source_, name));
        }
        RETURN_IF_ERROR(Check(below));
      }
      return absl::OkStatus();
  }
  return Wrong(
      absl::StrCat(keyword, ": got ", value.type_name(), ", need schemas"));
}

// The types are known, keywords of one type have it, and values that are listed
// are of one.
absl::Status Checker::CheckType(const Json& schema, const Json& types) const {
  for (const Json& type : types) {
    if (type.is_string() && Has(kTypes, type.get<std::string>())) continue;
    return Wrong(
        absl::StrCat("type: got ", type.dump(), ", which JSON does not have"));
  }
  if (types.is_array() && types.empty()) return Wrong("type: got none");
  const auto names = [&](std::string_view type) {
    return std::any_of(types.begin(), types.end(), [&](const Json& one) {
      return one == type || (type == "number" && one == "integer");
    });
  };
  for (const auto& [keyword, type] : kTyped) {
    if (!schema.contains(keyword) || names(type)) continue;
    return Wrong(absl::StrCat("got ", std::string(keyword),
                              " without \"type\": \"", std::string(type),
                              "\""));
  }
  const auto bound = [&](const char* inclusive, const char* exclusive,
                         double none) {
    return schema.value(inclusive, schema.value(exclusive, Json(none)))
        .get<double>();
  };
  const double least = bound("minimum", "exclusiveMinimum", -INFINITY);
  const double most = bound("maximum", "exclusiveMaximum", INFINITY);
  if (most - least < kLeastRange &&
      !(most == least && std::trunc(most) == most)) {
    return Wrong(absl::StrCat("got bounds that are ", most - least,
                              " apart, need at least ", kLeastRange));
  }
  Json listed = schema.value("enum", Json::array());
  if (!listed.is_array()) return Wrong("enum: need a list");
  if (schema.contains("const")) listed.push_back(schema["const"]);
  for (const Json& value : listed) {
    if (value.is_number_unsigned() && value.get<uint64_t>() > INT64_MAX) {
      return Wrong(
          absl::StrCat("got ", value.dump(), ", need at most ", INT64_MAX));
    }
    if (types.is_null() ||
        std::any_of(types.begin(), types.end(), [&](const Json& type) {
          return IsOf(value, type.get<std::string>());
        })) {
      continue;
    }
    return Wrong(
        absl::StrCat("got ", value.dump(), " beside \"type\": ",
                     (types.size() == 1 ? types.front() : types).dump()));
  }
  return absl::OkStatus();
}

// Keywords that are not obeyed together are apart.
absl::Status Checker::CheckAlone(const Json& schema) const {
  for (const std::span<const std::string_view> list :
       {std::span<const std::string_view>(kChoices),
        std::span<const std::string_view>(kNames),
        std::span<const std::string_view>(kTexts)}) {
    std::optional<std::string> alone;
    for (const std::string_view keyword : list) {
      if (!schema.contains(keyword)) continue;
      if (alone.has_value()) {
        return Wrong(absl::StrCat("got ", *alone, " beside ",
                                  std::string(keyword), ", need one of them"));
      }
      alone = std::string(keyword);
    }
  }
  for (const std::string_view choice : kChoices) {
    if (!schema.contains(choice)) continue;
    const bool listed = choice == "const" || choice == "enum";
    for (const auto& [keyword, value] : schema.items()) {
      const Keyword* const known = Find(keyword);
      if (keyword == choice || known == nullptr || known->describes ||
          (listed && keyword == "type")) {
        continue;
      }
      return Wrong(absl::StrCat("got ", keyword, " beside ",
                                std::string(choice),
                                ", which are not supported together"));
    }
  }
  return absl::OkStatus();
}

// All that is required is named, and no name counts twice.
absl::Status Checker::CheckMembers(const Json& schema) const {
  const Json properties = schema.value("properties", Json::object());
  const Json required = schema.value("required", Json::array());
  if (!required.is_array()) return Wrong("required: need a list");
  for (const Json& name : required) {
    if (name.is_string() && properties.contains(name.get<std::string>())) {
      continue;
    }
    return Wrong(
        absl::StrCat("required: ", name.dump(), " is none of the properties"));
  }
  const bool closed =
      !properties.empty() &&
      schema.value("additionalProperties", Json(false)) == Json(false);
  if (schema.value("minProperties", Json(0)) > 1 && !closed) {
    return Wrong(
        "minProperties above 1 needs properties and no additionalProperties: "
        "a name may recur");
  }
  return absl::OkStatus();
}

absl::StatusOr<const Json*> Checker::Target(
    const std::string& reference) const {
  const absl::Status wrong = Wrong(absl::StrCat(
      "$ref: \"", reference, "\" names no schema of this document"));
  if (!reference.starts_with('#')) return wrong;
  const Json* at = &root_;
  Below below = Below::kOne;
  const std::vector<std::string> path = absl::StrSplit(reference, '/');
  if (path.front() != "#") return wrong;
  for (auto step = path.begin() + 1; step != path.end(); ++step) {
    const std::string name =
        absl::StrReplaceAll(*step, {{"~1", "/"}, {"~0", "~"}});
    if (below == Below::kList) {
      const bool number =
          !name.empty() && name.size() < 6 &&
          name.find_first_not_of("0123456789") == std::string::npos;
      if (!number || std::stoul(name) >= at->size()) return wrong;
      at = &(*at)[std::stoul(name)];
    } else {
      if (!at->is_object() || !at->contains(name)) return wrong;
      at = &(*at)[name];
    }
    const bool of_schema = below == Below::kOne;
    const Keyword* const keyword = of_schema ? Find(name) : nullptr;
    if (of_schema && keyword == nullptr) return wrong;
    below = of_schema ? keyword->below : Below::kOne;
  }
  if (below != Below::kOne || !(at->is_object() || at->is_boolean())) {
    return wrong;
  }
  return at;
}

// A schema must not be itself, by references and choices alone: no text would
// end it.
absl::Status Checker::CheckEnds(const Json& schema) {
  if (!schema.is_object() || ends_.count(&schema) > 0) return absl::OkStatus();
  if (!open_.insert(&schema).second) {
    return Wrong("$ref: a schema refers to itself and to nothing else");
  }
  if (schema.contains("$ref")) {
    ASSIGN_OR_RETURN(const Json* const target,
                     Target(schema["$ref"].get<std::string>()));
    RETURN_IF_ERROR(CheckEnds(*target));
  }
  for (const char* const choice : {"anyOf", "oneOf", "allOf"}) {
    const auto list = schema.find(choice);
    if (list == schema.end()) continue;
    for (const Json& one : *list) RETURN_IF_ERROR(CheckEnds(one));
  }
  open_.erase(&schema);
  ends_.insert(&schema);
  return absl::OkStatus();
}

absl::Status Checker::Check(const Json& schema, bool of_names) {
  if (schema.is_boolean()) return absl::OkStatus();
  if (!schema.is_object()) {
    return Wrong(absl::StrCat("got ", schema.type_name(), ", need a schema"));
  }
  for (const auto& [keyword, value] : schema.items()) {
    if (keyword.starts_with("x-")) continue;  // a program has it for itself
    if (Find(keyword) == nullptr || (keyword == "$id" && &schema != &root_)) {
      return Wrong(absl::StrCat(keyword, " is not supported"));
    }
    RETURN_IF_ERROR(CheckValue(keyword, value));
    RETURN_IF_ERROR(CheckBelow(keyword, value));
  }
  RETURN_IF_ERROR(CheckAlone(schema));
  RETURN_IF_ERROR(
      CheckType(schema, of_names ? Json::array({"string"}) : TypesOf(schema)));
  schemas_.push_back(&schema);
  return CheckMembers(schema);
}

}  // namespace

absl::Status CheckSchema(const GrammarSource& source, const Json& schema) {
  return Checker(source, schema).CheckAll();
}

}  // namespace tiercel

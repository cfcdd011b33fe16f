#include "models/tokenizer/hf_json.h"

#include "absl/strings/str_cat.h"
#include "lib/status/error.h"
#include "lib/text/quote.h"

namespace tiercel {

using Json = nlohmann::json;

absl::Status InvalidJsonVocab(std::string_view message) {
  return InputError("invalid_vocab",
                    absl::StrCat("tokenizer.json: ", std::string(message)));
}

absl::Status UnsupportedJson(std::string_view message) {
  return InputError("unsupported_tokenizer",
                    absl::StrCat("tokenizer.json: ", std::string(message)));
}

const Json& Member(const Json& object, const char* key) {
  static const Json null;
  if (!object.is_object()) return null;
  const auto found = object.find(key);
  return found == object.end() ? null : *found;
}

bool IsString(const Json& value, std::string_view text) {
  return value.is_string() && value.get_ref<const std::string&>() == text;
}

bool IsTrue(const Json& value) { return value.is_boolean() && value == true; }

bool IsType(const Json& value, std::string_view type) {
  return IsString(Member(value, "type"), type);
}

std::string TypeOf(const Json& value) {
  const Json& type = Member(value, "type");
  return type.is_string() ? Quoted(type.get_ref<const std::string&>())
                          : "without a type";
}

}  // namespace tiercel

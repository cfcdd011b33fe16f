#include "models/format/json.h"

#include <algorithm>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "lib/status/error.h"
#include "lib/text/quote.h"

namespace tiercel {
namespace {

using nlohmann::json;

constexpr size_t kMostDepth = 64;

// Builds the document from the parser's events. `open_` holds the arrays and
// objects around the current place, outermost first; the pointers stay valid
// because only the innermost container ever grows.
template <typename Json>
class DocumentBuilder : public nlohmann::json_sax<Json> {
 public:
  using typename nlohmann::json_sax<Json>::binary_t;
  using typename nlohmann::json_sax<Json>::number_float_t;
  using typename nlohmann::json_sax<Json>::number_integer_t;
  using typename nlohmann::json_sax<Json>::number_unsigned_t;
  using typename nlohmann::json_sax<Json>::string_t;

  Json&& TakeDocument() { return std::move(document_); }
  const std::string& problem() const { return problem_; }

  bool null() override { return Put(nullptr); }
  bool boolean(bool value) override { return Put(value); }
  bool number_integer(number_integer_t value) override { return Put(value); }
  bool number_unsigned(number_unsigned_t value) override { return Put(value); }
  bool number_float(number_float_t value, const string_t& text) override {
    if constexpr (std::is_same_v<Json, nlohmann::ordered_json>) {
      if (text.find_first_of(".eE") == text.npos) {
        return Fail(absl::StrCat("got ", text.substr(0, 100),
                                 ", need integers of at most 64 bits"));
      }
    }
    return Put(value);
  }
  bool string(string_t& value) override { return Put(std::move(value)); }
  bool binary(binary_t&) override { return Fail("binary value"); }

  bool start_object(size_t) override { return Enter(Json::object()); }
  bool end_object() override { return Leave(); }
  bool start_array(size_t) override { return Enter(Json::array()); }
  bool end_array() override { return Leave(); }

  bool key(string_t& name) override {
    const auto [place, is_new] = open_.back()->emplace(name, nullptr);
    if (!is_new) return Fail(absl::StrCat("key ", Quoted(name), " twice"));
    value_of_key_ = &place.value();
    return true;
  }

  bool parse_error(size_t, const std::string&,
                   const nlohmann::detail::exception& error) override {
    // "[json.exception.parse_error.101] parse error at line 3, column 5: ...;
    // last read: '...'", where the last part may be megabytes of the input.
    std::string_view what = error.what();
    what = what.substr(0, what.find("; last read"));
    if (const size_t tag = what.find("] "); tag != what.npos) {
      what.remove_prefix(tag + 2);
    }
    return Fail(std::string(what.substr(0, 200)));
  }

 private:
  bool Fail(std::string problem) {
    problem_ = std::move(problem);
    return false;
  }

  // Puts a value at the current place; null if the parser must stop.
  Json* Place(Json value) {
    if (open_.empty()) {
      document_ = std::move(value);
      return &document_;
    }
    if (open_.back()->is_array()) {
      open_.back()->push_back(std::move(value));
      return &open_.back()->back();
    }
    *value_of_key_ = std::move(value);
    return value_of_key_;
  }
  bool Put(Json value) {
    Place(std::move(value));
    return true;
  }
  bool Enter(Json container) {
    if (open_.size() == kMostDepth) {
      return Fail(absl::StrCat("nested deeper than ", kMostDepth));
    }
    open_.push_back(Place(std::move(container)));
    return true;
  }
  bool Leave() {
    open_.pop_back();
    return true;
  }

  Json document_;
  std::vector<Json*> open_;
  Json* value_of_key_ = nullptr;
  std::string problem_;
};

template <typename Json>
absl::StatusOr<Json> Parse(std::string_view who, std::string_view text) {
  // The parser would take a NUL for the end of the text.
  if (const size_t nul = text.find('\0'); nul != text.npos) {
    return InputError("invalid_json",
                      absl::StrCat(std::string(who), ": byte ", nul, ": NUL"));
  }
  DocumentBuilder<Json> builder;
  if (!Json::sax_parse(text.begin(), text.end(), &builder)) {
    return InputError("invalid_json",
                      absl::StrCat(std::string(who), ": ", builder.problem()));
  }
  return builder.TakeDocument();
}

// Returns where the string that begins with the quotation mark at `begin` ends.
size_t EndOfString(std::string_view text, size_t begin) {
  size_t at = begin + 1;
  while (at < text.size() && text[at] != '"') {
    at += text[at] == '\\' ? 2 : 1;
  }
  return std::min(at + 1, text.size());
}

// Returns the number at `at` that Python alone writes; empty if none is there.
// A key is none.
std::string_view PythonNumberAt(std::string_view text, size_t at) {
  for (const std::string_view number : {"NaN", "Infinity", "-Infinity"}) {
    if (text.substr(at, number.size()) != number) continue;
    const size_t next = text.find_first_not_of(" \t\r\n", at + number.size());
    const bool is_key = next != text.npos && text[next] == ':';
    return is_key ? std::string_view() : number;
  }
  return {};
}

}  // namespace

absl::StatusOr<json> ParsePythonJson(std::string_view who,
                                     std::string_view text) {
  std::string standard;
  size_t copied = 0;
  for (size_t at = 0; at < text.size();) {
    if (text[at] == '"') {
      at = EndOfString(text, at);
      continue;
    }
    const std::string_view number = PythonNumberAt(text, at);
    if (number.empty()) {
      ++at;
      continue;
    }
    standard.append(text.substr(copied, at - copied));
    standard.append("\"").append(number).append("\"");
    at += number.size();
    copied = at;
  }
  if (copied == 0) return ParseJson(who, text);
  return ParseJson(who, standard.append(text.substr(copied)));
}

absl::StatusOr<json> ParseJson(std::string_view who, std::string_view text) {
  return Parse<json>(who, text);
}

absl::StatusOr<nlohmann::ordered_json> ParseOrderedJson(std::string_view who,
                                                        std::string_view text) {
  return Parse<nlohmann::ordered_json>(who, text);
}

std::string WriteJson(const json& document) {
  return document.dump(/*indent=*/-1, /*indent_char=*/' ',
                       /*ensure_ascii=*/false, json::error_handler_t::replace);
}

}  // namespace tiercel

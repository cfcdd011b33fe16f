#ifndef TIERCEL_LIB_TEMPLATE_LEXER_H_
#define TIERCEL_LIB_TEMPLATE_LEXER_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace tiercel::jinja {

struct Token {
  enum class Kind {
    kData,           // text between tags; `text` is written out
    kVariableBegin,  // {{
    kVariableEnd,    // }}
    kBlockBegin,     // {%
    kBlockEnd,       // %}
    kName,
    kString,    // `text` is the value, escapes resolved
    kInteger,   // `integer`
    kFloat,     // `real`
    kOperator,  // `text` is the operator as written
    kEnd,
  };
  Kind kind;
  int line;  // from 1
  std::string text;
  int64_t integer = 0;
  double real = 0;
};

// Cuts a template into tokens. White space is settled here: trim_blocks and
// lstrip_blocks are on, `-` and `+` at a tag's inner edge override them, one
// newline at the template's end is dropped, comments vanish and raw blocks
// become data. The last token is kEnd. Errors: template_error.
absl::StatusOr<std::vector<Token>> Tokenize(std::string_view source);

// Makes a template's error, in the one form: "chat template, line 3: message".
absl::Status TemplateError(int line, std::string_view message);

}  // namespace tiercel::jinja

#endif  // TIERCEL_LIB_TEMPLATE_LEXER_H_

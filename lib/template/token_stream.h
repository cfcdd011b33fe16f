#ifndef TIERCEL_LIB_TEMPLATE_TOKEN_STREAM_H_
#define TIERCEL_LIB_TEMPLATE_TOKEN_STREAM_H_

#include <cstddef>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "lib/template/lexer.h"

namespace tiercel::jinja {

// The tokens not yet parsed, and the first error. After an error the stream is
// at its end, so that every loop over tokens ends.
class TokenStream {
 public:
  explicit TokenStream(std::vector<Token> tokens)
      : tokens_(std::move(tokens)) {}

  const Token& current() const { return tokens_[at_]; }
  const Token& ahead() const {
    return tokens_[at_ + 1 < tokens_.size() ? at_ + 1 : at_];
  }
  int line() const { return current().line; }
  const absl::Status& status() const { return status_; }

  bool AtEnd() const { return At(Token::Kind::kEnd); }
  bool At(Token::Kind kind) const { return current().kind == kind; }
  bool AtName(std::string_view name) const {
    return At(Token::Kind::kName) && current().text == name;
  }
  bool AtOperator(std::string_view op) const {
    return At(Token::Kind::kOperator) && current().text == op;
  }

  void Next() {
    if (!AtEnd()) ++at_;
  }
  bool SkipName(std::string_view name) {
    const bool found = AtName(name);
    if (found) Next();
    return found;
  }
  bool SkipOperator(std::string_view op) {
    const bool found = AtOperator(op);
    if (found) Next();
    return found;
  }
  void Expect(Token::Kind kind, std::string_view what);
  void ExpectName(std::string_view name);
  void ExpectOperator(std::string_view op);
  // Takes any name and returns it.
  std::string TakeName(std::string_view what);

  void Fail(std::string_view message);
  void FailExpected(std::string_view what);  // "expected what, got ..."

 private:
  const std::vector<Token> tokens_;  // the last is kEnd
  size_t at_ = 0;
  absl::Status status_;
};

}  // namespace tiercel::jinja

#endif  // TIERCEL_LIB_TEMPLATE_TOKEN_STREAM_H_

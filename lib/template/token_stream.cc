#include "lib/template/token_stream.h"

#include "absl/strings/str_cat.h"
#include "lib/template/text.h"

namespace tiercel::jinja {
namespace {

std::string Describe(const Token& token) {
  switch (token.kind) {
    case Token::Kind::kData:
      return "text";
    case Token::Kind::kVariableBegin:
      return "'{{'";
    case Token::Kind::kVariableEnd:
      return "'}}'";
    case Token::Kind::kBlockBegin:
      return "'{%'";
    case Token::Kind::kBlockEnd:
      return "'%}'";
    case Token::Kind::kString:
      return "a string";
    case Token::Kind::kInteger:
    case Token::Kind::kFloat:
      return "a number";
    case Token::Kind::kName:
    case Token::Kind::kOperator:
      return absl::StrCat("'", token.text.substr(0, 40), "'");
    case Token::Kind::kEnd:
      break;
  }
  return "the template's end";
}

}  // namespace

void TokenStream::Expect(Token::Kind kind, std::string_view what) {
  if (At(kind)) {
    Next();
  } else {
    FailExpected(what);
  }
}

void TokenStream::ExpectName(std::string_view name) {
  if (!SkipName(name)) FailExpected(name);
}

void TokenStream::ExpectOperator(std::string_view op) {
  if (!SkipOperator(op)) FailExpected(absl::StrCat("'", Abseil(op), "'"));
}

std::string TokenStream::TakeName(std::string_view what) {
  if (!At(Token::Kind::kName)) {
    FailExpected(what);
    return {};
  }
  std::string name = current().text;
  Next();
  return name;
}

void TokenStream::Fail(std::string_view message) {
  if (status_.ok()) status_ = TemplateError(line(), message);
  at_ = tokens_.size() - 1;
}

void TokenStream::FailExpected(std::string_view what) {
  Fail(absl::StrCat("expected ", Abseil(what), ", got ", Describe(current())));
}

}  // namespace tiercel::jinja

#include "lib/template/parser.h"

#include <algorithm>
#include <initializer_list>
#include <string>

#include "absl/strings/str_cat.h"
#include "lib/status/status_macros.h"
#include "lib/template/expression_parser.h"
#include "lib/template/lexer.h"
#include "lib/template/token_stream.h"

namespace tiercel::jinja {
namespace {

using StmtPtr = std::unique_ptr<Stmt>;

class Parser {
 public:
  explicit Parser(std::vector<Token> tokens)
      : tokens_(std::move(tokens)), expressions_(&tokens_) {}

  absl::StatusOr<Body> Rendering() {
    Body body = ParseBody({});
    if (!tokens_.status().ok()) return tokens_.status();
    return body;
  }

 private:
  // Parses statements up to a tag named in `ends`, of which `{%` is consumed
  // and the name is then current.
  Body ParseBody(std::initializer_list<std::string_view> ends) {
    Body body;
    if (++nesting_ > kMaxTreeDepth) {
      tokens_.Fail("blocks are nested too deeply");
    }
    while (!tokens_.AtEnd()) {
      const int line = tokens_.line();
      if (tokens_.At(Token::Kind::kData)) {
        StmtPtr data = Make(Stmt::Kind::kData, line);
        data->text = Text(tokens_.current().text);
        body.push_back(std::move(data));
        tokens_.Next();
      } else if (tokens_.At(Token::Kind::kVariableBegin)) {
        tokens_.Next();
        StmtPtr output = Make(Stmt::Kind::kOutput, line);
        output->value = expressions_.ParseTuple();
        tokens_.Expect(Token::Kind::kVariableEnd, "'}}'");
        body.push_back(std::move(output));
      } else {
        tokens_.Expect(Token::Kind::kBlockBegin, "'{%'");
        if (std::any_of(ends.begin(), ends.end(),
                        [this](auto end) { return tokens_.AtName(end); })) {
          --nesting_;
          return body;
        }
        body.push_back(ParseStatement());
      }
    }
    if (ends.size() > 0) {
      tokens_.FailExpected(
          absl::StrCat("{% ", std::string(*(ends.end() - 1)), " %}"));
    }
    --nesting_;
    return body;
  }

  // Parses the body of a block that only `end` closes, together with that tag.
  Body ParseClosedBody(std::string_view end) {
    CloseTag();
    Body body = ParseBody({end});
    tokens_.ExpectName(end);
    return body;
  }

  StmtPtr ParseStatement() {
    struct Keyword {
      std::string_view name;
      StmtPtr (Parser::*parse)(int line);
    };
    static constexpr Keyword kKeywords[] = {
        {"if", &Parser::ParseIf},
        {"for", &Parser::ParseFor},
        {"set", &Parser::ParseSet},
        {"macro", &Parser::ParseMacro},
        {"call", &Parser::ParseCall},
        {"filter", &Parser::ParseFilter},
        {"with", &Parser::ParseWith},
        {"generation", &Parser::ParseGeneration},
        {"break", &Parser::ParseBreak},
        {"continue", &Parser::ParseContinue},
    };
    const int line = tokens_.line();
    for (const auto& [name, parse] : kKeywords) {
      if (!tokens_.SkipName(name)) continue;
      StmtPtr statement = (this->*parse)(line);
      CloseTag();
      return statement;
    }
    if (tokens_.At(Token::Kind::kName)) {
      tokens_.Fail(absl::StrCat("unknown tag '", tokens_.current().text, "'"));
    } else {
      tokens_.FailExpected("a tag's name");
    }
    return Make(Stmt::Kind::kData, line);
  }

  StmtPtr ParseIf(int line) {
    StmtPtr statement = Make(Stmt::Kind::kIf, line);
    do {
      Stmt::Branch branch;
      branch.condition = expressions_.ParseTuple(/*conditional=*/false);
      CloseTag();
      branch.body = ParseBody({"elif", "else", "endif"});
      statement->branches.push_back(std::move(branch));
    } while (tokens_.SkipName("elif"));
    if (tokens_.SkipName("else")) {
      statement->otherwise = ParseClosedBody("endif");
    } else {
      tokens_.ExpectName("endif");
    }
    return statement;
  }

  StmtPtr ParseFor(int line) {
    StmtPtr statement = Make(Stmt::Kind::kFor, line);
    statement->target = expressions_.ParseTarget(/*allow_namespace=*/false);
    tokens_.ExpectName("in");
    statement->value = expressions_.ParseTuple(/*conditional=*/false);
    if (tokens_.SkipName("if")) {
      statement->condition = expressions_.ParseExpression();
    }
    statement->recursive = tokens_.SkipName("recursive");
    CloseTag();
    ++loops_;
    statement->body = ParseBody({"else", "endfor"});
    --loops_;
    if (tokens_.SkipName("else")) {
      statement->otherwise = ParseClosedBody("endfor");
    } else {
      tokens_.ExpectName("endfor");
    }
    return statement;
  }

  StmtPtr ParseSet(int line) {
    StmtPtr statement = Make(Stmt::Kind::kSet, line);
    statement->target = expressions_.ParseTarget(/*allow_namespace=*/true);
    if (tokens_.SkipOperator("=")) {
      statement->value = expressions_.ParseTuple();
      return statement;
    }
    statement->kind = Stmt::Kind::kSetBlock;
    statement->value = expressions_.ParseFilters(
        expressions_.Make(Expr::Kind::kBlockText, line));
    statement->body = ParseClosedBody("endset");
    return statement;
  }

  StmtPtr ParseMacro(int line) {
    StmtPtr statement = Make(Stmt::Kind::kMacro, line);
    statement->name = tokens_.TakeName("a macro's name");
    ParseParameters(statement.get());
    ParseFunctionBody("endmacro", statement.get());
    return statement;
  }

  StmtPtr ParseCall(int line) {
    StmtPtr statement = Make(Stmt::Kind::kCall, line);
    if (tokens_.AtOperator("(")) ParseParameters(statement.get());
    statement->value = expressions_.ParseExpression();
    if (statement->value->kind != Expr::Kind::kCall) {
      tokens_.FailExpected("a call");
    }
    ParseFunctionBody("endcall", statement.get());
    return statement;
  }

  StmtPtr ParseFilter(int line) {
    StmtPtr statement = Make(Stmt::Kind::kFilter, line);
    statement->value = expressions_.ParseFilterBlock(
        expressions_.Make(Expr::Kind::kBlockText, line));
    statement->body = ParseClosedBody("endfilter");
    return statement;
  }

  StmtPtr ParseWith(int line) {
    StmtPtr statement = Make(Stmt::Kind::kWith, line);
    while (tokens_.At(Token::Kind::kName)) {
      Stmt::Parameter parameter;
      parameter.name = tokens_.TakeName("a name");
      tokens_.ExpectOperator("=");
      parameter.value = expressions_.ParseExpression();
      statement->parameters.push_back(std::move(parameter));
      if (!tokens_.SkipOperator(",")) break;
    }
    statement->body = ParseClosedBody("endwith");
    return statement;
  }

  // The block marks the assistant's text for training; here it is only a scope.
  StmtPtr ParseGeneration(int line) {
    StmtPtr statement = Make(Stmt::Kind::kScope, line);
    statement->body = ParseClosedBody("endgeneration");
    return statement;
  }

  StmtPtr ParseBreak(int line) { return MakeJump(Stmt::Kind::kBreak, line); }
  StmtPtr ParseContinue(int line) {
    return MakeJump(Stmt::Kind::kContinue, line);
  }
  StmtPtr MakeJump(Stmt::Kind kind, int line) {
    if (loops_ == 0) tokens_.Fail("break or continue outside of a loop");
    return Make(kind, line);
  }

  void ParseParameters(Stmt* statement) {
    tokens_.ExpectOperator("(");
    while (!tokens_.AtOperator(")") && !tokens_.AtEnd()) {
      if (!statement->parameters.empty()) tokens_.ExpectOperator(",");
      Stmt::Parameter parameter;
      parameter.name = tokens_.TakeName("a parameter's name");
      if (tokens_.SkipOperator("=")) {
        parameter.value = expressions_.ParseExpression();
      } else if (!statement->parameters.empty() &&
                 statement->parameters.back().value != nullptr) {
        tokens_.Fail("a parameter without a default follows one with");
      }
      statement->parameters.push_back(std::move(parameter));
    }
    tokens_.ExpectOperator(")");
  }

  // The body must not break or continue a loop around it.
  void ParseFunctionBody(std::string_view end, Stmt* statement) {
    const int loops = std::exchange(loops_, 0);
    const ExpressionParser::MoreArguments before = expressions_.more();
    statement->body = ParseClosedBody(end);
    statement->takes_varargs = expressions_.more().varargs > before.varargs;
    statement->takes_kwargs = expressions_.more().kwargs > before.kwargs;
    loops_ = loops;
  }

  void CloseTag() { tokens_.Expect(Token::Kind::kBlockEnd, "'%}'"); }

  static StmtPtr Make(Stmt::Kind kind, int line) {
    auto statement = std::make_unique<Stmt>();
    statement->kind = kind;
    statement->line = line;
    return statement;
  }

  TokenStream tokens_;
  ExpressionParser expressions_;
  int nesting_ = 0;
  int loops_ = 0;
};

}  // namespace

absl::StatusOr<Body> ParseTemplate(std::string_view source) {
  ASSIGN_OR_RETURN(std::vector<Token> tokens, Tokenize(source));
  return Parser(std::move(tokens)).Rendering();
}

}  // namespace tiercel::jinja

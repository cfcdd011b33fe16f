#ifndef TIERCEL_LIB_TEMPLATE_EXPRESSION_PARSER_H_
#define TIERCEL_LIB_TEMPLATE_EXPRESSION_PARSER_H_

#include <string_view>

#include "lib/template/ast.h"
#include "lib/template/token_stream.h"

namespace tiercel::jinja {

// Expressions, by recursive descent; Jinja's grammar and precedence:
//
//   conditional  or [ if or [ else conditional ] ]
//   or           and { or and }
//   and          not { and not }
//   not          "not" not | compare
//   compare      sum { (== != < <= > >= in "not in") sum }
//   sum          concat { (+ -) concat }
//   concat       product { ~ product }
//   product      power { (* / // %) power }
//   power        unary { ** unary }
//   unary        (- +) unary | primary;  then postfix, filters and tests
//
// Every function returns a node, also after an error.
class ExpressionParser {
 public:
  explicit ExpressionParser(TokenStream* tokens) : tokens_(*tokens) {}

  ExprPtr ParseExpression();
  // Parses an expression; with commas, a tuple. If `conditional` is false an
  // `if` is left to the statement.
  ExprPtr ParseTuple(bool conditional = true);
  // Parses { | name [ (arguments) ] }, applied to `input`.
  ExprPtr ParseFilters(ExprPtr input);
  // Parses filters, the first of which has no bar before it.
  ExprPtr ParseFilterBlock(ExprPtr input);
  // Parses an assignment target: the left side of `=` or `in`.
  ExprPtr ParseTarget(bool allow_namespace);

  ExprPtr Make(Expr::Kind kind, int line);

  // The number of names so far by which a macro's body asks for the arguments
  // that are not among its parameters.
  struct MoreArguments {
    int varargs = 0;
    int kwargs = 0;
  };
  const MoreArguments& more() const { return more_; }

 private:
  class Nesting;

  ExprPtr ParseConditional();
  ExprPtr ParseOr();
  ExprPtr ParseAnd();
  ExprPtr ParseNot();
  ExprPtr ParseCompare();
  ExprPtr ParseLeft(int level);
  ExprPtr ParseUnary(bool with_filters);
  ExprPtr ParsePrimary();
  ExprPtr ParseDict();
  ExprPtr ParsePostfix(ExprPtr node);
  ExprPtr ParseSubscript(ExprPtr node);
  ExprPtr ParseFilter(ExprPtr input);
  ExprPtr ParseTest(ExprPtr node);
  void ParseArguments(Expr* call);
  ExprPtr ParseTargetName(bool allow_namespace);
  bool AtTupleEnd() const;

  // Adds a child, updates the depth and checks it.
  void Adopt(Expr* parent, ExprPtr child);
  void AdoptNamed(Expr* call, std::string name, ExprPtr value);
  ExprPtr MakeWith(Expr::Kind kind, int line, ExprPtr child);
  ExprPtr MakeConstant(Value value, int line);

  TokenStream& tokens_;
  int nesting_ = 0;
  MoreArguments more_;
};

}  // namespace tiercel::jinja

#endif  // TIERCEL_LIB_TEMPLATE_EXPRESSION_PARSER_H_

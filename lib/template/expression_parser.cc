#include "lib/template/expression_parser.h"

#include <algorithm>
#include <array>
#include <optional>

namespace tiercel::jinja {
namespace {

struct SpelledOperator {
  std::string_view text;
  Operator op;
};

constexpr std::array<SpelledOperator, 6> kComparisons = {
    {{"==", Operator::kEqual},
     {"!=", Operator::kNotEqual},
     {"<", Operator::kLess},
     {"<=", Operator::kLessEqual},
     {">", Operator::kGreater},
     {">=", Operator::kGreaterEqual}}};

// Binary operators from the loosest level to the tightest.
struct Binary {
  std::string_view text;
  int level;
  Operator op;
};
constexpr int kNumLevels = 4;
constexpr std::array<Binary, 8> kBinaries = {{{"+", 0, Operator::kAdd},
                                              {"-", 0, Operator::kSubtract},
                                              {"~", 1, Operator::kConcat},
                                              {"*", 2, Operator::kMultiply},
                                              {"/", 2, Operator::kDivide},
                                              {"//", 2, Operator::kFloorDivide},
                                              {"%", 2, Operator::kModulo},
                                              {"**", 3, Operator::kPower}}};

}  // namespace

// Counts the recursion depth of the parser, and stops it in time.
class ExpressionParser::Nesting {
 public:
  explicit Nesting(ExpressionParser* parser) : parser_(*parser) {
    if (++parser_.nesting_ > kMaxTreeDepth) {
      parser_.tokens_.Fail("an expression is nested too deeply");
    }
  }
  ~Nesting() { --parser_.nesting_; }
  Nesting(const Nesting&) = delete;
  Nesting& operator=(const Nesting&) = delete;

 private:
  ExpressionParser& parser_;
};

ExprPtr ExpressionParser::Make(Expr::Kind kind, int line) {
  auto node = std::make_unique<Expr>();
  node->kind = kind;
  node->line = line;
  return node;
}

void ExpressionParser::Adopt(Expr* parent, ExprPtr child) {
  if (child != nullptr) {
    parent->depth = std::max(parent->depth, child->depth + 1);
    if (parent->depth > kMaxTreeDepth) {
      tokens_.Fail("an expression is nested too deeply");
      child = Make(Expr::Kind::kConstant, child->line);
      parent->depth = 2;
    }
  }
  parent->children.push_back(std::move(child));
}

ExprPtr ExpressionParser::MakeWith(Expr::Kind kind, int line, ExprPtr child) {
  ExprPtr node = Make(kind, line);
  Adopt(node.get(), std::move(child));
  return node;
}

ExprPtr ExpressionParser::MakeConstant(Value value, int line) {
  ExprPtr node = Make(Expr::Kind::kConstant, line);
  node->constant = std::move(value);
  return node;
}

ExprPtr ExpressionParser::ParseExpression() { return ParseConditional(); }

bool ExpressionParser::AtTupleEnd() const {
  return tokens_.At(Token::Kind::kVariableEnd) ||
         tokens_.At(Token::Kind::kBlockEnd) || tokens_.AtOperator(")") ||
         tokens_.AtEnd();
}

ExprPtr ExpressionParser::ParseTuple(bool conditional) {
  const int line = tokens_.line();
  const auto parse = [&] {
    return conditional ? ParseExpression() : ParseOr();
  };
  ExprPtr first = parse();
  if (!tokens_.AtOperator(",")) return first;
  ExprPtr tuple = MakeWith(Expr::Kind::kTuple, line, std::move(first));
  while (tokens_.SkipOperator(",") && !AtTupleEnd()) {
    Adopt(tuple.get(), parse());
  }
  return tuple;
}

ExprPtr ExpressionParser::ParseConditional() {
  const Nesting nesting(this);
  ExprPtr value = ParseOr();
  while (tokens_.AtName("if")) {
    const int line = tokens_.line();
    tokens_.Next();
    ExprPtr node = MakeWith(Expr::Kind::kConditional, line, ParseOr());
    Adopt(node.get(), std::move(value));
    Adopt(node.get(), tokens_.SkipName("else") ? ParseConditional() : nullptr);
    value = std::move(node);
  }
  return value;
}

ExprPtr ExpressionParser::ParseOr() {
  ExprPtr left = ParseAnd();
  while (tokens_.AtName("or")) {
    const int line = tokens_.line();
    tokens_.Next();
    left = MakeWith(Expr::Kind::kOr, line, std::move(left));
    Adopt(left.get(), ParseAnd());
  }
  return left;
}

ExprPtr ExpressionParser::ParseAnd() {
  ExprPtr left = ParseNot();
  while (tokens_.AtName("and")) {
    const int line = tokens_.line();
    tokens_.Next();
    left = MakeWith(Expr::Kind::kAnd, line, std::move(left));
    Adopt(left.get(), ParseNot());
  }
  return left;
}

ExprPtr ExpressionParser::ParseNot() {
  const Nesting nesting(this);
  if (!tokens_.AtName("not")) return ParseCompare();
  const int line = tokens_.line();
  tokens_.Next();
  ExprPtr node = MakeWith(Expr::Kind::kUnary, line, ParseNot());
  node->operators = {Operator::kNot};
  return node;
}

ExprPtr ExpressionParser::ParseCompare() {
  const auto skip_comparison = [this]() -> std::optional<Operator> {
    for (const auto& [text, op] : kComparisons) {
      if (tokens_.SkipOperator(text)) return op;
    }
    if (tokens_.SkipName("in")) return Operator::kIn;
    const Token& ahead = tokens_.ahead();
    if (tokens_.AtName("not") && ahead.kind == Token::Kind::kName &&
        ahead.text == "in") {
      tokens_.Next();
      tokens_.Next();
      return Operator::kNotIn;
    }
    return std::nullopt;
  };
  const int line = tokens_.line();
  ExprPtr left = ParseLeft(0);
  std::optional<Operator> op = skip_comparison();
  if (!op.has_value()) return left;
  ExprPtr node = MakeWith(Expr::Kind::kCompare, line, std::move(left));
  for (; op.has_value(); op = skip_comparison()) {
    node->operators.push_back(*op);
    Adopt(node.get(), ParseLeft(0));
  }
  return node;
}

ExprPtr ExpressionParser::ParseLeft(int level) {
  if (level == kNumLevels) return ParseUnary(/*with_filters=*/true);
  ExprPtr left = ParseLeft(level + 1);
  while (true) {
    const auto* const found =
        std::find_if(kBinaries.begin(), kBinaries.end(), [&](const Binary& b) {
          return b.level == level && tokens_.AtOperator(b.text);
        });
    if (found == kBinaries.end()) return left;
    const int line = tokens_.line();
    tokens_.Next();
    left = MakeWith(Expr::Kind::kBinary, line, std::move(left));
    left->operators = {found->op};
    Adopt(left.get(), ParseLeft(level + 1));
  }
}

ExprPtr ExpressionParser::ParseUnary(bool with_filters) {
  const Nesting nesting(this);
  const int line = tokens_.line();
  ExprPtr node;
  if (tokens_.AtOperator("-") || tokens_.AtOperator("+")) {
    const Operator op =
        tokens_.AtOperator("-") ? Operator::kNegative : Operator::kPositive;
    tokens_.Next();
    node =
        MakeWith(Expr::Kind::kUnary, line, ParseUnary(/*with_filters=*/false));
    node->operators = {op};
  } else {
    node = ParsePrimary();
  }
  node = ParsePostfix(std::move(node));
  while (with_filters) {
    if (tokens_.AtOperator("|")) {
      node = ParseFilters(std::move(node));
    } else if (tokens_.AtName("is")) {
      node = ParseTest(std::move(node));
    } else if (tokens_.AtOperator("(")) {
      node = MakeWith(Expr::Kind::kCall, tokens_.line(), std::move(node));
      ParseArguments(node.get());
    } else {
      break;
    }
  }
  return node;
}

ExprPtr ExpressionParser::ParsePrimary() {
  const Token token = tokens_.current();
  switch (token.kind) {
    case Token::Kind::kName: {
      tokens_.Next();
      if (token.text == "true" || token.text == "True") {
        return MakeConstant(true, token.line);
      }
      if (token.text == "false" || token.text == "False") {
        return MakeConstant(false, token.line);
      }
      if (token.text == "none" || token.text == "None") {
        return MakeConstant(None{}, token.line);
      }
      ExprPtr name = Make(Expr::Kind::kName, token.line);
      more_.varargs += token.text == "varargs";
      more_.kwargs += token.text == "kwargs";
      name->name = token.text;
      return name;
    }
    case Token::Kind::kString: {
      std::string value;
      for (; tokens_.At(Token::Kind::kString); tokens_.Next()) {
        value += tokens_.current().text;
      }
      return MakeConstant(
          std::make_shared<const String>(String{Text(value), Charge()}),
          token.line);
    }
    case Token::Kind::kInteger:
      tokens_.Next();
      return MakeConstant(token.integer, token.line);
    case Token::Kind::kFloat:
      tokens_.Next();
      return MakeConstant(token.real, token.line);
    default:
      break;
  }
  if (tokens_.SkipOperator("(")) {
    if (tokens_.SkipOperator(")")) {
      return Make(Expr::Kind::kTuple, token.line);
    }
    ExprPtr inner = ParseTuple();
    tokens_.ExpectOperator(")");
    return inner;
  }
  if (tokens_.SkipOperator("[")) {
    ExprPtr list = Make(Expr::Kind::kList, token.line);
    while (!tokens_.AtOperator("]") && !tokens_.AtEnd()) {
      if (!list->children.empty()) {
        tokens_.ExpectOperator(",");
        if (tokens_.AtOperator("]")) break;
      }
      Adopt(list.get(), ParseExpression());
    }
    tokens_.ExpectOperator("]");
    return list;
  }
  if (tokens_.SkipOperator("{")) return ParseDict();
  tokens_.FailExpected("an expression");
  return Make(Expr::Kind::kConstant, token.line);
}

ExprPtr ExpressionParser::ParseDict() {
  ExprPtr dict = Make(Expr::Kind::kDict, tokens_.line());
  while (!tokens_.AtOperator("}") && !tokens_.AtEnd()) {
    if (!dict->children.empty()) {
      tokens_.ExpectOperator(",");
      if (tokens_.AtOperator("}")) break;
    }
    Adopt(dict.get(), ParseExpression());
    tokens_.ExpectOperator(":");
    Adopt(dict.get(), ParseExpression());
  }
  tokens_.ExpectOperator("}");
  return dict;
}

ExprPtr ExpressionParser::ParsePostfix(ExprPtr node) {
  while (true) {
    const int line = tokens_.line();
    if (tokens_.SkipOperator(".")) {
      if (tokens_.At(Token::Kind::kInteger)) {
        ExprPtr index = MakeConstant(tokens_.current().integer, line);
        tokens_.Next();
        node = MakeWith(Expr::Kind::kItem, line, std::move(node));
        Adopt(node.get(), std::move(index));
        continue;
      }
      node = MakeWith(Expr::Kind::kAttribute, line, std::move(node));
      node->name = tokens_.TakeName("an attribute's name");
    } else if (tokens_.SkipOperator("[")) {
      node = ParseSubscript(std::move(node));
    } else if (tokens_.AtOperator("(")) {
      node = MakeWith(Expr::Kind::kCall, line, std::move(node));
      ParseArguments(node.get());
    } else {
      return node;
    }
  }
}

ExprPtr ExpressionParser::ParseSubscript(ExprPtr node) {
  const int line = tokens_.line();
  ExprPtr bounds[3];  // start, stop, step
  bool is_slice = false;
  for (int i = 0; i < 3; ++i) {
    if (!tokens_.AtOperator(":") && !tokens_.AtOperator("]")) {
      bounds[i] = i == 0 ? ParseTuple() : ParseExpression();
    }
    if (i == 2 || !tokens_.SkipOperator(":")) break;
    is_slice = true;
  }
  tokens_.ExpectOperator("]");
  ExprPtr result = MakeWith(is_slice ? Expr::Kind::kSlice : Expr::Kind::kItem,
                            line, std::move(node));
  if (!is_slice && bounds[0] == nullptr) tokens_.FailExpected("an index");
  for (int i = 0; i < (is_slice ? 3 : 1); ++i) {
    Adopt(result.get(), std::move(bounds[i]));
  }
  return result;
}

void ExpressionParser::AdoptNamed(Expr* call, std::string name, ExprPtr value) {
  // Adopt counts the child's depth; then the child moves to its place.
  Adopt(call, std::move(value));
  call->named.emplace_back(std::move(name), std::move(call->children.back()));
  call->children.pop_back();
}

void ExpressionParser::ParseArguments(Expr* call) {
  tokens_.ExpectOperator("(");
  bool first = true;
  while (!tokens_.AtOperator(")") && !tokens_.AtEnd()) {
    if (!first) {
      tokens_.ExpectOperator(",");
      if (tokens_.AtOperator(")")) break;
    }
    first = false;
    const Token& ahead = tokens_.ahead();
    if (tokens_.SkipOperator("**")) {
      AdoptNamed(call, "**", ParseExpression());
    } else if (tokens_.AtOperator("*")) {
      const int line = tokens_.line();
      tokens_.Next();
      Adopt(call, MakeWith(Expr::Kind::kSpread, line, ParseExpression()));
    } else if (tokens_.At(Token::Kind::kName) &&
               ahead.kind == Token::Kind::kOperator && ahead.text == "=") {
      std::string name = tokens_.TakeName("a name");
      tokens_.Next();
      AdoptNamed(call, std::move(name), ParseExpression());
    } else if (!call->named.empty()) {
      tokens_.Fail("a positional argument follows a named one");
    } else {
      Adopt(call, ParseExpression());
    }
  }
  tokens_.ExpectOperator(")");
}

ExprPtr ExpressionParser::ParseFilters(ExprPtr input) {
  while (tokens_.SkipOperator("|")) input = ParseFilter(std::move(input));
  return input;
}

ExprPtr ExpressionParser::ParseFilterBlock(ExprPtr input) {
  return ParseFilters(ParseFilter(std::move(input)));
}

ExprPtr ExpressionParser::ParseFilter(ExprPtr input) {
  ExprPtr node =
      MakeWith(Expr::Kind::kFilter, tokens_.line(), std::move(input));
  node->name = tokens_.TakeName("a filter's name");
  if (tokens_.AtOperator("(")) ParseArguments(node.get());
  return node;
}

ExprPtr ExpressionParser::ParseTest(ExprPtr node) {
  const int line = tokens_.line();
  tokens_.ExpectName("is");
  const bool negated = tokens_.SkipName("not");
  ExprPtr test = MakeWith(Expr::Kind::kTest, line, std::move(node));
  test->name = tokens_.TakeName("a test's name");
  const bool at_argument =
      tokens_.At(Token::Kind::kString) || tokens_.At(Token::Kind::kInteger) ||
      tokens_.At(Token::Kind::kFloat) || tokens_.AtOperator("[") ||
      tokens_.AtOperator("{") ||
      (tokens_.At(Token::Kind::kName) && !tokens_.AtName("else") &&
       !tokens_.AtName("or") && !tokens_.AtName("and"));
  if (tokens_.AtOperator("(")) {
    ParseArguments(test.get());
  } else if (tokens_.AtName("is")) {
    tokens_.Fail("tests cannot be chained");
  } else if (at_argument) {
    const Nesting nesting(this);
    Adopt(test.get(), ParsePostfix(ParsePrimary()));
  }
  if (!negated) return test;
  ExprPtr inverse = MakeWith(Expr::Kind::kUnary, line, std::move(test));
  inverse->operators = {Operator::kNot};
  return inverse;
}

ExprPtr ExpressionParser::ParseTargetName(bool allow_namespace) {
  ExprPtr name = Make(Expr::Kind::kName, tokens_.line());
  name->name = tokens_.TakeName("a name");
  for (const std::string_view word :
       {"true", "false", "none", "True", "False", "None"}) {
    if (name->name == word) tokens_.Fail("a constant cannot be assigned to");
  }
  if (!allow_namespace || !tokens_.SkipOperator(".")) return name;
  ExprPtr attribute =
      MakeWith(Expr::Kind::kAttribute, tokens_.line(), std::move(name));
  attribute->name = tokens_.TakeName("an attribute's name");
  return attribute;
}

ExprPtr ExpressionParser::ParseTarget(bool allow_namespace) {
  const Nesting nesting(this);
  const auto parse = [&] {
    if (!tokens_.SkipOperator("(")) return ParseTargetName(allow_namespace);
    ExprPtr inner = ParseTarget(allow_namespace);
    tokens_.ExpectOperator(")");
    return inner;
  };
  const int line = tokens_.line();
  ExprPtr first = parse();
  if (!tokens_.AtOperator(",")) return first;
  ExprPtr tuple = MakeWith(Expr::Kind::kTuple, line, std::move(first));
  while (tokens_.SkipOperator(",") && !tokens_.AtName("in") &&
         !tokens_.AtOperator("=") && !tokens_.AtOperator(")")) {
    Adopt(tuple.get(), parse());
  }
  return tuple;
}

}  // namespace tiercel::jinja

#ifndef TIERCEL_LIB_TEMPLATE_AST_H_
#define TIERCEL_LIB_TEMPLATE_AST_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lib/template/text.h"
#include "lib/template/value.h"

namespace tiercel::jinja {

// The most depth of a tree, so that walking one is safe on any stack.
inline constexpr int kMaxTreeDepth = 200;

enum class Operator {
  kAdd,
  kSubtract,
  kConcat,
  kMultiply,
  kDivide,
  kFloorDivide,
  kModulo,
  kPower,
  kNegative,
  kPositive,
  kNot,
  kEqual,
  kNotEqual,
  kLess,
  kLessEqual,
  kGreater,
  kGreaterEqual,
  kIn,
  kNotIn,
};

struct Expr;
using ExprPtr = std::unique_ptr<Expr>;

struct Expr {
  enum class Kind {
    kConstant,     // constant
    kName,         // name
    kList,         // children
    kTuple,        // children
    kDict,         // children: key, value, key, value, ...
    kAttribute,    // children[0] . name
    kItem,         // children[0] [ children[1] ]
    kSlice,        // children[0] [ children[1] : [2] : [3] ]; null if absent
    kCall,         // children[0] ( children[1..], named )
    kFilter,       // children[0] | name ( children[1..], named )
    kTest,         // children[0] is name ( children[1..], named )
    kUnary,        // operators[0] children[0]
    kBinary,       // children[0] operators[0] children[1]
    kAnd,          // children[0] and children[1]
    kOr,           // children[0] or children[1]
    kCompare,      // children[0] operators[0] children[1] operators[1] ...
    kConditional,  // children[1] if children[0] else children[2] (may be null)
    kBlockText,    // the text of the block whose filter this is
    kSpread,       // *children[0], an argument of a call
  };
  Kind kind;
  int line;
  int depth = 1;
  std::string name;
  Value constant;
  std::vector<Operator> operators;
  std::vector<ExprPtr> children;
  // Arguments by name; "**" stands for the items of a dict.
  std::vector<std::pair<std::string, ExprPtr>> named;
};

struct Stmt;
using Body = std::vector<std::unique_ptr<Stmt>>;

struct Stmt {
  enum class Kind {
    kData,      // text
    kOutput,    // {{ value }}
    kIf,        // branches in order, then otherwise
    kFor,       // target in value, if condition: body; otherwise if none
    kSet,       // target = value
    kSetBlock,  // target = the text of body, through value's filters
    kMacro,     // name(parameters): body
    kCall,      // value is the call; caller is (parameters): body
    kFilter,    // the text of body, through value's filters
    kWith,      // parameters are the names and their values: body
    kScope,     // body, in a scope of its own
    kBreak,
    kContinue,
  };
  struct Branch {
    ExprPtr condition;
    Body body;
  };
  struct Parameter {
    std::string name;
    ExprPtr value;  // null: none
  };
  Kind kind;
  int line;
  Text text;
  std::string name;
  ExprPtr target;  // a name, a namespace's attribute, or a tuple of names
  ExprPtr value;
  ExprPtr condition;
  std::vector<Branch> branches;
  std::vector<Parameter> parameters;
  bool recursive = false;  // a loop that may be called
  // A macro whose body names `varargs` or `kwargs` takes more arguments.
  bool takes_varargs = false;
  bool takes_kwargs = false;
  Body body;
  Body otherwise;
};

}  // namespace tiercel::jinja

#endif  // TIERCEL_LIB_TEMPLATE_AST_H_

#ifndef TIERCEL_LIB_TEMPLATE_INTERPRETER_H_
#define TIERCEL_LIB_TEMPLATE_INTERPRETER_H_

#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/template/ast.h"
#include "lib/template/rendering.h"
#include "lib/template/value.h"

namespace tiercel::jinja {

// Renders a template's tree. Scopes follow Jinja: a loop's body, a macro, a
// with block and a captured block have scopes of their own; an if has none.
class Interpreter {
 public:
  // `rendering` outlives this object and everything it returns.
  explicit Interpreter(Rendering& rendering);
  ~Interpreter();
  Interpreter(const Interpreter&) = delete;
  Interpreter& operator=(const Interpreter&) = delete;

  // Defines a variable for the template. Must be called before Render.
  void Define(std::string_view name, Value value);

  // Returns the text that the template writes; meaningless if the rendering
  // failed.
  Text Render(const Body& body);

 private:
  enum class Flow { kNext, kBreak, kContinue };
  class Nesting;
  class Scoped;

  Flow ExecuteBody(const Body& body);
  Flow Execute(const Stmt& statement);
  Flow ExecuteIf(const Stmt& statement);
  Flow ExecuteFor(const Stmt& statement);
  Flow ExecuteLoop(const Stmt& statement, const Value& items, int64_t depth);
  // Runs a recursive loop's body for `items`; returns the text that it writes.
  Value CallLoop(const Stmt& statement, const std::shared_ptr<Scope>& outer,
                 const Value& items, int64_t depth);
  void ExecuteMacro(const Stmt& statement);
  void ExecuteCall(const Stmt& statement);
  Flow ExecuteWith(const Stmt& statement);
  // Returns the text that the statement's body writes, passed through the
  // filters of its value.
  Value Capture(const Stmt& statement);
  std::vector<Value> ChooseItems(const Stmt& statement, const List& list);
  void Assign(const Expr& target, const Value& value);

  Value Evaluate(const Expr& node);
  Value EvaluateName(const Expr& node);
  Value EvaluateList(const Expr& node);
  Value EvaluateDict(const Expr& node);
  Value EvaluateSlice(const Expr& node);
  Value EvaluateFilter(const Expr& node);
  Value EvaluateTest(const Expr& node);
  Value EvaluateCompare(const Expr& node);
  Value EvaluateConditional(const Expr& node);
  // `caller` is passed by that name if it is not null.
  Value EvaluateCall(const Expr& node, const Value* caller);
  Args EvaluateArgs(const Expr& node);

  Value MakeMacro(const Stmt& statement, std::string_view name);
  Value CallMacro(const Stmt& statement, const std::shared_ptr<Scope>& outer,
                  const Args& args);
  Value MakeNamespace(const Args& args);
  // Keeps the scope until the end. Its names are cleared then, one scope at a
  // time, which frees values that refer to themselves through it.
  void Keep(const std::shared_ptr<Scope>& scope);
  std::shared_ptr<Scope> NewScope(std::shared_ptr<Scope> parent);

  Rendering& rendering_;
  std::shared_ptr<Scope> scope_;
  std::vector<std::shared_ptr<Scope>> kept_;
  TextBuilder* out_ = nullptr;
  Value block_text_;  // the value of kBlockText
  int nesting_ = 0;
};

}  // namespace tiercel::jinja

#endif  // TIERCEL_LIB_TEMPLATE_INTERPRETER_H_

#include "lib/template/interpreter.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "lib/template/builtins.h"
#include "lib/template/format.h"
#include "lib/template/operators.h"

namespace tiercel::jinja {
namespace {

// The most nesting of statements, expressions and macro calls; a bare macro
// call takes about five levels.
constexpr int kMaxNesting = 1000;
constexpr size_t kScopeBytes = 128;

}  // namespace

class Interpreter::Nesting {
 public:
  explicit Nesting(Interpreter* interpreter) : interpreter_(*interpreter) {
    if (++interpreter_.nesting_ > kMaxNesting) {
      interpreter_.rendering_.Fail(
          "the template is nested or recurses too deeply");
    }
  }
  ~Nesting() { --interpreter_.nesting_; }
  Nesting(const Nesting&) = delete;
  Nesting& operator=(const Nesting&) = delete;

 private:
  Interpreter& interpreter_;
};

// Makes `scope` the current one while this object lives.
class Interpreter::Scoped {
 public:
  Scoped(Interpreter* interpreter, std::shared_ptr<Scope> scope)
      : interpreter_(*interpreter),
        before_(std::exchange(interpreter_.scope_, std::move(scope))) {}
  ~Scoped() { interpreter_.scope_ = std::move(before_); }
  Scoped(const Scoped&) = delete;
  Scoped& operator=(const Scoped&) = delete;

 private:
  Interpreter& interpreter_;
  std::shared_ptr<Scope> before_;
};

Interpreter::Interpreter(Rendering& rendering)
    : rendering_(rendering), scope_(NewScope(nullptr)) {
  AddGlobals(rendering_, scope_.get());
  Define("namespace", MakeFunction("namespace", None{}, [this](const Args& a) {
           return MakeNamespace(a);
         }));
  Define("cycler", MakeFunction("cycler", None{}, [this](const Args& a) {
           const std::shared_ptr<Scope> object = NewScope(nullptr);
           Keep(object);
           return MakeCycler(rendering_, a, object);
         }));
}

Interpreter::~Interpreter() {
  for (const std::shared_ptr<Scope>& scope : kept_) scope->names.clear();
}

void Interpreter::Define(std::string_view name, Value value) {
  scope_->Set(name, std::move(value));
}

Text Interpreter::Render(const Body& body) {
  TextBuilder out(rendering_);
  out_ = &out;
  {
    const Scoped scoped(this, NewScope(scope_));
    ExecuteBody(body);
  }
  out_ = nullptr;
  return out.TakeText();
}

std::shared_ptr<Scope> Interpreter::NewScope(std::shared_ptr<Scope> parent) {
  auto scope = std::make_shared<Scope>();
  scope->parent = std::move(parent);
  scope->charge = Charge(rendering_);
  scope->charge.Grow(kScopeBytes);
  return scope;
}

void Interpreter::Keep(const std::shared_ptr<Scope>& scope) {
  if (std::exchange(scope->kept, true)) return;
  kept_.push_back(scope);
}

Interpreter::Flow Interpreter::ExecuteBody(const Body& body) {
  const Nesting nesting(this);
  for (const std::unique_ptr<Stmt>& statement : body) {
    if (!rendering_.Step()) break;
    const Flow flow = Execute(*statement);
    if (flow != Flow::kNext) return flow;
  }
  return Flow::kNext;
}

Interpreter::Flow Interpreter::Execute(const Stmt& statement) {
  rendering_.set_line(statement.line);
  switch (statement.kind) {
    case Stmt::Kind::kData:
      out_->Append(statement.text);
      break;
    case Stmt::Kind::kOutput:
      AppendStr(rendering_, Evaluate(*statement.value), out_);
      break;
    case Stmt::Kind::kIf:
      return ExecuteIf(statement);
    case Stmt::Kind::kFor:
      return ExecuteFor(statement);
    case Stmt::Kind::kSet:
      Assign(*statement.target, Evaluate(*statement.value));
      break;
    case Stmt::Kind::kSetBlock:
      Assign(*statement.target, Capture(statement));
      break;
    case Stmt::Kind::kMacro:
      ExecuteMacro(statement);
      break;
    case Stmt::Kind::kCall:
      ExecuteCall(statement);
      break;
    case Stmt::Kind::kFilter:
      AppendStr(rendering_, Capture(statement), out_);
      break;
    case Stmt::Kind::kWith:
      return ExecuteWith(statement);
    case Stmt::Kind::kScope: {
      const Scoped scoped(this, NewScope(scope_));
      return ExecuteBody(statement.body);
    }
    case Stmt::Kind::kBreak:
      return Flow::kBreak;
    case Stmt::Kind::kContinue:
      return Flow::kContinue;
  }
  return Flow::kNext;
}

Interpreter::Flow Interpreter::ExecuteIf(const Stmt& statement) {
  for (const Stmt::Branch& branch : statement.branches) {
    const bool holds = Truth(Evaluate(*branch.condition));
    if (!rendering_.ok()) return Flow::kNext;
    if (holds) return ExecuteBody(branch.body);
  }
  return ExecuteBody(statement.otherwise);
}

std::vector<Value> Interpreter::ChooseItems(const Stmt& statement,
                                            const List& list) {
  std::vector<Value> chosen;
  for (const Value& item : list.items) {
    const Scoped scoped(this, NewScope(scope_));
    Assign(*statement.target, item);
    const bool holds = Truth(Evaluate(*statement.condition));
    if (!rendering_.ok()) break;
    if (holds) chosen.push_back(item);
  }
  return chosen;
}

Interpreter::Flow Interpreter::ExecuteFor(const Stmt& statement) {
  return ExecuteLoop(statement, Evaluate(*statement.value), /*depth=*/0);
}

Value Interpreter::CallLoop(const Stmt& statement,
                            const std::shared_ptr<Scope>& outer,
                            const Value& items, int64_t depth) {
  const Nesting nesting(this);
  if (!rendering_.ok()) return Undefined{};
  TextBuilder written(rendering_);
  TextBuilder* const out = std::exchange(out_, &written);
  {
    const Scoped scoped(this, outer);
    ExecuteLoop(statement, items, depth);
  }
  out_ = out;
  return MakeString(rendering_, written.TakeText());
}

Interpreter::Flow Interpreter::ExecuteLoop(const Stmt& statement,
                                           const Value& items, int64_t depth) {
  std::shared_ptr<const List> list = Iterate(rendering_, items);
  if (list != nullptr && statement.condition != nullptr) {
    list = Iterate(rendering_,
                   MakeList(rendering_, ChooseItems(statement, *list)));
  }
  if (list == nullptr || !rendering_.ok()) return Flow::kNext;
  const auto loop = std::make_shared<Loop>();
  loop->items = list;
  loop->depth = depth;
  loop->last = std::make_shared<Value>();
  // The scope outlives the loop, which is running in it.
  if (statement.recursive) {
    loop->call = [this, &statement, depth,
                  outer = std::weak_ptr<Scope>(scope_)](const Value& more) {
      return CallLoop(statement, outer.lock(), more, depth + 1);
    };
  }
  // Jinja runs the else block if no pass came to the body's end, so also where
  // each was left by break or continue.
  bool ended = false;
  for (; loop->index < list->items.size() && rendering_.Step(); ++loop->index) {
    const Scoped scoped(this, NewScope(scope_));
    scope_->Set("loop", loop);
    Assign(*statement.target, list->items[loop->index]);
    const Flow flow = ExecuteBody(statement.body);
    if (flow == Flow::kBreak) break;
    ended |= flow == Flow::kNext;
  }
  if (ended || !rendering_.ok()) return Flow::kNext;
  const Scoped scoped(this, NewScope(scope_));
  return ExecuteBody(statement.otherwise);
}

void Interpreter::ExecuteMacro(const Stmt& statement) {
  scope_->Set(statement.name, MakeMacro(statement, statement.name));
}

void Interpreter::ExecuteCall(const Stmt& statement) {
  const Value caller = MakeMacro(statement, "caller");
  AppendStr(rendering_, EvaluateCall(*statement.value, &caller), out_);
}

Interpreter::Flow Interpreter::ExecuteWith(const Stmt& statement) {
  const std::shared_ptr<Scope> inner = NewScope(scope_);
  for (const Stmt::Parameter& parameter : statement.parameters) {
    inner->Set(parameter.name, Evaluate(*parameter.value));
  }
  const Scoped scoped(this, inner);
  return ExecuteBody(statement.body);
}

Value Interpreter::Capture(const Stmt& statement) {
  TextBuilder captured(rendering_);
  TextBuilder* const out = std::exchange(out_, &captured);
  {
    const Scoped scoped(this, NewScope(scope_));
    ExecuteBody(statement.body);
  }
  out_ = out;
  const Value text = MakeString(rendering_, captured.TakeText());
  const Value before = std::exchange(block_text_, text);
  const Value filtered = Evaluate(*statement.value);
  block_text_ = before;
  return filtered;
}

void Interpreter::Assign(const Expr& target, const Value& value) {
  if (target.kind == Expr::Kind::kName) {
    scope_->Set(target.name, value);
    return;
  }
  if (target.kind == Expr::Kind::kAttribute) {
    const Value object = Evaluate(*target.children[0]);
    if (Scope* names = object.IfNamespace()) {
      names->Set(target.name, value);
    } else {
      FailKind(rendering_, absl::StrCat("set .", target.name), object,
               "a namespace");
    }
    return;
  }
  const std::shared_ptr<const List> list = Iterate(rendering_, value);
  if (list == nullptr) return;
  if (list->items.size() != target.children.size()) {
    rendering_.Fail(absl::StrCat("cannot unpack ", list->items.size(),
                                 " values into ", target.children.size(),
                                 " names"));
    return;
  }
  for (size_t i = 0; i < list->items.size(); ++i) {
    Assign(*target.children[i], list->items[i]);
  }
}

Value Interpreter::MakeMacro(const Stmt& statement, std::string_view name) {
  Keep(scope_);
  return MakeFunction(std::string(name), None{},
                      [this, &statement, outer = scope_](const Args& args) {
                        return CallMacro(statement, outer, args);
                      });
}

Value Interpreter::CallMacro(const Stmt& statement,
                             const std::shared_ptr<Scope>& outer,
                             const Args& args) {
  const std::string& name = statement.name.empty() ? "caller" : statement.name;
  if (args.positional.size() > statement.parameters.size() &&
      !statement.takes_varargs) {
    rendering_.Fail(absl::StrCat(name, ": got ", args.positional.size(),
                                 " arguments, takes ",
                                 statement.parameters.size()));
    return Undefined{};
  }
  const Scoped scoped(this, NewScope(outer));
  if (statement.takes_varargs) {
    const size_t taken =
        std::min(args.positional.size(), statement.parameters.size());
    scope_->Set("varargs", MakeList(rendering_,
                                    {args.positional.begin() +
                                         static_cast<std::ptrdiff_t>(taken),
                                     args.positional.end()},
                                    /*tuple=*/true));
  }
  std::vector<Dict::Item> more;
  for (const auto& [key, value] : args.named) {
    const bool known =
        key == "caller" ||
        std::any_of(statement.parameters.begin(), statement.parameters.end(),
                    [&key = key](const auto& parameter) {
                      return parameter.name == key;
                    });
    if (!known && statement.takes_kwargs) {
      more.emplace_back(MakeString(rendering_, key), value);
      continue;
    }
    if (!known) {
      rendering_.Fail(absl::StrCat(name, ": takes no argument '", key, "'"));
      return Undefined{};
    }
    scope_->Set(key, value);
  }
  if (statement.takes_kwargs) {
    scope_->Set("kwargs", MakeDict(rendering_, std::move(more)));
  }
  for (size_t i = 0; i < statement.parameters.size(); ++i) {
    const Stmt::Parameter& parameter = statement.parameters[i];
    if (i < args.positional.size()) {
      scope_->Set(parameter.name, args.positional[i]);
    } else if (scope_->FindOwn(parameter.name) == nullptr) {
      scope_->Set(parameter.name, parameter.value == nullptr
                                      ? Value(Undefined{&parameter.name})
                                      : Evaluate(*parameter.value));
    }
  }
  TextBuilder written(rendering_);
  TextBuilder* const out = std::exchange(out_, &written);
  ExecuteBody(statement.body);
  out_ = out;
  return MakeString(rendering_, written.TakeText());
}

Value Interpreter::MakeNamespace(const Args& args) {
  const std::shared_ptr<Scope> names = NewScope(nullptr);
  Keep(names);
  if (args.positional.size() > 1) {
    rendering_.Fail("namespace: takes a dict and names");
    return Undefined{};
  }
  if (args.positional.size() == 1) {
    const Dict* dict = args.positional[0].IfRef<Dict>();
    if (dict == nullptr) {
      FailKind(rendering_, "namespace", args.positional[0], "a dict");
      return Undefined{};
    }
    for (const auto& [key, value] : dict->items) {
      names->Set(Str(rendering_, key).bytes(), value);
    }
  }
  for (const auto& [name, value] : args.named) names->Set(name, value);
  return names;
}

// --- expressions

Value Interpreter::Evaluate(const Expr& node) {
  const Nesting nesting(this);
  if (!rendering_.Step()) return Undefined{};
  rendering_.set_line(node.line);
  switch (node.kind) {
    case Expr::Kind::kConstant:
      return node.constant;
    case Expr::Kind::kName:
      return EvaluateName(node);
    case Expr::Kind::kList:
    case Expr::Kind::kTuple:
      return EvaluateList(node);
    case Expr::Kind::kDict:
      return EvaluateDict(node);
    case Expr::Kind::kAttribute:
      return GetAttribute(rendering_, Evaluate(*node.children[0]), node.name);
    case Expr::Kind::kItem: {
      const Value object = Evaluate(*node.children[0]);
      return GetItem(rendering_, object, Evaluate(*node.children[1]));
    }
    case Expr::Kind::kSlice:
      return EvaluateSlice(node);
    case Expr::Kind::kCall:
      return EvaluateCall(node, nullptr);
    case Expr::Kind::kFilter:
      return EvaluateFilter(node);
    case Expr::Kind::kTest:
      return EvaluateTest(node);
    case Expr::Kind::kUnary:
      return ApplyUnary(rendering_, node.operators[0],
                        Evaluate(*node.children[0]));
    case Expr::Kind::kBinary: {
      const Value left = Evaluate(*node.children[0]);
      return ApplyBinary(rendering_, node.operators[0], left,
                         Evaluate(*node.children[1]));
    }
    case Expr::Kind::kAnd: {
      Value left = Evaluate(*node.children[0]);
      return Truth(left) ? Evaluate(*node.children[1]) : left;
    }
    case Expr::Kind::kOr: {
      Value left = Evaluate(*node.children[0]);
      return Truth(left) ? left : Evaluate(*node.children[1]);
    }
    case Expr::Kind::kCompare:
      return EvaluateCompare(node);
    case Expr::Kind::kConditional:
      return EvaluateConditional(node);
    case Expr::Kind::kBlockText:
      return block_text_;
    case Expr::Kind::kSpread:  // EvaluateArgs takes it apart
      return Evaluate(*node.children[0]);
  }
  return Undefined{};
}

Value Interpreter::EvaluateName(const Expr& node) {
  for (const Scope* scope = scope_.get(); scope != nullptr;
       scope = scope->parent.get()) {
    rendering_.Step();
    if (const Value* value = scope->FindOwn(node.name)) return *value;
  }
  return Undefined{&node.name};
}

Value Interpreter::EvaluateList(const Expr& node) {
  std::vector<Value> items;
  for (const ExprPtr& child : node.children) items.push_back(Evaluate(*child));
  return MakeList(rendering_, std::move(items),
                  node.kind == Expr::Kind::kTuple);
}

Value Interpreter::EvaluateDict(const Expr& node) {
  std::vector<Dict::Item> items;
  for (size_t i = 0; i < node.children.size() && rendering_.ok(); i += 2) {
    const Value key = Evaluate(*node.children[i]);
    Value value = Evaluate(*node.children[i + 1]);
    const auto same =
        std::find_if(items.begin(), items.end(), [&](const Dict::Item& item) {
          return Equal(rendering_, item.first, key);
        });
    if (same == items.end()) {
      items.emplace_back(key, std::move(value));
    } else {
      same->second = std::move(value);
    }
  }
  return MakeDict(rendering_, std::move(items));
}

Value Interpreter::EvaluateSlice(const Expr& node) {
  Value parts[4];
  for (size_t i = 0; i < 4; ++i) {
    if (node.children[i] != nullptr) parts[i] = Evaluate(*node.children[i]);
  }
  return Slice(rendering_, parts[0], parts[1], parts[2], parts[3]);
}

Args Interpreter::EvaluateArgs(const Expr& node) {
  Args args;
  for (size_t i = 1; i < node.children.size(); ++i) {
    Value value = Evaluate(*node.children[i]);
    if (node.children[i]->kind != Expr::Kind::kSpread) {
      args.positional.push_back(std::move(value));
      continue;
    }
    const std::shared_ptr<const List> list = Iterate(rendering_, value);
    if (list == nullptr || !rendering_.Step(list->items.size())) break;
    args.positional.insert(args.positional.end(), list->items.begin(),
                           list->items.end());
  }
  for (const auto& [name, node_of] : node.named) {
    Value value = Evaluate(*node_of);
    if (name != "**") {
      args.named.emplace_back(name, std::move(value));
      continue;
    }
    const Dict* const dict = value.IfRef<Dict>();
    if (dict == nullptr) {
      FailKind(rendering_, "**", value, "a dict");
      break;
    }
    for (const auto& [key, item] : dict->items) {
      args.named.emplace_back(Str(rendering_, key).bytes(), item);
    }
  }
  return args;
}

Value Interpreter::EvaluateCall(const Expr& node, const Value* caller) {
  const Value callee = Evaluate(*node.children[0]);
  Args args = EvaluateArgs(node);
  if (caller != nullptr) args.named.emplace_back("caller", *caller);
  rendering_.set_line(node.line);
  if (!rendering_.ok()) return Undefined{};
  const Function* function = callee.IfRef<Function>();
  if (function != nullptr) return function->call(args);
  if (const Loop* const loop = callee.IfLoop();
      loop != nullptr && loop->call != nullptr) {
    const std::vector<Value> bound =
        Bind(rendering_, "loop", args, {"items"}, 1);
    return rendering_.ok() ? loop->call(bound[0]) : Undefined{};
  }
  const Undefined* undefined = callee.If<Undefined>();
  rendering_.Fail(undefined != nullptr && undefined->name != nullptr
                      ? absl::StrCat("'", *undefined->name, "' is undefined")
                      : absl::StrCat("a ", std::string(KindOf(callee)),
                                     " cannot be called"));
  return Undefined{};
}

Value Interpreter::EvaluateFilter(const Expr& node) {
  const Filter filter = FindFilter(node.name);
  if (filter == nullptr) {
    rendering_.Fail(absl::StrCat("no filter is named '", node.name, "'"));
    return Undefined{};
  }
  const Value input = Evaluate(*node.children[0]);
  const Args args = EvaluateArgs(node);
  rendering_.set_line(node.line);
  return rendering_.ok() ? filter(rendering_, input, args) : Undefined{};
}

Value Interpreter::EvaluateTest(const Expr& node) {
  const Test test = FindTest(node.name);
  if (test == nullptr) {
    rendering_.Fail(absl::StrCat("no test is named '", node.name, "'"));
    return Undefined{};
  }
  const Value value = Evaluate(*node.children[0]);
  const Args args = EvaluateArgs(node);
  rendering_.set_line(node.line);
  return rendering_.ok() && test(rendering_, value, args);
}

Value Interpreter::EvaluateCompare(const Expr& node) {
  Value left = Evaluate(*node.children[0]);
  for (size_t i = 0; i < node.operators.size(); ++i) {
    Value right = Evaluate(*node.children[i + 1]);
    if (!rendering_.ok() ||
        !ApplyComparison(rendering_, node.operators[i], left, right)) {
      return false;
    }
    left = std::move(right);
  }
  return true;
}

Value Interpreter::EvaluateConditional(const Expr& node) {
  if (Truth(Evaluate(*node.children[0]))) return Evaluate(*node.children[1]);
  return node.children[2] == nullptr ? Undefined{}
                                     : Evaluate(*node.children[2]);
}

}  // namespace tiercel::jinja

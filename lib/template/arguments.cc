#include "absl/strings/str_cat.h"
#include "lib/template/builtins.h"

namespace tiercel::jinja {
void FailKind(Rendering& rendering, std::string_view who, const Value& got,
              std::string_view needed) {
  rendering.Fail(absl::StrCat(Abseil(who), ": got ", Abseil(KindOf(got)),
                              ", needs ", Abseil(needed)));
}

std::vector<Value> Bind(Rendering& rendering, std::string_view who,
                        const Args& args,
                        std::initializer_list<std::string_view> names,
                        size_t required) {
  std::vector<Value> bound(names.size());
  if (args.positional.size() > names.size()) {
    rendering.Fail(absl::StrCat(Abseil(who), ": got ", args.positional.size(),
                                " arguments, takes ", names.size()));
    return bound;
  }
  std::copy(args.positional.begin(), args.positional.end(), bound.begin());
  size_t num_given = args.positional.size();
  for (const auto& [name, value] : args.named) {
    size_t i = 0;
    for (const std::string_view known : names) {
      if (known == name) break;
      ++i;
    }
    if (i == names.size() || i < args.positional.size()) {
      rendering.Fail(
          absl::StrCat(Abseil(who), ": takes no argument '", name, "'"));
      return bound;
    }
    num_given += i < required;
    bound[i] = value;
  }
  if (num_given < required) {
    rendering.Fail(absl::StrCat(Abseil(who), ": needs ", required,
                                " arguments, got ", num_given));
  }
  return bound;
}

}  // namespace tiercel::jinja

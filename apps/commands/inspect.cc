#include <algorithm>
#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "apps/cli/numbers.h"
#include "apps/commands/command.h"
#include "apps/terminal/output.h"
#include "lib/status/status_macros.h"

namespace tiercel::cli {
namespace {

constexpr size_t kShownBytes = 72;

// A value as ASCII JSON. It comes from a file and may hold anything, but so it
// cannot control the terminal.
std::string Plain(const Json& value) {
  return value.dump(/*indent=*/-1, ' ', /*ensure_ascii=*/true,
                    Json::error_handler_t::replace);
}

// A value on one short line.
std::string OneLine(const Json& value) {
  std::string text = Plain(value);
  if (text.size() > kShownBytes) {
    text.resize(kShownBytes);
    text += "...";
  }
  return text;
}

// A name from a file: as it is if it has plain letters alone, else as JSON.
std::string ShownName(const std::string& name) {
  const bool plain = name.size() <= kShownBytes &&
                     std::all_of(name.begin(), name.end(), [](char c) {
                       return c > ' ' && c < 0x7f && c != '"';
                     });
  return plain ? name : OneLine(name);
}

std::string InspectRow(const std::string& name, const std::string& value) {
  return TableRow(name, value, /*column=*/36);
}

void AppendSection(const Json& document, const char* key, std::string* out) {
  if (!document.contains(key) || document[key].empty()) return;
  absl::StrAppend(out, "\n", key, "\n");
  for (const auto& [name, value] : document[key].items()) {
    absl::StrAppend(out, InspectRow("  " + ShownName(name), OneLine(value)));
  }
}

// "Q4_1   211 tensors   72.30 MiB", one line for each type.
void AppendTensors(const Json& tensors, std::string* out) {
  struct Sum {
    int64_t count = 0;
    double bytes = 0;
  };
  std::map<std::string, Sum> sums;
  Sum all;
  for (const Json& tensor : tensors) {
    Sum& sum = sums[tensor.value("type", "?")];
    for (Sum* s : {&sum, &all}) {
      ++s->count;
      s->bytes += tensor.value("bytes", 0.0);
    }
  }
  const auto show = [](const Sum& sum) {
    return absl::StrCat(Grouped(sum.count), " tensors, ", Bytes(sum.bytes));
  };
  absl::StrAppend(out, InspectRow("tensors", show(all)));
  for (const auto& [type, sum] : sums) {
    absl::StrAppend(out, InspectRow("  " + type, show(sum)));
  }
}

std::string InspectTable(const Json& document) {
  std::string out;
  for (const auto& [name, value] : document.items()) {
    if (value.is_number_integer()) {
      absl::StrAppend(&out, InspectRow(name, Grouped(value.get<int64_t>())));
    } else if (value.is_primitive()) {
      absl::StrAppend(&out, InspectRow(name, OneLine(value)));
    }
  }
  if (document.contains("tensors")) AppendTensors(document["tensors"], &out);
  for (const auto& [name, value] : document.items()) {
    if (value.is_structured() && name != "tensors" && name != "warnings") {
      AppendSection(document, name.c_str(), &out);
    }
  }
  if (document.contains("warnings")) {
    for (const Json& warning : document["warnings"]) {
      absl::StrAppend(&out, "\nwarning: ", Plain(warning));
    }
    if (!document["warnings"].empty()) out += "\n";
  }
  return out;
}

}  // namespace

absl::Status Inspect(const Options& options) {
  ASSIGN_OR_RETURN(Model model, OpenModel(options, TIERCEL_LOAD_DESCRIPTION));
  ASSIGN_OR_RETURN(Json document, model.Describe());
  return options.json ? WriteJson(document)
                      : WriteProse(InspectTable(document));
}

}  // namespace tiercel::cli

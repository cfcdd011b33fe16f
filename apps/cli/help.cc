#include "apps/cli/help.h"

#include <cstddef>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace tiercel::cli {
namespace {

constexpr size_t kColumns = 80;
constexpr size_t kTextColumn = 26;

}  // namespace

std::string HelpText(const HelpSection& section) {
  std::string text = absl::StrCat("\n", section.title, ":\n");
  for (const HelpSection::Row& row : section.rows) {
    std::string line = "  " + row.name;
    const auto end_line = [&] {
      absl::StrAppend(&text, absl::StripTrailingAsciiWhitespace(line), "\n");
      line = std::string(kTextColumn, ' ');
    };
    if (line.size() + 2 > kTextColumn) {
      end_line();
    } else {
      line.resize(kTextColumn, ' ');
    }
    for (absl::string_view word : absl::StrSplit(row.text, ' ')) {
      if (line.size() + word.size() > kColumns) end_line();
      absl::StrAppend(&line, word, " ");
    }
    end_line();
  }
  return text;
}

const HelpSection& EnvironmentHelp() {
  static const HelpSection kSection = {
      "Environment",
      {{"TIERCEL_MODEL", "the model where -m is absent"},
       {"XDG_CACHE_HOME, HOME",
        "where demo.sh put its model (~/.cache/tiercel) and where the measured "
        "rates of this machine are kept, and what is done of books"},
       {"XDG_STATE_HOME", "where chat remembers what was typed"},
       {"TIERCEL_ISA",
        "forces an instruction set: portable, avx2, avxvnni, avx512, "
        "avx512vnni"},
       {"TIERCEL_CUBLASLT",
        "1: with --device cuda, cuBLASLt multiplies prompts of F16 and BF16; "
        "other bits"},
       {"TIERCEL_NCCL",
        "0: several GPUs never exchange by NCCL; 1: not without it; the same "
        "bits either way"},
       {"TERM, COLUMNS", "TERM=dumb: no progress; the width of the terminal"}}};
  return kSection;
}

}  // namespace tiercel::cli

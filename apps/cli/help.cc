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

const HelpSection& SettingsHelp() {
  static const HelpSection kSection = {
      "What --set knows, and the defaults",
      {{"sfi: interval=64",
        "--plain: after so many tokens at most the whole text is read, and "
        "what of it is read until the next time is chosen anew"},
       {"sfi: gap=16", "--plain: and after so many at least"},
       {"sfi: trigger=sentence",
        "--plain: when between the two: at a sentence's end; fixed: after the "
        "interval; random: by chance, as often as fixed; never: at the "
        "beginning alone"},
       {"sfi: fire=end", "start: where the next sentence begins, instead"},
       {"sfi: spacing=gap",
        "--plain: half: after half the interval at least, too"},
       {"sfi: evidence=16",
        "the last tokens of the prompt that choose, by what they attend to"},
       {"sfi: queries=1", "... and of the answer, each time"},
       {"sfi: drafted=0",
        "not with --plain: so many of the guesses that are checked choose what "
        "the next ones see too, right or wrong; 63: all"},
       {"sfi: decay=0",
        "what is left, each time, of what they attended to at the times "
        "before; "
        "0: nothing, they do not count; 1: all"},
       {"sfi: prior=0.25",
        "how much of the choice, at most, is a guess beforehand: for what is "
        "old, and for keys that are short; 0 to 1"},
       {"sfi: nms=1",
        "how much a token loses to a stronger one near it, so that the choice "
        "is spread out; 0: nothing"},
       {"sfi: beside=0",
        "so many tokens on each side of a stronger one are chosen with it "
        "instead, so that what is found is read with what stands around it"},
       {"sfi: exclusive=0.85",
        "how much a token loses where another attention head wants it more, so "
        "that heads choose different ones; 0: nothing"},
       {"sadas: gate=state",
        "which tokens read the newest alone: those between the tags; literal: "
        "all, the prompt's too, until the closing tag; always: all of the "
        "answer"},
       {"sadas: open=<think>", "the tag that begins the thinking"},
       {"sadas: close=</think>", "the one that ends it"},
       {"sadas: think=off", "on: the answer thinks from its first token on"},
       {"sadas: most=0",
        "so many tokens of thinking at most, then it is closed; 0: no limit"},
       {"sadas: latch=on", "an answer thinks once; off: at each opening tag"},
       {"sadas: pin=none", "prompt: thinking reads the prompt, too"},
       {"sadas: answer=all",
        "--plain: what the answer reads, the thinking done: everything; kept: "
        "what was the newest then, and all since"},
       {"speed: cut=N",
        "the layers above the first N do not see the prompt (default: three "
        "quarters of all)"},
       {"speed: tail=auto",
        "... but for its last N tokens (auto: those that the chat template "
        "ends it with, or one)"},
       {"speed: anchor=1", "... and its first N"},
       {"speed: past=drop",
        "--plain: keep: earlier answers of the conversation stay in all "
        "layers"}}};
  return kSection;
}

}  // namespace tiercel::cli

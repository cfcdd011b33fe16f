#include "apps/commands/follow_up.h"

#include <unistd.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "apps/cli/error.h"
#include "apps/commands/command.h"
#include "apps/commands/generation.h"
#include "apps/commands/summary.h"
#include "apps/terminal/line_editor.h"
#include "apps/terminal/output.h"
#include "apps/terminal/signals.h"

namespace tiercel::cli {
namespace {

constexpr char kGreeting[] =
    "Ask about the text; /help lists what can be typed, Ctrl-D ends.\n";
constexpr char kHelp[] =
    "  a line    a question; the text is not read again for it\n"
    "  /help     this list\n"
    "  /quit     ends, as Ctrl-D on an empty line does\n"
    "  up, down  earlier lines\n"
    "  Ctrl-C    stops an answer; where a question is awaited, clears it\n";

class Talk {
 public:
  Talk(const Options& options, const Model& model, Conversation conversation)
      : options_(options),
        model_(model),
        conversation_(std::move(conversation)) {}

  absl::Status Run() {
    absl::Status opened = Open();
    if (!conversation_.answer().empty()) Forgive(&opened);
    if (!opened.ok()) return opened;
    WriteNote(kGreeting);
    const absl::StatusOr<std::unique_ptr<LineEditor>> editor =
        LineEditor::Create("> ");
    if (!editor.ok()) return editor.status();
    for (;;) {
      const absl::StatusOr<std::optional<std::string>> line = (*editor)->Read();
      if (!line.ok()) return line.status();
      if (!line->has_value() || **line == "/quit") return absl::OkStatus();
      if (absl::Status s = Take(**line); !s.ok()) return s;
    }
  }

 private:
  absl::Status Open() {
    const absl::StatusOr<std::vector<int32_t>> prompt =
        conversation_.Tokens(model_);
    if (!prompt.ok()) return prompt.status();
    absl::StatusOr<Generator> generator =
        Generator::Open(options_, model_, prompt->size());
    if (!generator.ok()) return generator.status();
    generator_.emplace(*std::move(generator));
    return Answer(*prompt);
  }

  // One line that was typed.
  absl::Status Take(const std::string& line) {
    if (line.empty()) return absl::OkStatus();
    if (line == "/help") {
      WriteNote(kHelp);
      return absl::OkStatus();
    }
    if (line[0] == '/') {
      WriteNote(absl::StrCat("no such command: ", line,
                             "; /help lists what can be typed\n"));
      return absl::OkStatus();
    }
    conversation_.Say(line, absl::StrCat("\n\nQuestion: ", line, "\nAnswer:"));
    absl::Status asked = Ask();
    if (!asked.ok() && conversation_.answer().empty()) conversation_.TakeBack();
    Forgive(&asked);
    if (asked.ok() || ExitOf(asked) != Exit::kInput) return asked;
    WriteNote(absl::StrCat(asked.message(), "\n"));
    return absl::OkStatus();
  }

  absl::Status Ask() {
    const absl::StatusOr<std::vector<int32_t>> prompt =
        conversation_.Tokens(model_);
    if (!prompt.ok()) return prompt.status();
    const int64_t context = ContextOf(options_, model_);
    const auto needed = static_cast<int64_t>(prompt->size()) + 1;
    if (needed > context) {
      return Error(
          Exit::kInput, "context_length_exceeded",
          absl::StrCat("context_length_exceeded: with this question and an "
                       "answer the conversation has ",
                       needed, " tokens or more, the context holds ", context,
                       "; ask something shorter"));
    }
    return Answer(*prompt);
  }

  absl::Status Answer(const std::vector<int32_t>& prompt) {
    if (absl::Status s = generator_->Read(prompt); !s.ok()) return s;
    if (!keep_.has_value()) keep_.emplace();
    const absl::StatusOr<Json> report = generator_->Continue(
        /*question=*/"", options_.sampling.seed.value_or(0));
    conversation_.Answer(generator_->text());
    if (!report.ok()) return report.status();
    WriteNote(SummaryOf(*report, options_.sampling));
    return absl::OkStatus();
  }

  // Ctrl-C that stopped an answer, or came just after it, is no reason to end.
  static void Forgive(absl::Status* status) {
    if (!status->ok() && !IsInterrupted(*status)) return;
    if (ForgetInterrupt()) *status = absl::OkStatus();
  }

  const Options& options_;
  const Model& model_;
  Conversation conversation_;
  std::optional<Generator> generator_;
  std::optional<KeepOnSignal> keep_;  // once the text was read
};

}  // namespace

bool TakesQuestions(const Options& options) {
  return !options.json && !options.sampling.verify_against_full &&
         options.book.output.empty() && options.document != "-" &&
         isatty(STDIN_FILENO) == 1 && isatty(STDOUT_FILENO) == 1;
}

absl::Status Converse(const Options& options, const Model& model,
                      Conversation conversation) {
  return Talk(options, model, std::move(conversation)).Run();
}

}  // namespace tiercel::cli

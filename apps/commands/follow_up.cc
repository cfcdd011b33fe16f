#include "apps/commands/follow_up.h"

#include <unistd.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "apps/cli/check_together.h"
#include "apps/cli/error.h"
#include "apps/commands/book.h"
#include "apps/commands/command.h"
#include "apps/commands/generation.h"
#include "apps/commands/requests.h"
#include "apps/commands/summary.h"
#include "apps/commands/whole_book.h"
#include "apps/notes/notes.h"
#include "apps/terminal/history_file.h"
#include "apps/terminal/line_editor.h"
#include "apps/terminal/output.h"
#include "apps/terminal/signals.h"
#include "apps/terminal/typed_lines.h"
#include "lib/reader/places.h"
#include "lib/reader/text.h"
#include "lib/status/status_macros.h"

namespace tiercel::cli {
namespace {

constexpr char kGreeting[] =
    "Ask about the text; /help lists what can be typed, Ctrl-D ends.\n";
constexpr char kGreetingInParts[] =
    "The text is longer than the context: each question goes to all of its "
    "parts. /chapter N talks about a part that fits; /help lists what can be "
    "typed, Ctrl-D ends.\n";
constexpr char kGreetingAlone[] =
    "/help lists what can be typed, Ctrl-D ends.\n";
constexpr char kHelp[] =
    "  a line      a question; what was read is not read again for it\n"
    "  /undo       forgets the last question and its answer\n"
    "  /save FILE  writes the talk: text, or as FILE ends, .md or .html\n";
constexpr char kBookHelp[] =
    "  /toc        the table of contents\n"
    "  /chapter N  talks about this chapter from here on, or TITLE; /chapter "
    "alone: about all of the text\n"
    "  /places     where the text has what the last answer quotes\n";
constexpr char kLastHelp[] =
    "  /help       this list\n"
    "  /quit       ends, as Ctrl-D on an empty line does\n"
    "  up, down    earlier lines\n"
    "  Ctrl-C      stops an answer; where a question is awaited, clears it\n";

bool OnTerminal() {
  return isatty(STDIN_FILENO) == 1 && isatty(STDOUT_FILENO) == 1;
}

// Returns an error whose message begins with the name of a flag, with that of
// what is typed here in its place.
absl::Status AsTyped(const absl::Status& error, const std::string& flag,
                     const std::string& typed) {
  if (error.ok()) return error;
  std::string message(error.message());
  for (const std::string& name : {"--" + flag + ":", flag + ":"}) {
    if (message.compare(0, name.size(), name) != 0) continue;
    message.replace(0, name.size(), typed + ":");
    return Error(ExitOf(error), CodeOf(error), message);
  }
  return error;
}

// Reads typed lines: with an editor on a terminal, else from stdin.
class Lines {
 public:
  explicit Lines(TypedLines typed) : typed_(std::move(typed)) {}

  absl::Status Open(const std::string& history) {
    if (!OnTerminal()) return absl::OkStatus();
    ASSIGN_OR_RETURN(editor_, LineEditor::Create("> ", HistoryFile(history)));
    return absl::OkStatus();
  }
  absl::StatusOr<std::optional<std::string>> Read() {
    return editor_ != nullptr ? editor_->Read() : typed_.Read();
  }

 private:
  std::unique_ptr<LineEditor> editor_;  // null: stdin is no terminal
  TypedLines typed_;
};

class Talk {
 public:
  Talk(const Options& options, Model* model, Conversation conversation,
       Subject subject)
      : options_(options),
        model_(model),
        conversation_(std::move(conversation)),
        subject_(std::move(subject)),
        too_long_(subject_.too_long) {
    if (subject_.summary.empty()) return;
    Keep("Summary", subject_.summary);
    before_ = 1;
  }

  absl::Status Run() {
    absl::Status opened = Open();
    if (!said_.empty()) Forgive(&opened);
    if (!opened.ok()) return opened;
    // From here on there is a talk to keep, and the terminal has another mode.
    if (!keep_.has_value()) keep_.emplace();
    if (OnTerminal()) {
      WriteNote(subject_.book == nullptr ? kGreetingAlone
                : too_long_.ok()         ? kGreeting
                                         : kGreetingInParts);
    }
    Lines lines(std::move(subject_.lines));
    RETURN_IF_ERROR(lines.Open(subject_.history));
    for (;;) {
      const absl::StatusOr<std::optional<std::string>> line = lines.Read();
      if (line.ok() && (!line->has_value() || **line == "/quit")) break;
      absl::Status s = line.ok() ? Take(**line) : line.status();
      if (ExitOf(s) == Exit::kInput) s = Explained(s);
      if (!s.ok()) return s;
    }
    // On a terminal the user has read the reason, and went on.
    return OnTerminal() || failed_.ok()
               ? absl::OkStatus()
               : Error(ExitOf(failed_), CodeOf(failed_), "");
  }

 private:
  struct Said {
    std::string question;
    std::string answer;
    std::string place;  // part that the talk was about; empty: all of the text
    Json quotations;    // in the answer; null: there is no text
  };

  // Keeps an answer with its quotations: `own`, those that were looked up in
  // the part that the talk is about, and where that lacks them, those of all of
  // the text.
  void Keep(const std::string& question, const std::string& answer,
            const Json& own) {
    Json quotations;
    if (subject_.book != nullptr) {
      quotations = QuotationsIn(answer, *subject_.book);
      for (size_t i = 0; i < own.size(); ++i) {
        if (own[i].at("found").get<bool>()) quotations[i] = own[i];
      }
    }
    said_.push_back({question, answer, place_, std::move(quotations)});
  }
  void Keep(const std::string& question, const std::string& answer) {
    Keep(question, answer,
         chosen_.has_value() ? QuotationsIn(answer, *chosen_) : Json());
  }

  // Answers the question with which the talk begins; if there is none, reads
  // the text ahead of the first question.
  absl::Status Open() {
    if (!too_long_.ok()) return absl::OkStatus();
    const bool asks = conversation_.size() > 0;
    Conversation first = conversation_;
    if (!asks) first.Say("", "");
    ASSIGN_OR_RETURN(const std::vector<int32_t> prompt, first.Tokens(*model_));
    RETURN_IF_ERROR(OpenFor(prompt));
    if (asks) return Answer(prompt, "Summary");
    if (subject_.book != nullptr) return generator_->Read(prompt);
    return absl::OkStatus();
  }

  // Opens the session, if none is open.
  absl::Status OpenFor(const std::vector<int32_t>& prompt) {
    if (generator_.has_value()) return absl::OkStatus();
    RETURN_IF_ERROR(LoadModel(options_, model_));
    ASSIGN_OR_RETURN(Generator generator,
                     Generator::Open(options_, *model_, prompt.size()));
    generator_.emplace(std::move(generator));
    return absl::OkStatus();
  }

  // Does one typed line: a command or a question.
  absl::Status Take(const std::string& line) {
    if (reader::IsBlank(line)) return absl::OkStatus();
    if (line[0] == '/') return Command(line);
    if (!too_long_.ok()) {
      absl::Status asked = AskParts(line);
      Forgive(&asked);
      return asked;
    }
    Conversation before = conversation_;
    conversation_.Say(line, absl::StrCat("\n\nQuestion: ", line, "\nAnswer:"));
    absl::Status asked = Ask(line);
    if (!asked.ok() && conversation_.answer().empty()) {
      conversation_ = std::move(before);
    }
    Forgive(&asked);
    return asked;
  }

  // Explains an error and keeps the first, so that the talk goes on.
  absl::Status Explained(const absl::Status& status) {
    if (status.ok() || IsInterrupted(status)) return status;
    WriteNote(absl::StrCat(status.message(), "\n"));
    failed_.Update(status);
    return absl::OkStatus();
  }

  absl::Status Command(const std::string& line) {
    const size_t blank = std::min(line.find(' '), line.size());
    const std::string name = line.substr(0, blank);
    const std::string value(absl::StripAsciiWhitespace(line.substr(blank)));
    const bool about_book = subject_.book != nullptr;
    if (name == "/help") {
      WriteNote(absl::StrCat(kHelp, about_book ? kBookHelp : "", kLastHelp));
    } else if (name == "/undo") {
      Undo();
    } else if (name == "/save" && !value.empty()) {
      return Explained(AsTyped(Save(value), "output", name));
    } else if (about_book && name == "/toc") {
      return WriteContents(options_, *model_, *subject_.book);
    } else if (about_book && name == "/chapter") {
      return Explained(AsTyped(Choose(value), "chapters", name));
    } else if (about_book && name == "/places") {
      SayPlaces();
    } else {
      return Explained(UsageError(absl::StrCat(
          "no such command: ", line, "; /help lists what can be typed")));
    }
    return absl::OkStatus();
  }

  void Undo() {
    if (said_.size() - before_ <= subject_.kept_turns) {
      WriteNote("there is nothing to forget\n");
      return;
    }
    WriteNote(absl::StrCat("forgotten: ", said_.back().question, "\n"));
    said_.pop_back();
    // If the context was full, the turn may have left already.
    if (conversation_.size() > subject_.kept_turns) conversation_.TakeBack();
  }

  absl::Status Save(const std::string& path) {
    Options options = options_;
    options.book.output = path;
    const document::Document none;
    reader::Notes notes =
        NotesOn(options, subject_.book != nullptr ? *subject_.book : none);
    for (const Said& said : said_) {
      reader::Notes::Section section = {
          said.question, absl::StrCat("turn-", notes.sections.size() + 1), {}};
      section.Add(said.answer, said.place);
      notes.sections.push_back(std::move(section));
    }
    absl::Status written = WriteNotes(options, notes);
    if (written.ok()) WriteNote(absl::StrCat("written: ", path, "\n"));
    return written;
  }

  // Begins another talk, about a part of the text.
  absl::Status Choose(const std::string& chapters) {
    std::optional<document::Document> chosen;
    if (!chapters.empty()) {
      ASSIGN_OR_RETURN(chosen, ChooseChapters(*subject_.book, chapters));
    }
    const document::Document& text =
        chosen.has_value() ? *chosen : *subject_.book;
    Conversation about = TalkAbout(subject_.asked, text.text);
    Conversation first = about;
    first.Say("", "");
    std::vector<int32_t> prompt;
    absl::Status too_long =
        chosen.has_value() ? absl::OkStatus() : subject_.too_long;
    if (too_long.ok()) {
      ASSIGN_OR_RETURN(prompt, first.Tokens(*model_));
      too_long = CheckRoom(prompt);
    }
    place_ = chosen.has_value()
                 ? reader::PlacesOf(text, 0, text.text.size()).text
                 : "";
    chosen_ = std::move(chosen);
    too_long_ = std::move(too_long);
    conversation_ = std::move(about);
    subject_.kept_turns = 0;
    before_ = said_.size();
    WriteNote(absl::StrCat(
        "about ", place_.empty() ? "all of the text" : place_,
        too_long_.ok() ? "\n"
                       : ", longer than the context: each question goes to all "
                         "of its parts\n"));
    if (!too_long_.ok()) return absl::OkStatus();
    RETURN_IF_ERROR(OpenFor(prompt));
    absl::Status read = generator_->Read(prompt);
    Forgive(&read);
    return read;
  }

  void SayPlaces() {
    const std::vector<std::string> lines =
        QuotationLines(said_.empty() ? Json() : said_.back().quotations);
    if (lines.empty()) WriteNote("the last answer quotes nothing\n");
    for (const std::string& line : lines) WriteNote(line + "\n");
  }

  absl::Status CheckRoom(const std::vector<int32_t>& prompt) const {
    const int64_t context = ContextOf(options_, *model_);
    const auto needed = static_cast<int64_t>(prompt.size()) + 1;
    if (needed <= context) return absl::OkStatus();
    return Error(
        Exit::kInput, "context_length_exceeded",
        absl::StrCat("context_length_exceeded: with this question and an "
                     "answer the conversation has ",
                     needed, " tokens or more, the context holds ", context,
                     "; ask something shorter"));
  }

  // Answers a question about a text that the context does not hold.
  absl::Status AskParts(const std::string& question) {
    generator_.reset();  // the parts need its memory
    ASSIGN_OR_RETURN(
        const BookAnswer answer,
        AnswerInParts(options_, model_,
                      chosen_.has_value() ? *chosen_ : *subject_.book, question,
                      too_long_));
    Keep(question, answer.text, answer.quotations);
    return absl::OkStatus();
  }

  absl::Status Ask(const std::string& question) {
    const int64_t context = ContextOf(options_, *model_);
    const int64_t most = options_.sampling.max_tokens;
    const int64_t room = most < 0 ? context / 8 : std::min(most, context / 8);
    absl::StatusOr<std::vector<int32_t>> prompt = conversation_.Tokens(*model_);
    size_t left = 0;
    while (prompt.ok() &&
           static_cast<int64_t>(prompt->size()) + room > context &&
           conversation_.DropOldest(subject_.kept_turns)) {
      ++left;
      prompt = conversation_.Tokens(*model_);
    }
    if (!prompt.ok()) return prompt.status();
    RETURN_IF_ERROR(CheckRoom(*prompt));
    if (left > 0) {
      WriteNote(absl::StrCat("the context is full: without the oldest ", left,
                             left == 1 ? " question" : " questions",
                             " from here on\n"));
    }
    return Answer(*prompt, question);
  }

  absl::Status Answer(const std::vector<int32_t>& prompt,
                      const std::string& question) {
    RETURN_IF_ERROR(OpenFor(prompt));
    RETURN_IF_ERROR(generator_->Read(prompt));
    if (!keep_.has_value()) keep_.emplace();
    const absl::StatusOr<Json> report = generator_->Continue(
        /*question=*/"", options_.sampling.seed.value_or(0));
    conversation_.Answer(generator_->text(), generator_->thought());
    if (report.ok() || !generator_->text().empty()) {
      Keep(question, generator_->text());
    }
    if (!report.ok()) return report.status();
    if (options_.statistics) WriteNote(SummaryOf(*report, options_.sampling));
    return absl::OkStatus();
  }

  // Clears a Ctrl-C that stopped an answer, or came just after it, so that the
  // talk goes on; but not if lines come from a pipe, where no user can go on.
  static void Forgive(absl::Status* status) {
    if (!OnTerminal()) return;
    if (!status->ok() && !IsInterrupted(*status)) return;
    if (ForgetInterrupt()) *status = absl::OkStatus();
  }

  const Options& options_;
  Model* const model_;
  Conversation conversation_;
  Subject subject_;
  std::optional<document::Document> chosen_;  // absent: all of the text
  absl::Status too_long_;   // the error if the context does not hold that
  std::vector<Said> said_;  // also the turns that have left the conversation
  size_t before_ = 0;       // entries of said_ that are not of this talk
  std::string place_;       // part that the talk is about; empty: all of it
  absl::Status failed_;     // the error of the first line that failed
  std::optional<Generator> generator_;
  std::optional<KeepOnSignal> keep_;  // set once the text was read
};

}  // namespace

bool TakesQuestions(const Options& options) {
  return options.talk && !options.json &&
         !options.sampling.verify_against_full && options.book.output.empty() &&
         !IsStdin(options.document) && OnTerminal();
}

absl::Status Converse(const Options& options, Model* model,
                      Conversation conversation, Subject subject) {
  return Talk(options, model, std::move(conversation), std::move(subject))
      .Run();
}

}  // namespace tiercel::cli

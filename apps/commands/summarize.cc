#include <unistd.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "apps/cli/default_paths.h"
#include "apps/cli/error.h"
#include "apps/commands/book.h"
#include "apps/commands/command.h"
#include "apps/commands/conversation.h"
#include "apps/commands/each_chapter.h"
#include "apps/commands/follow_up.h"
#include "apps/commands/generation.h"
#include "apps/commands/grammars.h"
#include "apps/commands/read_here.h"
#include "apps/commands/requests.h"
#include "apps/commands/sections.h"
#include "apps/commands/text_length.h"
#include "apps/commands/whole_book.h"
#include "apps/commands/whole_summary.h"
#include "apps/terminal/output.h"
#include "apps/terminal/typed_lines.h"
#include "lib/documents/document.h"
#include "lib/reader/places.h"
#include "lib/reader/quotations.h"
#include "lib/status/status_macros.h"

namespace tiercel::cli {
namespace {

// Warnings about the command line and the book, for the JSON.
std::vector<std::string> Warnings(const Options& options,
                                  const document::Document& book) {
  std::vector<std::string> all = options.warnings;
  all.insert(all.end(), book.warnings.begin(), book.warnings.end());
  return all;
}

// The tokens of the conversation that each of `talks` makes of a text, if the
// context holds them. As each makes several copies of the text, one that the
// context does not hold by itself is refused before that.
absl::StatusOr<std::vector<std::vector<int32_t>>> TokensWithin(
    const Options& options, const Model& model, const std::string& text,
    const std::vector<TalkFn>& talks) {
  std::vector<size_t> around;
  for (const TalkFn& talk : talks) {
    ASSIGN_OR_RETURN(const std::vector<int32_t> tokens, talk("").Tokens(model));
    around.push_back(tokens.size());
  }
  const size_t most = *std::max_element(around.begin(), around.end());
  RETURN_IF_ERROR(CheckTextAlone(options, model, text, most));
  std::vector<std::vector<int32_t>> prompts;
  for (size_t i = 0; i < talks.size(); ++i) {
    const Conversation conversation = talks[i](text);
    ASSIGN_OR_RETURN(std::vector<int32_t> tokens,
                     WithinContext(
                         options, model, Answer::kWanted,
                         [&](const TextLimits& limits) {
                           return conversation.Tokens(model, limits);
                         },
                         around[i]));
    prompts.push_back(std::move(tokens));
  }
  return prompts;
}

bool IsTooLong(const absl::Status& status) {
  return CodeOf(status) == "context_length_exceeded";
}

// Returns the error; if the text is too long, with advice on parts of it that
// could be read.
absl::Status OrChoose(const absl::Status& error,
                      const document::Document& book) {
  if (!IsTooLong(error)) return error;
  return Error(ExitOf(error), CodeOf(error),
               absl::StrCat(error.message(), ChoiceAdvice(book)));
}

// Adds to the document of a text that was read at once the fields of a book
// that is read in parts.
absl::Status CompleteSummary(const Options& options, const Model& model,
                             const document::Document& book, Json& document) {
  ASSIGN_OR_RETURN(const auto tokens,
                   model.Tokenize(book.text, /*flags=*/0, /*limits=*/{}));
  const auto text = document.at("output").at(0).at("text").get<std::string>();
  const reader::Places places = reader::PlacesOf(book, 0, book.text.size());
  document["parts"] = {{{"level", 0},
                        {"begin", 0},
                        {"end", tokens.size()},
                        {"chapters", places.chapters},
                        {"pages", places.pages},
                        {"text", text}}};
  document["resumed"]["nodes"] = 0;
  reader::Notes notes = NotesOn(options, book);
  notes.sections.push_back({"Summary", "summary", {}});
  notes.sections.back().Add(text, places.text);
  return WriteNotes(options, notes);
}

// Adds quotations and their places, and the passages read, to the answers.
absl::Status CompleteAnswers(const Options& options,
                             const document::Document& book, Json& document) {
  reader::Notes notes = NotesOn(options, book);
  reader::QuotationFinder finder(book.text);
  for (Json& output : document.at("output")) {
    const auto text = output.at("text").get<std::string>();
    const size_t number = notes.sections.size();
    reader::Notes::Section section = {options.questions.at(number),
                                      absl::StrCat("question-", number + 1),
                                      {}};
    section.Add(text);
    Json quotations = PlacedIn(book, finder.Find(text));
    for (std::string& line : QuotationLines(quotations)) {
      if (!options.json) WriteNote(line + "\n");
      section.paragraphs.push_back({std::move(line), "", ""});
    }
    if (!quotations.empty()) output["quotations"] = std::move(quotations);
    for (std::string& line : PassageLines(output.value("read_here", Json()))) {
      if (!options.json) WriteNote(line + "\n");
      section.paragraphs.push_back({std::move(line), "", ""});
    }
    notes.sections.push_back(std::move(section));
  }
  return WriteNotes(options, notes);
}

// Talks about the document of `asked`, if they name one. If stdin is no
// terminal, its lines are the questions; `lines` has read the first.
absl::Status TalkOf(const Options& asked, TypedLines lines) {
  std::optional<document::Document> book;
  if (!asked.document.empty()) {
    ASSIGN_OR_RETURN(book, OpenBook(asked));
  }
  Options options = book.has_value() ? Named(asked, *book) : asked;
  if (!book.has_value()) options.session.prompt_cache_dir.clear();
  ASSIGN_OR_RETURN(Model model, OpenTalker(options));
  ASSIGN_OR_RETURN(options, WithGrammar(options, model));
  Subject subject;
  subject.lines = std::move(lines);
  subject.asked = options.book;
  const std::string state = StateFolder();
  if (!state.empty()) subject.history = state + "/history";
  Conversation conversation;
  if (book.has_value()) {
    const auto about = [&](const std::string& text) {
      Conversation talk = TalkAbout(options.book, text);
      talk.Say("", "");
      return talk;
    };
    const auto tokens = TokensWithin(options, model, book->text, {about});
    if (!tokens.ok() && !IsTooLong(tokens.status())) return tokens.status();
    subject.too_long = OrChoose(tokens.status(), *book);
    if (!tokens.ok()) {
      // Parts are answered in words of their own.
      if (options.sampling.grammar != nullptr) return subject.too_long;
      RETURN_IF_ERROR(
          CheckCanAskInParts(options, &model, *book, subject.too_long));
    }
    subject.book = &*book;
    conversation = TalkAbout(options.book, book->text);
  }
  return Converse(options, &model, std::move(conversation), std::move(subject));
}

// `ask` without a question. On a stdin that is no terminal it opens no document
// before there is a question.
absl::Status AskInTalk(const Options& options) {
  TypedLines lines;
  if (isatty(STDIN_FILENO) != 1) {
    ASSIGN_OR_RETURN(const bool any, lines.AnyLeft());
    if (!any) {
      return UsageError(
          "ask: QUESTION is required where stdin is no terminal and has none; "
          "usage: tiercel ask [FLAGS] FILE QUESTION...");
    }
  }
  return TalkOf(options, std::move(lines));
}

// Checks that the context holds each question with a text of a token and an
// answer: no part of a text would do otherwise. A context that does not hold a
// request without a question is too small for any.
absl::Status CheckQuestions(const Options& options, const Model& model) {
  const int64_t context = ContextOf(options, model);
  ASSIGN_OR_RETURN(const std::vector<int32_t> bare,
                   QuestionTalk(options.book, "", "").Tokens(model));
  if (static_cast<int64_t>(bare.size()) + 2 > context) return absl::OkStatus();
  for (const std::string& question : options.questions) {
    ASSIGN_OR_RETURN(const std::vector<int32_t> tokens,
                     QuestionTalk(options.book, "", question).Tokens(model));
    if (static_cast<int64_t>(tokens.size()) + 2 <= context) continue;
    return Error(Exit::kInput, "context_length_exceeded",
                 absl::StrCat("the question has ", tokens.size(),
                              " tokens without the text, the context holds ",
                              context, "; ask something shorter"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status Summarize(const Options& asked) {
  ASSIGN_OR_RETURN(const document::Document book, OpenBook(asked));
  Options options = Named(asked, book);
  ASSIGN_OR_RETURN(Model model, OpenTalker(options));
  if (options.book.toc) return WriteContents(options, model, book);
  if (options.book.each) {
    return SummarizeEach(options, &model, book, Warnings(options, book));
  }
  const TalkFn talk = [&](const std::string& text) {
    return SummaryTalk(options.book, text);
  };
  const auto prompts = TokensWithin(options, model, book.text, {talk});
  const bool too_long = IsTooLong(prompts.status());
  if (!prompts.ok() && !too_long) return prompts.status();
  ASSIGN_OR_RETURN(const bool sections, ReadsInSections(options, model));
  if (too_long || sections) {
    ASSIGN_OR_RETURN(
        const std::string summary,
        SummarizeAsTree(options, &model, book,
                        sections ? Leaves::kSections : Leaves::kLongest,
                        Warnings(options, book), prompts.status()));
    if (!TakesQuestions(options)) return absl::OkStatus();
    return Converse(options, &model, TalkAbout({}, book.text),
                    {.book = &book,
                     .too_long = prompts.status(),
                     .history = "",
                     .summary = summary});
  }
  if (TakesQuestions(options)) {
    RETURN_IF_ERROR(LoadModel(options, &model));
    return Converse(options, &model, talk(book.text),
                    {.book = &book, .kept_turns = 1, .history = ""});
  }
  ASSIGN_OR_RETURN(options,
                   ForPrompts(options, model, prompts->front().size()));
  RETURN_IF_ERROR(LoadModel(options, &model));
  return RunGeneration(options, model, {{prompts->front(), ""}},
                       Warnings(options, book), [&](Json& document) {
                         return CompleteSummary(options, model, book, document);
                       });
}

absl::Status Ask(const Options& asked) {
  if (asked.questions.empty() && !asked.book.toc) return AskInTalk(asked);
  ASSIGN_OR_RETURN(const document::Document book, OpenBook(asked));
  Options options = Named(asked, book);
  ASSIGN_OR_RETURN(Model model, OpenTalker(options));
  if (options.book.toc) return WriteContents(options, model, book);
  ASSIGN_OR_RETURN(options, WithGrammar(options, model));
  RETURN_IF_ERROR(CheckQuestions(options, model));
  std::vector<TalkFn> talks;
  for (const std::string& question : options.questions) {
    talks.push_back([&options, &question](const std::string& text) {
      return QuestionTalk(options.book, text, question);
    });
  }
  const auto tokens = TokensWithin(options, model, book.text, talks);
  if (IsTooLong(tokens.status())) {
    const absl::Status too_long = OrChoose(tokens.status(), book);
    // Parts are answered in words of their own.
    if (options.sampling.grammar != nullptr) return too_long;
    return AskInParts(options, &model, book, Warnings(options, book), too_long);
  }
  RETURN_IF_ERROR(tokens.status());
  std::vector<Prompt> prompts;
  size_t longest = 0;
  for (size_t i = 0; i < talks.size(); ++i) {
    longest = std::max(longest, (*tokens)[i].size());
    prompts.push_back({(*tokens)[i], options.questions[i]});
    // A plain form does not read as the model does, so no passages are shown.
    if (options.sampling.plain) continue;
    prompts.back().read_here = [&, i](Generator& generator) {
      return PassagesRead(model, generator, (*tokens)[i], options, i, book);
    };
  }
  ASSIGN_OR_RETURN(options, ForPrompts(options, model, longest));
  RETURN_IF_ERROR(LoadModel(options, &model));
  return RunGeneration(
      options, model, prompts, Warnings(options, book),
      [&](Json& document) { return CompleteAnswers(options, book, document); });
}

absl::Status Chat(const Options& options) { return TalkOf(options, {}); }

}  // namespace tiercel::cli

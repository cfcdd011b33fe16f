#include <sys/stat.h>

#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "apps/cli/error.h"
#include "apps/commands/command.h"
#include "apps/commands/conversation.h"
#include "apps/commands/follow_up.h"
#include "apps/commands/generation.h"
#include "apps/commands/input.h"
#include "apps/commands/text_length.h"
#include "apps/document/document.h"
#include "apps/terminal/output.h"

namespace tiercel::cli {
namespace {

// Asked before and after: a small model has the text between it and the first
// question, and answers the last thing it read.
std::string Request(const std::string& text) {
  return absl::StrCat("Summarize the following text.\n\n", text,
                      "\n\nSummarize the text above in a few paragraphs: what "
                      "it is about, what happens in it or what it argues, and "
                      "how it ends.");
}

// The text comes first, so that one reading of it serves every question.
std::string Question(const std::string& text, const std::string& question) {
  return absl::StrCat("Read the following text.\n\n", text,
                      "\n\nAnswer from the text above: ", question);
}

// A FIFO or a character device, which gives its bytes as stdin does.
bool IsStream(const std::string& path) {
  struct stat info;
  return stat(path.c_str(), &info) == 0 &&
         (S_ISFIFO(info.st_mode) || S_ISCHR(info.st_mode));
}

absl::StatusOr<document::Document> Read(const std::string& path) {
  document::Result result;
  const bool is_stdin = path == "-";
  if (is_stdin || IsStream(path)) {
    absl::StatusOr<std::string> bytes = ReadInput(path);
    if (!bytes.ok()) return bytes.status();
    if (is_stdin && bytes->empty()) {
      return Error(Exit::kInput, "empty_document", "standard input is empty");
    }
    result = document::ReadDocumentBytes(is_stdin ? "stdin" : path,
                                         *std::move(bytes));
  } else {
    result = document::ReadDocument(path);
  }
  if (const auto* error = std::get_if<document::Error>(&result)) {
    const bool is_io = error->kind == document::Error::Kind::kIo;
    return Error(is_io ? Exit::kIo : Exit::kInput, error->code, error->message);
  }
  return std::get<document::Document>(std::move(result));
}

// The document that was named, which has a text; its warnings are said.
absl::StatusOr<document::Document> ReadBook(const std::string& path) {
  absl::StatusOr<document::Document> book = Read(path);
  if (!book.ok()) return book.status();
  WriteWarnings(book->warnings);
  if (book->text.find_first_not_of(" \t\r\n\f\v") == std::string::npos) {
    return Error(Exit::kInput, "empty_document",
                 absl::StrCat("'", path, "' has no text"));
  }
  return book;
}

// Warnings about the command line and the book, for the JSON.
std::vector<std::string> Warnings(const Options& options,
                                  const document::Document& book) {
  std::vector<std::string> all = options.warnings;
  all.insert(all.end(), book.warnings.begin(), book.warnings.end());
  return all;
}

Conversation SummaryTalk(const std::string& text) {
  Conversation conversation;
  conversation.Say(Request(text), absl::StrCat(text, "\n\nSummary:"));
  return conversation;
}

Conversation QuestionTalk(const std::string& text,
                          const std::string& question) {
  Conversation conversation;
  conversation.Say(Question(text, question),
                   absl::StrCat(text, "\n\nQuestion: ", question, "\nAnswer:"));
  return conversation;
}

using TalkAbout = std::function<Conversation(const std::string& text)>;

// The tokens of what each of `talks` makes of a text, if the context holds
// them. Several copies are made of a text to talk about: one that the context
// does not hold by itself is refused before that.
absl::StatusOr<std::vector<std::vector<int32_t>>> TokensWithin(
    const Options& options, const Model& model, const std::string& text,
    const std::vector<TalkAbout>& talks) {
  std::vector<size_t> around;
  for (const TalkAbout& talk : talks) {
    const absl::StatusOr<std::vector<int32_t>> tokens = talk("").Tokens(model);
    if (!tokens.ok()) return tokens.status();
    around.push_back(tokens->size());
  }
  const size_t most = *std::max_element(around.begin(), around.end());
  if (absl::Status s = CheckTextAlone(options, model, text, most); !s.ok()) {
    return s;
  }
  std::vector<std::vector<int32_t>> prompts;
  for (size_t i = 0; i < talks.size(); ++i) {
    const Conversation conversation = talks[i](text);
    absl::StatusOr<std::vector<int32_t>> tokens = WithinContext(
        options, model, Answer::kWanted,
        [&](const Model::TextLimits& limits) {
          return conversation.Tokens(model, limits);
        },
        around[i]);
    if (!tokens.ok()) return tokens.status();
    prompts.push_back(*std::move(tokens));
  }
  return prompts;
}

}  // namespace

absl::Status Summarize(const Options& options) {
  const absl::StatusOr<document::Document> book = ReadBook(options.document);
  if (!book.ok()) return book.status();
  absl::StatusOr<Model> model = OpenModel(options, TIERCEL_LOAD_HEADER);
  if (!model.ok()) return model.status();
  const auto prompts = TokensWithin(options, *model, book->text, {SummaryTalk});
  if (!prompts.ok()) return prompts.status();
  if (absl::Status s = LoadModel(options, &*model); !s.ok()) return s;
  if (TakesQuestions(options)) {
    return Converse(options, *model, SummaryTalk(book->text));
  }
  return RunGeneration(options, *model, {{prompts->front(), ""}},
                       Warnings(options, *book));
}

absl::Status Ask(const Options& options) {
  const absl::StatusOr<document::Document> book = ReadBook(options.document);
  if (!book.ok()) return book.status();
  absl::StatusOr<Model> model = OpenModel(options, TIERCEL_LOAD_HEADER);
  if (!model.ok()) return model.status();
  std::vector<TalkAbout> talks;
  for (const std::string& question : options.questions) {
    talks.push_back([&question](const std::string& text) {
      return QuestionTalk(text, question);
    });
  }
  const auto tokens = TokensWithin(options, *model, book->text, talks);
  if (!tokens.ok()) return tokens.status();
  std::vector<Prompt> prompts;
  for (size_t i = 0; i < talks.size(); ++i) {
    prompts.push_back({(*tokens)[i], options.questions[i]});
  }
  if (absl::Status s = LoadModel(options, &*model); !s.ok()) return s;
  return RunGeneration(options, *model, prompts, Warnings(options, *book));
}

}  // namespace tiercel::cli

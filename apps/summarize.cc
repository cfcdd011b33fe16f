#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "apps/command.h"
#include "apps/document/document.h"
#include "apps/error.h"
#include "apps/generation.h"
#include "apps/output.h"

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

absl::StatusOr<std::vector<int32_t>> SummaryPrompt(const Model& model,
                                                   const std::string& text) {
  if (model.info().has_template != 0) {
    return model.ChatTokens({{"user", Request(text)}});
  }
  return model.Tokenize(absl::StrCat(text, "\n\nSummary:"), TIERCEL_ADD_BOS);
}

absl::StatusOr<document::Document> Read(const std::string& path) {
  document::Result result = document::ReadDocument(path);
  if (const auto* error = std::get_if<document::Error>(&result)) {
    const bool is_io = error->kind == document::Error::Kind::kIo;
    return Error(is_io ? Exit::kIo : Exit::kInput, error->code, error->message);
  }
  return std::get<document::Document>(std::move(result));
}

}  // namespace

absl::Status Summarize(const Options& options) {
  absl::StatusOr<document::Document> book = Read(options.document);
  if (!book.ok()) return book.status();
  for (const std::string& warning : book->warnings) {
    WriteNote(absl::StrCat("warning: ", warning, "\n"));
  }
  if (book->text.find_first_not_of(" \t\r\n\f\v") == std::string::npos) {
    return Error(Exit::kInput, "empty_document",
                 absl::StrCat("'", options.document, "' has no text"));
  }
  absl::StatusOr<Model> model = OpenModel(options, TIERCEL_LOAD_ALL);
  if (!model.ok()) return model.status();
  absl::StatusOr<std::vector<int32_t>> prompt =
      SummaryPrompt(*model, book->text);
  if (!prompt.ok()) return prompt.status();
  return RunGeneration(options, *model, *prompt);
}

}  // namespace tiercel::cli

#include "apps/commands/each_chapter.h"

#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "apps/cli/error.h"
#include "apps/commands/book.h"
#include "apps/commands/book_summary.h"
#include "apps/commands/generation.h"
#include "apps/commands/sections.h"
#include "apps/commands/whole_summary.h"
#include "apps/notes/notes.h"
#include "apps/terminal/output.h"
#include "lib/reader/outline.h"
#include "lib/reader/selection.h"
#include "lib/reader/text.h"
#include "lib/status/status_macros.h"

namespace tiercel::cli {
namespace {

using document::Document;

// A chapter, and the tree of its summary.
struct Summarized {
  std::string name;
  std::optional<int64_t> number;
  Document text;
  size_t first_token = 0;  // in the book, for the document
  BookSummary tree;
};

class Chapters {
 public:
  Chapters(const Options& options, Model* model, const Document& book,
           std::vector<std::string> warnings)
      : options_(options),
        model_(model),
        book_(book),
        warnings_(std::move(warnings)) {}

  absl::Status Summarize(const reader::Chapter& chapter, bool sections);
  // Writes the document and notes.
  absl::Status Finish();

 private:
  // The tokens of the book before a place.
  absl::StatusOr<size_t> TokensBefore(size_t begin);
  Json Document() const;
  reader::Notes Notes() const;

  const Options& options_;
  Model* const model_;
  const document::Document& book_;
  std::vector<std::string> warnings_;
  std::vector<Summarized> done_;
  size_t counted_ = 0;  // bytes of the book, and their tokens
  size_t tokens_ = 0;
};

absl::StatusOr<size_t> Chapters::TokensBefore(size_t begin) {
  ASSIGN_OR_RETURN(
      const std::vector<int32_t> ids,
      model_->Tokenize(
          std::string_view(book_.text).substr(counted_, begin - counted_),
          /*flags=*/0, /*limits=*/{}));
  counted_ = begin;
  return tokens_ += ids.size();
}

absl::Status Chapters::Summarize(const reader::Chapter& chapter,
                                 bool sections) {
  Summarized one;
  one.name = reader::OneLine(reader::NameOf(book_.sections[chapter.section]));
  one.number = chapter.number;
  one.text = reader::SelectChapter(book_, chapter);
  if (options_.json) {
    ASSIGN_OR_RETURN(one.first_token, TokensBefore(chapter.begin));
  }
  const size_t whole = reader::Trimmed(one.text.text).size();
  if (whole == 0) return absl::OkStatus();  // the name of a page
  TreeForm form = SummaryForm(options_.book, sections, whole);
  form.shows = false;
  WriteNote(absl::StrCat(one.name, "\n"));
  const absl::Status too_long =
      Error(Exit::kInput, "context_length_exceeded",
            "the context does not hold a part of the text and its summary");
  ASSIGN_OR_RETURN(one.tree,
                   ReadAsTree(options_, model_, one.text, std::move(form),
                              /*warnings=*/{}, too_long));
  AddNewWarnings(one.tree.warnings, &warnings_);
  for (const std::string& loss : LossesOf(one.tree, "summary", "summaries")) {
    warnings_.push_back(absl::StrCat(one.name, ": ", loss));
    WriteWarnings({warnings_.back()});
  }
  const bool is_first = done_.empty();
  done_.push_back(std::move(one));
  if (options_.json) return absl::OkStatus();
  const std::string& name = done_.back().name;
  return WriteProse(absl::StrCat(is_first ? "" : "\n", "# ", name, "\n\n",
                                 TextOf(done_.back().tree), "\n"));
}

Json Chapters::Document() const {
  Json outputs = Json::array();
  Json parts = Json::array();
  std::vector<const BookSummary*> trees;
  for (size_t i = 0; i < done_.size(); ++i) {
    const Summarized& one = done_[i];
    outputs.push_back(
        {{"chapter", one.name},
         {"number", one.number.has_value() ? Json(*one.number) : Json(nullptr)},
         {"text", TextOf(one.tree)},
         {"tokens", TokensOf(one.tree)},
         {"finish_reason", WasCut(one.tree) ? "length" : "stop"},
         {"prompt_tokens", one.tree.spent.prompt_tokens()},
         {"cached_tokens", one.tree.spent.cached_tokens()}});
    for (Json& part : PartsOf(one.text, one.tree, one.first_token)) {
      part["chapter"] = i;
      parts.push_back(std::move(part));
    }
    trees.push_back(&one.tree);
  }
  return TreesDocument(options_, {{"output", std::move(outputs)}}, trees,
                       {{"parts", std::move(parts)}}, warnings_);
}

reader::Notes Chapters::Notes() const {
  reader::Notes notes = NotesOn(options_, book_);
  for (const Summarized& one : done_) {
    const std::string id = absl::StrCat("chapter-", notes.sections.size() + 1);
    notes.sections.push_back({one.name, id, {}});
    notes.sections.back().Add(TextOf(one.tree));
  }
  return notes;
}

absl::Status Chapters::Finish() {
  RETURN_IF_ERROR(WriteNotes(options_, Notes()));
  return options_.json ? WriteJson(Document()) : absl::OkStatus();
}

}  // namespace

absl::Status SummarizeEach(const Options& options, Model* model,
                           const document::Document& book,
                           std::vector<std::string> warnings) {
  const std::vector<reader::Chapter> chapters = reader::ChaptersOf(book);
  if (chapters.empty()) {
    return Error(
        Exit::kInput, "no_chapters",
        absl::StrCat("--each: no chapters are marked in '", options.document,
                     "'; --chapter-pattern says how they begin"));
  }
  ASSIGN_OR_RETURN(const bool sections, ReadsInSections(options, *model));
  Chapters all(options, model, book, std::move(warnings));
  for (const reader::Chapter& chapter : chapters) {
    RETURN_IF_ERROR(all.Summarize(chapter, sections));
  }
  return all.Finish();
}

}  // namespace tiercel::cli

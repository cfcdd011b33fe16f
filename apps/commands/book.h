#ifndef TIERCEL_APPS_COMMANDS_BOOK_H_
#define TIERCEL_APPS_COMMANDS_BOOK_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "apps/cli/options.h"
#include "apps/commands/model.h"
#include "apps/notes/notes.h"
#include "lib/documents/document.h"
#include "lib/reader/quotations.h"

namespace tiercel::cli {

// Opens the document that `options` name, or the parts of it that they choose,
// and says its warnings. Errors: those of ReadDocument and ReadInput;
// empty_document; before anything is opened kUsage for invalid --chapters and
// --pages, and io_error for notes that cannot be written; chapter_not_found,
// page_not_found, no_chapters, no_pages.
absl::StatusOr<document::Document> OpenBook(const Options& options);
// Reads a whole document from bytes in memory; errors call it `name`, whose
// extension counts. Errors: those of ReadDocumentBytes; empty_document.
absl::StatusOr<document::Document> BookIn(const std::string& name,
                                          const std::string& bytes);

// Returns `options` with the name of the book, which their sessions give to the
// prompt cache.
Options Named(const Options& options, const document::Document& book);
// The name of a book for people, with the parts that were chosen of it.
std::string NameOf(const Options& options, const document::Document& book);

// Returns the chapters of a book that `chapters` names as --chapters does.
// Errors: kUsage; chapter_not_found, no_chapters.
absl::StatusOr<document::Document> ChooseChapters(
    const document::Document& book, const std::string& chapters);

// Advice for a book that is too long to be read as a whole: "; or choose with
// --chapters: 1 Loomings, ..."; empty if it has no chapters or pages to choose.
std::string ChoiceAdvice(const document::Document& book);

// The document with the places in its text, in bytes.
Json Described(const document::Document& book);

// Writes the table of contents for --toc: the sections of the book, with their
// lengths.
absl::Status WriteContents(const Options& options, const Model& model,
                           const document::Document& book);

// Looks up the quotations of `text` in the book (PlacedIn).
Json QuotationsIn(const std::string& text, const document::Document& book);
// Returns quotations that were looked up in the book, with their places there:
// [{"text", "found", and if it is found "chapters", "pages" and "place"}].
Json PlacedIn(const document::Document& book,
              const std::vector<reader::Quotation>& found);
// Returns a line for people on each quotation.
std::vector<std::string> QuotationLines(const Json& quotations);

// Writes notes to the file that `options` name, if they name one.
absl::Status WriteNotes(const Options& options, const reader::Notes& notes);
// Returns notes on this book that are empty but for the model and the seed.
reader::Notes NotesOn(const Options& options, const document::Document& book);

}  // namespace tiercel::cli

#endif  // TIERCEL_APPS_COMMANDS_BOOK_H_

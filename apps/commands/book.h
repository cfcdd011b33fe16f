#ifndef TIERCEL_APPS_COMMANDS_BOOK_H_
#define TIERCEL_APPS_COMMANDS_BOOK_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "apps/cli/options.h"
#include "apps/commands/api.h"
#include "apps/document/document.h"
#include "apps/reader/notes.h"

namespace tiercel::cli {

// The document that `options` name, or what they choose of it, which has a
// text; its warnings are said. Errors: those of ReadDocument and ReadInput;
// empty_document; kUsage, before anything is opened, for chapters and pages
// that cannot be read; io_error, likewise, for notes that cannot be written;
// chapter_not_found, page_not_found, no_chapters,
// no_pages.
absl::StatusOr<document::Document> OpenBook(const Options& options);

// `options`, whose sessions say that they read this book.
Options Named(const Options& options, const document::Document& book);
// What people call a book, or what was chosen of it.
std::string NameOf(const Options& options, const document::Document& book);

// The chapters of a book that were typed, as --chapters takes them. Errors:
// kUsage; chapter_not_found, no_chapters.
absl::StatusOr<document::Document> ChooseChapters(
    const document::Document& book, const std::string& chapters);

// What of it could be read where all of it is too long, for people: "; choose
// with --chapters: 1 Loomings, ..."; empty where there is nothing to choose by.
std::string ChoiceAdvice(const document::Document& book);

// What --toc wants: the sections of the book, with their lengths.
absl::Status WriteContents(const Options& options, const Model& model,
                           const document::Document& book);

// What of `text` are quotations, looked up in the book: [{"text", "found", and
// where it is found "chapters" and "pages"}].
Json QuotationsIn(const std::string& text, const document::Document& book);
// A line for people on each.
std::vector<std::string> QuotationLines(const Json& quotations);

// Writes notes to the file that `options` name, if they name one.
absl::Status WriteNotes(const Options& options, const reader::Notes& notes);
// Notes of this book that as yet say nothing but by which model and seed.
reader::Notes NotesOn(const Options& options, const document::Document& book);

}  // namespace tiercel::cli

#endif  // TIERCEL_APPS_COMMANDS_BOOK_H_

#include "apps/commands/book.h"

#include <sys/stat.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string_view>
#include <utility>
#include <variant>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "apps/cli/error.h"
#include "apps/cli/numbers.h"
#include "apps/commands/input.h"
#include "apps/commands/readings.h"
#include "apps/commands/whole_file.h"
#include "apps/terminal/output.h"
#include "apps/terminal/printable.h"
#include "apps/terminal/signals.h"
#include "lib/reader/chapter_pattern.h"
#include "lib/reader/outline.h"
#include "lib/reader/places.h"
#include "lib/reader/quotations.h"
#include "lib/reader/selection.h"
#include "lib/reader/text.h"
#include "lib/status/status_macros.h"

namespace tiercel::cli {
namespace {

using document::Document;

// Returns true for a FIFO or a character device, which is read as stdin is.
bool IsStream(const std::string& path) {
  struct stat info;
  return stat(path.c_str(), &info) == 0 &&
         (S_ISFIFO(info.st_mode) || S_ISCHR(info.st_mode));
}

absl::StatusOr<Document> DocumentIn(document::Result result) {
  if (const auto* error = std::get_if<document::Error>(&result)) {
    const bool is_io = error->kind == document::Error::Kind::kIo;
    return Error(is_io ? Exit::kIo : Exit::kInput, error->code, error->message);
  }
  return std::get<Document>(std::move(result));
}

absl::StatusOr<Document> Read(const std::string& path) {
  const bool is_stdin = path == "-";
  if (!is_stdin && !IsStream(path)) {
    return DocumentIn(document::ReadDocument(path));
  }
  ASSIGN_OR_RETURN(std::string bytes, ReadInput(path));
  if (is_stdin && bytes.empty()) {
    return Error(Exit::kInput, "empty_document", "standard input is empty");
  }
  return DocumentIn(
      document::ReadDocumentBytes(is_stdin ? "stdin" : path, bytes));
}

// A line "  7  Loomings  1,234 tokens  page 12", with the section's number and
// label, indented by its level.
std::string ContentsRow(const Json& section, const std::string& number,
                        const std::string& label) {
  constexpr size_t kNumberColumn = 5;
  constexpr size_t kNameColumn = 60;
  std::string row(
      kNumberColumn - std::min(kNumberColumn - 1, number.size()) - 1, ' ');
  absl::StrAppend(&row, number, "  ",
                  std::string(2 * (section.at("level").get<size_t>() - 1), ' '),
                  label);
  const auto title = section.at("title").get<std::string>();
  absl::StrAppend(&row, label.empty() || title.empty() ? "" : " ", title);
  const size_t columns = ColumnsOf(row);
  if (columns < kNameColumn) row.append(kNameColumn - columns, ' ');
  absl::StrAppend(&row, "  ", Grouped(section.at("tokens").get<int64_t>()),
                  " tokens");
  if (section.at("page").is_string()) {
    absl::StrAppend(&row, "  page ", section["page"].get<std::string>());
  }
  return row + "\n";
}

// Checks that notes would not overwrite the document or the model.
absl::Status CheckNotRead(const Options& options) {
  const std::string& path = options.book.output;
  if (path == "-") {
    return UsageError("--output: got -, need a file; the text is on stdout");
  }
  if (path.empty()) return absl::OkStatus();
  namespace fs = std::filesystem;
  std::error_code error;
  // A file of a folder is what is read, however deep it lies.
  const auto within = [&](const std::string& read) {
    if (!fs::is_directory(read, error) || !fs::exists(path, error)) {
      return false;
    }
    const fs::path place = fs::relative(path, read, error);
    return !place.empty() && *place.begin() != "..";
  };
  std::vector<fs::path> all = {options.document};
  for (const std::string& model :
       {options.model.path, options.sampling.draft_path}) {
    if (model.empty()) continue;
    all.emplace_back(model);
    for (fs::path& file : CheckpointFiles(model)) {
      all.push_back(std::move(file));
    }
  }
  for (const fs::path& read : all) {
    if (read.empty()) continue;
    if (within(read) || fs::equivalent(path, read, error)) {
      return UsageError(absl::StrCat("--output: '", path,
                                     "' is what is read; need another file"));
    }
  }
  return absl::OkStatus();
}

// Checks before the work that notes can be written. A pipe is not opened, since
// its reader would take the end of that for the end of the notes.
absl::Status CheckOutput(const Options& options) {
  RETURN_IF_ERROR(CheckNotRead(options));
  const std::string& path = options.book.output;
  struct stat info;
  if (path.empty() || (stat(path.c_str(), &info) == 0 &&
                       !S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode))) {
    return absl::OkStatus();
  }
  return WholeFile::Create(path, /*mode=*/0666).status();
}

absl::StatusOr<reader::ChapterChoice> ChapterChoiceOf(
    const std::string& typed) {
  std::optional<reader::ChapterChoice> choice = reader::ParseChapters(typed);
  if (choice.has_value()) return *std::move(choice);
  return UsageError(absl::StrCat("--chapters: got '", typed,
                                 "', need numbers as 3,5-7, or a title"));
}

bool IsEmpty(const Document& book) {
  return book.text.find_first_not_of(" \t\r\n\f\v") == std::string::npos;
}

absl::Status NoText(const std::string& name) {
  return Error(Exit::kInput, "empty_document",
               absl::StrCat("'", name, "' has no text"));
}

}  // namespace

absl::StatusOr<Document> OpenBook(const Options& options) {
  const BookOptions& wanted = options.book;
  std::optional<reader::ChapterChoice> chapters;
  if (!wanted.chapters.empty()) {
    ASSIGN_OR_RETURN(chapters, ChapterChoiceOf(wanted.chapters));
  }
  std::optional<reader::PageChoice> pages;
  if (!wanted.pages.empty()) {
    pages = reader::ParsePages(wanted.pages);
    if (!pages.has_value()) {
      return UsageError(absl::StrCat("--pages: got '", wanted.pages,
                                     "', need numbers as 10-40, xii or A-3"));
    }
  }
  std::optional<reader::ChapterPattern> pattern;
  if (!wanted.chapter_pattern.empty()) {
    pattern.emplace(wanted.chapter_pattern);
    if (const std::string error = pattern->error(); !error.empty()) {
      return UsageError(absl::StrCat("--chapter-pattern: got '",
                                     wanted.chapter_pattern,
                                     "', need a regular expression: ", error));
    }
  }
  RETURN_IF_ERROR(CheckOutput(options));
  absl::StatusOr<Document> book = Read(options.document);
  if (!book.ok()) return book;
  WriteWarnings(book->warnings);
  if (pattern.has_value() && pattern->Apply(&*book) == 0) {
    return Error(Exit::kInput, "no_chapters",
                 absl::StrCat("no line of '", options.document,
                              "' matches --chapter-pattern '",
                              wanted.chapter_pattern, "'"));
  }
  if (!IsEmpty(*book) && (chapters.has_value() || pages.has_value())) {
    document::Result chosen_of = chapters.has_value()
                                     ? reader::SelectChapters(*book, *chapters)
                                     : reader::SelectPages(*book, *pages);
    if (auto* const error = std::get_if<document::Error>(&chosen_of)) {
      error->message = "--" + error->message;  // it begins with the flag's name
    }
    book = DocumentIn(std::move(chosen_of));
    if (!book.ok()) return book;
    const reader::Places chosen = reader::PlacesOf(*book, 0, book->text.size());
    const bool by_chapters = chapters.has_value();
    WriteNote(absl::StrCat(
        by_chapters ? "chapters: " : "pages: ",
        absl::StrJoin(by_chapters ? chosen.chapters : chosen.pages, ", "),
        "\n"));
  }
  if (IsEmpty(*book)) return NoText(options.document);
  return book;
}

absl::StatusOr<Document> BookIn(const std::string& name,
                                const std::string& bytes) {
  ASSIGN_OR_RETURN(Document book,
                   DocumentIn(document::ReadDocumentBytes(name, bytes)));
  if (IsEmpty(book)) return NoText(name);
  return book;
}

absl::StatusOr<Document> ChooseChapters(const Document& book,
                                        const std::string& chapters) {
  ASSIGN_OR_RETURN(const reader::ChapterChoice choice,
                   ChapterChoiceOf(chapters));
  return DocumentIn(reader::SelectChapters(book, choice));
}

std::string ChoiceAdvice(const Document& book) {
  constexpr size_t kMostListed = 40;
  std::string advice;
  if (!book.sections.empty()) {
    absl::StrAppend(&advice, "; or choose with --chapters: ",
                    reader::ChapterList(book, kMostListed));
  }
  if (!book.pages.empty()) {
    absl::StrAppend(&advice, "; or with --pages, of ",
                    book.pages.front().number, " to ",
                    book.pages.back().number);
  }
  return advice;
}

Json Described(const document::Document& book) {
  Json sections = Json::array();
  for (const document::Section& section : book.sections) {
    const size_t end =
        reader::SectionEnd(book, static_cast<size_t>(sections.size()));
    const std::string page = reader::PageAt(book, section.begin);
    sections.push_back({{"level", section.level},
                        {"label", section.label},
                        {"title", section.title},
                        {"begin", section.begin},
                        {"end", end},
                        {"page", page.empty() ? Json(nullptr) : Json(page)},
                        {"anchor", section.anchor}});
  }
  Json pages = Json::array();
  for (const document::Page& page : book.pages) {
    pages.push_back({{"label", page.number}, {"begin", page.begin}});
  }
  return {{"title", book.title},       {"author", book.author},
          {"language", book.language}, {"text", book.text},
          {"sections", sections},      {"pages", pages},
          {"warnings", book.warnings}};
}

absl::Status WriteContents(const Options& options, const Model& model,
                           const Document& book) {
  const std::vector<reader::Chapter> chapters = reader::ChaptersOf(book);
  auto chapter = chapters.begin();
  Json sections = Json::array();
  std::string table;
  for (size_t i = 0; i < book.sections.size(); ++i) {
    if (SignalReceived() != 0) return Interrupted();
    const document::Section& section = book.sections[i];
    const std::string_view text = std::string_view(book.text).substr(
        section.begin, reader::SectionEnd(book, i) - section.begin);
    ASSIGN_OR_RETURN(const auto tokens,
                     model.Tokenize(text, /*flags=*/0, /*limits=*/{}));
    const std::string page = reader::PageAt(book, section.begin);
    Json row = {{"level", section.level},
                {"title", reader::OneLine(section.title)},
                {"tokens", tokens.size()},
                {"page", page.empty() ? Json(nullptr) : Json(page)},
                {"anchor", section.anchor}};
    std::string number;
    if (chapter != chapters.end() && chapter->section == i) {
      if (chapter->number.has_value()) number = absl::StrCat(*chapter->number);
      ++chapter;
    }
    absl::StrAppend(&table,
                    ContentsRow(row, number, reader::OneLine(section.label)));
    sections.push_back(std::move(row));
  }
  if (options.json) {
    return WriteJson({{"title", book.title},
                      {"author", book.author},
                      {"language", book.language},
                      {"sections", std::move(sections)}});
  }
  if (sections.empty()) {
    WriteNote("no chapters or headings are marked in this document\n");
  }
  std::string head = reader::OneLine(book.title);
  if (!head.empty() && !book.author.empty()) {
    absl::StrAppend(&head, ", ", reader::OneLine(book.author));
  }
  return WriteProse(
      Printable(head.empty() ? table : absl::StrCat(head, "\n", table)));
}

Json QuotationsIn(const std::string& text, const Document& book) {
  return PlacedIn(book, reader::QuotationFinder(book.text).Find(text));
}

Json PlacedIn(const Document& book,
              const std::vector<reader::Quotation>& found) {
  Json quotations = Json::array();
  for (const reader::Quotation& quotation : found) {
    Json entry = {{"text", quotation.text}, {"found", quotation.found}};
    if (quotation.found) {
      const reader::Places places =
          reader::PlacesOf(book, quotation.begin, quotation.end);
      entry["chapters"] = places.chapters;
      entry["pages"] = places.pages;
      entry["place"] = places.text;
    }
    quotations.push_back(std::move(entry));
  }
  return quotations;
}

std::vector<std::string> QuotationLines(const Json& quotations) {
  std::vector<std::string> lines;
  for (const Json& quotation : quotations) {
    const std::string place = quotation.value("place", "");
    lines.push_back(absl::StrCat(
        "\"", reader::OneLine(quotation.at("text").get<std::string>()), "\": ",
        quotation.at("found").get<bool>()
            ? absl::StrCat("found in the text", place.empty() ? "" : ", ",
                           place)
            : "not found in the text"));
  }
  return lines;
}

absl::Status WriteNotes(const Options& options, const reader::Notes& notes) {
  const std::string& path = options.book.output;
  if (path.empty()) return absl::OkStatus();
  RETURN_IF_ERROR(CheckNotRead(options));
  const std::string& wanted = options.book.format;
  const auto is = [&](const char* format, const char* extension) {
    return wanted == format ||
           (wanted.empty() && absl::EndsWithIgnoreCase(path, extension));
  };
  const reader::NotesFormat format =
      is("html", ".html") || is("html", ".htm") ? reader::NotesFormat::kHtml
      : is("md", ".md")                         ? reader::NotesFormat::kMarkdown
                                                : reader::NotesFormat::kText;
  ASSIGN_OR_RETURN(WholeFile file, WholeFile::Create(path, /*mode=*/0666));
  RETURN_IF_ERROR(file.Write(reader::Render(notes, format)));
  return file.Finish();
}

namespace {

std::string FileName(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? path : path.substr(slash + 1);
}

// The book's title, or else the file's name.
std::string TitleOf(const Options& options, const Document& book) {
  const std::string title = reader::OneLine(book.title);
  if (!title.empty()) return title;
  if (options.document.empty()) return "A talk";
  return options.document == "-" ? "stdin" : FileName(options.document);
}

}  // namespace

std::string NameOf(const Options& options, const Document& book) {
  std::string name = TitleOf(options, book);
  if (!book.author.empty()) {
    absl::StrAppend(&name, ", ", reader::OneLine(book.author));
  }
  const BookOptions& chosen = options.book;
  if (!chosen.chapters.empty()) {
    absl::StrAppend(&name, " (chapters ", chosen.chapters, ")");
  }
  if (!chosen.pages.empty()) {
    absl::StrAppend(&name, " (pages ", chosen.pages, ")");
  }
  return name;
}

Options Named(const Options& options, const Document& book) {
  Options named = options;
  named.session.prompt_cache_name = NameOf(options, book);
  return named;
}

reader::Notes NotesOn(const Options& options, const Document& book) {
  reader::Notes notes;
  notes.title = TitleOf(options, book);
  notes.author = reader::OneLine(book.author);
  notes.footer = absl::StrCat("Tiercel, ", FileName(options.model.path),
                              ", seed ", options.sampling.seed.value_or(0));
  return notes;
}

}  // namespace tiercel::cli

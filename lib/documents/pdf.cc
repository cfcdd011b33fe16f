#include "lib/documents/pdf.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/documents/child_process.h"
#include "lib/documents/encoding.h"
#include "lib/documents/error.h"
#include "lib/documents/file.h"
#include "lib/documents/pdf_geometry.h"
#include "lib/documents/pdf_headings.h"
#include "lib/documents/pdf_labels.h"
#include "lib/documents/pdf_layout.h"
#include "lib/documents/pdf_margins.h"
#include "lib/documents/pdf_sections.h"
#include "lib/documents/pdf_text.h"
#include "lib/documents/text_writer.h"

namespace tiercel::document {
namespace {

constexpr ChildLimits kTextLimits = {uint64_t{2} << 30, 120, 180,
                                     uint64_t{512} << 20};
constexpr ChildLimits kOutlineLimits = {uint64_t{2} << 30, 30, 60,
                                        uint64_t{32} << 20};
// The path by which a child reads the file that RunChild puts on its stdin.
constexpr char kInput[] = "/proc/self/fd/0";
// A book may have a few blank pages.
constexpr size_t kFewEmpty = 3;
// pdftotext's exit status where a document may not be copied.
constexpr int kNotPermitted = 3;

Error ToolMissing(const std::string& name, const std::string& program) {
  return InputError(name, "pdf_tools_missing",
                    "is PDF; reading it needs the program " + program +
                        " (Debian: poppler-utils), which is not in $PATH");
}

// Returns the error that a child's end stands for; nothing if it succeeded.
// `whole` says that its output is complete.
std::optional<Error> ErrorOf(const std::string& name, const ChildEnd& end,
                             bool whole) {
  switch (end.kind) {
    case ChildEnd::Kind::kTimedOut:
      return InputError(name, "pdf_too_complex", "takes too long to read");
    case ChildEnd::Kind::kTooMuchOutput:
      return InputError(name, "pdf_too_complex", "has too much text");
    case ChildEnd::Kind::kNotStarted:
      return Error{Error::Kind::kIo, "io_error",
                   name + ": cannot start pdftotext"};
    case ChildEnd::Kind::kKilled:
      return InputError(
          name, "pdf_too_complex",
          "pdftotext ended by signal " + std::to_string(end.code));
    case ChildEnd::Kind::kExited:
      if (end.code == 0) return std::nullopt;
      break;
    case ChildEnd::Kind::kUnseen:
      if (whole) return std::nullopt;
      break;
  }
  if (end.code == kNotPermitted ||
      end.errors.find("is not allowed") != std::string::npos ||
      end.errors.find("Incorrect password") != std::string::npos) {
    return InputError(name, "encrypted_document",
                      "is encrypted; its text cannot be read");
  }
  if (end.errors.find("ut of memory") != std::string::npos ||
      end.errors.find("bad_alloc") != std::string::npos) {
    return InputError(name, "pdf_too_complex", "takes too much memory to read");
  }
  const std::string reason = ValidUtf8(OneLine(end.errors).substr(0, 200));
  return InputError(name, "invalid_pdf",
                    "is no PDF, or a damaged one (" + reason + ")");
}

// Returns the outline. Failures are ignored, since a document without an
// outline can be read.
std::vector<PdfOutlineItem> OutlineOf(const std::string& bytes,
                                      Document* document) {
  const std::optional<std::string> program = FindProgram("pdftohtml");
  if (!program.has_value()) {
    document->warnings.push_back(
        "no outline: the program pdftohtml (Debian: poppler-utils) is not in "
        "$PATH");
    return {};
  }
  std::string xml;
  // pdftohtml writes the whole outline with any page.
  const ChildEnd end = RunChild(
      {*program, "-xml", "-i", "-q", "-stdout", "-f", "1", "-l", "1", kInput},
      bytes, kOutlineLimits, [&](std::string_view part) { xml += part; });
  if (end.kind != ChildEnd::Kind::kExited &&
      end.kind != ChildEnd::Kind::kUnseen) {
    document->warnings.push_back("the outline could not be read");
    return {};
  }
  return ReadPdfOutline(ValidUtf8(xml));
}

size_t NumEmpty(const std::vector<PdfPage>& pages) {
  return static_cast<size_t>(
      std::count_if(pages.begin(), pages.end(),
                    [](const PdfPage& page) { return page.blocks.empty(); }));
}

// Returns the pages without text, counted from 1: "3, 11-17".
std::string EmptyPages(const std::vector<PdfPage>& pages) {
  constexpr size_t kMostListed = 20;
  std::string list;
  size_t num_listed = 0;
  for (size_t begin = 0; begin < pages.size(); ++begin) {
    if (!pages[begin].blocks.empty()) continue;
    size_t end = begin;
    while (end + 1 < pages.size() && pages[end + 1].blocks.empty()) ++end;
    if (num_listed++ == kMostListed) return list + ", ...";
    if (!list.empty()) list += ", ";
    list += std::to_string(begin + 1);
    if (end > begin) list += "-" + std::to_string(end + 1);
    begin = end;
  }
  return list;
}

// Returns a title or an author, unless a program wrote it for want of one:
// "Microsoft Word - x.doc", "untitled".
std::string UnlessMadeUp(const std::string& name) {
  const std::string lower = Lowercase(name);
  for (const std::string_view made_up :
       {"untitled", "anonymous", "unknown", "unspecified", "title", "author",
        "user", "admin", "administrator", "owner", "document1",
        "powerpoint presentation"}) {
    if (lower == made_up) return {};
  }
  const bool is_file = HasExtension(
      name, {".doc", ".docx", ".odt", ".rtf", ".pdf", ".tex", ".dvi", ".indd",
             ".qxd", ".qxp", ".pmd", ".fm", ".txt", ".html", ".ps"});
  return is_file || lower.compare(0, 15, "microsoft word ") == 0 ? std::string()
                                                                 : name;
}

// Returns the pages with which a section of the first level begins.
std::set<size_t> PagesThatBeginChapters(const Document& document) {
  std::set<size_t> chapters;
  for (const Section& section : document.sections) {
    if (section.level > 1) continue;
    const auto page = std::lower_bound(
        document.pages.begin(), document.pages.end(), section.begin,
        [](const Page& p, size_t begin) { return p.begin < begin; });
    if (page == document.pages.end() || page->begin != section.begin) continue;
    chapters.insert(static_cast<size_t>(page - document.pages.begin()));
  }
  return chapters;
}

}  // namespace

Result ReadPdf(const std::string& name, const std::string& bytes) {
  const std::optional<std::string> program = FindProgram("pdftotext");
  if (!program.has_value()) return ToolMissing(name, "pdftotext");
  PdfLayoutReader reader;
  const ChildEnd end =
      RunChild({*program, "-bbox-layout", "-enc", "UTF-8", kInput, "-"}, bytes,
               kTextLimits, [&](std::string_view part) { reader.Add(part); });
  if (auto error = ErrorOf(name, end, reader.whole()); error.has_value())
    return *error;
  std::vector<PdfPage> pages = reader.TakePages();
  if (pages.empty()) {
    return InputError(name, "invalid_pdf", "has no pages");
  }
  const size_t num_empty = NumEmpty(pages);
  if (num_empty == pages.size()) {
    return InputError(name, "scanned_document",
                      "has " + std::to_string(pages.size()) +
                          " pages and no text, as scans have; let a program "
                          "for recognising text (OCR) add it");
  }
  Document document;
  document.title = UnlessMadeUp(reader.title());
  document.author = UnlessMadeUp(reader.author());
  if (end.errors.find("language pack") != std::string::npos ||
      end.errors.find("No font in show") != std::string::npos) {
    document.warnings.push_back(
        "parts of the text may be missing: pdftotext knows not all of its "
        "fonts (Debian: poppler-data)");
  }
  if (num_empty >= kFewEmpty || num_empty * 5 > pages.size()) {
    document.warnings.push_back(std::to_string(num_empty) + " of " +
                                std::to_string(pages.size()) +
                                " pages have no text: " + EmptyPages(pages));
  }
  const std::vector<PdfOutlineItem> outline = OutlineOf(bytes, &document);
  std::set<size_t> chapters;
  for (const PdfOutlineItem& item : outline) {
    if (item.level == 1 && item.page.has_value()) chapters.insert(*item.page);
  }
  StraightenPages(&pages);
  std::vector<std::string> numbers = DropMargins(outline, &pages);
  std::vector<std::string> labels = PdfPageLabels(bytes, pages.size());
  if (!labels.empty()) numbers = std::move(labels);
  const auto write = [&] {
    const std::vector<PdfLargeLine> large =
        WritePdfText(pages, numbers, chapters, &document);
    std::vector<Section> located;
    if (outline.size() > 1) located = LocateOutline(outline, &document);
    document.sections = BestPdfSections(large, std::move(located), &document);
  };
  write();
  if (outline.size() < 2) {
    // Notes stand at the ends of the chapters that the text shows.
    chapters = PagesThatBeginChapters(document);
    if (!chapters.empty()) {
      document.pages.clear();
      write();
    }
  }
  return document;
}

}  // namespace tiercel::document

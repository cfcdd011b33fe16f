#include <string>
#include <utility>

#include "apps/commands/book.h"
#include "apps/commands/command.h"
#include "apps/terminal/output.h"
#include "lib/reader/outline.h"
#include "lib/status/status_macros.h"

namespace tiercel::cli {
namespace {

// The document with the places in its text, in bytes.
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

}  // namespace

absl::Status Text(const Options& options) {
  ASSIGN_OR_RETURN(const document::Document book, OpenBook(options));
  return options.json ? WriteJson(Described(book)) : WriteProse(book.text);
}

}  // namespace tiercel::cli

// The functions of tiercel_documents.h.

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "include/tiercel_documents.h"
#include "lib/c_api/border.h"
#include "lib/documents/document.h"
#include "lib/reader/outline.h"
#include "lib/reader/parts.h"
#include "lib/reader/places.h"
#include "lib/reader/selection.h"

// A document with all that its functions give out.
struct tiercel_document {
  explicit tiercel_document(tiercel::document::Document read)
      : book(std::move(read)), chapters(tiercel::reader::ChaptersOf(book)) {
    for (const tiercel::document::Section& section : book.sections) {
      names.push_back(tiercel::reader::NameOf(section));
    }
  }

  const tiercel::document::Document book;
  const std::vector<tiercel::reader::Chapter> chapters;
  std::vector<std::string> names;  // each section has one
};

namespace tiercel {
namespace {

TIERCEL_ENDS_WITH(tiercel_document_params, name);
TIERCEL_ENDS_WITH(tiercel_document_info, num_warnings);
TIERCEL_ENDS_WITH(tiercel_section, anchor);
TIERCEL_ENDS_WITH(tiercel_chapter, has_number);
TIERCEL_ENDS_WITH(tiercel_page, number);
TIERCEL_ENDS_WITH(tiercel_excerpt, pages);

constexpr size_t kUsualBytes = 2048;

// Makes the handle of what was read.
absl::Status Hand(document::Result result, tiercel_document** document) {
  if (const auto* error = std::get_if<document::Error>(&result)) {
    return error->kind == document::Error::Kind::kIo
               ? IoError(error->code, error->message)
               : InputError(error->code, error->message);
  }
  *document =
      new tiercel_document(std::get<document::Document>(std::move(result)));
  return absl::OkStatus();
}

absl::Status CheckIndex(const char* of, size_t index, size_t count) {
  if (index < count) return absl::OkStatus();
  return UsageError("invalid_argument",
                    absl::StrCat("index: got ", index, ", the document has ",
                                 count, " ", of));
}

// Fills the caller's struct with what `give` puts into one of its type.
template <typename T, typename Give>
absl::Status FillStruct(const char* name, T* out, const Give& give) {
  T filled;
  RETURN_IF_ERROR(ReadStruct(name, out, &filled));
  give(&filled);
  WriteStruct(filled, out);
  return absl::OkStatus();
}

}  // namespace
}  // namespace tiercel

using tiercel::AtBoundary;
using tiercel::CheckIndex;
using tiercel::FillStruct;
using tiercel::Hand;
using tiercel::NeedArgument;
using tiercel::NeedArray;
using tiercel::ReadStruct;
using tiercel::UsageError;

tiercel_status tiercel_document_open(const tiercel_document_params* params,
                                     tiercel_document** document,
                                     tiercel_error* error) {
  return AtBoundary(error, [&]() -> absl::Status {
    RETURN_IF_ERROR(NeedArgument("document", document));
    *document = nullptr;
    tiercel_document_params p;
    RETURN_IF_ERROR(ReadStruct("params", params, &p));
    if (p.path != nullptr) {
      if (p.bytes != nullptr || p.num_bytes != 0 || p.name != nullptr) {
        return UsageError("invalid_argument",
                          "params: got a path and bytes, need one of both");
      }
      return Hand(tiercel::document::ReadDocument(p.path), document);
    }
    RETURN_IF_ERROR(NeedArray("params.bytes", p.bytes, p.num_bytes));
    const std::string_view bytes(static_cast<const char*>(p.bytes),
                                 p.num_bytes);
    return Hand(
        tiercel::document::ReadDocumentBytes(
            p.name == nullptr ? "document" : p.name, std::string(bytes)),
        document);
  });
}

void tiercel_document_free(tiercel_document* document) { delete document; }

tiercel_status tiercel_document_get_info(const tiercel_document* document,
                                         tiercel_document_info* info,
                                         tiercel_error* error) {
  return AtBoundary(error, [&]() -> absl::Status {
    RETURN_IF_ERROR(NeedArgument("document", document));
    const tiercel::document::Document& book = document->book;
    return FillStruct("info", info, [&](tiercel_document_info* to) {
      to->text = book.text.c_str();
      to->text_bytes = book.text.size();
      to->title = book.title.c_str();
      to->author = book.author.c_str();
      to->language = book.language.c_str();
      to->num_sections = book.sections.size();
      to->num_chapters = document->chapters.size();
      to->num_pages = book.pages.size();
      to->num_warnings = book.warnings.size();
    });
  });
}

tiercel_status tiercel_document_get_section(const tiercel_document* document,
                                            size_t index,
                                            tiercel_section* section,
                                            tiercel_error* error) {
  return AtBoundary(error, [&]() -> absl::Status {
    RETURN_IF_ERROR(NeedArgument("document", document));
    const tiercel::document::Document& book = document->book;
    RETURN_IF_ERROR(CheckIndex("sections", index, book.sections.size()));
    const tiercel::document::Section& from = book.sections[index];
    return FillStruct("section", section, [&](tiercel_section* to) {
      to->level = from.level;
      to->begin = from.begin;
      to->end = tiercel::reader::SectionEnd(book, index);
      to->label = from.label.c_str();
      to->title = from.title.c_str();
      to->name = document->names[index].c_str();
      to->anchor = from.anchor.c_str();
    });
  });
}

tiercel_status tiercel_document_get_chapter(const tiercel_document* document,
                                            size_t index,
                                            tiercel_chapter* chapter,
                                            tiercel_error* error) {
  return AtBoundary(error, [&]() -> absl::Status {
    RETURN_IF_ERROR(NeedArgument("document", document));
    RETURN_IF_ERROR(CheckIndex("chapters", index, document->chapters.size()));
    const tiercel::reader::Chapter& from = document->chapters[index];
    return FillStruct("chapter", chapter, [&](tiercel_chapter* to) {
      to->section = from.section;
      to->begin = from.begin;
      to->end = from.end;
      to->number = from.number.value_or(0);
      to->has_number = from.number.has_value();
    });
  });
}

tiercel_status tiercel_document_get_page(const tiercel_document* document,
                                         size_t index, tiercel_page* page,
                                         tiercel_error* error) {
  return AtBoundary(error, [&]() -> absl::Status {
    RETURN_IF_ERROR(NeedArgument("document", document));
    const tiercel::document::Document& book = document->book;
    RETURN_IF_ERROR(CheckIndex("pages", index, book.pages.size()));
    return FillStruct("page", page, [&](tiercel_page* to) {
      to->begin = book.pages[index].begin;
      to->end = index + 1 < book.pages.size() ? book.pages[index + 1].begin
                                              : book.text.size();
      to->number = book.pages[index].number.c_str();
    });
  });
}

const char* tiercel_document_warning(const tiercel_document* document,
                                     size_t index) {
  if (document == nullptr || index >= document->book.warnings.size()) {
    return nullptr;
  }
  return document->book.warnings[index].c_str();
}

tiercel_status tiercel_document_excerpt(const tiercel_document* document,
                                        const tiercel_excerpt* choice,
                                        tiercel_document** excerpt,
                                        tiercel_error* error) {
  return AtBoundary(error, [&]() -> absl::Status {
    RETURN_IF_ERROR(NeedArgument("excerpt", excerpt));
    *excerpt = nullptr;
    RETURN_IF_ERROR(NeedArgument("document", document));
    tiercel_excerpt wanted;
    RETURN_IF_ERROR(ReadStruct("choice", choice, &wanted));
    if ((wanted.chapters == nullptr) == (wanted.pages == nullptr)) {
      return UsageError("invalid_argument",
                        "choice: need chapters or pages, and not both");
    }
    if (wanted.chapters != nullptr) {
      const auto chapters = tiercel::reader::ParseChapters(wanted.chapters);
      if (!chapters.has_value()) {
        return UsageError(
            "invalid_argument",
            absl::StrCat("choice.chapters: got '", wanted.chapters,
                         "', need numbers as 3,5-7, or a title"));
      }
      return Hand(tiercel::reader::SelectChapters(document->book, *chapters),
                  excerpt);
    }
    const auto pages = tiercel::reader::ParsePages(wanted.pages);
    if (!pages.has_value()) {
      return UsageError("invalid_argument",
                        absl::StrCat("choice.pages: got '", wanted.pages,
                                     "', need pages as 10-40,xii"));
    }
    return Hand(tiercel::reader::SelectPages(document->book, *pages), excerpt);
  });
}

tiercel_status tiercel_document_parts(const tiercel_document* document,
                                      size_t usual_bytes, tiercel_fits fits,
                                      tiercel_on_part on_part, void* user_data,
                                      tiercel_error* error) {
  return AtBoundary(error, [&]() -> absl::Status {
    RETURN_IF_ERROR(NeedArgument("document", document));
    RETURN_IF_ERROR(NeedArgument("fits", reinterpret_cast<const void*>(fits)));
    RETURN_IF_ERROR(
        NeedArgument("on_part", reinterpret_cast<const void*>(on_part)));
    const tiercel::document::Document& book = document->book;
    if (book.text.empty()) return absl::OkStatus();
    const std::vector<tiercel::reader::Part> parts =
        tiercel::reader::CutIntoParts(
            book.text, tiercel::reader::DivisionsOf(book),
            usual_bytes == 0 ? tiercel::kUsualBytes : usual_bytes,
            [&](std::string_view run) {
              return fits(user_data, run.data(), run.size()) != 0;
            });
    if (parts.empty()) {
      return tiercel::InputError("nothing_fits",
                                 "not one character of the text fits");
    }
    for (const tiercel::reader::Part& part : parts) {
      if (on_part(user_data, part.begin, part.end) != 0) {
        return tiercel::CancelledError();
      }
    }
    return absl::OkStatus();
  });
}

tiercel_status tiercel_document_place(const tiercel_document* document,
                                      size_t begin, size_t end, char* text,
                                      size_t* size, tiercel_error* error) {
  return AtBoundary(error, [&]() -> absl::Status {
    RETURN_IF_ERROR(NeedArgument("document", document));
    RETURN_IF_ERROR(tiercel::NeedPlace("text", text, size));
    const size_t bytes = document->book.text.size();
    if (begin > end || end > bytes) {
      return UsageError("invalid_argument",
                        absl::StrCat("run: got ", begin, " to ", end,
                                     ", the text has ", bytes, " bytes"));
    }
    const std::string place =
        tiercel::reader::NarrowPlace(document->book, begin, end);
    return tiercel::Fill(place.c_str(), place.size() + 1, text, size);
  });
}

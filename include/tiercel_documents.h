/* Books as text with places: EPUB, FB2, PDF, RTF, HTML (a page, also as MHTML,
 * or a folder of pages with an index) and plain text.
 *
 * It is a library of its own, libtiercel-documents, which needs no model. It
 * has the conventions of tiercel.h; libtiercel need not be linked.
 *
 *   tiercel_document_open -> tiercel_document_get_info: the text
 *     -> tiercel_document_get_chapter, tiercel_document_get_section,
 *        tiercel_document_get_page: its outline
 *     -> tiercel_document_excerpt: some chapters or pages of it
 *     -> tiercel_document_parts: runs of the text that fit a prompt
 *     -> tiercel_document_place: where a run of the text stands
 *
 * A document never changes, so any number of threads may use one at once. Texts
 * and names that the functions give lie in the document, and stay until it is
 * freed. Places in the text are in bytes; a run goes from `begin` up to, and
 * without, `end`.
 *
 * PDF is read by pdftotext and pdftohtml (Debian: poppler-utils), which run as
 * children of the process, with limits on memory and time. Without them a PDF
 * is TIERCEL_INVALID_INPUT, "pdf_tools_missing".
 */
#ifndef TIERCEL_DOCUMENTS_H_
#define TIERCEL_DOCUMENTS_H_

#include "tiercel_error.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tiercel_document tiercel_document;

typedef struct tiercel_document_params {
  size_t struct_size;
  /* A file, or a folder of HTML pages; NULL: `bytes` are read. Pipes and
   * devices are not read. */
  const char* path;
  const void* bytes; /* the bytes of a file, if `path` is NULL */
  size_t num_bytes;
  /* The name of `bytes`, by which messages call them, and whose extension
   * counts: "book.epub". NULL: "document". */
  const char* name;
} tiercel_document_params;

/* Reads a document of up to 64 MiB (HTML: 32; of an EPUB file, its text). After
 * an error *document is NULL. TIERCEL_INVALID_INPUT: "not_a_regular_file",
 * "document_too_large", "not_text" (binary), "unsupported_document" (a format
 * that the message names), "encrypted_document", "invalid_archive",
 * "invalid_epub", "invalid_fb2", "invalid_mhtml", "invalid_pdf",
 * "html_too_complex", "pdf_too_complex", "rtf_too_complex",
 * "pdf_tools_missing"; TIERCEL_IO: "file_not_found", "io_error". */
TIERCEL_API tiercel_status
tiercel_document_open(const tiercel_document_params* params,
                      tiercel_document** document, tiercel_error* error);
TIERCEL_API void tiercel_document_free(tiercel_document* document);

typedef struct tiercel_document_info {
  size_t struct_size;
  const char* text; /* UTF-8; lines end in '\n'; a NUL follows */
  size_t text_bytes;
  const char* title; /* "" if the document has none; so the others */
  const char* author;
  const char* language; /* a BCP 47 tag: "en" */
  size_t num_sections;
  size_t num_chapters;
  size_t num_pages;
  /* Sentences on what may be lost: "an index at the end is left out". */
  size_t num_warnings;
} tiercel_document_info;
/* Fills `info`, whose struct_size the caller has set. */
TIERCEL_API tiercel_status
tiercel_document_get_info(const tiercel_document* document,
                          tiercel_document_info* info, tiercel_error* error);

/* A part that a heading begins. Sections are in the order of the text; what
 * stands before the first belongs to none. */
typedef struct tiercel_section {
  size_t struct_size;
  int64_t level;     /* 1: of the whole document; 2: within one of those, ... */
  size_t begin;      /* where its heading begins */
  size_t end;        /* where the next of its level, or of one above, begins */
  const char* label; /* "Chapter 3", "2.1", or "" */
  const char* title; /* "Loomings", or "" */
  const char* name;  /* both, as a person would call it; never "" */
  const char* anchor; /* the format's own: "ch-archive.html#s-main", or "" */
} tiercel_section;
/* Fills `section` with the section at `index`. TIERCEL_USAGE, here and below:
 * "invalid_argument" for an index beyond the last. */
TIERCEL_API tiercel_status
tiercel_document_get_section(const tiercel_document* document, size_t index,
                             tiercel_section* section, tiercel_error* error);

/* A section that is a chapter: of the level that has the most numbers, or else
 * of the first that divides the book; beside those, a preface, or a part that
 * has no chapters. */
typedef struct tiercel_chapter {
  size_t struct_size;
  size_t section; /* its index */
  size_t begin;
  size_t end;
  /* The number by which tiercel_document_excerpt takes it: its own if those of
   * all chapters go up, else its place in the book, from 1. */
  int64_t number;
  int64_t has_number; /* 0: it is taken by its title alone */
} tiercel_chapter;
TIERCEL_API tiercel_status
tiercel_document_get_chapter(const tiercel_document* document, size_t index,
                             tiercel_chapter* chapter, tiercel_error* error);

/* A page of the printed book. */
typedef struct tiercel_page {
  size_t struct_size;
  size_t begin;
  size_t end;
  const char* number; /* as it is printed: "xii", "40" */
} tiercel_page;
TIERCEL_API tiercel_status
tiercel_document_get_page(const tiercel_document* document, size_t index,
                          tiercel_page* page, tiercel_error* error);

/* Returns the warning at `index`; NULL beyond the last. */
TIERCEL_API const char* tiercel_document_warning(
    const tiercel_document* document, size_t index);

/* The choice of an excerpt; one of the two is NULL. */
typedef struct tiercel_excerpt {
  size_t struct_size;
  /* Numbers of chapters, "3,5-7", or a title or a part of one. */
  const char* chapters;
  /* Pages as they are numbered: "10-40", "xii,3". */
  const char* pages;
} tiercel_excerpt;
/* Makes a document of some chapters or pages of another, which may be freed
 * first. Places in it are those of the book: its chapters keep their numbers.
 * After an error *excerpt is NULL. TIERCEL_INVALID_INPUT: "chapter_not_found"
 * and "page_not_found", with what there is; "no_chapters", "no_pages". */
TIERCEL_API tiercel_status tiercel_document_excerpt(
    const tiercel_document* document, const tiercel_excerpt* choice,
    tiercel_document** excerpt, tiercel_error* error);

/* Returns non-zero if a run of the text is short enough. A shorter run with the
 * same beginning as one that fits must fit, too. */
typedef int (*tiercel_fits)(void* user_data, const char* run, size_t run_bytes);
/* Receives a part. A non-zero return ends the call: TIERCEL_CANCELLED. */
typedef int (*tiercel_on_part)(void* user_data, size_t begin, size_t end);

/* Cuts the text into the longest runs that fit, and gives them in order: they
 * join without a gap, and each ends before a chapter, else a section, a
 * paragraph, a sentence, a word, a character. `fits` is called a few times for
 * each part, the first time with `usual_bytes` (0: 2048), the expected size of
 * a part. The same answers of `fits` give the same parts. An exception of a
 * callback ends the call with TIERCEL_FAILED or TIERCEL_OUT_OF_MEMORY.
 * TIERCEL_INVALID_INPUT: "nothing_fits", if not even one character does. */
TIERCEL_API tiercel_status tiercel_document_parts(
    const tiercel_document* document, size_t usual_bytes, tiercel_fits fits,
    tiercel_on_part on_part, void* user_data, tiercel_error* error);

/* Says where a run of the text stands: "Chapter 3 Loomings to Chapter 5
 * Breakfast, pages 12 to 31", or, within one chapter, by its sections: "2.1 The
 * DFSG to 2.2 Areas, page 3". Blanks at its ends do not count. The text is
 * NUL-terminated and *size counts the NUL; "" in a document without chapters
 * and pages. */
TIERCEL_API tiercel_status tiercel_document_place(
    const tiercel_document* document, size_t begin, size_t end, char* text,
    size_t* size, tiercel_error* error);

#ifdef __cplusplus
}
#endif

#endif /* TIERCEL_DOCUMENTS_H_ */

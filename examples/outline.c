/* Prints the chapters of a book, each with the number by which an excerpt takes
 * it, and the warnings of its reading.
 *
 *   outline BOOK
 */
#include <stdio.h>
#include <tiercel_documents.h>

static tiercel_status Print(const tiercel_document* book,
                            tiercel_error* error) {
  tiercel_document_info info = TIERCEL_INIT(tiercel_document_info);
  tiercel_chapter chapter = TIERCEL_INIT(tiercel_chapter);
  tiercel_section section = TIERCEL_INIT(tiercel_section);
  tiercel_status status = tiercel_document_get_info(book, &info, error);
  size_t i;

  for (i = 0; !status && i < info.num_warnings; ++i) {
    fprintf(stderr, "warning: %s\n", tiercel_document_warning(book, i));
  }
  for (i = 0; !status && i < info.num_chapters; ++i) {
    status = tiercel_document_get_chapter(book, i, &chapter, error);
    if (!status) {
      status =
          tiercel_document_get_section(book, chapter.section, &section, error);
    }
    if (status) break;
    if (chapter.has_number) printf("%lld", (long long)chapter.number);
    printf("  %s\n", section.name);
  }
  return status;
}

int main(int argc, char** argv) {
  tiercel_error error = TIERCEL_INIT(tiercel_error);
  tiercel_document_params params = TIERCEL_INIT(tiercel_document_params);
  tiercel_document* book = NULL;
  tiercel_status status;

  if (argc != 2) {
    fprintf(stderr, "usage: outline BOOK\n");
    return 2;
  }
  params.path = argv[1];
  status = tiercel_document_open(&params, &book, &error);
  if (!status) status = Print(book, &error);
  tiercel_document_free(book);
  if (status) fprintf(stderr, "outline: %s (%s)\n", error.message, error.code);
  return status ? 1 : 0;
}

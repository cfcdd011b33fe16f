// The library of documents as a program in C uses it.

#include <fenv.h>

#include <cstddef>
#include <fstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "include/tiercel_documents.h"

namespace tiercel {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr const char* kBook =
    "<html lang=en><title>The Hunt</title><body>"
    "<h1>Preface</h1><p>Before it begins.</p>"
    "<h1>Chapter 1. Dawn</h1><p>First one. Then two.</p>"
    "<h2>1.1. Birds</h2><p>They sing.</p>"
    "<h1>Chapter 2. Noon</h1><p>It is hot.</p>"
    "<h1>Chapter 3. Night</h1><p>It is dark.</p>";

// A document that is freed at its end, and the error of the last call.
struct Opened {
  Opened() = default;
  Opened(Opened&& from) noexcept
      : document(std::exchange(from.document, nullptr)), error(from.error) {}
  ~Opened() { tiercel_document_free(document); }

  std::string code() const { return error.code; }
  std::string message() const { return error.message; }
  tiercel_document_info Info() {
    auto info = TIERCEL_INIT(tiercel_document_info);
    EXPECT_EQ(tiercel_document_get_info(document, &info, &error), TIERCEL_OK)
        << error.message;
    return info;
  }
  std::string Text() {
    const tiercel_document_info info = Info();
    EXPECT_EQ(info.text[info.text_bytes], '\0');
    return {info.text, info.text_bytes};
  }
  tiercel_section Section(size_t index) {
    auto section = TIERCEL_INIT(tiercel_section);
    EXPECT_EQ(tiercel_document_get_section(document, index, &section, &error),
              TIERCEL_OK)
        << error.message;
    return section;
  }
  tiercel_chapter Chapter(size_t index) {
    auto chapter = TIERCEL_INIT(tiercel_chapter);
    EXPECT_EQ(tiercel_document_get_chapter(document, index, &chapter, &error),
              TIERCEL_OK)
        << error.message;
    return chapter;
  }
  std::string Place(size_t begin, size_t end) {
    size_t size = 0;
    EXPECT_EQ(
        tiercel_document_place(document, begin, end, nullptr, &size, &error),
        TIERCEL_BUFFER_TOO_SMALL);
    std::string place(size, 'x');
    EXPECT_EQ(tiercel_document_place(document, begin, end, place.data(), &size,
                                     &error),
              TIERCEL_OK);
    EXPECT_EQ(place.back(), '\0');
    place.pop_back();
    return place;
  }

  tiercel_document* document = nullptr;
  tiercel_error error = TIERCEL_INIT(tiercel_error);
};

Opened OpenBytes(const std::string& bytes, const char* name = "hunt.html") {
  Opened opened;
  auto params = TIERCEL_INIT(tiercel_document_params);
  params.bytes = bytes.data();
  params.num_bytes = bytes.size();
  params.name = name;
  EXPECT_EQ(tiercel_document_open(&params, &opened.document, &opened.error),
            TIERCEL_OK)
      << opened.error.message;
  return opened;
}

Opened ExcerptOf(const Opened& book, const char* chapters, const char* pages,
                 tiercel_status expected = TIERCEL_OK) {
  Opened opened;
  auto choice = TIERCEL_INIT(tiercel_excerpt);
  choice.chapters = chapters;
  choice.pages = pages;
  EXPECT_EQ(tiercel_document_excerpt(book.document, &choice, &opened.document,
                                     &opened.error),
            expected)
      << opened.error.message;
  return opened;
}

TEST(DocumentsApiTest, AnOutlineIsInBytesOfTheText) {
  Opened book = OpenBytes(kBook);
  const tiercel_document_info info = book.Info();
  EXPECT_STREQ(info.title, "The Hunt");
  EXPECT_STREQ(info.author, "");
  EXPECT_STREQ(info.language, "en");
  EXPECT_EQ(info.num_sections, 5u);
  EXPECT_EQ(info.num_chapters, 4u);
  EXPECT_EQ(info.num_pages, 0u);
  EXPECT_EQ(info.num_warnings, 0u);
  EXPECT_EQ(tiercel_document_warning(book.document, 0), nullptr);

  const std::string text = book.Text();
  const tiercel_section dawn = book.Section(1);
  EXPECT_EQ(dawn.level, 1);
  EXPECT_STREQ(dawn.label, "Chapter 1");
  EXPECT_STREQ(dawn.title, "Dawn");
  EXPECT_STREQ(dawn.name, "Chapter 1 Dawn");
  EXPECT_THAT(text.substr(dawn.begin, dawn.end - dawn.begin),
              HasSubstr("They sing."));
  EXPECT_EQ(dawn.end, book.Section(3).begin);
  EXPECT_EQ(book.Section(2).level, 2);
  EXPECT_EQ(book.Section(4).end, text.size());

  EXPECT_EQ(book.Chapter(0).has_number, 0);  // the preface
  const tiercel_chapter noon = book.Chapter(2);
  EXPECT_EQ(noon.section, 3u);
  EXPECT_EQ(noon.has_number, 1);
  EXPECT_EQ(noon.number, 2);
  EXPECT_EQ(noon.begin, book.Section(3).begin);
  EXPECT_EQ(noon.end, book.Section(4).begin);
}

TEST(DocumentsApiTest, APlaceIsThatOfTheRun) {
  Opened book = OpenBytes(kBook);
  const tiercel_section birds = book.Section(2);
  EXPECT_EQ(book.Place(birds.begin, birds.end), "1.1 Birds");
  EXPECT_EQ(book.Place(birds.begin, book.Text().size()),
            "Chapter 1 Dawn to Chapter 3 Night");
  size_t size = 0;
  EXPECT_EQ(
      tiercel_document_place(book.document, 3, 2, nullptr, &size, &book.error),
      TIERCEL_USAGE);
  EXPECT_EQ(tiercel_document_place(book.document, 0, 99999, nullptr, &size,
                                   &book.error),
            TIERCEL_USAGE);
  EXPECT_THAT(book.message(), HasSubstr("got 0 to 99999, the text has"));
}

TEST(DocumentsApiTest, AnExcerptOutlivesItsBookAndKeepsItsNumbers) {
  Opened excerpt = [] {
    const Opened book = OpenBytes(kBook);
    return ExcerptOf(book, "2-3", nullptr);
  }();
  EXPECT_EQ(excerpt.Info().num_chapters, 2u);
  EXPECT_EQ(excerpt.Chapter(0).number, 2);
  EXPECT_EQ(excerpt.Chapter(1).number, 3);
  EXPECT_THAT(excerpt.Text(), HasSubstr("It is hot."));
  EXPECT_THAT(excerpt.Text(), Not(HasSubstr("They sing.")));
  EXPECT_EQ(excerpt.Place(0, excerpt.Text().size()),
            "Chapter 2 Noon to Chapter 3 Night");
  // A part of a title is enough.
  EXPECT_THAT(ExcerptOf(excerpt, "nigh", nullptr).Text(), HasSubstr("dark"));
}

TEST(DocumentsApiTest, PagesAreThoseThatArePrinted) {
  std::string text = "<body>";
  for (const char* page : {"xii", "1", "2"}) {
    text += std::string("<span role='doc-pagebreak' aria-label='") + page +
            "'></span><p>Page " + page + " of it.</p>";
  }
  Opened book = OpenBytes(text);
  ASSERT_EQ(book.Info().num_pages, 3u);
  auto page = TIERCEL_INIT(tiercel_page);
  ASSERT_EQ(tiercel_document_get_page(book.document, 1, &page, &book.error),
            TIERCEL_OK);
  EXPECT_STREQ(page.number, "1");
  EXPECT_THAT(book.Text().substr(page.begin, page.end - page.begin),
              HasSubstr("Page 1 of it."));
  EXPECT_EQ(book.Place(page.begin, page.end), "page 1");
  Opened excerpt = ExcerptOf(book, nullptr, "xii-1");
  EXPECT_THAT(excerpt.Text(), HasSubstr("Page 1 of it."));
  EXPECT_THAT(excerpt.Text(), Not(HasSubstr("Page 2")));
}

TEST(DocumentsApiTest, WarningsAreSentences) {
  std::string text = "\xe9t\xe9 ";
  while (text.size() < 4000) text += "un \xe9t\xe9 \xe0 la mer. ";
  Opened book = OpenBytes(text, "a.txt");
  ASSERT_EQ(book.Info().num_warnings, 1u);
  EXPECT_NE(tiercel_document_warning(book.document, 0), nullptr);
  EXPECT_EQ(tiercel_document_warning(book.document, 1), nullptr);
  EXPECT_EQ(tiercel_document_warning(nullptr, 0), nullptr);
}

// Parts of at most `most` bytes, and what else a call of
// tiercel_document_parts met.
struct Parts {
  size_t most = 60;
  int calls = 0;
  int stop_at = -1;  // the call of on_part that ends it
  bool throws = false;
  std::vector<std::pair<size_t, size_t>> runs;

  static int Fits(void* self, const char* run, size_t bytes) {
    auto& parts = *static_cast<Parts*>(self);
    ++parts.calls;
    EXPECT_NE(run, nullptr);
    if (parts.throws) throw std::runtime_error("no more");
    return bytes <= parts.most;
  }
  static int OnPart(void* self, size_t begin, size_t end) {
    auto& parts = *static_cast<Parts*>(self);
    parts.runs.emplace_back(begin, end);
    return static_cast<int>(parts.runs.size()) == parts.stop_at;
  }
  tiercel_status Cut(Opened& book) {
    return tiercel_document_parts(book.document, 0, Fits, OnPart, this,
                                  &book.error);
  }
};

TEST(DocumentsApiTest, PartsJoinAndFit) {
  Opened book = OpenBytes(kBook);
  Parts parts;
  ASSERT_EQ(parts.Cut(book), TIERCEL_OK) << book.message();
  ASSERT_GT(parts.runs.size(), 2u);
  EXPECT_GT(parts.calls, 0);
  size_t at = 0;
  for (const auto& [begin, end] : parts.runs) {
    EXPECT_EQ(begin, at);
    EXPECT_GT(end, begin);
    EXPECT_LE(end - begin, parts.most);
    at = end;
  }
  EXPECT_EQ(at, book.Text().size());

  // A chapter within reach ends a part, though a section behind it is, too.
  Parts longer;
  longer.most = book.Section(2).begin + 5;
  ASSERT_EQ(longer.Cut(book), TIERCEL_OK);
  EXPECT_EQ(longer.runs[0].second, book.Section(1).begin);

  Parts two;
  two.stop_at = 2;
  EXPECT_EQ(two.Cut(book), TIERCEL_CANCELLED);
  EXPECT_EQ(two.runs.size(), 2u);

  Parts none;
  none.most = 0;
  EXPECT_EQ(none.Cut(book), TIERCEL_INVALID_INPUT);
  EXPECT_EQ(book.code(), "nothing_fits");

  Parts thrown;
  thrown.throws = true;
  EXPECT_EQ(thrown.Cut(book), TIERCEL_FAILED);
  EXPECT_EQ(book.message(), "no more");
  EXPECT_EQ(tiercel_document_parts(book.document, 0, nullptr, Parts::OnPart,
                                   &parts, &book.error),
            TIERCEL_USAGE);
}

TEST(DocumentsApiTest, AFileIsReadByItsPath) {
  const std::string path = testing::TempDir() + "/some.txt";
  std::ofstream(path) << "Some text.\n";
  Opened book;
  auto params = TIERCEL_INIT(tiercel_document_params);
  params.path = path.c_str();
  ASSERT_EQ(tiercel_document_open(&params, &book.document, &book.error),
            TIERCEL_OK);
  EXPECT_EQ(book.Text(), "Some text.\n");

  params.bytes = "x";
  params.num_bytes = 1;
  Opened both;
  EXPECT_EQ(tiercel_document_open(&params, &both.document, &both.error),
            TIERCEL_USAGE);
  EXPECT_EQ(both.document, nullptr);

  params = TIERCEL_INIT(tiercel_document_params);
  params.path = "/nowhere/book.epub";
  EXPECT_EQ(tiercel_document_open(&params, &both.document, &both.error),
            TIERCEL_IO);
  EXPECT_EQ(both.code(), "file_not_found");
  EXPECT_THAT(both.message(), HasSubstr("/nowhere/book.epub"));

  params = TIERCEL_INIT(tiercel_document_params);
  params.bytes = "\0\0\0\0";
  params.num_bytes = 4;
  EXPECT_EQ(tiercel_document_open(&params, &both.document, &both.error),
            TIERCEL_INVALID_INPUT);
  EXPECT_EQ(both.code(), "not_text");
  EXPECT_THAT(both.message(), HasSubstr("document"));
  params.bytes = nullptr;
  EXPECT_EQ(tiercel_document_open(&params, &both.document, &both.error),
            TIERCEL_USAGE);
}

TEST(DocumentsApiTest, WrongCallsAreErrors) {
  Opened book = OpenBytes(kBook);
  tiercel_error& error = book.error;
  auto info = TIERCEL_INIT(tiercel_document_info);
  EXPECT_EQ(tiercel_document_get_info(nullptr, &info, &error), TIERCEL_USAGE);
  EXPECT_EQ(book.code(), "null_argument");
  EXPECT_EQ(tiercel_document_get_info(book.document, nullptr, &error),
            TIERCEL_USAGE);
  auto section = TIERCEL_INIT(tiercel_section);
  EXPECT_EQ(tiercel_document_get_section(book.document, 5, &section, &error),
            TIERCEL_USAGE);
  EXPECT_EQ(book.message(), "index: got 5, the document has 5 sections");
  auto chapter = TIERCEL_INIT(tiercel_chapter);
  EXPECT_EQ(tiercel_document_get_chapter(book.document, 4, &chapter, &error),
            TIERCEL_USAGE);
  auto page = TIERCEL_INIT(tiercel_page);
  EXPECT_EQ(tiercel_document_get_page(book.document, 0, &page, &error),
            TIERCEL_USAGE);
  EXPECT_EQ(ExcerptOf(book, nullptr, nullptr, TIERCEL_USAGE).code(),
            "invalid_argument");
  EXPECT_EQ(ExcerptOf(book, "2", "3", TIERCEL_USAGE).code(),
            "invalid_argument");
  EXPECT_EQ(ExcerptOf(book, "3-", nullptr, TIERCEL_USAGE).code(),
            "invalid_argument");
  EXPECT_EQ(ExcerptOf(book, "9", nullptr, TIERCEL_INVALID_INPUT).code(),
            "chapter_not_found");
  EXPECT_EQ(ExcerptOf(book, nullptr, "9", TIERCEL_INVALID_INPUT).code(),
            "no_pages");
  tiercel_document* none = book.document;
  EXPECT_EQ(tiercel_document_open(nullptr, &none, &error), TIERCEL_USAGE);
  EXPECT_EQ(none, nullptr);
  tiercel_document_free(nullptr);
}

// A program with an older header has a shorter struct, whatever lies behind it.
// A program may have traps on: they are its own.
TEST(DocumentsApiTest, ItComputesWithoutTheProgramsTraps) {
  feenableexcept(FE_DIVBYZERO | FE_INEXACT);
  Opened book = OpenBytes(kBook);
  const tiercel_document_info info = book.Info();
  EXPECT_EQ(fegetexcept(), FE_DIVBYZERO | FE_INEXACT);
  fedisableexcept(FE_ALL_EXCEPT);
  EXPECT_GT(info.num_sections, 0u);
}

// Errors name the fields of the header, not the flags of the command line.
TEST(DocumentsApiTest, ErrorsNameFields) {
  Opened book = OpenBytes(kBook);
  auto choice = TIERCEL_INIT(tiercel_excerpt);
  choice.chapters = "Q";
  Opened excerpt;
  EXPECT_EQ(tiercel_document_excerpt(book.document, &choice, &excerpt.document,
                                     &excerpt.error),
            TIERCEL_INVALID_INPUT);
  EXPECT_THAT(excerpt.message(), HasSubstr("chapters: no title has 'Q'"));
  EXPECT_THAT(excerpt.message(), Not(HasSubstr("--chapters")));
}

TEST(DocumentsApiTest, AnOlderStructGetsWhatItKnows) {
  Opened book = OpenBytes(kBook);
  auto info = TIERCEL_INIT(tiercel_document_info);
  info.struct_size = offsetof(tiercel_document_info, title);
  info.title = "untouched";
  ASSERT_EQ(tiercel_document_get_info(book.document, &info, &book.error),
            TIERCEL_OK);
  EXPECT_EQ(std::string(info.text, info.text_bytes), book.Text());
  EXPECT_STREQ(info.title, "untouched");
}

}  // namespace
}  // namespace tiercel

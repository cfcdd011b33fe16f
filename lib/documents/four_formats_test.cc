// One book in four formats: the chapters have the same titles, and the same
// words in the same order. The book is in $TIERCEL_BOOKS (tests/setup/book.sh).

#include <algorithm>
#include <cstdlib>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/documents/document.h"
#include "lib/documents/document_for_test.h"
#include "lib/documents/unicode.h"

namespace tiercel::document {
namespace {

struct Chapter {
  std::string title;
  std::string_view text;
};

std::vector<Chapter> ChaptersOf(const Document& document) {
  std::vector<Chapter> chapters;
  const Section* open = nullptr;
  const auto close = [&](size_t end) {
    if (open == nullptr) return;
    chapters.push_back(
        {open->title, std::string_view(document.text)
                          .substr(open->begin, end - open->begin)});
  };
  for (const Section& section : document.sections) {
    if (section.level > 1) continue;
    close(section.begin);
    open = &section;
  }
  close(document.text.size());
  return chapters;
}

// Returns the words of letters in lower case. Numbers of sections differ, since
// the PDF goes on counting in the appendices, and signs for notes and pictures
// differ as well.
std::vector<std::string> WordsOf(std::string_view text) {
  std::vector<std::string> words;
  std::u32string word;
  for (size_t at = 0; at <= text.size();) {
    const char32_t c = at == text.size() ? U' ' : CharacterAt(text, at, &at);
    if (c == U' ' && at == text.size()) ++at;
    if (IsLetter(c)) {
      word.push_back(LowerCase(c));
    } else if (!word.empty()) {
      words.push_back(FromUtf32(word));
      word.clear();
    }
  }
  return words;
}

// Returns a chapter's text without its notes: blocks that begin with "[1]", and
// the indented blocks behind them.
std::string WithoutNotes(std::string_view text) {
  std::string rest;
  bool in_note = false;
  for (size_t begin = 0; begin < text.size();) {
    size_t end = text.find("\n\n", begin);
    end = end == std::string_view::npos ? text.size() : end + 2;
    const std::string_view block = text.substr(begin, end - begin);
    begin = end;
    const size_t first = block.find_first_not_of(" \n");
    if (first == std::string_view::npos) continue;
    const size_t close = block.find(']', first);
    const bool is_note =
        block[first] == '[' && close != std::string_view::npos &&
        block.substr(first + 1, close - first - 1)
                .find_first_not_of("0123456789") == std::string_view::npos;
    in_note = is_note || (in_note && block.substr(0, 3) == "   ");
    if (!in_note) rest += block;
  }
  return rest;
}

// Returns the number of words that two texts share in the same order: the
// longest common subsequence, by the method of Hunt and Szymanski.
size_t NumInOrder(const std::vector<std::string>& a,
                  const std::vector<std::string>& b) {
  // Positions in b of each word.
  std::map<std::string, std::vector<size_t>> places;
  for (size_t i = b.size(); i-- > 0;) places[b[i]].push_back(i);
  std::vector<size_t> ends;  // least last position in b of a chain, by length
  for (const std::string& word : a) {
    const auto found = places.find(word);
    if (found == places.end()) continue;
    for (const size_t place : found->second) {
      const auto end = std::lower_bound(ends.begin(), ends.end(), place);
      if (end == ends.end()) {
        ends.push_back(place);
      } else {
        *end = place;
      }
    }
  }
  return ends.size();
}

class FourFormatsTest : public testing::Test {
 protected:
  void SetUp() override {
    const char* const books = std::getenv("TIERCEL_BOOKS");
    if (books == nullptr && std::getenv("CI") == nullptr) {
      GTEST_SKIP() << "needs TIERCEL_BOOKS, see tests/setup/book.sh";
    }
    ASSERT_NE(books, nullptr);
    folder_ = books;
  }
  Document Read(const std::string& name) const {
    return Good(ReadDocument(folder_ + "/" + name));
  }

  std::string folder_;
};

TEST_F(FourFormatsTest, TheirChaptersAreTheSame) {
  const Document html = Read("html");
  const std::vector<Chapter> expected = ChaptersOf(html);
  ASSERT_GT(expected.size(), 20u);
  for (const char* name : {"policy.epub", "policy.txt", "policy.pdf"}) {
    const Document document = Read(name);
    EXPECT_EQ(document.title, html.title) << name;
    const std::vector<Chapter> chapters = ChaptersOf(document);
    ASSERT_EQ(chapters.size(), expected.size()) << name;
    size_t num_words = 0;
    size_t num_same = 0;
    for (size_t i = 0; i < chapters.size(); ++i) {
      EXPECT_EQ(chapters[i].title, expected[i].title) << name;
      const auto a = WordsOf(WithoutNotes(expected[i].text));
      const auto b = WordsOf(WithoutNotes(chapters[i].text));
      const size_t same = NumInOrder(a, b);
      EXPECT_GE(same * 100, a.size() * 99) << name << ": " << expected[i].title;
      num_words += std::max(a.size(), b.size());
      num_same += same;
    }
    // There is not much more text than that either.
    EXPECT_GE(num_same * 100, num_words * 99)
        << name << ": " << num_same << " of " << num_words;
    RecordProperty(
        std::string(name).replace(6, 1, "_"),
        std::to_string(num_same) + " of " + std::to_string(num_words));
  }
}

// The tables of contents of Project Gutenberg's novels, if they are present,
// have so many entries.
TEST_F(FourFormatsTest, NovelsHaveTheirChapters) {
  const std::pair<const char*, size_t> novels[] = {
      {"alice.txt", 12}, {"moby_dick.txt", 138}, {"news_from_nowhere.txt", 32}};
  for (const auto& [name, num_chapters] : novels) {
    const Result result = ReadDocument(folder_ + "/" + name);
    if (CodeOf(result) == "file_not_found") continue;
    EXPECT_EQ(ChaptersOf(Good(result)).size(), num_chapters) << name;
  }
}

}  // namespace
}  // namespace tiercel::document

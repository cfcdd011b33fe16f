#include "lib/documents/gutenberg.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>

#include "lib/documents/encoding.h"
#include "lib/documents/text_writer.h"

namespace tiercel::document {
namespace {

// Frames are some kilobytes long.
constexpr size_t kMaxHeaderBytes = size_t{64} << 10;
constexpr size_t kMaxFooterBytes = size_t{64} << 10;

constexpr std::array<std::pair<std::string_view, std::string_view>, 20>
    kLanguages = {
        {{"english", "en"},   {"german", "de"},     {"french", "fr"},
         {"spanish", "es"},   {"italian", "it"},    {"dutch", "nl"},
         {"russian", "ru"},   {"chinese", "zh"},    {"japanese", "ja"},
         {"latin", "la"},     {"finnish", "fi"},    {"swedish", "sv"},
         {"danish", "da"},    {"norwegian", "no"},  {"greek", "el"},
         {"polish", "pl"},    {"portuguese", "pt"}, {"czech", "cs"},
         {"hungarian", "hu"}, {"esperanto", "eo"}}};

bool Has(std::string_view line, std::string_view words) {
  return line.find(words) != std::string_view::npos;
}

bool IsStart(std::string_view line) {
  // Until 2003 a notice in small print ended the header.
  if (line.substr(0, 22) == "*end*the small print! " ||
      line.substr(0, 23) == "*end the small print! f") {
    return true;
  }
  return line.substr(0, 3) == "***" && Has(line, "start of th") &&
         Has(line, "project gutenberg");
}

bool IsEnd(std::string_view line) {
  return (line.substr(0, 3) == "***" && Has(line, "end of th") &&
          Has(line, "project gutenberg")) ||
         line.substr(0, 24) == "end of project gutenberg" ||
         line.substr(0, 28) == "end of the project gutenberg" ||
         line.substr(0, 29) == "end of this project gutenberg";
}

// Returns the value of a header field such as "Title:", with its continuation
// lines, which are indented.
std::string Field(std::string_view header, std::string_view name) {
  const size_t at = header.find(name);  // `name` begins with a line feed
  if (at == std::string_view::npos) return {};
  size_t end = header.find('\n', at + 1);
  while (end != std::string_view::npos && header.substr(end + 1, 2) == "  ") {
    end = header.find('\n', end + 1);
  }
  const size_t begin = at + name.size();
  return OneLine(header.substr(begin, end - begin));
}

// Drops what begins outside of a part of the text, and moves the others.
template <typename Part>
void Shift(size_t begin, size_t end, std::vector<Part>* parts) {
  parts->erase(std::remove_if(parts->begin(), parts->end(),
                              [&](const Part& part) {
                                return part.begin < begin || part.begin >= end;
                              }),
               parts->end());
  for (Part& part : *parts) part.begin -= begin;
}

// Takes title and author from a header without fields, whose first line is "The
// Project Gutenberg Etext of TITLE, by AUTHOR".
void ReadFirstLine(std::string_view header, Document* document) {
  const std::string lower = Lowercase(header);
  for (const std::string_view words :
       {"project gutenberg etext of ", "project gutenberg ebook of ",
        "project gutenberg's etext of ", "project gutenberg's "}) {
    const size_t at = lower.find(words);
    if (at == std::string::npos) continue;
    const size_t begin = at + words.size();
    std::string line = OneLine(
        header.substr(begin, header.find_first_of("\n*", begin) - begin));
    const size_t by = line.rfind(" by ");
    if (by != std::string::npos) {
      document->author = line.substr(by + 4);
      line.resize(by);
    }
    while (!line.empty() && (line.back() == ',' || IsSpace(line.back()))) {
      line.pop_back();
    }
    document->title = std::move(line);
    return;
  }
}

// The bytes of a text that are the book; `begin` is 0 if it has no frame.
struct Place {
  size_t begin = 0;
  size_t end = 0;
};

// The last end mark counts, since a volume may have one of its own; but two
// stand close together before the licence. A text that ends within the book has
// none, and one before too much text is no footer. Another start is another
// book.
Place BookIn(std::string_view text) {
  constexpr size_t kMaxBetween = 1500;
  Place book;
  size_t last = 0;  // the last end mark
  for (size_t line = 0; line < text.size();) {
    const size_t line_end = std::min(text.find('\n', line), text.size());
    const std::string lower =
        Lowercase(text.substr(line, std::min(line_end - line, size_t{120})));
    if (book.begin == 0) {
      if (line > kMaxHeaderBytes) return {};
      if (IsStart(lower)) book.begin = std::min(line_end + 1, text.size());
    } else if (IsEnd(lower)) {
      if (last == 0 || line - last > kMaxBetween) book.end = line;
      last = line;
    } else if (last > 0 && lower.substr(0, 15) == "*** start of th") {
      return {};
    }
    line = line_end + 1;
  }
  if (last == 0 || text.size() - book.end > kMaxFooterBytes) {
    book.end = text.size();
  }
  return book;
}

}  // namespace

void ReadGutenbergFields(std::string_view header, Document* document) {
  std::string title = Field(header, "\nTitle:");
  if (!title.empty()) document->title = std::move(title);
  std::string author = Field(header, "\nAuthor:");
  if (!author.empty()) document->author = std::move(author);
  const std::string language = Lowercase(Field(header, "\nLanguage:"));
  for (const auto& [name, tag] : kLanguages) {
    if (language == name) document->language = tag;
  }
}

void LeaveOutGutenbergFrame(Document* document) {
  const std::string_view text = document->text;
  const auto [begin, end] = BookIn(text);
  if (begin == 0) return;
  const std::string header = "\n" + std::string(text.substr(0, begin));
  if (Field(header, "\nTitle:").empty()) {
    ReadFirstLine(header, document);
  } else {
    document->author.clear();
  }
  ReadGutenbergFields(header, document);
  document->warnings.push_back(
      "Project Gutenberg's frame around the book was left out: " +
      std::to_string(begin) + " bytes before it, " +
      std::to_string(text.size() - end) + " behind" +
      (end < text.size() ? "" : "; it has no end mark, and may be cut off"));
  document->text = document->text.substr(begin, end - begin);
  Shift(begin, end, &document->sections);
  Shift(begin, end, &document->pages);
}

}  // namespace tiercel::document

#ifndef TIERCEL_APPS_NOTES_NOTES_H_
#define TIERCEL_APPS_NOTES_NOTES_H_

#include <string>
#include <string_view>
#include <vector>

namespace tiercel::reader {

// The result of a reading: texts, and where each comes from. No text is
// trusted: in every format it shows its letters and does nothing else, whether
// a model, a book or a command line wrote it.
struct Notes {
  struct Paragraph {
    std::string text;
    std::string place;  // its origin; may be empty
    std::string link;   // id of the section at that place; may be empty
  };
  struct Section {
    std::string heading;
    std::string id;  // letters, digits and '-'; unique
    std::vector<Paragraph> paragraphs;

    // Adds the paragraphs of a text, all of which come from one place.
    void Add(std::string_view text, const std::string& place = "",
             const std::string& link = "");
  };
  std::string title;
  std::string author;  // may be empty
  std::vector<Section> sections;
  std::string footer;  // one line: the program that made the notes
};

enum class NotesFormat { kText, kMarkdown, kHtml };

// Returns the whole file, which ends in a line end. In Markdown and HTML
// several sections have a list of links before them, and places are links, too.
// HTML is one file that fetches nothing and fits narrow screens.
std::string Render(const Notes& notes, NotesFormat format);

// Splits a text into paragraphs at blank lines, without blanks at their ends.
std::vector<std::string> Paragraphs(std::string_view text);

// Returns CommonMark that shows `text` as it is: a backslash precedes every
// character that would be markup, and line ends are kept.
std::string EscapeMarkdown(std::string_view text);

}  // namespace tiercel::reader

#endif  // TIERCEL_APPS_NOTES_NOTES_H_

#ifndef TIERCEL_APPS_READER_NOTES_H_
#define TIERCEL_APPS_READER_NOTES_H_

#include <string>
#include <string_view>
#include <vector>

namespace tiercel::reader {

// What a reading left: texts, and where each comes from. Nothing in it is
// trusted: who wrote a text (a model, a book, a command line) says no more than
// its letters, in every format.
struct Notes {
  struct Paragraph {
    std::string text;
    std::string place;  // where it comes from; empty: not said
    std::string link;   // the id of the section that the place is; or empty
  };
  struct Section {
    std::string heading;
    std::string id;  // letters, digits and '-'; unlike any other
    std::vector<Paragraph> paragraphs;

    // Adds the paragraphs of a text, all of which come from one place.
    void Add(std::string_view text, const std::string& place = "",
             const std::string& link = "");
  };
  std::string title;
  std::string author;  // may be empty
  std::vector<Section> sections;
  std::string footer;  // one line: what made them
};

enum class NotesFormat { kText, kMarkdown, kHtml };

// The whole file, which ends in a line end. HTML is one file with nothing to
// fetch, for narrow screens too; places are links within it.
std::string Render(const Notes& notes, NotesFormat format);

// The paragraphs of a text: what blank lines part, without blanks around.
std::vector<std::string> Paragraphs(std::string_view text);

// CommonMark that shows `text` as it is: with a backslash before whatever would
// say more, and its line ends kept.
std::string EscapeMarkdown(std::string_view text);

}  // namespace tiercel::reader

#endif  // TIERCEL_APPS_READER_NOTES_H_

#ifndef TIERCEL_LIB_READER_PLAIN_FORM_H_
#define TIERCEL_LIB_READER_PLAIN_FORM_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace tiercel::reader {

// A text in the form in which words are looked up: what differs by typesetting
// alone is the same. Any blanks are one space, and there is none around a dash
// nor before a mark of punctuation; any dashes are one "-"; any quotation mark
// and apostrophe is "'"; letters and their accents are apart; characters that
// do not show, and "_" and "*", which mark emphasis, are left out.
class PlainForm {
 public:
  // The text must outlive the form.
  explicit PlainForm(std::string_view source);

  const std::string& text() const { return text_; }
  // The position in the source of the character that the byte at `index` stands
  // for; the source's end for that of the text.
  size_t SourceOf(size_t index) const;
  // The first byte that stands for a character at `source` or behind it.
  size_t IndexOf(size_t source) const;

 private:
  // A byte of the text, and the place of its character in the source.
  struct Anchor {
    size_t index;
    size_t source;
  };

  std::string_view source_;
  std::string text_;
  std::vector<Anchor> anchors_;  // one for each few thousand bytes
};

}  // namespace tiercel::reader

#endif  // TIERCEL_LIB_READER_PLAIN_FORM_H_

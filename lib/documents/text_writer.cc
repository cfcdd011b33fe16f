#include "lib/documents/text_writer.h"

#include <algorithm>
#include <utility>

#include "lib/documents/encoding.h"
#include "lib/documents/unicode.h"

namespace tiercel::document {

bool IsSpace(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

std::string OneLine(std::string_view text) {
  TextWriter writer;
  writer.Words(text);
  std::string line = writer.Take();
  if (!line.empty()) line.pop_back();
  return line;
}

void TextWriter::Words(std::string_view text) {
  if (IsClean(text)) {
    CleanWords(text);
  } else {
    CleanWords(Clean(text));
  }
}

void TextWriter::Preformatted(std::string_view text) {
  if (IsClean(text)) {
    CleanPreformatted(text);
  } else {
    CleanPreformatted(Clean(text));
  }
}

void TextWriter::CleanWords(std::string_view text) {
  for (size_t i = 0; i < text.size(); ++i) {
    if (IsSpace(text[i])) {
      space_ = true;
      line_end_ = line_end_ || text[i] == '\n';
    } else if (text.substr(i, 2) == "\xC2\xA0") {  // no-break space
      space_ = true;
      ++i;
    } else if (text.substr(i, 2) == "\xC2\xAD") {  // soft hyphen
      ++i;
    } else if (text.substr(i, 3) == "\xE2\x80\x8B") {  // zero-width space
      i += 2;
    } else {
      if (space_ && line_end_) DropSpaceBefore(text, i);
      StartText();
      text_.push_back(text[i]);
    }
  }
}

void TextWriter::DropSpaceBefore(std::string_view text, size_t at) {
  size_t next = 0;
  if (IsIdeographic(CharacterBefore(text_, text_.size())) &&
      IsIdeographic(CharacterAt(text, at, &next))) {
    space_ = false;
  }
}

void TextWriter::CleanPreformatted(std::string_view text) {
  for (const char c : text) {
    space_ = false;
    if (c == '\n') {
      ++newlines_;
      preformatted_break_ = true;
    } else {
      StartText();
      text_.push_back(c);
    }
  }
  space_ = false;
}

void TextWriter::Break(int newlines) {
  space_ = false;
  if (preformatted_break_) newlines_ = 0;
  preformatted_break_ = false;
  newlines_ = std::max(newlines_, newlines);
}

void TextWriter::Line() {
  space_ = false;
  ++newlines_;
}

size_t TextWriter::Mark() {
  marks_.push_back(0);
  return marks_.size() - 1;
}

std::vector<size_t> TextWriter::Marks() const {
  std::vector<size_t> marks = marks_;
  std::fill(marks.begin() + static_cast<std::ptrdiff_t>(num_placed_),
            marks.end(), text_.size());
  return marks;
}

std::string TextWriter::Take() {
  std::fill(marks_.begin() + static_cast<std::ptrdiff_t>(num_placed_),
            marks_.end(), text_.size());
  num_placed_ = marks_.size();
  if (!text_.empty()) text_.push_back('\n');
  return std::move(text_);
}

bool TextWriter::IsClean(std::string_view text) {
  return IsUtf8(text) && std::none_of(text.begin(), text.end(), [](char c) {
           return c == '\r' || IsControl(c);
         });
}

std::string TextWriter::Clean(std::string_view text) {
  std::string clean = WithUnixLineEnds(ValidUtf8(text));
  num_controls_ += ReplaceControls(&clean);
  return clean;
}

void TextWriter::StartText() {
  if (newlines_ > 0 || text_.empty()) {
    if (!text_.empty()) {
      text_.append(static_cast<size_t>(newlines_), '\n');
    }
    newlines_ = 0;
    preformatted_break_ = false;
    const int columns = indent_ - static_cast<int>(marker_.size());
    if (columns > 0) text_.append(static_cast<size_t>(columns), ' ');
    text_ += marker_;
    marker_.clear();
    at_line_start_ = true;
    space_ = false;
  }
  if (space_ && !at_line_start_) text_.push_back(' ');
  space_ = false;
  line_end_ = false;
  at_line_start_ = false;
  for (; num_placed_ < marks_.size(); ++num_placed_) {
    marks_[num_placed_] = text_.size();
  }
}

}  // namespace tiercel::document

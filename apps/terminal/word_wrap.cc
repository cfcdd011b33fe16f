#include "apps/terminal/word_wrap.h"

#include <algorithm>
#include <utility>

#include "apps/terminal/printable.h"

namespace tiercel::cli {
namespace {

constexpr int kTabColumns = 8;

// The column behind `blanks`, which begin in `column`.
int ColumnBehind(std::string_view blanks, int column) {
  for (const char blank : blanks) {
    column += blank == '\t' ? kTabColumns - column % kTabColumns : 1;
  }
  return column;
}

// Returns true if a wide character may not begin a line, since it closes the
// text before it.
bool Closes(std::string_view character) {
  constexpr std::string_view kClosing =
      "\u3001\u3002\u3009\u300b\u300d\u300f\u3011\u3015\u3017"
      "\uff01\uff09\uff0c\uff0e\uff1a\uff1b\uff1f\uff3d\uff5d"
      "\u30fc\u3005";
  return kClosing.find(character) != std::string_view::npos;
}

}  // namespace

void WordWrap::PutWord(int columns, std::string* out) {
  if (word_.empty()) return;
  const int end = ColumnBehind(blanks_, column_) + word_columns_;
  if (columns > 0 && column_ > 0 && end > columns) {
    *out += '\n';
    column_ = word_columns_;
  } else {
    *out += blanks_;
    column_ = end;
  }
  *out += word_;
  blanks_.clear();
  word_.clear();
  word_columns_ = 0;
}

void WordWrap::EndWord(std::string_view blank, int columns, std::string* out) {
  PutWord(columns, out);
  is_long_ = false;
  ends_wide_ = false;
  if (blank != "\n") {
    blanks_ += blank;
    return;
  }
  *out += '\n';
  blanks_.clear();
  column_ = 0;
}

void WordWrap::AddToWord(std::string_view bytes,
                         const TerminalCharacter& character, int columns,
                         std::string* out) {
  if (character.columns > 0) {
    if (character.is_wide ? !Closes(bytes) : ends_wide_) {
      PutWord(columns, out);
      is_long_ = false;
    }
    ends_wide_ = character.is_wide;
  }
  if (is_long_) {
    *out += bytes;
    column_ += character.columns;
    if (column_ > columns) column_ = character.columns;
    return;
  }
  word_ += bytes;
  word_columns_ += character.columns;
  if (columns == 0 || word_columns_ <= columns) return;
  PutWord(columns, out);
  is_long_ = true;
  column_ = character.columns;  // the terminal broke the line before it
}

std::string WordWrap::Push(std::string_view piece, int columns) {
  std::string out;
  for (size_t at = 0; at < piece.size();) {
    const TerminalCharacter character = CharacterAt(piece, at);
    const std::string_view bytes = piece.substr(at, character.bytes);
    at += character.bytes;
    if (bytes == "\n" || bytes == " " || bytes == "\t") {
      EndWord(bytes, columns, &out);
    } else {
      AddToWord(bytes, character, columns, &out);
    }
  }
  return columns > 0 ? out : out + Finish(columns);
}

std::string WordWrap::Finish(int columns) {
  std::string out;
  PutWord(columns, &out);
  if (columns == 0) {
    column_ = ColumnBehind(blanks_, column_);
    out += std::exchange(blanks_, std::string());
  }
  return out;
}

}  // namespace tiercel::cli

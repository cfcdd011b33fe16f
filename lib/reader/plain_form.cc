#include "lib/reader/plain_form.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include "lib/documents/unicode.h"

namespace tiercel::reader {
namespace {

constexpr size_t kBetweenAnchors = 4096;  // bytes of the plain form

bool IsAny(char32_t character, std::u32string_view of) {
  return of.find(character) != std::u32string_view::npos;
}

// Appends the characters of a text to its plain form, one by one.
class Writer {
 public:
  // `from`, if any, gets the place of the character of each byte.
  Writer(std::string_view source, size_t at, std::vector<size_t>* from)
      : source_(source), at_(at), from_(from) {}

  bool AtEnd() const { return at_ == source_.size(); }
  size_t at() const { return at_; }
  const std::string& text() const { return text_; }
  std::string TakeText() && { return std::move(text_); }

  // Appends the next character.
  void Next() {
    const size_t begin = at_;
    const char32_t character = document::CharacterAt(source_, at_, &at_);
    if (IsAny(character, U"\"'`´“”„‟«»‘’‚‛‹›ʼ′″")) {
      Append(U'\'', begin);
    } else if (character < 0x80) {
      Append(character, begin);
    } else {
      for (const char32_t part : document::Decomposed(character)) {
        Append(part, begin);
      }
    }
  }

 private:
  void Append(char32_t character, size_t begin) {
    if (character == '_' || character == '*') return;
    const bool is_blank = character == ' ' ||
                          (character >= '\t' && character <= '\r') ||
                          character == 0x2028 || character == 0x2029;
    if (is_blank) {
      if (Ends(" ") || Ends("-")) return;
      character = ' ';
    } else if (Ends(" ") && IsAny(character, U"-.,;:!?")) {
      text_.pop_back();  // `from_` keeps its place
    }
    if (character == '-' && Ends("-")) return;
    if (character < 0x80) {
      text_ += static_cast<char>(character);
    } else {
      text_ += document::FromUtf32({&character, 1});
    }
    if (from_ != nullptr) from_->resize(text_.size(), begin);
  }

  bool Ends(std::string_view end) const {
    return text_.size() >= end.size() &&
           text_.compare(text_.size() - end.size(), end.size(), end) == 0;
  }

  const std::string_view source_;
  size_t at_;
  std::vector<size_t>* const from_;
  std::string text_;
};

}  // namespace

PlainForm::PlainForm(std::string_view source) : source_(source) {
  // No letter is changed by what stands before it, or follows.
  const auto is_letter = [](char byte) {
    return static_cast<unsigned char>(byte) >= 0x80 ||
           document::IsLetter(static_cast<unsigned char>(byte));
  };
  Writer writer(source_, 0, /*from=*/nullptr);
  anchors_.push_back({0, 0});
  while (!writer.AtEnd()) {
    const Anchor next = {writer.text().size(), writer.at()};
    writer.Next();
    if (next.index >= anchors_.back().index + kBetweenAnchors &&
        writer.text().size() > next.index &&
        is_letter(writer.text()[next.index])) {
      anchors_.push_back(next);
    }
  }
  text_ = std::move(writer).TakeText();
}

size_t PlainForm::SourceOf(size_t index) const {
  const Anchor& anchor = *std::prev(std::upper_bound(
      anchors_.begin(), anchors_.end(), index,
      [](size_t at, const Anchor& one) { return at < one.index; }));
  std::vector<size_t> from;
  Writer writer(source_, anchor.source, &from);
  while (!writer.AtEnd() && from.size() <= index - anchor.index) writer.Next();
  return from.size() > index - anchor.index ? from[index - anchor.index]
                                            : source_.size();
}

size_t PlainForm::IndexOf(size_t source) const {
  const Anchor& anchor = *std::prev(std::upper_bound(
      anchors_.begin(), anchors_.end(), source,
      [](size_t at, const Anchor& one) { return at < one.source; }));
  Writer writer(source_, anchor.source, /*from=*/nullptr);
  while (!writer.AtEnd() && writer.at() < source) writer.Next();
  return anchor.index + writer.text().size();
}

}  // namespace tiercel::reader

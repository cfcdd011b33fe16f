#ifndef TIERCEL_APPS_READER_PARTS_H_
#define TIERCEL_APPS_READER_PARTS_H_

#include <cstddef>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

namespace tiercel::reader {

// A run of a text, in bytes.
struct Part {
  size_t begin;
  size_t end;
};

// Where a text is best cut, in bytes, ascending: each begins a chapter, or a
// section below chapters.
struct Divisions {
  std::vector<size_t> chapters;
  std::vector<size_t> headings;
};

// Whether a run of the text is short enough. What begins where a run that fits
// does, and is shorter, fits.
using FitsFn = std::function<bool(std::string_view run)>;

// The text as the longest runs that fit, from its beginning on:
//
//   1. They join without a gap, from 0 to the end of the text; each fits, and
//      none is empty.
//   2. Each ends where the last chapter within reach ends; where none does at
//      the last section's end, and then a paragraph's, a sentence's, a word's,
//      a character's. A sixteenth of what is within reach is too little to end
//      at: a title page goes with what follows it.
//   3. The same text, divisions and answers give the same parts.
//
// `fits` is asked a few times for each part, about runs of up to twice what
// fits; first of all about one of `usual_bytes`. Empty where not even one
// character fits.
std::vector<Part> CutIntoParts(std::string_view text,
                               const Divisions& divisions, size_t usual_bytes,
                               const FitsFn& fits);

// Where paragraphs of `text` begin, but for the first: after a blank line.
std::vector<size_t> ParagraphBegins(std::string_view text);
// Where sentences begin, but for the first, and words, in any language that
// ends them by signs: a full stop is none in "e.g. this" or "J. Smith".
std::vector<size_t> SentenceBegins(std::string_view text);
std::vector<size_t> WordBegins(std::string_view text);
std::vector<size_t> CharacterBegins(std::string_view text);

// Cuts a text that ends somewhere back to its last whole sentence, or to its
// last whole line where that is behind it and in the second half. A text with
// neither comes back as it is, without blanks at its ends.
std::string_view WholeSentences(std::string_view text);

}  // namespace tiercel::reader

#endif  // TIERCEL_APPS_READER_PARTS_H_

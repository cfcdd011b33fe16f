#ifndef TIERCEL_LIB_READER_PARTS_H_
#define TIERCEL_LIB_READER_PARTS_H_

#include <cstddef>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "lib/reader/outline.h"

namespace tiercel::reader {

// A run of a text, in bytes.
struct Part {
  size_t begin;
  size_t end;
};

// The best places to cut a text, in bytes, ascending: each begins a chapter, or
// a section below chapters.
struct Divisions {
  std::vector<size_t> chapters;
  std::vector<size_t> headings;
};

// Returns the divisions of a book.
Divisions DivisionsOf(const Document& book);

// Returns true if a run of the text is short enough. A shorter run with the
// same start as one that fits must fit, too.
using FitsFn = std::function<bool(std::string_view run)>;

// Cuts the text into the longest runs that fit, from its start on:
//
//   1. They join without a gap, from 0 to the end of the text; each fits, and
//      none is empty.
//   2. Each ends where the last chapter within reach ends; without one, where
//     the last section does, and then a paragraph, a sentence, a word, a
//     character. A part is not ended within the first sixteenth of its reach:
//     a title page goes with what follows it.
//   3. The same text, divisions and answers of `fits` give the same parts.
//
// `fits` is called a few times for each part, with runs of up to twice what
// fits; the first has `usual_bytes`. Returns no parts if not even one character
// fits.
std::vector<Part> CutIntoParts(std::string_view text,
                               const Divisions& divisions, size_t usual_bytes,
                               const FitsFn& fits);

// The starts of the paragraphs of `text`, except the first: after a blank line.
std::vector<size_t> ParagraphBegins(std::string_view text);
// The starts of sentences, except the first, and of words and characters, in
// any language that marks the ends of its sentences. "e.g. this" and "J. Smith"
// are within a sentence.
std::vector<size_t> SentenceBegins(std::string_view text);
std::vector<size_t> WordBegins(std::string_view text);
std::vector<size_t> CharacterBegins(std::string_view text);

// Cuts a text that may break off back to its last whole sentence, or to its
// last whole line if that ends later and in the second half. A text with
// neither comes back as it is, without blanks at its ends.
std::string_view WholeSentences(std::string_view text);

}  // namespace tiercel::reader

#endif  // TIERCEL_LIB_READER_PARTS_H_

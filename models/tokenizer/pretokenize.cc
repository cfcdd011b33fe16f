#include "models/tokenizer/pretokenize.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "lib/status/error.h"
#include "lib/status/status_macros.h"
#include "lib/text/quote.h"
#include "lib/text/utf8.h"

namespace tiercel {
namespace {

// Returns `text` with a control character for each byte that is not UTF-8.
std::string WithoutStrayBytes(std::string_view text) {
  std::string clean(text);
  for (size_t at = 0; at < text.size();) {
    const Utf8Char c = Utf8At(text, at);
    if (c.code_point == kNoCodePoint) clean[at] = '\x01';
    at += c.bytes;
  }
  return clean;
}

// Returns the first match that begins at `from` or behind it and is not empty,
// or the place of an empty one behind `from`, where a pattern that matches
// nothing cuts.
absl::StatusOr<TextRange> FirstMatch(const Regex& regex, std::string_view text,
                                     size_t from, Regex::Room* room) {
  ASSIGN_OR_RETURN(TextRange match, regex.Find(text, from, room));
  if (match.begin != from || match.end != from) return match;
  return regex.Find(text, from + Utf8At(text, from).bytes, room);
}

}  // namespace

absl::StatusOr<Pretokenizer> Pretokenizer::Make(const std::vector<Cut>& cuts) {
  Pretokenizer made;
  for (const Cut& cut : cuts) {
    Step step = {MatcherOf(cut.pattern), std::nullopt, cut.is_all};
    if (step.by_hand == nullptr) {
      ASSIGN_OR_RETURN(step.regex, Regex::Compile(cut.pattern));
    }
    made.steps_.push_back(std::move(step));
  }
  return made;
}

Pretokenizer::Walk::Walk(const Pretokenizer& pretokenizer,
                         std::string_view text)
    : of_(pretokenizer), text_(text) {
  bool by_regex = false;
  for (const Step& step : of_.steps_) by_regex |= step.regex.has_value();
  // The engine takes UTF-8 alone.
  if (by_regex) {
    room_.emplace();
    clean_ = WithoutStrayBytes(text);
    text_ = clean_;
  }
  pieces_.assign(of_.steps_.size(), {0, 0});
}

absl::StatusOr<size_t> Pretokenizer::Walk::End(size_t begin) {
  TextRange around = {0, text_.size()};
  for (size_t i = 0; i < pieces_.size(); ++i) {
    TextRange& piece = pieces_[i];
    if (piece.end <= begin) {
      const Step& step = of_.steps_[i];
      const std::string_view stretch =
          text_.substr(around.begin, around.end - around.begin);
      const size_t from = begin - around.begin;
      TextRange match;
      if (step.by_hand != nullptr) {
        match = step.by_hand(stretch, from);
      } else {
        ASSIGN_OR_RETURN(match,
                         FirstMatch(*step.regex, stretch, from, &*room_));
      }
      // Text before the match is a piece of its own.
      if (match.begin > from && step.is_all) {
        return InputError(
            "invalid_text",
            absl::StrCat("tokenizer: the vocabulary has no place for ",
                         Quoted(stretch.substr(from, match.begin - from))));
      }
      piece = {begin,
               around.begin + (match.begin > from ? match.begin : match.end)};
    }
    around = piece;
  }
  return around.end;
}

}  // namespace tiercel

#include "models/tokenizer/known_patterns.h"

#include "lib/text/utf8.h"
#include "models/tokenizer/unicode_classes.h"

namespace tiercel {
namespace {

struct Char {
  char32_t code_point;
  CharClass kind;
  size_t end;  // the begin of the next one
};

Char CharAt(std::string_view text, size_t begin) {
  const Utf8Char c = Utf8At(text, begin);
  return {c.code_point, ClassOf(c.code_point), begin + c.bytes};
}

bool IsAt(std::string_view text, size_t begin, CharClass kind) {
  return begin < text.size() && CharAt(text, begin).kind == kind;
}

bool IsNewline(char32_t c) { return c == '\r' || c == '\n'; }

// Returns the end of the run of `kind` at `begin`, which may be empty.
size_t SkipClass(std::string_view text, size_t begin, CharClass kind) {
  while (begin < text.size()) {
    const Char c = CharAt(text, begin);
    if (c.kind != kind) break;
    begin = c.end;
  }
  return begin;
}

// Returns the end of the contraction ('s 't 'm 'd 're 've 'll) at `begin`,
// where a ' is; `begin` if there is none. If case is folded the long s (U+017F)
// is an s.
size_t ContractionEnd(std::string_view text, size_t begin, bool fold_case) {
  const auto letter_at = [text, fold_case](size_t at) -> char32_t {
    const char32_t c = Utf8At(text, at).code_point;
    if (!fold_case) return c;
    return c == 0x17f ? U's' : c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c;
  };
  const char32_t first = letter_at(begin + 1);
  const size_t end = begin + 1 + Utf8At(text, begin + 1).bytes;
  switch (first) {
    case 's':
    case 't':
    case 'm':
    case 'd':
      return end;
    case 'r':
    case 'v':
      return letter_at(end) == 'e' ? end + 1 : begin;
    case 'l':
      return letter_at(end) == 'l' ? end + 1 : begin;
    default:
      return begin;
  }
}

struct SpaceRun {
  size_t last;         // start of its last character
  size_t end;          //
  size_t newline_end;  // after its last \r or \n; `begin` without one
};

SpaceRun SpaceRunAt(std::string_view text, size_t begin) {
  SpaceRun run = {begin, begin, begin};
  while (run.end < text.size()) {
    const Char c = CharAt(text, run.end);
    if (c.kind != CharClass::kSpace) break;
    run.last = run.end;
    run.end = c.end;
    if (IsNewline(c.code_point)) run.newline_end = c.end;
  }
  return run;
}

// `\s+(?!\S)|\s+`: the last space goes with the word that follows it, unless it
// is the only one or nothing follows.
size_t SpacesEnd(const SpaceRun& run, size_t begin, bool at_end) {
  return at_end || run.last == begin ? run.end : run.last;
}

size_t Gpt2End(std::string_view text, size_t begin) {
  const Char first = CharAt(text, begin);
  if (first.code_point == '\'') {
    const size_t end = ContractionEnd(text, begin, /*fold_case=*/false);
    if (end != begin) return end;
  }
  // ` ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+`
  const size_t body = first.code_point == ' ' ? first.end : begin;
  if (body < text.size()) {
    const CharClass kind = CharAt(text, body).kind;
    if (kind != CharClass::kSpace) return SkipClass(text, body, kind);
  }
  const SpaceRun run = SpaceRunAt(text, begin);
  return SpacesEnd(run, begin, run.end == text.size());
}

size_t Llama3End(std::string_view text, size_t begin, int most_digits) {
  const Char first = CharAt(text, begin);
  if (first.code_point == '\'') {
    const size_t end = ContractionEnd(text, begin, /*fold_case=*/true);
    if (end != begin) return end;
  }
  // `[^\r\n\p{L}\p{N}]?\p{L}+`
  if (first.kind == CharClass::kLetter ||
      (first.kind != CharClass::kNumber && !IsNewline(first.code_point) &&
       IsAt(text, first.end, CharClass::kLetter))) {
    return SkipClass(text, first.end, CharClass::kLetter);
  }
  // `\p{N}{1,3}` or `\p{N}`
  if (first.kind == CharClass::kNumber) {
    size_t end = first.end;
    for (int i = 1; i < most_digits; ++i) {
      if (!IsAt(text, end, CharClass::kNumber)) break;
      end = CharAt(text, end).end;
    }
    return end;
  }
  // ` ?[^\s\p{L}\p{N}]+[\r\n]*`
  const size_t body = first.code_point == ' ' ? first.end : begin;
  if (IsAt(text, body, CharClass::kOther)) {
    size_t end = SkipClass(text, body, CharClass::kOther);
    while (end < text.size() && IsNewline(static_cast<uint8_t>(text[end]))) {
      ++end;
    }
    return end;
  }
  // `\s*[\r\n]+|\s+(?!\S)|\s+`
  const SpaceRun run = SpaceRunAt(text, begin);
  if (run.newline_end != begin) return run.newline_end;
  return SpacesEnd(run, begin, run.end == text.size());
}

TextRange Gpt2(std::string_view text, size_t from) {
  return {from, Gpt2End(text, from)};
}

TextRange Llama3(std::string_view text, size_t from) {
  return {from, Llama3End(text, from, /*most_digits=*/3)};
}

TextRange Qwen2(std::string_view text, size_t from) {
  return {from, Llama3End(text, from, /*most_digits=*/1)};
}

TextRange Number(std::string_view text, size_t from) {
  while (from < text.size()) {
    const Char c = CharAt(text, from);
    if (c.kind == CharClass::kNumber) return {from, c.end};
    from = c.end;
  }
  return {text.size(), text.size()};
}

}  // namespace

MatchFn MatcherOf(std::string_view pattern) {
  if (pattern == kGpt2Pattern) return Gpt2;
  if (pattern == kLlama3Pattern) return Llama3;
  if (pattern == kQwen2Pattern) return Qwen2;
  if (pattern == kNumberPattern) return Number;
  return nullptr;
}

}  // namespace tiercel

#include "models/tokenizer/token_splitter.h"

#include <utf8proc.h>

#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "lib/text/utf8.h"
#include "models/tokenizer/nfc.h"
#include "models/tokenizer/unicode_classes.h"

namespace tiercel {
namespace {

bool IsSpaceAt(std::string_view text, size_t begin) {
  return ClassOf(Utf8At(text, begin).code_point) == CharClass::kSpace;
}

// Returns whether the ASCII character at `at` and marks behind it are another
// character once they are composed.
bool ComposesAt(std::string_view text, size_t at) {
  constexpr size_t kMarks = 64;  // bytes
  if (at + 1 == text.size() ||
      absl::ascii_isascii(static_cast<unsigned char>(text[at + 1]))) {
    return false;
  }
  return ComposeNfc(text.substr(at, kMarks)).front() != text[at];
}

// Returns whether this is a character of a word, as \w is in Unicode's regular
// expressions (UTS 18, Annex C).
bool IsOfWord(char32_t c) {
  constexpr char32_t kCircledLetters[][2] = {
      {0x24b6, 0x24e9},
      {0x1f130, 0x1f149},
      {0x1f150, 0x1f169},
      {0x1f170, 0x1f189},
      {0x200c, 0x200d}};  // and the joiners
  for (const auto& [first, last] : kCircledLetters) {
    if (c >= first && c <= last) return true;
  }
  if (c == kNoCodePoint) return false;
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(c))) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_PC:
      return true;
    default:
      return false;
  }
}

// Returns whether `text` ends in a character of a word; composed: in Unicode's
// form NFC.
bool EndsInWord(std::string_view text, bool composed) {
  constexpr size_t kMarks = 64;  // bytes
  const auto begin_of = [](std::string_view in, size_t at) {
    while (at > 0 && (in[at] & 0xc0) == 0x80) --at;
    return at;
  };
  std::string tail;
  if (composed) {
    const size_t from = text.size() > kMarks ? text.size() - kMarks : 0;
    tail = ComposeNfc(text.substr(begin_of(text, from)));
    text = tail;
  }
  return IsOfWord(Utf8At(text, begin_of(text, text.size() - 1)).code_point);
}

// Returns whether a word goes on before or behind this match in `texts[at]`,
// composed: in Unicode's form NFC. The texts beside that one are part of its
// line, up to a token.
bool IsWithinWord(const std::vector<Stretch>& texts, size_t at, size_t begin,
                  size_t end, bool composed) {
  const std::string_view text = texts[at].text;
  std::string_view before = text.substr(0, begin);
  for (size_t i = at; before.empty() && i > 0 && !texts[i - 1].token; --i) {
    before = texts[i - 1].text;
  }
  std::string_view behind = text.substr(end);
  for (size_t i = at + 1; behind.empty() && i < texts.size() && !texts[i].token;
       ++i) {
    behind = texts[i].text;
  }
  return (!before.empty() && EndsInWord(before, composed)) ||
         (!behind.empty() && IsOfWord(Utf8At(behind, 0).code_point));
}

// Stretches in order, of which tokens strip the spaces beside them.
class Stretches {
 public:
  void AddText(std::string_view text, bool parses) {
    while (strips_ && !text.empty()) {
      strips_ = IsSpaceAt(text, 0);
      if (strips_) text.remove_prefix(Utf8At(text, 0).bytes);
    }
    if (!text.empty()) all_.push_back({text, parses});
  }

  // Adds a token that has stripped what it strips.
  void AddToken(const Stretch& token) {
    all_.push_back(token);
    strips_ = false;
  }

  void AddToken(std::string_view text, int32_t id, const TokenEntry& token) {
    if (token.strips_left) StripEnd();
    all_.push_back({text, false, id});
    strips_ = token.strips_right;
  }

  std::vector<Stretch> Take() { return std::move(all_); }

 private:
  // Drops the spaces with which the text behind the last token ends.
  void StripEnd() {
    while (!all_.empty() && !all_.back().token) {
      std::string_view& last = all_.back().text;
      size_t end = 0;
      for (size_t at = 0; at < last.size(); at += Utf8At(last, at).bytes) {
        if (!IsSpaceAt(last, at)) end = at + Utf8At(last, at).bytes;
      }
      last = last.substr(0, end);
      if (!last.empty()) return;
      all_.pop_back();
    }
  }

  std::vector<Stretch> all_;
  bool strips_ = false;  // the text that follows loses its first spaces
};

}  // namespace

TokenSplitter::TokenSplitter(const TokenizerSpec& spec) {
  for (const bool normalized : {false, true}) {
    std::vector<std::pair<std::string, int32_t>> user_defined, special;
    for (size_t i = 0; i < spec.tokens.size(); ++i) {
      const TokenEntry& token = spec.tokens[i];
      const int32_t id = static_cast<int32_t>(i);
      if (token.normalized != normalized) continue;
      if (token.type == TokenType::kUserDefined) {
        if (token.within_run) continue;
        user_defined.emplace_back(token.text, id);
      } else if (!IsControlType(token.type)) {
        continue;
      }
      special.emplace_back(token.text, id);
    }
    Pass& pass = normalized ? normalized_ : as_it_is_;
    pass.any = !special.empty();
    pass.user_defined = SpecialMatcher(std::move(user_defined));
    pass.special = SpecialMatcher(std::move(special));
  }
}

std::vector<Stretch> TokenSplitter::Split(
    const TokenizerSpec& spec, const std::vector<Stretch>& texts) const {
  std::vector<Stretch> split = SplitBy(as_it_is_, spec, texts);
  return normalized_.any ? SplitBy(normalized_, spec, split) : split;
}

std::vector<Stretch> TokenSplitter::SplitBy(const Pass& pass,
                                            const TokenizerSpec& spec,
                                            const std::vector<Stretch>& texts) {
  Stretches out;
  for (size_t at = 0; at < texts.size(); ++at) {
    const Stretch& stretch = texts[at];
    if (stretch.token) {
      out.AddToken(stretch);
      continue;
    }
    const SpecialMatcher& matcher =
        stretch.parses ? pass.special : pass.user_defined;
    const std::string_view text = stretch.text;
    size_t begin = 0;
    size_t from = 0;
    while (const auto match = matcher.Find(text, from)) {
      const TokenEntry& token = spec.tokens[static_cast<size_t>(match->id)];
      if (spec.nfc && token.normalized && ComposesAt(text, match->end - 1)) {
        from = match->begin + 1;
        continue;
      }
      if (token.single_word && IsWithinWord(texts, at, match->begin, match->end,
                                            spec.nfc && token.normalized)) {
        from = match->end;
        continue;
      }
      out.AddText(text.substr(begin, match->begin - begin), stretch.parses);
      out.AddToken(text.substr(match->begin, match->end - match->begin),
                   match->id, token);
      begin = from = match->end;
    }
    out.AddText(text.substr(begin), stretch.parses);
  }
  return out.Take();
}

std::optional<int32_t> TokenSplitter::TokenOf(std::string_view text) const {
  for (const Pass* pass : {&as_it_is_, &normalized_}) {
    const auto match = pass->special.Find(text, 0);
    if (match && match->begin == 0 && match->end == text.size()) {
      return match->id;
    }
  }
  return std::nullopt;
}

}  // namespace tiercel

#include "models/tokenizer/token_splitter.h"

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
  for (const Stretch& stretch : texts) {
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

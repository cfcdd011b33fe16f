// SentencePiece BPE. Each character of a text is a symbol at first, with spaces
// written as U+2581. Neighbours merge by score or by rank; a character that is
// no token at the end becomes the byte tokens of its UTF-8.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "lib/status/error.h"
#include "lib/status/status_macros.h"
#include "lib/text/quote.h"
#include "lib/text/utf8.h"
#include "models/tokenizer/flat_map.h"
#include "models/tokenizer/merge.h"
#include "models/tokenizer/merge_table.h"
#include "models/tokenizer/merge_windows.h"
#include "models/tokenizer/pieces.h"
#include "models/tokenizer/special_matcher.h"
#include "models/tokenizer/text_model.h"

namespace tiercel {
namespace {

constexpr absl::string_view kSpace = "\u2581";

// Returns the byte that `name` names: "<0x", two hexadecimal digits, ">", no
// more.
std::optional<uint8_t> ByteOfName(std::string_view name) {
  if (name.size() != 6 || name.substr(0, 3) != "<0x" || name[5] != '>') {
    return std::nullopt;
  }
  int byte = 0;
  for (const char digit : name.substr(3, 2)) {
    if (!absl::ascii_isxdigit(digit)) return std::nullopt;
    const int value = absl::ascii_isdigit(digit)
                          ? digit - '0'
                          : absl::ascii_tolower(digit) - 'a' + 10;
    byte = byte * 16 + value;
  }
  return static_cast<uint8_t>(byte);
}

class SentencePiece : public TextModel {
 public:
  static absl::StatusOr<std::unique_ptr<TextModel>> Make(
      const TokenizerSpec& spec) {
    auto model = std::make_unique<SentencePiece>();
    ASSIGN_OR_RETURN(model->merges_, MergeTable::Make(spec));
    model->by_score_ = spec.merges.empty();
    model->space_prefix_ = spec.space_prefix;
    model->prefixes_spaces_ = spec.prefixes_spaces;
    model->split_ = spec.splits_words ? Split::kAtSpaces : Split::kAtWords;
    model->AddTokens(spec);
    RETURN_IF_ERROR(model->AddBytes(spec));
    return model;
  }

  absl::Status Encode(std::string_view run, bool first_run, EncodeWatch* watch,
                      std::vector<int32_t>* ids) const override {
    const std::string text = Escape(run, first_run);
    Merger merger;
    std::optional<SpecialMatcher::Match> word = words_.Find(text, 0);
    return EncodePieces(
        text, run.size(), watch, ids,
        [&](size_t begin) {
          if (word && word->end <= begin) word = words_.Find(text, begin);
          if (word && word->begin == begin) return word->end;
          const size_t end = PieceEnd(text, begin);
          return word ? std::min(word->begin, end) : end;
        },
        [&](absl::string_view piece, LookFn look) {
          if (word && piece.data() == text.data() + word->begin) {
            ids->push_back(word->id);
            return look(piece.size());
          }
          return EncodePiece(piece, look, &merger, ids);
        });
  }

  std::string BytesOf(const TokenEntry& token) const override {
    if (token.type == TokenType::kByte) {
      return std::string(1, static_cast<char>(*ByteOfName(token.text)));
    }
    if (token.type != TokenType::kNormal && !token.within_run) {
      return token.text;
    }
    return absl::StrReplaceAll(token.text, {{kSpace, " "}});
  }

 private:
  // By an unused token, the bytes of the first of the two that it merges.
  using LeftBytes = std::unordered_map<int32_t, uint32_t>;

  // The cuts of a run into pieces that merge apart: none, before each U+2581
  // that follows another character, or before each U+2581.
  enum class Split { kNowhere, kAtWords, kAtSpaces };

  // Adds the normal tokens with their ranks, the highest score first, and the
  // words that nothing merges with.
  void AddTokens(const TokenizerSpec& spec) {
    std::vector<int32_t> normal;
    std::vector<std::pair<std::string, int32_t>> words;
    for (size_t i = 0; i < spec.tokens.size(); ++i) {
      const TokenEntry& token = spec.tokens[i];
      if (token.type == TokenType::kUserDefined && token.within_run) {
        const bool escapes = token.normalized;
        words.emplace_back(
            escapes ? Escape(token.text, /*first_run=*/true) : token.text,
            static_cast<int32_t>(i));
      }
      if (token.type == TokenType::kNormal && !token.text.empty()) {
        normal.push_back(static_cast<int32_t>(i));
      }
      // Merges of an unused token lead to others; its parts come out of it.
      if (token.type == TokenType::kUnused && by_score_ &&
          !token.text.empty() &&
          token.text.size() > Utf8At(token.text, 0).bytes) {
        normal.push_back(static_cast<int32_t>(i));
        unused_.insert(static_cast<int32_t>(i));
      }
    }
    words_ = SpecialMatcher(std::move(words));
    const auto score = [&spec](int32_t id) { return spec.tokens[id].score; };
    std::stable_sort(
        normal.begin(), normal.end(),
        [score](int32_t a, int32_t b) { return score(a) > score(b); });
    uint32_t rank = 0;
    tokens_.Reserve(normal.size());
    for (size_t i = 0; i < normal.size(); ++i) {
      if (i > 0 && score(normal[i]) != score(normal[i - 1])) ++rank;
      const std::string& text = spec.tokens[normal[i]].text;
      tokens_.Insert(text, Merge{rank, normal[i]});
      // Cutting at words is exact if no token extends across a cut.
      if (split_ == Split::kAtWords && PieceEnd(text, 0) != text.size()) {
        split_ = Split::kNowhere;
      }
    }
  }

  // Adds all byte tokens, or none.
  absl::Status AddBytes(const TokenizerSpec& spec) {
    int count = 0;
    byte_ids_.fill(kNoToken);
    for (size_t i = 0; i < spec.tokens.size(); ++i) {
      const TokenEntry& token = spec.tokens[i];
      if (token.type != TokenType::kByte) continue;
      const std::optional<uint8_t> byte = ByteOfName(token.text);
      if (!byte || byte_ids_[*byte] != kNoToken) {
        return InputError("invalid_vocab",
                          absl::StrCat("tokenizer: byte token ", i, " is ",
                                       Quoted(token.text),
                                       "; need <0x00> to <0xFF>, each once"));
      }
      byte_ids_[*byte] = static_cast<int32_t>(i);
      ++count;
    }
    if (count != 0 && count != 256) {
      return InputError("invalid_vocab",
                        absl::StrCat("tokenizer: ", count,
                                     " byte tokens; need all 256 or none"));
    }
    return absl::OkStatus();
  }

  std::string Escape(std::string_view run, bool first_run) const {
    const bool prefix =
        !run.empty() &&
        (space_prefix_ == TokenizerSpec::SpacePrefix::kEachRun ||
         (space_prefix_ == TokenizerSpec::SpacePrefix::kText && first_run)) &&
        (prefixes_spaces_ ||
         (run.front() != ' ' &&
          !absl::StartsWith(absl::string_view(run.data(), run.size()),
                            kSpace)));
    std::string text(prefix ? kSpace : absl::string_view());
    text.reserve(text.size() + run.size() * 2);
    for (const char c : run) {
      if (c == ' ') {
        text.append(kSpace.data(), kSpace.size());
      } else {
        text += c;
      }
    }
    return text;
  }

  size_t PieceEnd(absl::string_view text, size_t begin) const {
    if (split_ == Split::kNowhere) return text.size();
    size_t at = begin;
    if (split_ == Split::kAtWords) {
      while (text.substr(at, kSpace.size()) == kSpace) at += kSpace.size();
    } else {
      at += 1;
    }
    return std::min(text.find(kSpace, at), text.size());
  }

  // Calls look(bytes done) now and then, which decides whether to go on.
  absl::Status EncodePiece(absl::string_view piece, LookFn look, Merger* merger,
                           std::vector<int32_t>* ids) const {
    const std::string_view text(piece.data(), piece.size());
    const size_t before = ids->size();
    LeftBytes lefts;
    return MergeInWindows(
        text.size(), merger,
        [&](size_t begin, size_t end) {
          MergeCharacters(text, begin, end, merger, &lefts);
          return absl::OkStatus();
        },
        [&] { ids->resize(before); },
        [&](const Symbol& symbol) {
          return unused_.contains(symbol.id)
                     ? SpellParts(text, symbol, lefts, ids)
                     : Spell(text, symbol, ids);
        },
        look);
  }

  // Merges the characters that begin in bytes `begin` to `end` of a piece.
  void MergeCharacters(std::string_view text, size_t begin, size_t end,
                       Merger* merger, LeftBytes* lefts) const {
    merger->Clear();
    for (size_t i = begin; i < end;) {
      const size_t bytes = Utf8At(text, i).bytes;
      const auto token = Find(text.substr(i, bytes));
      merger->Add(static_cast<uint32_t>(i), static_cast<uint32_t>(bytes),
                  token ? token->id : kNoToken);
      i += bytes;
    }
    merger->Run([&](const Symbol& left, const Symbol& right) {
      if (!by_score_) return merges_.Find(left.id, right.id);
      const auto token =
          Find(text.substr(left.begin, left.bytes + right.bytes));
      if (token && unused_.contains(token->id)) {
        (*lefts)[token->id] = left.bytes;
      }
      return token;
    });
  }

  // Appends the tokens of an unused one: those of the two of which it was last
  // seen to merge, as SentencePiece has it.
  absl::Status SpellParts(std::string_view text, const Symbol& symbol,
                          const LeftBytes& lefts,
                          std::vector<int32_t>* ids) const {
    std::vector<Symbol> parts = {symbol};
    while (!parts.empty()) {
      const Symbol part = parts.back();
      parts.pop_back();
      const auto left = lefts.find(part.id);
      if (left == lefts.end()) {
        RETURN_IF_ERROR(Spell(text, part, ids));
        continue;
      }
      const auto add = [&](uint32_t begin, uint32_t bytes) {
        const auto token = Find(text.substr(begin, bytes));
        parts.push_back({begin, bytes, token ? token->id : kNoToken});
      };
      add(part.begin + left->second, part.bytes - left->second);
      add(part.begin, left->second);
    }
    return absl::OkStatus();
  }

  // Appends a token, or byte tokens if the symbol is no token.
  absl::Status Spell(std::string_view text, const Symbol& symbol,
                     std::vector<int32_t>* ids) const {
    if (symbol.id != kNoToken) {
      ids->push_back(symbol.id);
      return absl::OkStatus();
    }
    const std::string_view bytes = text.substr(symbol.begin, symbol.bytes);
    for (const char byte : bytes) {
      ids->push_back(byte_ids_[static_cast<uint8_t>(byte)]);
    }
    if (ids->back() != kNoToken) return absl::OkStatus();
    return InputError(
        "invalid_text",
        absl::StrCat("tokenizer: the text has ", Quoted(bytes),
                     ", for which this vocabulary has neither a token nor "
                     "byte tokens"));
  }

  std::optional<Merge> Find(std::string_view text) const {
    const Merge* const found =
        tokens_.Find(absl::string_view(text.data(), text.size()));
    if (found == nullptr) return std::nullopt;
    return *found;
  }

  FlatMap<std::string, Merge> tokens_;  // by text
  SpecialMatcher words_;                // the tokens within_run
  std::unordered_set<int32_t> unused_;  // tokens_ that never come out
  MergeTable merges_;                   // unless by_score_
  bool by_score_ = false;
  std::array<int32_t, 256> byte_ids_;  // kNoToken if there are none
  TokenizerSpec::SpacePrefix space_prefix_ = TokenizerSpec::SpacePrefix::kNone;
  bool prefixes_spaces_ = true;
  Split split_ = Split::kNowhere;
};

}  // namespace

absl::StatusOr<std::unique_ptr<TextModel>> MakeSentencePiece(
    const TokenizerSpec& spec) {
  return SentencePiece::Make(spec);
}

}  // namespace tiercel

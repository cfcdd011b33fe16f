// Reads a TokenizerSpec from a Hugging Face folder, as a rule from its
// tokenizer.json: its tokens, its merges and its ends. The stages through which
// text passes are read by hf_pipeline.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "lib/status/error.h"
#include "lib/status/status_macros.h"
#include "lib/text/quote.h"
#include "models/tokenizer/hf_json.h"
#include "models/tokenizer/hf_pipeline.h"
#include "models/tokenizer/hf_settings.h"
#include "models/tokenizer/nfc.h"
#include "models/tokenizer/tokenizer_spec.h"

namespace tiercel {
namespace {

using Json = nlohmann::json;

std::optional<int32_t> AsId(const Json& value) {
  if (!value.is_number_integer() || value < 0 || value >= kMostVocab) {
    return std::nullopt;
  }
  return value.get<int32_t>();
}

absl::Status NoId(const std::string& text) {
  return InvalidJsonVocab(absl::StrCat(
      "token ", Quoted(text), " has no id from 0 to ", kMostVocab - 1));
}

absl::Status PutToken(const Json& id, const std::string& text, TokenType type,
                      TokenizerSpec* spec) {
  const std::optional<int32_t> index = AsId(id);
  if (!index) return NoId(text);
  const size_t i = static_cast<size_t>(*index);
  if (i >= spec->tokens.size()) spec->tokens.resize(i + 1);
  TokenEntry& token = spec->tokens[i];
  if (token.type != TokenType::kUnused && token.text != text) {
    return InvalidJsonVocab(absl::StrCat(
        "token ", i, " is both ", Quoted(token.text), " and ", Quoted(text)));
  }
  token.text = text;
  token.type = type;
  return absl::OkStatus();
}

absl::Status ReadVocab(const Json& model, TokenizerSpec* spec) {
  const Json& vocab = Member(model, "vocab");
  if (!vocab.is_object() || vocab.empty()) {
    return InvalidJsonVocab(
        "model.vocab must be an object with a token or more");
  }
  for (const auto& [text, id] : vocab.items()) {
    RETURN_IF_ERROR(PutToken(id, text, TokenType::kNormal, spec));
  }
  return absl::OkStatus();
}

// A merge is "left right" or ["left", "right"].
absl::Status ReadMerges(const Json& model, TokenizerSpec* spec) {
  const Json& merges = Member(model, "merges");
  if (!merges.is_array())
    return InvalidJsonVocab("model.merges must be an array");
  spec->merges.reserve(merges.size());
  for (const Json& merge : merges) {
    std::string left, right;
    if (merge.is_string()) {
      const std::string& both = merge.get_ref<const std::string&>();
      const size_t space = both.find(' ');
      if (space != std::string::npos && both.rfind(' ') == space) {
        left = both.substr(0, space);
        right = both.substr(space + 1);
      }
    } else if (merge.is_array() && merge.size() == 2 && merge[0].is_string() &&
               merge[1].is_string()) {
      left = merge[0].get<std::string>();
      right = merge[1].get<std::string>();
    }
    if (left.empty() || right.empty()) {
      return InvalidJsonVocab(absl::StrCat("merge ", spec->merges.size(),
                                           " is not a pair of tokens"));
    }
    spec->merges.emplace_back(std::move(left), std::move(right));
  }
  return absl::OkStatus();
}

absl::Status ReadModel(const Json& model, TokenizerSpec* spec) {
  // Old files have no type, and only BPE has merges.
  if (!IsType(model, "BPE") && !Member(model, "type").is_null()) {
    return UnsupportedJson(
        absl::StrCat("model ", TypeOf(model), "; need \"BPE\""));
  }
  for (const char* key :
       {"dropout", "continuing_subword_prefix", "end_of_word_suffix"}) {
    const Json& value = Member(model, key);
    const bool is_zero = value.is_number() && value == 0;  // no dropout
    if (!value.is_null() && !IsString(value, "") && !is_zero) {
      return UnsupportedJson(absl::StrCat("model.", key));
    }
  }
  spec->kind = IsTrue(Member(model, "byte_fallback"))
                   ? TokenizerSpec::Kind::kSentencePiece
                   : TokenizerSpec::Kind::kByteLevel;
  spec->ignore_merges = IsTrue(Member(model, "ignore_merges"));
  RETURN_IF_ERROR(ReadVocab(model, spec));
  return ReadMerges(model, spec);
}

// Turns <0x00> to <0xFF> into byte tokens, if the vocabulary falls back to
// bytes. Otherwise tokens of that form are words.
void MarkBytes(TokenizerSpec* spec) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  for (TokenEntry& token : spec->tokens) {
    const std::string& text = token.text;
    if (token.type == TokenType::kNormal && text.size() == 6 &&
        text.compare(0, 3, "<0x") == 0 && text[5] == '>' &&
        kDigits.find(text[3]) != std::string_view::npos &&
        kDigits.find(text[4]) != std::string_view::npos) {
      token.type = TokenType::kByte;
    }
  }
}

// Returns whether the normaliser leaves a token's text as it is, by itself and
// within a text, unless a mark behind it composes with its last character.
bool IsStable(std::string_view text, const TokenizerSpec& spec) {
  if (spec.kind == TokenizerSpec::Kind::kByteLevel) {
    return !spec.nfc || IsFixedInNfc(text);
  }
  if (!spec.prefixes_spaces) return true;  // Metaspace is no normaliser
  // Prepend would put a space before the token.
  return spec.space_prefix == TokenizerSpec::SpacePrefix::kNone &&
         text.find(' ') == std::string_view::npos;
}

// Adds tokens to a vocabulary as the library `tokenizers` does: one whose text
// it has keeps that id, and others get the next ids in order, whatever the
// files say. A vocabulary's size is the number of its texts, so that a gap in
// it moves them. Those of a tokenizer.model have no normaliser, and may give
// its pieces other names.
class TokenAdder {
 public:
  TokenAdder(bool is_model, TokenizerSpec* spec)
      : is_model_(is_model), spec_(spec), pieces_(spec->tokens.size()) {
    for (size_t i = 0; i < spec->tokens.size(); ++i) {
      const TokenEntry& token = spec->tokens[i];
      next_ += token.type != TokenType::kUnused || !token.text.empty();
      if (token.type == TokenType::kUnused) continue;
      ids_.emplace(token.text, static_cast<int32_t>(i));
    }
  }

  std::optional<int32_t> IdOf(const std::string& text) const {
    const auto known = ids_.find(text);
    if (known == ids_.end()) return std::nullopt;
    return known->second;
  }

  absl::Status Add(const Json& token) {
    const Json& content = Member(token, "content");
    if (!content.is_string()) {
      return InvalidJsonVocab("an added token has no content");
    }
    const std::string& text = content.get_ref<const std::string&>();
    if (text.empty()) return absl::OkStatus();
    // Such a token is matched after the normaliser has changed the text.
    const bool normalized = !is_model_ && IsTrue(Member(token, "normalized"));
    const bool stable = IsStable(text, *spec_);
    const bool special = IsTrue(Member(token, "special"));
    const bool strips_left = IsTrue(Member(token, "lstrip"));
    const bool strips_right = IsTrue(Member(token, "rstrip"));
    const bool single_word = IsTrue(Member(token, "single_word"));
    const bool plain = !strips_left && !strips_right && !single_word;
    // SentencePiece's normaliser changes spaces alone.
    const bool changed = normalized && !stable && !special;
    if (changed &&
        (!plain || spec_->kind != TokenizerSpec::Kind::kSentencePiece)) {
      return UnsupportedJson(
          absl::StrCat("added token ", Quoted(text), " is normalized"));
    }
    ASSIGN_OR_RETURN(const int32_t id, Place(text, Member(token, "id")));
    TokenEntry& entry = spec_->tokens[static_cast<size_t>(id)];
    // One that has been special stays so.
    entry.type = special || entry.type == TokenType::kControl
                     ? TokenType::kControl
                     : TokenType::kUserDefined;
    entry.strips_left = strips_left;
    entry.strips_right = strips_right;
    entry.single_word = single_word;
    entry.normalized = changed || (normalized && stable);
    entry.within_run = changed || (entry.within_run && plain);
    return absl::OkStatus();
  }

 private:
  // Returns the id of a text, which the vocabulary then has.
  absl::StatusOr<int32_t> Place(const std::string& text, const Json& own) {
    std::optional<int32_t> id = IdOf(text);
    if (!id) {
      id = AsId(own);
      if (!id) return NoId(text);
      if (is_model_ && static_cast<size_t>(*id) < pieces_) {
        TokenEntry& piece = spec_->tokens[static_cast<size_t>(*id)];
        ids_.erase(piece.text);
        piece = {};
      } else {
        id = next_;
        const auto at = static_cast<size_t>(next_);
        if (at < pieces_ && spec_->tokens[at].type != TokenType::kUnused) {
          return InvalidJsonVocab(
              absl::StrCat("added token ", Quoted(text), " follows ", next_,
                           " others, but token ", next_, " is ",
                           Quoted(spec_->tokens[at].text),
                           "; need a vocabulary without gaps"));
        }
      }
      RETURN_IF_ERROR(PutToken(*id, text, TokenType::kUserDefined, spec_));
      ids_.emplace(text, *id);
    }
    next_ = std::max(next_, *id + 1);
    return *id;
  }

  bool is_model_;
  TokenizerSpec* spec_;
  std::unordered_map<std::string, int32_t> ids_;  // by text
  size_t pieces_;                                 // at first
  int32_t next_ = 0;
};

absl::Status ReadAddedTokens(const Json& added, TokenAdder* adder) {
  if (added.is_null()) return absl::OkStatus();
  if (!added.is_array())
    return InvalidJsonVocab("added_tokens must be an array");
  for (const Json& token : added) RETURN_IF_ERROR(adder->Add(token));
  return absl::OkStatus();
}

// Adds the tokens of the files beside the vocabulary.
absl::Status ReadSideTokens(const HfSettings& settings, TokenAdder* adder,
                            TokenizerSpec* spec) {
  for (const Json& token : settings.AddedTokens()) {
    RETURN_IF_ERROR(adder->Add(token));
  }
  for (const std::string& text : settings.SpecialTexts()) {
    const std::optional<int32_t> id = adder->IdOf(text);
    if (!id) continue;  // there is no row for it
    spec->tokens[static_cast<size_t>(*id)].type = TokenType::kControl;
  }
  return absl::OkStatus();
}

// Returns a token's id by its text; a token may be written as {"content":
// text}.
std::optional<int32_t> IdOf(const TokenizerSpec& spec, const Json& token) {
  const Json& text = token.is_object() ? Member(token, "content") : token;
  if (!text.is_string()) return std::nullopt;
  for (size_t i = 0; i < spec.tokens.size(); ++i) {
    if (spec.tokens[i].type != TokenType::kUnused &&
        IsString(text, spec.tokens[i].text)) {
      return static_cast<int32_t>(i);
    }
  }
  return std::nullopt;
}

// Returns config.json's id, or the first of its list, if it is a token.
std::optional<int32_t> IdOfConfig(const TokenizerSpec& spec,
                                  const Json& value) {
  const Json& first = value.is_array() && !value.empty() ? value[0] : value;
  const std::optional<int32_t> id = AsId(first);
  if (!id || static_cast<size_t>(*id) >= spec.tokens.size()) {
    return std::nullopt;
  }
  return id;
}

// Returns the id of the special token that begins post_processor's template for
// one text; null if the template begins with none.
const Json& FirstOfTemplate(const Json& file) {
  static const Json null;
  for (const Json* stage :
       StagesOf(Member(file, "post_processor"), "processors")) {
    const Json& single = Member(*stage, "single");
    if (IsType(*stage, "TemplateProcessing") && single.is_array() &&
        !single.empty()) {
      return Member(Member(single[0], "SpecialToken"), "id");
    }
  }
  return null;
}

void ReadEnds(const Json& side_files, const Json& file,
              const HfSettings& settings, TokenizerSpec* spec) {
  const Json& config = Member(side_files, "config.json");
  const Json& first = FirstOfTemplate(file);
  const HfSettings::Named bos = settings.TokenFor("bos_token");
  const HfSettings::Named eos = settings.TokenFor("eos_token");
  // The vocabulary's own file may have named them where nothing else does.
  if (bos.is_said) spec->bos = IdOf(*spec, bos.token);
  const bool no_bos = settings.Has("bos_token") && bos.token.is_null();
  if (!spec->bos && !no_bos) spec->bos = IdOf(*spec, first);
  if (!spec->bos && !bos.is_said) {
    spec->bos = IdOfConfig(*spec, Member(config, "bos_token_id"));
  }
  if (eos.is_said) spec->eos = IdOf(*spec, eos.token);
  if (!spec->eos && !eos.is_said) {
    spec->eos = IdOfConfig(*spec, Member(config, "eos_token_id"));
  }
  const Json& adds_bos = settings.Get("add_bos_token");
  if (adds_bos.is_boolean()) {
    spec->adds_bos = spec->bos && IsTrue(adds_bos);
    return;
  }
  // The template adds its own token, whatever else is named.
  const std::optional<int32_t> added = IdOf(*spec, first);
  if (added.has_value()) spec->bos = added;
  spec->adds_bos = spec->bos && (spec->adds_bos || added.has_value());
}

// Reads where a space begins the text of a tokenizer.model. Transformers'
// classes for Llama do not ask the model; others do. What they call legacy is
// SentencePiece's own way.
void ReadSpacePrefix(const HfSettings& settings, TokenizerSpec* spec) {
  using SpacePrefix = TokenizerSpec::SpacePrefix;
  const Json& name = settings.Get("tokenizer_class");
  const auto is_class = [&name](const std::string& stem) {
    return IsString(name, stem) || IsString(name, stem + "Fast");
  };
  const bool llama =
      is_class("LlamaTokenizer") || is_class("CodeLlamaTokenizer");
  const bool is_off = is_class("GemmaTokenizer") ||
                      (llama && settings.Get("add_prefix_space") == false);
  const bool legacy =
      llama ? IsTrue(settings.Get("legacy"))
            : !settings.Has("legacy") || IsTrue(settings.Get("legacy"));
  if (is_off) {
    spec->space_prefix = SpacePrefix::kNone;
  } else if (!legacy && (llama || spec->space_prefix != SpacePrefix::kNone)) {
    spec->space_prefix = SpacePrefix::kText;
    spec->prefixes_spaces = false;
  }
  spec->strips_prefix = spec->space_prefix != SpacePrefix::kNone;
}

absl::Status ReadTokenizerJson(const Json& file, TokenizerSpec* spec) {
  RETURN_IF_ERROR(ReadModel(Member(file, "model"), spec));
  const bool bytes = spec->kind == TokenizerSpec::Kind::kByteLevel;
  RETURN_IF_ERROR(ReadHfPipeline(file, spec));
  if (!bytes) MarkBytes(spec);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<TokenizerSpec> SpecFromHuggingFace(const Json& side_files) {
  const HfSettings settings(side_files);
  Json file = Member(side_files, "tokenizer.json");
  if (!file.is_object()) file = settings.FromVocabAndMerges();
  TokenizerSpec spec;
  if (file.is_object()) {
    RETURN_IF_ERROR(ReadTokenizerJson(file, &spec));
  } else if (Member(side_files, "tokenizer.model").is_string()) {
    ASSIGN_OR_RETURN(spec,
                     SpecFromSentencePiece(Member(side_files, "tokenizer.model")
                                               .get_ref<const std::string&>()));
    ReadSpacePrefix(settings, &spec);
  } else {
    const bool vocab = !Member(side_files, "vocab.json").is_null();
    const bool merges = !Member(side_files, "merges.txt").is_null();
    return InputError(
        "no_tokenizer",
        absl::StrCat("tokenizer: the checkpoint has ",
                     vocab    ? "vocab.json without merges.txt"
                     : merges ? "merges.txt without vocab.json"
                              : "no tokenizer",
                     "; need tokenizer.json, or vocab.json with merges.txt, or "
                     "tokenizer.model"));
  }
  TokenAdder adder(/*is_model=*/!file.is_object(), &spec);
  RETURN_IF_ERROR(ReadAddedTokens(Member(file, "added_tokens"), &adder));
  RETURN_IF_ERROR(ReadSideTokens(settings, &adder, &spec));
  ReadEnds(side_files, file, settings, &spec);
  spec.named = settings.NamedTexts();
  return spec;
}

}  // namespace tiercel

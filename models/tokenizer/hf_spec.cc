// Reads a TokenizerSpec from a Hugging Face folder, as a rule from its
// tokenizer.json. The format
// is a small language for pipelines. The pipelines of the supported families
// are read here, and any other is refused by name.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "lib/status/error.h"
#include "lib/status/status_macros.h"
#include "lib/text/quote.h"
#include "models/tokenizer/hf_settings.h"
#include "models/tokenizer/tokenizer_spec.h"

namespace tiercel {
namespace {

using Json = nlohmann::json;

absl::Status InvalidJsonVocab(std::string_view message) {
  return InputError("invalid_vocab",
                    absl::StrCat("tokenizer.json: ", std::string(message)));
}

absl::Status UnsupportedJson(std::string_view message) {
  return InputError("unsupported_tokenizer",
                    absl::StrCat("tokenizer.json: ", std::string(message)));
}

// Returns the member of `object`; JSON null if there is none.
const Json& Member(const Json& object, const char* key) {
  static const Json null;
  if (!object.is_object()) return null;
  const auto found = object.find(key);
  return found == object.end() ? null : *found;
}

bool IsString(const Json& value, std::string_view text) {
  return value.is_string() && value.get_ref<const std::string&>() == text;
}

bool IsType(const Json& value, std::string_view type) {
  return IsString(Member(value, "type"), type);
}

bool IsTrue(const Json& value) { return value.is_boolean() && value == true; }

std::string TypeOf(const Json& value) {
  const Json& type = Member(value, "type");
  return type.is_string() ? Quoted(type.get_ref<const std::string&>())
                          : "without a type";
}

// Flattens `value` to a list: empty for null, the members of a Sequence (under
// `key`), nested ones in place; else the value alone. The parser bounds the
// depth of JSON.
void Flatten(const Json& value, const char* key,
             std::vector<const Json*>* stages) {
  if (value.is_null()) return;
  if (!IsType(value, "Sequence")) {
    stages->push_back(&value);
    return;
  }
  for (const Json& stage : Member(value, key)) Flatten(stage, key, stages);
}

std::vector<const Json*> Stages(const Json& value, const char* key) {
  std::vector<const Json*> stages;
  Flatten(value, key, &stages);
  return stages;
}

std::optional<int32_t> AsId(const Json& value) {
  if (!value.is_number_integer() || value < 0 || value >= kMostVocab) {
    return std::nullopt;
  }
  return value.get<int32_t>();
}

absl::Status PutToken(const Json& id, const std::string& text, TokenType type,
                      TokenizerSpec* spec) {
  const std::optional<int32_t> index = AsId(id);
  if (!index) {
    return InvalidJsonVocab(absl::StrCat(
        "token ", Quoted(text), " has no id from 0 to ", kMostVocab - 1));
  }
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
    if (!value.is_null() && !IsString(value, "")) {
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

absl::Status ReadAddedToken(const Json& token, TokenizerSpec* spec) {
  const Json& content = Member(token, "content");
  if (!content.is_string() || content.get_ref<const std::string&>().empty()) {
    return InvalidJsonVocab("an added token has no content");
  }
  const std::string& text = content.get_ref<const std::string&>();
  for (const char* flag : {"lstrip", "rstrip", "single_word"}) {
    if (IsTrue(Member(token, flag))) {
      return UnsupportedJson(
          absl::StrCat("added token ", Quoted(text), " has ", flag));
    }
  }
  const bool special = IsTrue(Member(token, "special"));
  // Such a token would be matched after the normaliser has changed the text.
  const bool changes =
      spec->nfc || spec->kind == TokenizerSpec::Kind::kSentencePiece;
  if (!special && changes && IsTrue(Member(token, "normalized"))) {
    return UnsupportedJson(
        absl::StrCat("added token ", Quoted(text), " is normalized"));
  }
  return PutToken(Member(token, "id"), text,
                  special ? TokenType::kControl : TokenType::kUserDefined,
                  spec);
}

absl::Status ReadAddedTokens(const Json& added, TokenizerSpec* spec) {
  if (added.is_null()) return absl::OkStatus();
  if (!added.is_array())
    return InvalidJsonVocab("added_tokens must be an array");
  for (const Json& token : added) {
    RETURN_IF_ERROR(ReadAddedToken(token, spec));
  }
  return absl::OkStatus();
}

// Adds the tokens of the files beside the vocabulary. One whose text the
// vocabulary has keeps the id that it has there.
absl::Status ReadSideTokens(const HfSettings& settings, TokenizerSpec* spec) {
  std::unordered_map<std::string, int32_t> ids;
  for (size_t i = 0; i < spec->tokens.size(); ++i) {
    if (spec->tokens[i].type == TokenType::kUnused) continue;
    ids.emplace(spec->tokens[i].text, static_cast<int32_t>(i));
  }
  for (Json token : settings.AddedTokens()) {
    const Json& content = Member(token, "content");
    const auto known =
        content.is_string() ? ids.find(content.get<std::string>()) : ids.end();
    if (known != ids.end()) token["id"] = known->second;
    RETURN_IF_ERROR(ReadAddedToken(token, spec));
    ids.emplace(content.get<std::string>(), token["id"].get<int32_t>());
  }
  for (const std::string& text : settings.SpecialTexts()) {
    const auto known = ids.find(text);
    if (known == ids.end()) continue;  // there is no row for it
    spec->tokens[static_cast<size_t>(known->second)].type = TokenType::kControl;
  }
  return absl::OkStatus();
}

bool IsKnownSplit(const Json& stage, Pretokenizer* kind) {
  const Json& pattern = Member(Member(stage, "pattern"), "Regex");
  // Both forms keep all of the text, since the patterns match every character.
  const bool inverted = IsTrue(Member(stage, "invert"));
  if (!IsType(stage, "Split") || !pattern.is_string() ||
      !IsString(Member(stage, "behavior"), inverted ? "Removed" : "Isolated")) {
    return false;
  }
  for (const Pretokenizer known :
       {Pretokenizer::kGpt2, Pretokenizer::kLlama3, Pretokenizer::kQwen2}) {
    if (IsString(pattern, Pattern(known))) {
      *kind = known;
      return true;
    }
  }
  return false;
}

// Accepts ByteLevel, with a Split or Digits before it.
absl::Status ReadByteLevelStages(const Json& file, TokenizerSpec* spec) {
  for (const Json* stage : Stages(Member(file, "normalizer"), "normalizers")) {
    if (!IsType(*stage, "NFC")) {
      return UnsupportedJson(absl::StrCat("normalizer ", TypeOf(*stage),
                                          "; need none or \"NFC\""));
    }
    spec->nfc = true;
  }
  if (!IsType(Member(file, "decoder"), "ByteLevel")) {
    return UnsupportedJson(absl::StrCat(
        "decoder ", TypeOf(Member(file, "decoder")), "; need \"ByteLevel\""));
  }
  const std::vector<const Json*> stages =
      Stages(Member(file, "pre_tokenizer"), "pretokenizers");
  if (stages.empty() || stages.size() > 2 ||
      !IsType(*stages.back(), "ByteLevel")) {
    return UnsupportedJson(
        "pre_tokenizer must end in one ByteLevel, with at most "
        "one Split or Digits before it");
  }
  const Json& byte_level = *stages.back();
  if (IsTrue(Member(byte_level, "add_prefix_space"))) {
    return UnsupportedJson("ByteLevel with add_prefix_space");
  }
  const Json& use_regex = Member(byte_level, "use_regex");
  const bool splits = use_regex.is_null() || IsTrue(use_regex);
  const Json& first = *stages.front();
  const bool alone = stages.size() == 1;
  if (alone && splits) {
    spec->pretokenizer = Pretokenizer::kGpt2;
    return absl::OkStatus();
  }
  if (!alone && splits && IsType(first, "Digits") &&
      IsTrue(Member(first, "individual_digits"))) {
    spec->pretokenizer = Pretokenizer::kSmollm;
    return absl::OkStatus();
  }
  if (!alone && !splits && IsKnownSplit(first, &spec->pretokenizer)) {
    return absl::OkStatus();
  }
  return UnsupportedJson(
      "pre_tokenizer is none of gpt-2 (ByteLevel), llama-bpe, qwen2 (Split by "
      "their patterns, then ByteLevel) and smollm (individual Digits, then "
      "ByteLevel)");
}

absl::Status ReadPrefixScheme(const Json& stage, TokenizerSpec* spec) {
  const Json& scheme = Member(stage, "prepend_scheme");
  const Json& old_scheme = Member(stage, "add_prefix_space");
  if (IsString(scheme, "first")) {
    spec->space_prefix = TokenizerSpec::SpacePrefix::kText;
  } else if (IsString(scheme, "always") ||
             (scheme.is_null() &&
              (old_scheme.is_null() || IsTrue(old_scheme)))) {
    spec->space_prefix = TokenizerSpec::SpacePrefix::kEachRun;
  } else if (!IsString(scheme, "never") && !scheme.is_null()) {
    return UnsupportedJson("Metaspace with an unknown prepend_scheme");
  }
  spec->prefixes_spaces = false;
  const Json& split = Member(stage, "split");
  spec->splits_words = split.is_null() || IsTrue(split);
  return absl::OkStatus();
}

// Spaces become U+2581 either in the normaliser (Prepend, Replace) or in the
// pre-tokeniser (Metaspace).
absl::Status ReadSentencePieceStages(const Json& file, TokenizerSpec* spec) {
  constexpr std::string_view kSpace = "\u2581";
  bool replaced = false;
  for (const Json* stage : Stages(Member(file, "normalizer"), "normalizers")) {
    if (IsType(*stage, "Prepend") && !replaced &&
        IsString(Member(*stage, "prepend"), kSpace)) {
      spec->space_prefix = TokenizerSpec::SpacePrefix::kEachRun;
    } else if (IsType(*stage, "Replace") && !replaced &&
               IsString(Member(Member(*stage, "pattern"), "String"), " ") &&
               IsString(Member(*stage, "content"), kSpace)) {
      replaced = true;
    } else {
      return UnsupportedJson(absl::StrCat(
          "normalizer ", TypeOf(*stage),
          "; need Prepend and Replace of spaces by U+2581, or none"));
    }
  }
  const std::vector<const Json*> stages =
      Stages(Member(file, "pre_tokenizer"), "pretokenizers");
  if (replaced ? !stages.empty()
               : stages.size() != 1 || !IsType(*stages[0], "Metaspace") ||
                     !IsString(Member(*stages[0], "replacement"), kSpace)) {
    return UnsupportedJson(
        "spaces must become U+2581 once, in the normalizer (Replace) or in the "
        "pre_tokenizer (Metaspace)");
  }
  if (!replaced) {
    RETURN_IF_ERROR(ReadPrefixScheme(*stages[0], spec));
  }
  for (const Json* stage : Stages(Member(file, "decoder"), "decoders")) {
    const Json& strips = Member(*stage, "start");
    if (IsType(*stage, "Strip") && strips.is_number_integer() && strips == 1 &&
        IsString(Member(*stage, "content"), " ")) {
      spec->strips_prefix = true;
    } else if (IsType(*stage, "Metaspace")) {
      TokenizerSpec decoder;
      RETURN_IF_ERROR(ReadPrefixScheme(*stage, &decoder));
      spec->strips_prefix =
          decoder.space_prefix != TokenizerSpec::SpacePrefix::kNone;
    } else if (!IsType(*stage, "Replace") && !IsType(*stage, "ByteFallback") &&
               !IsType(*stage, "Fuse")) {
      return UnsupportedJson(absl::StrCat("decoder ", TypeOf(*stage)));
    }
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
       Stages(Member(file, "post_processor"), "processors")) {
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
  spec->adds_bos =
      spec->bos && (adds_bos.is_boolean()
                        ? IsTrue(adds_bos)
                        : spec->adds_bos || IdOf(*spec, first) == spec->bos);
}

absl::Status ReadTokenizerJson(const Json& file, TokenizerSpec* spec) {
  RETURN_IF_ERROR(ReadModel(Member(file, "model"), spec));
  const bool bytes = spec->kind == TokenizerSpec::Kind::kByteLevel;
  RETURN_IF_ERROR(bytes ? ReadByteLevelStages(file, spec)
                        : ReadSentencePieceStages(file, spec));
  RETURN_IF_ERROR(ReadAddedTokens(Member(file, "added_tokens"), spec));
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
  } else {
    return InputError("no_tokenizer",
                      "tokenizer: the checkpoint has no tokenizer.json, nor "
                      "vocab.json with merges.txt, nor tokenizer.model");
  }
  RETURN_IF_ERROR(ReadSideTokens(settings, &spec));
  ReadEnds(side_files, file, settings, &spec);
  return spec;
}

}  // namespace tiercel

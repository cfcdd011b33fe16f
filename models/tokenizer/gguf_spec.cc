// Reads a TokenizerSpec from GGUF's tokenizer.ggml.* keys.

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "lib/status/error.h"
#include "lib/status/status_macros.h"
#include "lib/text/quote.h"
#include "models/tokenizer/gguf_pres.h"
#include "models/tokenizer/tokenizer_spec.h"

namespace tiercel {
namespace {

// SentencePiece's spaces and bytes, merges in place of scores, and no space
// before the text.
constexpr std::string_view kGemma4 = "gemma4";

absl::Status InvalidVocab(std::string_view message) {
  return InputError("invalid_vocab",
                    absl::StrCat("tokenizer: ", std::string(message)));
}

absl::Status Unsupported(std::string_view message) {
  return InputError("unsupported_tokenizer",
                    absl::StrCat("tokenizer: ", std::string(message)));
}

absl::Status ReadPre(const Metadata& metadata, TokenizerSpec* spec) {
  ASSIGN_OR_RETURN(const auto name, metadata.FindString("tokenizer.ggml.pre"));
  const GgufPre* const pre = name ? FindGgufPre(*name) : nullptr;
  if (pre == nullptr) {
    return Unsupported(absl::StrCat("tokenizer.ggml.pre is ",
                                    name ? Quoted(*name) : "absent", "; need ",
                                    NamesOfGgufPres()));
  }
  spec->cuts = pre->cuts;
  spec->nfc = pre->nfc;
  spec->ignore_merges = pre->ignore_merges;
  spec->adds_bos = pre->adds_bos;
  return absl::OkStatus();
}

absl::Status ReadTokens(const Metadata& metadata, bool needs_scores,
                        TokenizerSpec* spec) {
  ASSIGN_OR_RETURN(const auto texts,
                   metadata.FindStrings("tokenizer.ggml.tokens"));
  ASSIGN_OR_RETURN(const auto types,
                   metadata.FindInts("tokenizer.ggml.token_type"));
  ASSIGN_OR_RETURN(const auto scores,
                   metadata.FindFloats("tokenizer.ggml.scores"));

  const size_t count = texts == nullptr ? 0 : texts->size();
  if (count == 0 || count > kMostVocab) {
    return InvalidVocab(absl::StrCat(count, " tokens; need 1 to ", kMostVocab));
  }
  if (types && types->size() != count) {
    return InvalidVocab(
        absl::StrCat(types->size(), " token types for ", count, " tokens"));
  }
  if (scores ? scores->size() != count : needs_scores) {
    return InvalidVocab(absl::StrCat(scores ? scores->size() : 0,
                                     " scores for ", count, " tokens"));
  }
  spec->tokens.resize(count);
  for (size_t i = 0; i < count; ++i) {
    TokenEntry& token = spec->tokens[i];
    token.text = (*texts)[i];
    const int64_t type = types ? (*types)[i] : 1;
    if (type < 1 || type > 6) {
      return InvalidVocab(
          absl::StrCat("token ", i, " has type ", type, "; need 1 to 6"));
    }
    token.type = static_cast<TokenType>(type);
    if (scores) token.score = static_cast<float>((*scores)[i]);
    if (std::isnan(token.score)) {
      return InvalidVocab(absl::StrCat("token ", i, " has no score (NaN)"));
    }
  }
  return absl::OkStatus();
}

// A merge is "left right": no token with a space merges.
absl::Status ReadMerges(const Metadata& metadata, TokenizerSpec* spec) {
  ASSIGN_OR_RETURN(const auto merges,
                   metadata.FindStrings("tokenizer.ggml.merges"));
  if (merges == nullptr) return InvalidVocab("no tokenizer.ggml.merges");
  spec->merges.reserve(merges->size());
  for (const std::string& merge : *merges) {
    const size_t space = merge.find(' ');
    if (space == std::string::npos || space == 0 || space + 1 == merge.size() ||
        merge.rfind(' ') != space) {
      return InvalidVocab(absl::StrCat("merge ", spec->merges.size(), " is ",
                                       Quoted(merge),
                                       "; need two tokens and one space"));
    }
    spec->merges.emplace_back(merge.substr(0, space), merge.substr(space + 1));
  }
  return absl::OkStatus();
}

// Reads an id. A value that is no token changes nothing, as in llama.cpp;
// ReadModelConfig warns of it.
void ReadId(const Metadata& metadata, std::string_view key,
            const TokenizerSpec& spec, std::optional<int32_t>* id) {
  const absl::StatusOr<std::optional<int64_t>> value =
      metadata.FindInt(key, 0, static_cast<int64_t>(spec.tokens.size()) - 1);
  if (value.ok() && value->has_value()) *id = static_cast<int32_t>(**value);
}

// Returns `id` if the vocabulary has a control token there, or one with `text`.
std::optional<int32_t> UsualId(const TokenizerSpec& spec, int32_t id,
                               std::string_view text) {
  if (static_cast<size_t>(id) >= spec.tokens.size()) return std::nullopt;
  const TokenEntry& token = spec.tokens[static_cast<size_t>(id)];
  if (token.type != TokenType::kControl && token.text != text) {
    return std::nullopt;
  }
  return id;
}

// Reads BOS and EOS, for which SentencePiece has usual ids, and whether texts
// begin with BOS, which two families imply.
absl::Status ReadEnds(const Metadata& metadata, TokenizerSpec* spec) {
  if (spec->kind == TokenizerSpec::Kind::kSentencePiece) {
    spec->bos = UsualId(*spec, 1, "<s>");
    spec->eos = UsualId(*spec, 2, "</s>");
  }
  constexpr std::string_view kBos = "tokenizer.ggml.bos_token_id";
  ReadId(metadata, kBos, *spec, &spec->bos);
  ReadId(metadata, "tokenizer.ggml.eos_token_id", *spec, &spec->eos);
  ASSIGN_OR_RETURN(const auto adds_bos,
                   metadata.FindBool("tokenizer.ggml.add_bos_token"));
  const bool implied =
      spec->kind == TokenizerSpec::Kind::kSentencePiece || spec->adds_bos;
  spec->adds_bos = adds_bos.value_or(implied && spec->bos.has_value());
  if (metadata.Has(kBos) && !spec->bos.has_value()) spec->adds_bos = false;
  return absl::OkStatus();
}

// Reads the texts of tokens that chat templates may name.
void ReadNamed(const Metadata& metadata, TokenizerSpec* spec) {
  constexpr std::pair<const char*, const char*> kNames[] = {
      {"unknown", "unk_token"},
      {"padding", "pad_token"},
      {"seperator", "sep_token"},  // as GGUF spells it
      {"cls", "cls_token"},
      {"mask", "mask_token"}};
  for (const auto& [key, name] : kNames) {
    std::optional<int32_t> id;
    ReadId(metadata, absl::StrCat("tokenizer.ggml.", key, "_token_id"), *spec,
           &id);
    if (id) {
      spec->named.emplace_back(name,
                               spec->tokens[static_cast<size_t>(*id)].text);
    }
  }
}

// GGUF does not say that a token takes the spaces behind it. Those of Phi-3 do,
// but for the ends of its texts.
void SetStrips(const Metadata& metadata, TokenizerSpec* spec) {
  const auto architecture = metadata.FindString("general.architecture");
  if (!architecture.ok() || !*architecture || **architecture != "phi3") return;
  for (TokenEntry& token : spec->tokens) {
    token.strips_right = (token.type == TokenType::kControl ||
                          token.type == TokenType::kUserDefined) &&
                         token.text != "<s>" && token.text != "<|endoftext|>";
  }
}

}  // namespace

absl::StatusOr<TokenizerSpec> SpecFromGguf(const Metadata& metadata) {
  ASSIGN_OR_RETURN(const auto model,
                   metadata.FindString("tokenizer.ggml.model"));
  if (!model || *model == "none" || *model == "no_vocab") {
    return InputError("no_tokenizer",
                      "tokenizer: the checkpoint has none "
                      "(tokenizer.ggml.model)");
  }
  TokenizerSpec spec;
  if (*model == "gpt2") {
    spec.kind = TokenizerSpec::Kind::kByteLevel;
  } else if (*model == "llama" || *model == kGemma4) {
    spec.kind = TokenizerSpec::Kind::kSentencePiece;
  } else {
    return Unsupported(absl::StrCat("tokenizer.ggml.model is ", Quoted(*model),
                                    "; need gpt2, llama or gemma4"));
  }
  RETURN_IF_ERROR(
      ReadTokens(metadata, /*needs_scores=*/*model == "llama", &spec));
  ASSIGN_OR_RETURN(const auto prefix,
                   metadata.FindBool("tokenizer.ggml.add_space_prefix"));
  if (spec.kind == TokenizerSpec::Kind::kByteLevel) {
    RETURN_IF_ERROR(ReadPre(metadata, &spec));
    RETURN_IF_ERROR(ReadMerges(metadata, &spec));
    if (prefix.value_or(false)) {
      return Unsupported("add_space_prefix with a byte-level vocabulary");
    }
  } else if (*model == kGemma4) {
    RETURN_IF_ERROR(ReadMerges(metadata, &spec));
  } else {
    SetStrips(metadata, &spec);
    if (prefix.value_or(true)) {
      spec.space_prefix = TokenizerSpec::SpacePrefix::kEachRun;
      spec.strips_prefix = true;
    }
  }
  RETURN_IF_ERROR(ReadEnds(metadata, &spec));
  ReadNamed(metadata, &spec);
  return spec;
}

}  // namespace tiercel

#ifndef TIERCEL_MODELS_TOKENIZER_TOKENIZER_SPEC_H_
#define TIERCEL_MODELS_TOKENIZER_TOKENIZER_SPEC_H_

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "models/format/metadata.h"
#include "models/tokenizer/pretokenize.h"
#include "nlohmann/json.hpp"

namespace tiercel {

// The numbers are GGUF's.
enum class TokenType {
  kNormal = 1,
  kUnknown = 2,      // stands for what cannot be spelled; treated as control
  kControl = 3,      // never comes out of plain text
  kUserDefined = 4,  // matched as a whole, in plain text too
  kUnused = 5,       // in neither direction
  kByte = 6,         // <0x00> to <0xFF> of a SentencePiece vocabulary
};

// Control tokens come out of no plain text.
inline bool IsControlType(TokenType type) {
  return type == TokenType::kControl || type == TokenType::kUnknown;
}

struct TokenEntry {
  std::string text;  // as the checkpoint spells it
  TokenType type = TokenType::kUnused;
  float score = 0;  // SentencePiece: higher merges first
  // A special token whose match takes the spaces before or behind it.
  bool strips_left = false;
  bool strips_right = false;
  bool single_word = false;  // matched if no character of a word is beside it
  bool normalized = false;   // matched in the text as the normaliser leaves it
  // A user-defined token that is matched where spaces have become U+2581, as it
  // is spelled or, `normalized`, as its text becomes, too. It ends no run.
  bool within_run = false;
};

// A checkpoint's declaration of its tokenizer, from either format. The readers
// check each field by itself; Tokenizer::Create checks the rest.
struct TokenizerSpec {
  enum class Kind { kByteLevel, kSentencePiece };
  // The places at which a space is added: none, before the text, or before each
  // stretch of text that no special token interrupts. A byte-level vocabulary
  // adds it to each stretch that begins with none, or nowhere.
  enum class SpacePrefix { kNone, kText, kEachRun };

  Kind kind = Kind::kByteLevel;
  std::vector<TokenEntry> tokens;  // by id
  // Ordered by rank. A SentencePiece vocabulary without merges uses its scores.
  std::vector<std::pair<std::string, std::string>> merges;
  std::optional<int32_t> bos;
  std::optional<int32_t> eos;
  bool adds_bos = false;
  // Texts of further tokens by the names that chat templates have for them:
  // "pad_token" and the like.
  std::vector<std::pair<std::string, std::string>> named;

  // Byte-level.
  std::vector<Cut> cuts;
  bool nfc = false;            // composes the text first
  bool ignore_merges = false;  // a piece that is a token is not split

  SpacePrefix space_prefix = SpacePrefix::kNone;

  // SentencePiece.
  bool prefixes_spaces = true;  // text that begins with a space, too
  bool splits_words = false;    // nothing merges across the start of a word
  bool strips_prefix = false;   // a text's first space is dropped in decoding
};

// A vocabulary may have this many tokens.
inline constexpr int64_t kMostVocab = 1 << 20;

// Reads GGUF's tokenizer.ggml.* keys. Errors: no_tokenizer,
// unsupported_tokenizer, invalid_vocab, invalid_metadata.
absl::StatusOr<TokenizerSpec> SpecFromGguf(const Metadata& metadata);

// Reads the files of a Hugging Face folder by name, as Checkpoint::side_files()
// has them: tokenizer.json defines the tokenizer, or vocab.json with
// merges.txt, or tokenizer.model; the settings of hf_settings.h add special
// tokens, BOS and EOS, and config.json the latter where there are none. Errors:
// no_tokenizer, unsupported_tokenizer, invalid_vocab.
absl::StatusOr<TokenizerSpec> SpecFromHuggingFace(
    const nlohmann::json& side_files);

// Reads the bytes of SentencePiece's own file, a protocol buffer, of a BPE
// model. Errors: unsupported_tokenizer, invalid_vocab.
absl::StatusOr<TokenizerSpec> SpecFromSentencePiece(std::string_view bytes);

}  // namespace tiercel

#endif  // TIERCEL_MODELS_TOKENIZER_TOKENIZER_SPEC_H_

// Reads a TokenizerSpec from the file that SentencePiece itself writes,
// tokenizer.model: a protocol buffer, of which a few fields matter here
// (github.com/google/sentencepiece, src/sentencepiece_model.proto).

#include <cmath>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "lib/status/error.h"
#include "lib/status/status_macros.h"
#include "models/tokenizer/tokenizer_spec.h"

namespace tiercel {
namespace {

absl::Status InvalidModel(std::string_view message) {
  return InputError("invalid_vocab",
                    absl::StrCat("tokenizer.model: ", std::string(message)));
}

absl::Status UnsupportedModel(std::string_view message) {
  return InputError("unsupported_tokenizer",
                    absl::StrCat("tokenizer.model: ", std::string(message)));
}

// A field of a message, in one of the wire format's forms.
struct WireField {
  uint64_t number = 0;
  uint64_t value = 0;     // a varint, or the bits of a fixed number
  std::string_view text;  // a string or a message
};

// Takes the fields of a message one after the other.
class WireMessage {
 public:
  explicit WireMessage(std::string_view bytes) : left_(bytes) {}

  // Returns nothing at the end. Errors: invalid_vocab.
  absl::StatusOr<std::optional<WireField>> Next() {
    if (left_.empty()) return std::nullopt;
    WireField field;
    uint64_t tag = 0;
    RETURN_IF_ERROR(Varint(&tag));
    field.number = tag >> 3;
    switch (tag & 7) {
      case 0:
        RETURN_IF_ERROR(Varint(&field.value));
        break;
      case 1:
        RETURN_IF_ERROR(Fixed(sizeof(uint64_t), &field.value));
        break;
      case 2: {
        uint64_t size = 0;
        RETURN_IF_ERROR(Varint(&size));
        if (size > left_.size()) return Cut();
        field.text = left_.substr(0, size);
        left_.remove_prefix(size);
        break;
      }
      case 5:
        RETURN_IF_ERROR(Fixed(sizeof(uint32_t), &field.value));
        break;
      default:
        return InvalidModel(
            absl::StrCat("a field of wire type ", tag & 7,
                         "; the file is no SentencePiece model"));
    }
    return field;
  }

 private:
  static absl::Status Cut() {
    return InvalidModel(
        "it ends within a field; it is damaged, or no "
        "SentencePiece model");
  }
  absl::Status Varint(uint64_t* value) {
    for (int shift = 0; shift < 64; shift += 7) {
      if (left_.empty()) return Cut();
      const auto byte = static_cast<uint8_t>(left_.front());
      left_.remove_prefix(1);
      *value |= uint64_t{byte & 0x7fu} << shift;
      if (byte < 0x80) return absl::OkStatus();
    }
    return Cut();
  }
  absl::Status Fixed(size_t bytes, uint64_t* value) {
    if (left_.size() < bytes) return Cut();
    std::memcpy(value, left_.data(), bytes);
    left_.remove_prefix(bytes);
    return absl::OkStatus();
  }

  std::string_view left_;
};

absl::Status ReadPiece(std::string_view bytes, TokenizerSpec* spec) {
  TokenEntry token = {.text = "", .type = TokenType::kNormal};
  WireMessage message(bytes);
  for (;;) {
    ASSIGN_OR_RETURN(const std::optional<WireField> field, message.Next());
    if (!field) break;
    if (field->number == 1) token.text = std::string(field->text);
    if (field->number == 2) {
      std::memcpy(&token.score, &field->value, sizeof(token.score));
    }
    if (field->number != 3) continue;
    if (field->value < 1 || field->value > 6) {
      return InvalidModel(absl::StrCat("token ", spec->tokens.size(),
                                       " has type ", field->value,
                                       "; need 1 to 6"));
    }
    token.type = static_cast<TokenType>(field->value);  // the same numbers
    token.within_run = token.type == TokenType::kUserDefined;
  }
  if (std::isnan(token.score)) {
    return InvalidModel(
        absl::StrCat("token ", spec->tokens.size(), " has no score (NaN)"));
  }
  spec->tokens.push_back(std::move(token));
  return absl::OkStatus();
}

// Ids are of 32 bits; -1 stands for none.
absl::Status ReadTrainer(std::string_view bytes, TokenizerSpec* spec) {
  constexpr uint64_t kBpe = 2;
  uint64_t kind = 1;  // unigram, if the field is absent
  WireMessage message(bytes);
  for (;;) {
    ASSIGN_OR_RETURN(const std::optional<WireField> field, message.Next());
    if (!field) break;
    const auto id = static_cast<int32_t>(field->value);
    const std::optional<int32_t> named =
        id < 0 ? std::nullopt : std::optional<int32_t>(id);
    if (field->number == 3) kind = field->value;
    if (field->number == 24 && field->value != 0) {
      return UnsupportedModel(
          "spaces that end words (treat_whitespace_as_suffix); need those that "
          "begin them");
    }
    if (field->number == 41) spec->bos = named;
    if (field->number == 42) spec->eos = named;
  }
  if (kind == kBpe) return absl::OkStatus();
  return UnsupportedModel(
      absl::StrCat("a model of kind ", kind, "; need BPE, kind ", kBpe));
}

absl::Status ReadNormalizer(std::string_view bytes, TokenizerSpec* spec) {
  bool prefixes = true;
  bool trims = true;
  bool escapes = true;
  WireMessage message(bytes);
  for (;;) {
    ASSIGN_OR_RETURN(const std::optional<WireField> field, message.Next());
    if (!field) break;
    if (field->number == 2 && !field->text.empty()) {
      return UnsupportedModel(
          "a normaliser that changes characters; need none");
    }
    if (field->number == 3) prefixes = field->value != 0;
    if (field->number == 4) trims = field->value != 0;
    if (field->number == 5) escapes = field->value != 0;
  }
  if (trims || !escapes) {
    return UnsupportedModel(
        "a normaliser that removes spaces, or keeps them as they are; need one "
        "that writes each as U+2581");
  }
  spec->space_prefix = prefixes ? TokenizerSpec::SpacePrefix::kEachRun
                                : TokenizerSpec::SpacePrefix::kNone;
  spec->strips_prefix = prefixes;
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<TokenizerSpec> SpecFromSentencePiece(std::string_view bytes) {
  TokenizerSpec spec;
  spec.kind = TokenizerSpec::Kind::kSentencePiece;
  spec.bos = 1;
  spec.eos = 2;
  std::string_view trainer, normalizer;
  WireMessage message(bytes);
  for (;;) {
    ASSIGN_OR_RETURN(const std::optional<WireField> field, message.Next());
    if (!field) break;
    if (field->number == 1) {
      if (spec.tokens.size() == kMostVocab) {
        return InvalidModel(absl::StrCat("more than ", kMostVocab, " tokens"));
      }
      RETURN_IF_ERROR(ReadPiece(field->text, &spec));
    }
    if (field->number == 2) trainer = field->text;
    if (field->number == 3) normalizer = field->text;
  }
  if (spec.tokens.empty()) return InvalidModel("it has no tokens");
  RETURN_IF_ERROR(ReadTrainer(trainer, &spec));
  RETURN_IF_ERROR(ReadNormalizer(normalizer, &spec));
  spec.adds_bos = spec.bos.has_value();
  return spec;
}

}  // namespace tiercel

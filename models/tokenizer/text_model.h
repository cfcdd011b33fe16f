#ifndef TIERCEL_MODELS_TOKENIZER_TEXT_MODEL_H_
#define TIERCEL_MODELS_TOKENIZER_TEXT_MODEL_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "models/tokenizer/encode_watch.h"
#include "models/tokenizer/tokenizer_spec.h"

namespace tiercel {

// Encodes text without special tokens. Immutable and thread-safe.
class TextModel {
 public:
  virtual ~TextModel() = default;

  // Appends the ids of `run`, a stretch between special tokens or the ends of
  // the text. Errors: invalid_text; those of the watch.
  virtual absl::Status Encode(std::string_view run, bool first_run,
                              EncodeWatch* watch,
                              std::vector<int32_t>* ids) const = 0;

  // Returns the bytes of a normal, user-defined or byte token.
  virtual std::string BytesOf(const TokenEntry& token) const = 0;
};

// There are these two. Errors: invalid_vocab.
absl::StatusOr<std::unique_ptr<TextModel>> MakeByteBpe(
    const TokenizerSpec& spec);
absl::StatusOr<std::unique_ptr<TextModel>> MakeSentencePiece(
    const TokenizerSpec& spec);

}  // namespace tiercel

#endif  // TIERCEL_MODELS_TOKENIZER_TEXT_MODEL_H_

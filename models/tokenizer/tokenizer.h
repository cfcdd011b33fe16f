#ifndef TIERCEL_MODELS_TOKENIZER_TOKENIZER_H_
#define TIERCEL_MODELS_TOKENIZER_TOKENIZER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "models/format/checkpoint.h"
#include "models/tokenizer/encode_watch.h"
#include "models/tokenizer/text_model.h"
#include "models/tokenizer/token_splitter.h"
#include "models/tokenizer/tokenizer_spec.h"
#include "nlohmann/json.hpp"

namespace tiercel {

// Converts text to token ids and back. Immutable and thread-safe once made.
class Tokenizer {
 public:
  // kParse turns the text of a special token (<|im_start|>) into that token.
  // Text from users and documents is always kPlain: no wording of it can
  // produce a control token. User-defined tokens are words of the vocabulary
  // and come out of both.
  enum class Special { kPlain, kParse };

  // A part of a text. Special tokens are matched within each part alone; the
  // text between them is encoded as one, across the parts.
  struct Part {
    std::string_view text;
    Special special;
  };

  // Makes the tokenizer of GGUF metadata or tokenizer.json (with
  // tokenizer_config.json). Errors: no_tokenizer; invalid_vocab;
  // unsupported_tokenizer; invalid_metadata; the reason why a file of it could
  // not be read (Checkpoint::unread_files).
  static absl::StatusOr<std::unique_ptr<Tokenizer>> Create(
      const Checkpoint& checkpoint);
  static absl::StatusOr<std::unique_ptr<Tokenizer>> Create(TokenizerSpec spec);

  // Appends the ids of `text`, without BOS, to `ids`, which are unchanged after
  // an error. The README of this folder defines the treatment of invalid UTF-8.
  // Errors: too_long (more ids than `limits` allow, detected soon after that
  // many, or 1.3 GiB between two special tokens); cancelled; invalid_text (a
  // byte that the vocabulary cannot spell).
  absl::Status Encode(std::string_view text, Special special,
                      std::vector<int32_t>* ids,
                      const EncodeLimits& limits = {}) const;
  absl::Status Encode(const std::vector<Part>& parts, std::vector<int32_t>* ids,
                      const EncodeLimits& limits = {}) const;

  // Returns the bytes of one token within a text; empty for control tokens
  // unless `special` is kParse. Errors: invalid_token.
  absl::StatusOr<std::string> Piece(int32_t id, Special special) const;

  // Returns the bytes of tokens within a text: those of their pieces. Errors:
  // invalid_token.
  absl::StatusOr<std::string> Pieces(const std::vector<int32_t>& ids,
                                     Special special) const;

  // Returns the bytes of a whole text: those of its pieces, without the space
  // that Encode adds in front. Errors: invalid_token.
  absl::StatusOr<std::string> Decode(const std::vector<int32_t>& ids,
                                     Special special) const;

  int64_t vocab() const { return static_cast<int64_t>(spec_.tokens.size()); }
  std::optional<int32_t> bos() const { return spec_.bos; }
  std::optional<int32_t> eos() const { return spec_.eos; }
  // True if texts of this checkpoint begin with bos(), which then exists.
  bool adds_bos() const { return spec_.adds_bos; }
  // Texts of tokens other than BOS and EOS, by their names in chat templates.
  const std::vector<std::pair<std::string, std::string>>& named() const {
    return spec_.named;
  }
  // True if decoding removes a text's first space.
  bool strips_first_space() const { return spec_.strips_prefix; }
  bool IsControl(int32_t id) const;      // false for an id that is no token
  bool IsUserDefined(int32_t id) const;  // likewise
  // Returns false for padding, and for an id that is no token.
  bool IsUsed(int32_t id) const;

  // Returns the first token of plain text, a word or a byte, from `id` on.
  std::optional<int32_t> FirstWordFrom(int64_t id) const;

  // Returns the control token with this text, if there is one.
  std::optional<int32_t> ControlNamed(std::string_view text) const;

  // Returns the control tokens that end a text or a turn: EOS, and those with
  // a text that models give to such tokens (IsEndSpelling), but not <|end|>
  // where it ends one of several parts of a turn. In ascending order.
  std::vector<int32_t> Ends() const;

  // Returns kind, pre-tokeniser, sizes and special ids, for `inspect`.
  nlohmann::json Describe() const;

 private:
  explicit Tokenizer(TokenizerSpec spec);

  // Encodes text without special tokens.
  absl::Status EncodeRun(std::string_view run, bool first_run,
                         EncodeWatch* watch, std::vector<int32_t>* ids) const;

  // Its texts are the tokens' bytes; its merges have moved to model_.
  TokenizerSpec spec_;
  std::unique_ptr<TextModel> model_;
  TokenSplitter splitter_;
};

// Returns true for a text that models of several makers give to a control token
// that ends a text or a turn: <|im_end|>, <end_of_turn> and so on.
bool IsEndSpelling(std::string_view text);

// Turns a stream of tokens into text that is valid UTF-8 at every call. Bytes
// of an unfinished sequence are held back, and bytes that can no longer become
// valid come out as U+FFFD. The outputs, joined, are the decoded text except
// for the bytes held.
class StreamDecoder {
 public:
  explicit StreamDecoder(const Tokenizer* tokenizer);  // must outlive this

  // Continues behind the tokens `before`, which give no output: bytes at their
  // end that begin a sequence come with those that complete it. `within_text`
  // says that they are of the same text, so its first space is behind them.
  // Errors: invalid_token.
  absl::Status GoOnBehind(absl::Span<const int32_t> before, bool within_text);

  // Returns the text that `id` completes, possibly empty. Errors:
  // invalid_token, after which the stream is as it was before.
  absl::StatusOr<std::string> Push(int32_t id);
  // The bytes held back: the start of an incomplete UTF-8 sequence, at most 3.
  const std::string& held() const { return held_; }

 private:
  const Tokenizer* tokenizer_;
  bool first_ = true;  // no text has come yet
  std::string held_;
};

}  // namespace tiercel

#endif  // TIERCEL_MODELS_TOKENIZER_TOKENIZER_H_

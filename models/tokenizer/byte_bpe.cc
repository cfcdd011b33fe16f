// Byte-level BPE. Each byte of a text is a token at first; within each piece
// that the pre-tokeniser cuts, neighbours merge by rank.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "lib/status/error.h"
#include "lib/status/status_macros.h"
#include "lib/text/quote.h"
#include "models/tokenizer/byte_alphabet.h"
#include "models/tokenizer/flat_map.h"
#include "models/tokenizer/merge.h"
#include "models/tokenizer/merge_table.h"
#include "models/tokenizer/merge_windows.h"
#include "models/tokenizer/nfc.h"
#include "models/tokenizer/pieces.h"
#include "models/tokenizer/text_model.h"

namespace tiercel {
namespace {

class ByteBpe : public TextModel {
 public:
  static absl::StatusOr<std::unique_ptr<TextModel>> Make(
      const TokenizerSpec& spec) {
    auto model = std::make_unique<ByteBpe>();
    ASSIGN_OR_RETURN(model->merges_, MergeTable::Make(spec));
    ASSIGN_OR_RETURN(model->pretokenizer_, Pretokenizer::Make(spec.cuts));
    model->nfc_ = spec.nfc;
    model->prefixes_ = spec.space_prefix != TokenizerSpec::SpacePrefix::kNone;
    model->byte_ids_.fill(kNoToken);
    for (size_t i = 0; i < spec.tokens.size(); ++i) {
      const TokenEntry& token = spec.tokens[i];
      if (token.type == TokenType::kByte) {
        return InputError(
            "invalid_vocab",
            absl::StrCat("tokenizer: token ", i, " ", Quoted(token.text),
                         " is a byte token, which a byte-level "
                         "vocabulary does not have"));
      }
      if (token.type != TokenType::kNormal) continue;
      const std::optional<std::string> bytes = BytesOfSpelling(token.text);
      if (!bytes || bytes->empty()) continue;
      const int32_t id = static_cast<int32_t>(i);
      model->NoteByte(*bytes, id);
      if (spec.ignore_merges) model->whole_ids_.Insert(*bytes, id);
    }
    // A file may call one of its letters special, too: for padding, say.
    for (size_t i = 0; i < spec.tokens.size(); ++i) {
      if (spec.tokens[i].type == TokenType::kNormal) continue;
      const std::optional<std::string> bytes =
          BytesOfSpelling(spec.tokens[i].text);
      if (bytes) model->NoteByte(*bytes, static_cast<int32_t>(i));
    }
    return model;
  }

  absl::Status Encode(std::string_view run, bool /*first_run*/,
                      EncodeWatch* watch,
                      std::vector<int32_t>* ids) const override {
    const bool prefixes = prefixes_ && !run.empty() && run.front() != ' ';
    std::string changed = nfc_ ? ComposeNfc(run) : std::string();
    if (prefixes)
      changed = absl::StrCat(" ", nfc_ ? changed : std::string(run));
    const std::string_view text = nfc_ || prefixes ? changed : run;
    Merger merger;
    Pretokenizer::Walk walk(pretokenizer_, text);
    return EncodePieces(
        text, run.size(), watch, ids,
        [&](size_t begin) { return walk.End(begin); },
        [&](absl::string_view piece, LookFn look) {
          return EncodePiece(piece, look, &merger, ids);
        });
  }

  std::string BytesOf(const TokenEntry& token) const override {
    // Added tokens are not spelled in the byte alphabet, nor need others of a
    // vocabulary be; such tokens are spelled by their text.
    if (token.type != TokenType::kNormal) return token.text;
    return BytesOfSpelling(token.text).value_or(token.text);
  }

 private:
  // Notes the first token of a single byte.
  void NoteByte(std::string_view bytes, int32_t id) {
    if (bytes.size() != 1) return;
    int32_t& byte_id = byte_ids_[static_cast<uint8_t>(bytes.front())];
    if (byte_id == kNoToken) byte_id = id;
  }

  // Calls look(bytes done) now and then, which decides whether to go on.
  absl::Status EncodePiece(absl::string_view piece, LookFn look, Merger* merger,
                           std::vector<int32_t>* ids) const {
    if (const int32_t* const whole = whole_ids_.Find(piece)) {
      ids->push_back(*whole);
      return look(piece.size());
    }
    const size_t before = ids->size();
    return MergeInWindows(
        piece.size(), merger,
        [&](size_t begin, size_t end) {
          return MergeBytes(piece, begin, end, merger);
        },
        [&] { ids->resize(before); },
        [&](const Symbol& symbol) {
          ids->push_back(symbol.id);
          return absl::OkStatus();
        },
        look);
  }

  // Merges bytes `begin` to `end` of a piece.
  absl::Status MergeBytes(absl::string_view piece, size_t begin, size_t end,
                          Merger* merger) const {
    merger->Clear();
    for (size_t i = begin; i < end; ++i) {
      const uint8_t byte = static_cast<uint8_t>(piece[i]);
      if (byte_ids_[byte] == kNoToken) {
        return InputError(
            "invalid_text",
            absl::StrFormat("tokenizer: the text has a byte 0x%02x, for which "
                            "this vocabulary has no token",
                            byte));
      }
      merger->Add(static_cast<uint32_t>(i), 1, byte_ids_[byte]);
    }
    merger->Run([this](const Symbol& left, const Symbol& right) {
      return merges_.Find(left.id, right.id);
    });
    return absl::OkStatus();
  }

  MergeTable merges_;
  Pretokenizer pretokenizer_;
  bool nfc_ = false;
  bool prefixes_ = false;  // a run that begins with no space gets one
  std::array<int32_t, 256> byte_ids_;  // kNoToken where there is none
  // Tokens by their bytes; empty unless merges are ignored for them.
  FlatMap<std::string, int32_t> whole_ids_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<TextModel>> MakeByteBpe(
    const TokenizerSpec& spec) {
  return ByteBpe::Make(spec);
}

}  // namespace tiercel

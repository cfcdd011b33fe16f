#include "lib/status/status_macros.h"
#include "lib/text/utf8.h"
#include "models/tokenizer/tokenizer.h"

namespace tiercel {

StreamDecoder::StreamDecoder(const Tokenizer* tokenizer)
    : tokenizer_(tokenizer) {}

absl::Status StreamDecoder::GoOnBehind(absl::Span<const int32_t> before,
                                       bool within_text) {
  first_ = !within_text;
  std::string end;
  while (end.size() < kMostUnfinishedBytes && !before.empty()) {
    ASSIGN_OR_RETURN(
        const std::string piece,
        tokenizer_->Piece(before.back(), Tokenizer::Special::kPlain));
    end.insert(0, piece);
    before.remove_suffix(1);
  }
  held_ = end.substr(end.size() - UnfinishedUtf8(end));
  return absl::OkStatus();
}

absl::StatusOr<std::string> StreamDecoder::Push(int32_t id) {
  absl::StatusOr<std::string> piece =
      tokenizer_->Piece(id, Tokenizer::Special::kPlain);
  if (!piece.ok() || piece->empty()) return piece;
  if (first_ && tokenizer_->strips_first_space() && piece->front() == ' ') {
    piece->erase(0, 1);
  }
  first_ = false;
  held_ += *piece;
  const size_t ready = held_.size() - UnfinishedUtf8(held_);
  std::string text =
      ReplaceInvalidUtf8(std::string_view(held_).substr(0, ready));
  held_.erase(0, ready);
  return text;
}

}  // namespace tiercel

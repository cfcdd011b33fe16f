#include <utility>

#include "models/tokenizer/tokenizer.h"
#include "models/tokenizer/utf8.h"

namespace tiercel {

StreamDecoder::StreamDecoder(const Tokenizer* tokenizer)
    : tokenizer_(tokenizer) {}

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

std::string StreamDecoder::Finish() {
  first_ = true;
  return ReplaceInvalidUtf8(std::exchange(held_, std::string()));
}

}  // namespace tiercel

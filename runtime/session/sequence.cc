#include "runtime/session/sequence.h"

#include <algorithm>

#include "lib/status/status_macros.h"

namespace tiercel {

void Sequence::Truncate(size_t length) {
  if (length >= tokens_.size()) return;
  tokens_.resize(length);
  answer_begin_ = std::min(answer_begin_, length);
  TruncateKv(static_cast<int64_t>(length));
  if (!extent_.has_value()) return;
  const int64_t end = begin_ + static_cast<int64_t>(length);
  extent_->Truncate(end);
  if (!extent_->HasAnswer(end)) prompt_begins_ = true;
}

void Sequence::BeginPrompt() {
  prompt_had_begun_ = std::exchange(prompt_begins_, true);
  tokens_before_ = tokens_.size();
  resumed_layers_ = 0;
}

void Sequence::AbandonPrompt() {
  Truncate(tokens_before_);
  prompt_begins_ = prompt_had_begun_;
}

void Sequence::EndPrompt(std::optional<SequenceExtent> extent) {
  extent_ = std::move(extent);
  prompt_begins_ = false;
}

void Sequence::AddKv(int64_t rows, bool as_prompt) {
  const bool settles = IsSettled() && as_prompt;
  kv_length_ += rows;
  if (settles) settled_ = kv_length_;
}

void Sequence::FillKv(int64_t rows) {
  if (rows <= 0) return;
  filled_from_ = std::min(filled_from_, kv_length_);
  AddKv(rows, /*as_prompt=*/true);
}

void Sequence::TruncateKv(int64_t length) {
  kv_length_ = std::min(kv_length_, length);
  settled_ = std::min(settled_, kv_length_);
  if (kv_length_ <= filled_from_) filled_from_ = kAllPositions;
}

absl::StatusOr<std::optional<SequenceExtent>> Sequence::NextExtent() const {
  std::optional<SequenceExtent> next = extent_;
  if (!next.has_value() || !prompt_begins_) return next;
  RETURN_IF_ERROR(next->BeginAnswer(tokens_, begin_ + kv_length_));
  return next;
}

}  // namespace tiercel

#include "runtime/generate/answer_mask.h"

#include <algorithm>
#include <string_view>

#include "lib/status/status_macros.h"
#include "runtime/generate/thought_splitter.h"

namespace tiercel {
namespace {

bool IsBlank(std::string_view text) {
  return text.find_first_not_of(ThoughtSplitter::kSpace) == text.npos;
}

}  // namespace

absl::StatusOr<AnswerMask> AnswerMask::Create(TokenMask::Rule mask,
                                              const Tokenizer* tokenizer,
                                              ThoughtTags tags, bool thinks) {
  AnswerMask made(std::move(mask), tokenizer, std::move(tags), thinks);
  const char last = made.tags_.close.back();
  for (int64_t i = 0; i < tokenizer->vocab(); ++i) {
    const auto id = static_cast<int32_t>(i);
    ASSIGN_OR_RETURN(std::string piece, made.Piece(id));
    const size_t end = piece.find(last);
    if (end == piece.npos || IsBlank(std::string_view(piece).substr(end + 1))) {
      continue;
    }
    made.both_parts_.emplace_back(id, std::move(piece));
  }
  return made;
}

absl::StatusOr<std::string> AnswerMask::Piece(int32_t id) const {
  const bool is_tag = id == tags_.open_id || id == tags_.close_id;
  return tokenizer_->Piece(
      id, is_tag ? Tokenizer::Special::kParse : Tokenizer::Special::kPlain);
}

absl::Status AnswerMask::GoTo(std::span<const int32_t> output) {
  const auto same =
      static_cast<size_t>(std::mismatch(tokens_.begin(), tokens_.end(),
                                        output.begin(), output.end())
                              .first -
                          tokens_.begin());
  tokens_.resize(same);
  ends_.resize(same);
  text_.resize(same == 0 ? 0 : ends_.back());
  for (const int32_t id : output.subspan(same)) {
    ASSIGN_OR_RETURN(const std::string piece, Piece(id));
    text_ += piece;
    tokens_.push_back(id);
    ends_.push_back(text_.size());
  }
  return absl::OkStatus();
}

absl::Status AnswerMask::Ask(std::span<const int32_t> output,
                             std::span<uint32_t> allowed) {
  RETURN_IF_ERROR(GoTo(output));
  ThoughtSplitter splitter(tags_, thinks_);
  splitter.Advance(text_, /*whole=*/false);
  if (splitter.in_thought()) {
    ForbidBothParts(allowed);
    return absl::OkStatus();
  }
  if (splitter.closed_at() != std::string_view::npos) {
    // The token in which the tag ends is the last that is not the answer's.
    const auto closing =
        std::lower_bound(ends_.begin(), ends_.end(), splitter.closed_at());
    return mask_(
        output.subspan(static_cast<size_t>(closing - ends_.begin()) + 1),
        allowed);
  }
  RETURN_IF_ERROR(mask_(output, allowed));
  const bool may_think = splitter.answer_begin() == std::string_view::npos;
  if (may_think && tags_.open_id.has_value() && IsBlank(text_)) {
    AddToken(*tags_.open_id, allowed);
  }
  return absl::OkStatus();
}

void AnswerMask::ForbidBothParts(std::span<uint32_t> allowed) const {
  const size_t tail = std::min(text_.size(), tags_.close.size() - 1);
  const std::string before = text_.substr(text_.size() - tail);
  for (const auto& [id, piece] : both_parts_) {
    const std::string text = before + piece;
    const size_t close = text.find(tags_.close);
    if (close == text.npos ||
        IsBlank(std::string_view(text).substr(close + tags_.close.size()))) {
      continue;
    }
    RemoveToken(id, allowed);
  }
}

}  // namespace tiercel

#include "runtime/generate/transcript.h"

#include <algorithm>
#include <utility>

#include "lib/status/status_macros.h"

namespace tiercel {

Transcript::Transcript(const Tokenizer* tokenizer,
                       std::vector<std::string> stops, OnToken on_token)
    : stops_(std::move(stops)), on_token_(std::move(on_token)) {
  if (tokenizer != nullptr) decoder_.emplace(tokenizer);
}

absl::Status Transcript::GoOnBehind(absl::Span<const int32_t> before,
                                    bool within_text) {
  return decoder_.has_value() ? decoder_->GoOnBehind(before, within_text)
                              : absl::OkStatus();
}

absl::StatusOr<bool> Transcript::Push(int32_t id) {
  if (decoder_.has_value()) {
    ASSIGN_OR_RETURN(const std::string piece, decoder_->Push(id));
    decoded_ += piece.size();
    text_ += stops_.Push(piece);
  }
  waiting_.push_back({id, decoded_});
  if (stops_.matched()) return false;
  if (!decoder_.has_value() || decoder_->held().empty()) {
    GiveOut(/*all=*/false);
  }
  return !refused_;
}

void Transcript::Finish() {
  if (!stops_.matched()) text_ += stops_.Finish();
  GiveOut(/*all=*/true);
}

// A token is settled when its text is; at the end also a token that a stop cut.
void Transcript::GiveOut(bool all) {
  size_t given = 0;
  for (const Waiting& token : waiting_) {
    const bool whole = token.text_end <= text_.size();
    const bool cut = all && given_ < text_.size();
    if ((!whole && !cut) || refused_) break;
    const size_t end = std::min(token.text_end, text_.size());
    const std::string_view text =
        std::string_view(text_).substr(given_, end - given_);
    given_ = end;
    ++given;
    tokens_.push_back(token.id);
    if (on_token_ && !on_token_(token.id, text)) refused_ = true;
  }
  waiting_.erase(waiting_.begin(),
                 waiting_.begin() + static_cast<std::ptrdiff_t>(given));
}

}  // namespace tiercel

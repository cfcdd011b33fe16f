#include "runtime/generate/transcript.h"

#include <algorithm>
#include <utility>

#include "lib/status/status_macros.h"

namespace tiercel {

Transcript::Transcript(const Tokenizer* tokenizer,
                       std::vector<std::string> stops, OnToken on_token)
    : tokenizer_(tokenizer),
      stops_(std::move(stops)),
      on_token_(std::move(on_token)) {
  if (tokenizer != nullptr) decoder_.emplace(tokenizer);
}

void Transcript::SplitThought(ThoughtTags tags, bool thinks) {
  splitter_.emplace(std::move(tags), thinks);
}

absl::Status Transcript::GoOnBehind(absl::Span<const int32_t> before,
                                    bool within_text) {
  return decoder_.has_value() ? decoder_->GoOnBehind(before, within_text)
                              : absl::OkStatus();
}

absl::StatusOr<bool> Transcript::Push(int32_t id,
                                      std::optional<TokenLogProbs> log_probs) {
  if (decoder_.has_value()) {
    ASSIGN_OR_RETURN(std::string piece, decoder_->Push(id));
    if (splitter_.has_value() && splitter_->IsTag(id)) {
      ASSIGN_OR_RETURN(piece,
                       tokenizer_->Piece(id, Tokenizer::Special::kParse));
    }
    decoded_ += piece.size();
    AddText(piece, /*whole=*/false);
  }
  waiting_.push_back({id, decoded_, std::move(log_probs)});
  if (stops_.matched()) return false;
  if (!decoder_.has_value() || decoder_->held().empty()) {
    GiveOut(/*all=*/false);
  }
  return !refused_;
}

bool Transcript::IsAnswering() const {
  return !splitter_.has_value() ||
         splitter_->answer_begin() != std::string_view::npos;
}

void Transcript::AddText(std::string_view piece, bool whole) {
  if (IsAnswering()) {
    text_ += stops_.Push(piece);
    return;
  }
  text_.append(piece);
  splitter_->Advance(text_, whole);
  if (!IsAnswering()) return;
  const std::string answer = text_.substr(splitter_->answer_begin());
  text_.resize(splitter_->answer_begin());
  text_ += stops_.Push(answer);
}

void Transcript::Finish() {
  if (!IsAnswering()) AddText("", /*whole=*/true);
  if (!stops_.matched()) text_ += stops_.Finish();
  GiveOut(/*all=*/true);
}

// A token is settled when its text is; at the end also a token that a stop cut.
void Transcript::GiveOut(bool all) {
  const size_t settled =
      splitter_.has_value() ? splitter_->Advance(text_, all) : text_.size();
  size_t given = 0;
  for (const Waiting& token : waiting_) {
    const bool whole = token.text_end <= settled;
    const bool cut = all && given_ < text_.size();
    if ((!whole && !cut) || refused_) break;
    const size_t end = std::min(token.text_end, text_.size());
    const size_t begin = std::exchange(given_, end);
    ++given;
    tokens_.push_back(token.id);
    if (!on_token_) continue;
    const bool has_log_probs = token.log_probs.has_value();
    refused_ = !on_token_({token.id, TextOf(begin, end), ThoughtOf(begin, end),
                           has_log_probs ? &*token.log_probs : nullptr});
  }
  waiting_.erase(waiting_.begin(),
                 waiting_.begin() + static_cast<std::ptrdiff_t>(given));
}

std::string_view Transcript::text() const { return TextOf(0, text_.size()); }

std::string_view Transcript::thought() const {
  return ThoughtOf(0, text_.size());
}

std::string_view Transcript::TextOf(size_t begin, size_t end) const {
  return splitter_.has_value()
             ? splitter_->AnswerIn(text_, begin, end)
             : std::string_view(text_).substr(begin, end - begin);
}

std::string_view Transcript::ThoughtOf(size_t begin, size_t end) const {
  return splitter_.has_value() ? splitter_->ThoughtIn(text_, begin, end)
                               : std::string_view();
}

}  // namespace tiercel

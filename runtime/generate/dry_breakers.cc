#include "runtime/generate/dry_breakers.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "absl/status/statusor.h"

namespace tiercel {
namespace {

// Adds the runs that begin with `id`, whose text is `piece`, and hold `text`.
void AddRuns(const Tokenizer& tokenizer, int32_t id, std::string_view piece,
             std::string_view text, SequenceBreakers* breakers) {
  if (piece.find(text) != std::string_view::npos) {
    breakers->Add({id});
    return;
  }
  for (size_t length = std::min(piece.size(), text.size() - 1); length > 0;
       --length) {
    if (!piece.ends_with(text.substr(0, length))) continue;
    std::vector<int32_t> run = {id};
    // A rest that the vocabulary cannot spell cannot follow.
    if (tokenizer.Encode(text.substr(length), Tokenizer::Special::kPlain, &run)
            .ok()) {
      breakers->Add(run);
    }
  }
}

}  // namespace

SequenceBreakers BreakersOf(const Tokenizer& tokenizer,
                            const std::vector<std::string>& texts) {
  SequenceBreakers breakers;
  for (int32_t id = 0; id < static_cast<int32_t>(tokenizer.vocab()); ++id) {
    const absl::StatusOr<std::string> piece =
        tokenizer.Piece(id, Tokenizer::Special::kParse);
    if (!piece.ok()) continue;
    for (const std::string& text : texts) {
      AddRuns(tokenizer, id, *piece, text, &breakers);
    }
  }
  return breakers;
}

std::shared_ptr<const SequenceBreakers> KnownBreakers::Of(
    const Tokenizer* tokenizer, const std::vector<std::string>& texts) {
  if (tokenizer == nullptr || texts.empty()) return nullptr;
  if (breakers_ == nullptr || texts != texts_) {
    breakers_ =
        std::make_shared<SequenceBreakers>(BreakersOf(*tokenizer, texts));
    texts_ = texts;
  }
  return breakers_;
}

}  // namespace tiercel

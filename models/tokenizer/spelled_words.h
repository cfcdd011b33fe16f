#ifndef TIERCEL_MODELS_TOKENIZER_SPELLED_WORDS_H_
#define TIERCEL_MODELS_TOKENIZER_SPELLED_WORDS_H_

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "models/tokenizer/flat_map.h"

namespace tiercel {

// The short pieces of a run of text that were encoded already, as ranges of its
// ids, since books repeat their words.
class SpelledWords {
 public:
  // Appends the ids of `piece` and returns true, if it came before.
  bool Repeat(absl::string_view piece, std::vector<int32_t>* ids) const {
    const auto* const found = places_.Find(piece);
    if (found == nullptr) return false;
    const auto [begin, count] = *found;
    for (size_t i = begin; i < begin + count; ++i) ids->push_back((*ids)[i]);
    return true;
  }

  // `piece`, whose bytes must outlive this, is spelled by `count` ids from
  // `begin` on.
  void Add(absl::string_view piece, size_t begin, size_t count) {
    if (piece.size() <= kMostBytes && places_.size() < kMostWords) {
      places_.Insert(piece, std::make_pair(begin, count));
    }
  }

 private:
  static constexpr size_t kMostBytes = 32;
  static constexpr size_t kMostWords = 1 << 16;

  FlatMap<absl::string_view, std::pair<size_t, size_t>> places_;
};

}  // namespace tiercel

#endif  // TIERCEL_MODELS_TOKENIZER_SPELLED_WORDS_H_

#ifndef TIERCEL_MODELS_TOKENIZER_MERGE_H_
#define TIERCEL_MODELS_TOKENIZER_MERGE_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace tiercel {

inline constexpr int32_t kNoToken = -1;

// A stretch of text that is one token so far.
struct Symbol {
  uint32_t begin;  // in bytes of the piece
  uint32_t bytes;  // 0 once it was merged into the symbol before it
  int32_t id;      // kNoToken if no token spells it yet

  bool operator==(const Symbol&) const = default;
};

// The outcome of merging two neighbours.
struct Merge {
  uint32_t rank;  // lower ranks merge first
  int32_t id;
};

// A merge that was possible when it was queued: symbols that spanned `bytes`
// from symbol `left` on. It is stale once either symbol has grown.
struct Candidate {
  uint32_t rank;
  uint32_t left;
  uint32_t bytes;
  int32_t id;

  bool operator<(const Candidate& other) const {
    return rank != other.rank ? rank < other.rank : left < other.left;
  }
};

// A queue of candidates in ascending order. A plain heap is slow where speed
// matters most, in a word of megabytes: each pop walks its whole height through
// cold memory. But most new candidates rank behind all that are waiting. So the
// waiting ones are sorted once and read in order. New ones gather, become a
// heap only if one of them is due earlier, and are sorted in turn when the
// others are used up.
class CandidateQueue {
 public:
  void Push(const Candidate& candidate) {
    if (gathered_.empty() || candidate < first_) first_ = candidate;
    gathered_.push_back(candidate);
    if (is_heap_) std::push_heap(gathered_.begin(), gathered_.end(), Behind);
  }

  std::optional<Candidate> Pop() {
    if (next_ == sorted_.size()) {
      sorted_.clear();
      std::swap(sorted_, gathered_);
      if (!std::is_sorted(sorted_.begin(), sorted_.end())) {
        std::sort(sorted_.begin(), sorted_.end());
      }
      next_ = 0;
      is_heap_ = false;
      if (sorted_.empty()) return std::nullopt;
    }
    if (gathered_.empty() || sorted_[next_] < first_) return sorted_[next_++];
    if (!is_heap_) std::make_heap(gathered_.begin(), gathered_.end(), Behind);
    is_heap_ = true;
    std::pop_heap(gathered_.begin(), gathered_.end(), Behind);
    const Candidate top = gathered_.back();
    gathered_.pop_back();
    if (!gathered_.empty()) first_ = gathered_.front();
    return top;
  }

 private:
  static bool Behind(const Candidate& a, const Candidate& b) { return b < a; }

  std::vector<Candidate> sorted_;  // from next_ on
  size_t next_ = 0;
  std::vector<Candidate> gathered_;
  Candidate first_;  // the least of gathered_, if that is not empty
  bool is_heap_ = false;
};

// Byte pair encoding of one piece: of all neighbours that can merge, those of
// the lowest rank merge first, the leftmost of equals, until none can. It takes
// n log n time in symbols. A Merger is reused from piece to piece, since most
// pieces are short.
class Merger {
 public:
  // Starts a new piece.
  void Clear() { symbols_.clear(); }
  void Add(uint32_t begin, uint32_t bytes, int32_t id) {
    symbols_.push_back({begin, bytes, id});
  }

  // `find(left, right)` returns the Merge of two neighbouring Symbols, or
  // nothing (std::optional).
  template <typename Find>
  void Run(const Find& find);

  // Returns the first remaining symbol; at least one must have been added.
  const Symbol& first() const { return symbols_.front(); }

  // Calls visit(symbol) for the remaining symbols, in the order of the text.
  template <typename Visit>
  void ForEach(const Visit& visit) const {
    for (const Symbol& symbol : symbols_) {
      if (symbol.bytes != 0) visit(symbol);
    }
  }

 private:
  template <typename Find>
  void Offer(uint32_t left, uint32_t right, const Find& find) {
    const Symbol& a = symbols_[left];
    const Symbol& b = symbols_[right];
    if (const std::optional<Merge> merge = find(a, b)) {
      queue_.Push({merge->rank, left, a.bytes + b.bytes, merge->id});
    }
  }

  std::vector<Symbol> symbols_;
  std::vector<uint32_t> previous_, next_;  // neighbours still alive
  CandidateQueue queue_;                   // empty between pieces
};

template <typename Find>
void Merger::Run(const Find& find) {
  const uint32_t count = static_cast<uint32_t>(symbols_.size());
  if (count < 2) return;
  previous_.resize(count);
  next_.resize(count);
  for (uint32_t i = 0; i < count; ++i) {
    previous_[i] = i - 1;  // never read for the first
    next_[i] = i + 1;
    if (i > 0) Offer(i - 1, i, find);
  }
  while (const std::optional<Candidate> best = queue_.Pop()) {
    const uint32_t left = best->left;
    const uint32_t right = next_[left];
    Symbol& merged = symbols_[left];
    if (merged.bytes == 0 || right == count ||
        merged.bytes + symbols_[right].bytes != best->bytes) {
      continue;
    }
    merged.bytes = best->bytes;
    merged.id = best->id;
    symbols_[right].bytes = 0;
    const uint32_t after = next_[right];
    next_[left] = after;
    if (after != count) {
      previous_[after] = left;
      Offer(left, after, find);
    }
    if (left != 0) Offer(previous_[left], left, find);
  }
}

}  // namespace tiercel

#endif  // TIERCEL_MODELS_TOKENIZER_MERGE_H_

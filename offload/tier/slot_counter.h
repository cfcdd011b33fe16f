#ifndef TIERCEL_OFFLOAD_TIER_SLOT_COUNTER_H_
#define TIERCEL_OFFLOAD_TIER_SLOT_COUNTER_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

namespace tiercel {

// Reference counts of slots 0 to count - 1. The lowest free slot is taken
// first, so that a sequence gets neighbours and its runs stay long.
class SlotCounter {
 public:
  // Adds `more` free slots at the end. Allocates what later calls need, so that
  // those cannot fail; if that throws nothing has changed.
  void Grow(int64_t more) {
    const int64_t first = count();
    std::vector<int64_t> added(Index(more));
    for (int64_t i = 0; i < more; ++i) added[Index(i)] = first + more - 1 - i;
    free_.reserve(Index(first + more));
    references_.resize(Index(first + more), 0);
    free_.insert(free_.begin(), added.begin(), added.end());
  }

  // Returns a slot with one reference, or -1 if none is free.
  int64_t Take() {
    if (free_.empty()) return -1;
    const int64_t slot = free_.back();
    free_.pop_back();
    references_[Index(slot)] = 1;
    most_ = std::max(most_, in_use());
    return slot;
  }
  void AddReference(int64_t slot) { ++references_[Index(slot)]; }
  void Release(int64_t slot) {  // frees the slot with its last reference
    if (--references_[Index(slot)] > 0) return;
    free_.insert(std::upper_bound(free_.begin(), free_.end(), slot,
                                  std::greater<int64_t>()),
                 slot);
  }
  bool IsShared(int64_t slot) const { return references_[Index(slot)] > 1; }

  int64_t count() const { return static_cast<int64_t>(references_.size()); }
  int64_t in_use() const {
    return count() - static_cast<int64_t>(free_.size());
  }
  // The most slots that were in use at once, since it was made or trimmed.
  int64_t most() const { return most_; }
  // Calls discard(first, count) for each run of free slots.
  template <typename Discard>
  void Trim(Discard discard) {
    for (size_t last = free_.size(); last > 0;) {
      size_t first = last - 1;
      while (first > 0 && free_[first - 1] == free_[first] + 1) --first;
      discard(free_[last - 1], static_cast<int64_t>(last - first));
      last = first;
    }
    most_ = in_use();
  }

 private:
  static size_t Index(int64_t slot) { return static_cast<size_t>(slot); }

  std::vector<int> references_;  // [slot]
  std::vector<int64_t> free_;    // lowest slot last
  int64_t most_ = 0;
};

}  // namespace tiercel

#endif  // TIERCEL_OFFLOAD_TIER_SLOT_COUNTER_H_

#ifndef TIERCEL_MODELS_TOKENIZER_FLAT_MAP_H_
#define TIERCEL_MODELS_TOKENIZER_FLAT_MAP_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/hash/hash.h"
#include "absl/strings/string_view.h"

namespace tiercel {

// A hash table with open addressing. If memory to grow is refused it stays as
// it was, unlike Abseil's tables, which cannot even be destroyed then. String
// keys are looked up by views. Keys are never removed.
template <typename Key, typename Value>
class FlatMap {
 public:
  using Lookup = std::conditional_t<std::is_same_v<Key, std::string>,
                                    absl::string_view, Key>;

  // Makes room for `count` keys without growing.
  void Reserve(size_t count) {
    size_t slots = std::max<size_t>(16, slots_.size());
    while (!Holds(slots, count)) slots *= 2;
    if (slots > slots_.size()) Rehash(slots);
  }

  // Adds `key` unless it is present; false then.
  bool Insert(const Lookup& key, Value value) {
    return FindOrAdd(key, value).second;
  }
  // Adds `key` or gives it another value.
  void Assign(const Lookup& key, Value value) {
    slots_[FindOrAdd(key, value).first].value = value;
  }

  // Returns null if `key` is absent. Valid until a key is added.
  const Value* Find(const Lookup& key) const {
    if (slots_.empty()) return nullptr;
    const size_t at = Place(key, absl::Hash<Lookup>()(key));
    return tags_[at] == kEmpty ? nullptr : &slots_[at].value;
  }

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }

 private:
  struct Slot {
    Key key = Key();
    Value value = Value();
  };
  static constexpr uint8_t kEmpty = 0;

  // The table is at most three quarters full, so that probes stay short.
  static bool Holds(size_t slots, size_t count) {
    return count <= slots / 4 * 3;
  }
  // A tag of 7 bits of the hash, by which most unequal keys differ without
  // being compared; never kEmpty.
  static uint8_t TagOf(size_t hash) {
    return static_cast<uint8_t>(0x80 | hash >> (8 * sizeof(hash) - 7));
  }

  // The slot at which `key` is or would be.
  size_t Place(const Lookup& key, size_t hash) const {
    const size_t mask = slots_.size() - 1;
    const uint8_t tag = TagOf(hash);
    size_t at = hash & mask;
    while (tags_[at] != kEmpty &&
           !(tags_[at] == tag && slots_[at].key == key)) {
      at = (at + 1) & mask;
    }
    return at;
  }

  std::pair<size_t, bool> FindOrAdd(const Lookup& key, const Value& value) {
    Reserve(size_ + 1);
    const size_t hash = absl::Hash<Lookup>()(key);
    const size_t at = Place(key, hash);
    if (tags_[at] != kEmpty) return {at, false};
    slots_[at] = {Key(key), value};
    tags_[at] = TagOf(hash);
    ++size_;
    return {at, true};
  }

  void Rehash(size_t slots) {
    FlatMap larger;
    larger.slots_.resize(slots);
    larger.tags_.resize(slots, kEmpty);
    for (size_t i = 0; i < slots_.size(); ++i) {
      if (tags_[i] == kEmpty) continue;
      const size_t hash = absl::Hash<Lookup>()(Lookup(slots_[i].key));
      const size_t at = larger.Place(slots_[i].key, hash);
      larger.slots_[at] = std::move(slots_[i]);
      larger.tags_[at] = tags_[i];
    }
    std::swap(slots_, larger.slots_);
    std::swap(tags_, larger.tags_);
  }

  std::vector<Slot> slots_;    // a power of two of them, or none
  std::vector<uint8_t> tags_;  // [slot]
  size_t size_ = 0;
};

}  // namespace tiercel

#endif  // TIERCEL_MODELS_TOKENIZER_FLAT_MAP_H_

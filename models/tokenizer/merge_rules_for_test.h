#ifndef TIERCEL_MODELS_TOKENIZER_MERGE_RULES_FOR_TEST_H_
#define TIERCEL_MODELS_TOKENIZER_MERGE_RULES_FOR_TEST_H_

#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <utility>

#include "models/tokenizer/merge.h"

namespace tiercel {

// The outcome and rank of merging a pair of ids.
using Rules = std::map<std::pair<int32_t, int32_t>, Merge>;

inline std::optional<Merge> FindRule(const Rules& rules, int32_t left,
                                     int32_t right) {
  const auto found = rules.find({left, right});
  return found == rules.end() ? std::nullopt : std::optional(found->second);
}

// Random rules that make twelve ids, from `base` on, each of two lower ids. A
// rule's rank need not be above those of the rules it builds on, and several
// rules may share one.
inline Rules RandomRules(std::mt19937& random, int32_t base) {
  Rules rules;
  for (int32_t made = base; made < base + 12; ++made) {
    const int32_t left = static_cast<int32_t>(random() % made);
    const int32_t right = static_cast<int32_t>(random() % made);
    rules[{left, right}] = {static_cast<uint32_t>(random() % 10), made};
  }
  return rules;
}

}  // namespace tiercel

#endif  // TIERCEL_MODELS_TOKENIZER_MERGE_RULES_FOR_TEST_H_

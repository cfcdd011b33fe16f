#include "models/tokenizer/unicode_classes.h"

#include <algorithm>
#include <iterator>

namespace tiercel {
namespace {

// Sorted words of first code point * 4 + class, which holds until the next.
constexpr uint32_t kClassRuns[] = {
#include "models/tokenizer/unicode_class_runs.inc"
};

CharClass Search(char32_t code_point) {
  const uint32_t past = (static_cast<uint32_t>(code_point) << 2) | 3;
  const uint32_t* run =
      std::upper_bound(std::begin(kClassRuns), std::end(kClassRuns), past);
  return static_cast<CharClass>(run[-1] & 3);
}

// Classes of the first two thousand code points (Latin to Arabic), without
// search.
struct DirectClasses {
  static constexpr char32_t kEnd = 0x800;
  CharClass of[kEnd];

  DirectClasses() {
    for (char32_t c = 0; c < kEnd; ++c) of[c] = Search(c);
  }
};

}  // namespace

CharClass ClassOf(char32_t code_point) {
  static const DirectClasses direct;
  if (code_point < DirectClasses::kEnd) return direct.of[code_point];
  return code_point <= 0x10ffff ? Search(code_point) : CharClass::kOther;
}

}  // namespace tiercel

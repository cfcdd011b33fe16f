#include "kernels/token/token_mask.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "lib/status/error.h"
#include "lib/status/status_macros.h"

namespace tiercel {

TokenSet::TokenSet(int64_t vocab)
    : vocab_(vocab), words_(static_cast<size_t>((vocab + 31) / 32), ~0u) {
  DropSpareBits();
}

bool TokenSet::IsEmpty() const {
  return std::all_of(words_.begin(), words_.end(),
                     [](uint32_t word) { return word == 0; });
}

void TokenSet::DropSpareBits() {
  if (vocab_ % 32 != 0) words_.back() &= (uint32_t{1} << (vocab_ % 32)) - 1;
}

absl::StatusOr<TokenSet> TokenMask::Allowed(std::span<const int32_t> text,
                                            int64_t vocab) const {
  if (text.size() < begin_) {
    return UsageError(
        "invalid_argument",
        absl::StrCat("mask: got a text of ", text.size(), " tokens, need the ",
                     begin_, " before the output"));
  }
  TokenSet allowed(vocab);
  const std::span<const int32_t> output = text.subspan(begin_);
  const bool ended =
      std::find_first_of(output.begin(), output.end(), ends_.begin(),
                         ends_.end()) != output.end();
  if (ended) return allowed;
  RETURN_IF_ERROR(rule_(output, allowed.words()));
  allowed.DropSpareBits();
  return allowed;
}

}  // namespace tiercel

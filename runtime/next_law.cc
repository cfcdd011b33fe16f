#include "runtime/next_law.h"

#include <algorithm>
#include <utility>

namespace tiercel {
namespace {

// The repeat penalty looks this far back, as is usual in the field.
constexpr size_t kRepeatWindow = 64;

}  // namespace

absl::StatusOr<std::vector<Law>> NextLaws(Stream& stream,
                                          const LawParams& params,
                                          const std::vector<int32_t>& tokens,
                                          size_t first, const float* logits,
                                          size_t rows, int64_t vocab) {
  std::vector<Law> laws;
  for (size_t row = 0; row < rows; ++row) {
    const size_t length = first + row;
    const size_t recent = std::min(length, kRepeatWindow);
    absl::StatusOr<Law> law =
        MakeLaw(stream, {.logits = logits + row * static_cast<size_t>(vocab),
                         .vocab = vocab,
                         .recent = tokens.data() + length - recent,
                         .num_recent = static_cast<int64_t>(recent),
                         .law = params});
    if (!law.ok()) return law.status();
    laws.push_back(*std::move(law));
  }
  return laws;
}

}  // namespace tiercel

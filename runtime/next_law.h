#ifndef TIERCEL_RUNTIME_NEXT_LAW_H_
#define TIERCEL_RUNTIME_NEXT_LAW_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/base/stream.h"
#include "kernels/token/law.h"

namespace tiercel {

// The laws after `tokens[..first]`, after one token more, and so on: of the
// rows of `logits`, [rows, vocab]. Errors: those of MakeLaw.
absl::StatusOr<std::vector<Law>> NextLaws(Stream& stream,
                                          const LawParams& params,
                                          const std::vector<int32_t>& tokens,
                                          size_t first, const float* logits,
                                          size_t rows, int64_t vocab);

}  // namespace tiercel

#endif  // TIERCEL_RUNTIME_NEXT_LAW_H_

#ifndef TIERCEL_RUNTIME_SESSION_ATTENDED_H_
#define TIERCEL_RUNTIME_SESSION_ATTENDED_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/attention/head_view.h"
#include "runtime/session/sequence.h"

namespace tiercel {

// A text among the tokens, with a question about it: tokens [begin, end) are
// the text, [asked, answer) the question with all that stands before its answer
// (Session::Attended).
struct Reading {
  size_t begin;
  size_t end;  // below `asked`: a token lies between
  size_t asked;
  size_t answer;  // below the number of tokens held
  // Other questions about the text, each as it would stand from `asked` on.
  std::vector<std::vector<int32_t>> others = {};
};

// The runs (AttentionShares) that lie entirely in the text. Errors:
// invalid_argument.
absl::StatusOr<PositionRange> RunsOf(const Sequence& sequence,
                                     const Reading& reading);

}  // namespace tiercel

#endif  // TIERCEL_RUNTIME_SESSION_ATTENDED_H_

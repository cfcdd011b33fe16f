#ifndef TIERCEL_RUNTIME_SESSION_ATTENDED_H_
#define TIERCEL_RUNTIME_SESSION_ATTENDED_H_

#include <cstddef>

#include "absl/status/statusor.h"
#include "kernels/attention/head_view.h"
#include "runtime/session/sequence.h"

namespace tiercel {

// A text among the tokens, with a question about it: tokens [begin, end) are
// the text, [asked, answer) the question, and those from `answer` on the
// answer (Session::Attended).
struct Reading {
  size_t begin;
  size_t end;  // below `asked`: a token lies between
  size_t asked;
  size_t answer;
};

// The runs (AttentionShares) that lie entirely in the text. Errors:
// invalid_argument.
absl::StatusOr<PositionRange> RunsOf(const Sequence& sequence,
                                     const Reading& reading);

}  // namespace tiercel

#endif  // TIERCEL_RUNTIME_SESSION_ATTENDED_H_

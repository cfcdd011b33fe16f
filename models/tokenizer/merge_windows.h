#ifndef TIERCEL_MODELS_TOKENIZER_MERGE_WINDOWS_H_
#define TIERCEL_MODELS_TOKENIZER_MERGE_WINDOWS_H_

#include <cstddef>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "models/tokenizer/merge.h"

namespace tiercel {

// Byte pair encoding of one piece of a text, window by window, so that a piece
// of any length takes the memory of a window. The result is that of merging the
// whole piece at once:
//
//   1. As long as no merge crosses the two ends of a stretch, the merges inside
//      it are those of the stretch merged alone, in the same order: the next
//      one is always the best of what the stretch then holds.
//   2. So in a result every two neighbours, merged alone, stay as they are. And
//      a row of tokens in which all neighbours do so is the result: consider
//      the first merge that would cross from one token to the next. Up to then
//      the two were as they are alone, where that merge does not happen.
//   3. A window begins at a token of the window before it. If its own first
//      token is that very one, then the tokens of the one window up to there
//      and those of the other from there on are such a row.
//
// Where a window does not begin so, what follows it has changed what it makes
// of its own text, over a sixteenth of its length. No known vocabulary does
// that; then all is merged again with windows of twice the length.
//
// `fill(begin, end)` gives `merger` the symbols that begin in these bytes of
// the piece of `size` bytes, and runs it. `restart()` forgets what was taken.
// `take(symbol)` takes the next token; `look(end)` is called after each window.
// Errors: those of `fill`, `take` and `look`.
absl::Status MergeInWindows(
    size_t size, Merger* merger,
    absl::FunctionRef<absl::Status(size_t begin, size_t end)> fill,
    absl::FunctionRef<void()> restart,
    absl::FunctionRef<absl::Status(const Symbol&)> take,
    absl::FunctionRef<absl::Status(size_t end)> look,
    size_t window = size_t{1} << 16);

}  // namespace tiercel

#endif  // TIERCEL_MODELS_TOKENIZER_MERGE_WINDOWS_H_

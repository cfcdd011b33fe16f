#ifndef TIERCEL_MODELS_TOKENIZER_PIECES_H_
#define TIERCEL_MODELS_TOKENIZER_PIECES_H_

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "models/tokenizer/encode_watch.h"

namespace tiercel {

// Appends the ids of `text`, the normalized form of `run_bytes` of the caller's
// bytes, piece by piece. A piece from `begin` ends at piece_end(begin).
// encode(piece, look) appends its ids, and calls look(bytes of it that are
// done) now and then, which decides whether to go on. Errors: those of
// `piece_end`, of `encode` and of the watch.
using LookFn = absl::FunctionRef<absl::Status(size_t)>;
absl::Status EncodePieces(
    std::string_view text, size_t run_bytes, EncodeWatch* watch,
    std::vector<int32_t>* ids,
    absl::FunctionRef<absl::StatusOr<size_t>(size_t begin)> piece_end,
    absl::FunctionRef<absl::Status(absl::string_view piece, LookFn look)>
        encode);

}  // namespace tiercel

#endif  // TIERCEL_MODELS_TOKENIZER_PIECES_H_

#include "models/tokenizer/pieces.h"

#include "models/tokenizer/spelled_words.h"

namespace tiercel {

absl::Status EncodePieces(
    std::string_view text, size_t run_bytes, EncodeWatch* watch,
    std::vector<int32_t>* ids,
    absl::FunctionRef<absl::StatusOr<size_t>(size_t begin)> piece_end,
    absl::FunctionRef<absl::Status(absl::string_view piece, LookFn look)>
        encode) {
  absl::Status status = watch->Begin(run_bytes, text.size(), ids->size());
  SpelledWords words;
  for (size_t begin = 0; begin < text.size() && status.ok();) {
    const absl::StatusOr<size_t> end = piece_end(begin);
    if (!end.ok()) return end.status();
    const absl::string_view piece(text.data() + begin, *end - begin);
    const auto look = [&](size_t done) {
      return watch->Look(begin + done, ids->size());
    };
    const size_t before = ids->size();
    if (words.Repeat(piece, ids)) {
      status = look(piece.size());
    } else {
      status = encode(piece, look);
      words.Add(piece, before, ids->size() - before);
    }
    begin = *end;
  }
  return status;
}

}  // namespace tiercel

#ifndef TIERCEL_RUNTIME_GENERATE_TRANSCRIPT_H_
#define TIERCEL_RUNTIME_GENERATE_TRANSCRIPT_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "models/tokenizer/tokenizer.h"
#include "runtime/generate/stop_matcher.h"

namespace tiercel {

// The output of one generation: tokens become text, stop texts are cut off, and
// each token is given out once its text is settled. Bytes at the end that are
// no whole character are not given out as text; a generation that goes on
// behind them gives the whole character.
class Transcript {
 public:
  // Gets every token of the output in order; false asks to stop.
  using OnToken = std::function<bool(int32_t id, std::string_view text)>;

  // `tokenizer` may be null: tokens then have no text and no stops match.
  Transcript(const Tokenizer* tokenizer, std::vector<std::string> stops,
             OnToken on_token);

  // Must come before the first Push; see StreamDecoder::GoOnBehind.
  absl::Status GoOnBehind(absl::Span<const int32_t> before, bool within_text);

  // Adds a token. Returns false if a stop text was completed or on_token asked
  // to stop.
  absl::StatusOr<bool> Push(int32_t id);
  // Settles the text that is still held back, except an incomplete character.
  void Finish();

  const std::string& text() const { return text_; }
  // The tokens given out: text() has the whole text of each.
  const std::vector<int32_t>& tokens() const { return tokens_; }
  bool refused() const { return refused_; }  // on_token asked to stop

 private:
  struct Waiting {
    int32_t id;
    size_t text_end;  // decoded bytes up to and including this token
  };
  void GiveOut(bool all);

  std::optional<StreamDecoder> decoder_;
  StopMatcher stops_;
  OnToken on_token_;
  std::string text_;
  size_t given_ = 0;    // bytes of text_ given out
  size_t decoded_ = 0;  // bytes that left the decoder
  std::vector<Waiting> waiting_;
  std::vector<int32_t> tokens_;
  bool refused_ = false;
};

}  // namespace tiercel

#endif  // TIERCEL_RUNTIME_GENERATE_TRANSCRIPT_H_

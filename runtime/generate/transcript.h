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
// no whole character are not yet text: who goes on behind them has it whole.
class Transcript {
 public:
  // Gets every token of the output in order; false asks to stop.
  using OnToken = std::function<bool(int32_t id, std::string_view text)>;

  // `tokenizer` may be null: tokens then have no text and no stops match.
  Transcript(const Tokenizer* tokenizer, std::vector<std::string> stops,
             OnToken on_token);

  // Before the first Push: StreamDecoder's.
  absl::Status GoOnBehind(absl::Span<const int32_t> before, bool within_text);

  // Adds a token. False: a stop text was completed, or on_token asked to stop.
  absl::StatusOr<bool> Push(int32_t id);
  // Settles what is still held back, but for such bytes.
  void Finish();

  const std::string& text() const { return text_; }
  // The tokens given out: those whose text is in text(), whole.
  const std::vector<int32_t>& tokens() const { return tokens_; }
  bool refused() const { return refused_; }  // on_token asked to stop

 private:
  struct Waiting {
    int32_t id;
    size_t text_end;  // decoded bytes up to and with this token
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

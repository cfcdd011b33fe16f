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
#include "kernels/token/log_probs.h"
#include "models/tokenizer/tokenizer.h"
#include "runtime/generate/stop_matcher.h"
#include "runtime/generate/thought_splitter.h"

namespace tiercel {

// A token of an output, with its parts of the answer and of the thought.
struct OutputToken {
  int32_t id;
  std::string_view text;
  std::string_view thought;
  const TokenLogProbs* log_probs;  // null: it was pushed without
};

// The output of one generation: tokens become text, stop texts are cut off, a
// thought at the beginning is told from the answer, and each token is given out
// once its text is settled. Bytes at the end that are no whole character are
// not given out as text; a generation that goes on behind them gives the whole
// character.
class Transcript {
 public:
  // Gets every token of the output in order; false asks to stop.
  using OnToken = std::function<bool(const OutputToken& token)>;

  // `tokenizer` may be null: tokens then have no text and no stops match.
  Transcript(const Tokenizer* tokenizer, std::vector<std::string> stops,
             OnToken on_token);

  // Has a thought told from the answer, before the first Push; see
  // ThoughtSplitter. Otherwise all is the answer. Stop texts end an answer, and
  // are not looked for before it.
  void SplitThought(ThoughtTags tags, bool thinks);
  // Must come before the first Push; see StreamDecoder::GoOnBehind.
  absl::Status GoOnBehind(absl::Span<const int32_t> before, bool within_text);

  // Adds a token. Returns false if a stop text was completed or on_token asked
  // to stop.
  absl::StatusOr<bool> Push(int32_t id,
                            std::optional<TokenLogProbs> log_probs = {});
  // Settles the text that is still held back, except an incomplete character.
  void Finish();

  // The answer, and the thought before it.
  std::string_view text() const;
  std::string_view thought() const;
  bool in_thought() const {
    return splitter_.has_value() && splitter_->in_thought();
  }
  // The tokens given out: text() and thought() have the whole text of each.
  const std::vector<int32_t>& tokens() const { return tokens_; }
  bool refused() const { return refused_; }  // on_token asked to stop

 private:
  struct Waiting {
    int32_t id;
    size_t text_end;  // decoded bytes up to and including this token
    std::optional<TokenLogProbs> log_probs;
  };
  bool IsAnswering() const;
  // Adds decoded text, or what stop texts leave of it.
  void AddText(std::string_view piece, bool whole);
  void GiveOut(bool all);

  std::string_view TextOf(size_t begin, size_t end) const;
  std::string_view ThoughtOf(size_t begin, size_t end) const;

  const Tokenizer* const tokenizer_;
  std::optional<StreamDecoder> decoder_;
  StopMatcher stops_;
  OnToken on_token_;
  std::optional<ThoughtSplitter> splitter_;  // absent: all is the answer
  std::string text_;                         // the thought, too, with its tags
  size_t given_ = 0;                         // bytes of text_ given out
  size_t decoded_ = 0;                       // bytes that left the decoder
  std::vector<Waiting> waiting_;
  std::vector<int32_t> tokens_;
  bool refused_ = false;
};

}  // namespace tiercel

#endif  // TIERCEL_RUNTIME_GENERATE_TRANSCRIPT_H_

#ifndef TIERCEL_RUNTIME_GENERATE_THOUGHT_SPLITTER_H_
#define TIERCEL_RUNTIME_GENERATE_THOUGHT_SPLITTER_H_

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>

#include "models/chat/thought_tags.h"

namespace tiercel {

// Tells a thought at the beginning of a growing text from the answer behind it.
// Tags, and white space around a thought, are part of neither; a text that does
// not begin with a thought is its answer. The outcome does not depend on how
// the text grew.
class ThoughtSplitter {
 public:
  static constexpr std::string_view kSpace = " \t\n\r\f\v";

  // `thinks`: the text begins within a thought.
  ThoughtSplitter(ThoughtTags tags, bool thinks)
      : tags_(std::move(tags)), stage_(thinks ? kThought : kStart) {}

  // Returns true for a control token that stands for a tag.
  bool IsTag(int32_t id) const {
    return id == tags_.open_id || id == tags_.close_id;
  }

  // Notes that the text is now `text`, which begins as before; `whole`: it
  // grows no more. Returns the number of its bytes whose part is certain.
  size_t Advance(std::string_view text, bool whole);

  // Returns true if the thought has begun and its end was not written.
  bool in_thought() const { return stage_ == kThought; }

  // The first byte behind the closing tag; npos: there is none.
  size_t closed_at() const { return closed_at_; }
  // The first byte of the answer; npos: the text has not come to it.
  size_t answer_begin() const { return answer_begin_; }

  // The parts of bytes [begin, end) of the text, which are certain.
  std::string_view ThoughtIn(std::string_view text, size_t begin,
                             size_t end) const {
    return Within(text, begin, end, thought_begin_, thought_end_);
  }
  std::string_view AnswerIn(std::string_view text, size_t begin,
                            size_t end) const {
    return Within(text, begin, end, answer_begin_, std::string_view::npos);
  }

 private:
  enum Stage { kStart, kThought, kBehind, kAnswer };

  static std::string_view Within(std::string_view text, size_t begin,
                                 size_t end, size_t first, size_t last);
  // Moves to the next stage, if the text has come to it.
  bool Move(std::string_view text, bool whole);

  const ThoughtTags tags_;
  Stage stage_;
  size_t at_ = 0;  // the text before is certain, and behind it is this stage
  // Bytes of the text; npos: not known yet.
  size_t thought_begin_ = std::string_view::npos;
  size_t thought_end_ = std::string_view::npos;
  size_t closed_at_ = std::string_view::npos;
  size_t answer_begin_ = std::string_view::npos;
};

}  // namespace tiercel

#endif  // TIERCEL_RUNTIME_GENERATE_THOUGHT_SPLITTER_H_

#ifndef TIERCEL_RUNTIME_POLICY_THINK_SCHEDULE_H_
#define TIERCEL_RUNTIME_POLICY_THINK_SCHEDULE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace tiercel {

// Says where one sequence of ids ends in a stream of them. A small value.
class IdMatcher {
 public:
  explicit IdMatcher(std::vector<int32_t> ids);  // none: it never ends

  // `id` follows; whether the sequence ends in it.
  bool Advance(int32_t id);

 private:
  struct Pattern {
    std::vector<int32_t> ids;
    std::vector<size_t> border;  // [i]: of the first i, the longest proper
                                 // beginning that is their end as well
  };
  std::shared_ptr<const Pattern> pattern_;
  size_t matched_ = 0;
};

// When windows replace the text.
enum class ThinkGate {
  kState,    // while the answer thinks
  kLiteral,  // until it has thought, the prompt included: equation 4 as printed
  kAlways,   // in every row after the prompt
};

// Where the text of one turn thinks (SADAS, section 3, equations 1 to 4): it
// follows from the ids alone, so a draft may go on with a copy.
class ThinkSchedule {
 public:
  struct Options {
    ThinkGate gate = ThinkGate::kState;
    bool latch = true;         // it thinks once in a turn
    bool begins_open = false;  // it thinks from the first token on
    int64_t most = 0;  // tokens that it may think; 0: as many as it likes
    std::vector<int32_t> open =
        {};  // the ids of the tags; none: there are none
    std::vector<int32_t> close = {};
  };

  // The turn begins after `length` tokens, of which the last `header` ids are
  // its own beginning, that a template wrote.
  ThinkSchedule(const Options& options, int64_t length,
                const std::vector<int32_t>& header);

  // `id` follows.
  void Advance(int32_t id);

  bool thinking() const {
    return thinking_ && !(options_->latch && has_thought_);
  }
  // The row of the last token reads the window.
  bool windowed() const;
  // The only token that may follow; absent: any.
  std::optional<int32_t> forced() const;
  // The index of the last token of the closing tag; absent: it is not closed.
  std::optional<int64_t> closed_at() const { return closed_at_; }

 private:
  void Close();

  std::shared_ptr<const Options> options_;
  IdMatcher open_;
  IdMatcher close_;
  int64_t length_ = 0;  // tokens so far
  bool thinking_ = false;
  bool has_thought_ = false;
  int64_t thought_ = 0;   // tokens of the thinking that is open
  size_t forced_at_ = 0;  // ids of the closing tag that have been forced
  std::optional<int64_t> closed_at_;
};

}  // namespace tiercel

#endif  // TIERCEL_RUNTIME_POLICY_THINK_SCHEDULE_H_

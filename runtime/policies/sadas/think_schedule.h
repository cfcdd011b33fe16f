#ifndef TIERCEL_RUNTIME_POLICIES_SADAS_THINK_SCHEDULE_H_
#define TIERCEL_RUNTIME_POLICIES_SADAS_THINK_SCHEDULE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace tiercel {

// Finds the ends of one sequence of ids in a stream of them. A small value.
class IdMatcher {
 public:
  explicit IdMatcher(std::vector<int32_t> ids);  // none: it never ends

  // Notes that `id` follows. Returns true if the sequence ends in it.
  bool Advance(int32_t id);

 private:
  struct Pattern {
    std::vector<int32_t> ids;
    std::vector<size_t> border;  // [i]: length of the longest proper beginning
                                 // of the first i ids that is their end as well
  };
  std::shared_ptr<const Pattern> pattern_;
  size_t matched_ = 0;
};

// The rows that read a window instead of everything.
enum class ThinkGate {
  kState,    // rows of the text that thinks
  kLiteral,  // rows until the text has thought, the prompt's included:
             // equation 4 as printed
  kAlways,   // all rows after the prompt
};

// Tells which tokens of one turn are thinking (SADAS, section 3, equations 1 to
// 4). It follows from the ids alone, so a draft may go on with a copy.
class ThinkSchedule {
 public:
  struct Options {
    ThinkGate gate = ThinkGate::kState;
    bool latch = true;         // the text thinks only once in a turn
    bool begins_open = false;  // the text thinks from the first token on
    int64_t most = 0;          // most tokens that it may think; 0: no limit
    // The ids of the tags; empty: there is no tag.
    std::vector<int32_t> open = {};
    std::vector<int32_t> close = {};
  };

  // The turn begins after `length` tokens. Their last ids, `header`, are the
  // beginning of the turn, which a template wrote.
  ThinkSchedule(const Options& options, int64_t length,
                const std::vector<int32_t>& header);

  // Notes that `id` follows.
  void Advance(int32_t id);

  bool thinking() const {
    return thinking_ && !(options_->latch && has_thought_);
  }
  // Returns true if the row of the last token reads the window.
  bool windowed() const;
  // The only token that may follow; absent: any.
  std::optional<int32_t> forced() const;
  // The index of the last token of the closing tag; absent: there was none.
  std::optional<int64_t> closed_at() const { return closed_at_; }

 private:
  void Close();

  std::shared_ptr<const Options> options_;
  IdMatcher open_;
  IdMatcher close_;
  int64_t length_ = 0;  // tokens so far
  bool thinking_ = false;
  bool has_thought_ = false;
  int64_t thought_ = 0;   // tokens of the thought that is open
  size_t forced_at_ = 0;  // ids of the closing tag that have been forced
  std::optional<int64_t> closed_at_;
};

}  // namespace tiercel

#endif  // TIERCEL_RUNTIME_POLICIES_SADAS_THINK_SCHEDULE_H_

#ifndef TIERCEL_RUNTIME_POLICIES_SFI_SFI_SCHEDULE_H_
#define TIERCEL_RUNTIME_POLICIES_SFI_SFI_SCHEDULE_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "models/tokenizer/tokenizer.h"

namespace tiercel {

// The part that a token plays in the search for the ends of sentences.
enum class TokenKind : uint8_t {
  kWord,
  kEnder,   // one of . ? ! and their like, with closers behind it
  kCloser,  // closing quotes and brackets, which belong to the sentence
  kBlank,   // the end of a line
};

// The kind of a token by its text. The points of abbreviations and decimals
// count as ends: a token alone does not show the difference.
TokenKind KindOf(const std::string& text);
// The kind of every token of a vocabulary.
std::vector<TokenKind> KindsOf(const Tokenizer& tokenizer);

enum class SfiTrigger { kSentence, kFixed, kRandom, kNever };

// Decides which steps read everything (Slow-Fast Inference, arXiv 2603.12038,
// figure 2 and the authors' release): those at the ends of sentences, and those
// at which `interval` steps have gone by. It follows from the ids alone, so a
// draft may go on with a copy.
class SfiSchedule {
 public:
  struct Options {
    SfiTrigger trigger = SfiTrigger::kSentence;
    int64_t interval = 64;  // most steps from one slow step to the next
    int64_t gap = 16;       // fewest steps before the end of a sentence counts
    bool at_start = false;  // a sentence's first token counts, not the end
    bool half_gap = false;  // the gap is at least half the interval
    // While the text has no more than this many positions the view holds them
    // all, and every step reads everything.
    int64_t everything = 0;
    std::shared_ptr<const std::vector<TokenKind>> kinds = nullptr;

    int64_t Gap() const {
      return half_gap && interval / 2 > gap ? interval / 2 : gap;
    }
  };
  enum class Reason { kNone, kSentence, kInterval, kRandom, kFits };

  // Begins after a prompt of `length` tokens, which has selected a view.
  SfiSchedule(const Options& options, int64_t length)
      : options_(std::make_shared<const Options>(options)), length_(length) {}

  // Notes that `id` follows.
  void Advance(int32_t id);
  // The reason why the row of the last token reads everything; kNone: it reads
  // the view.
  Reason reason() const { return reason_; }
  bool slow() const { return reason_ != Reason::kNone; }
  // Returns true if the last token ends a sentence, or, with `at_start`, begins
  // one.
  bool at_boundary() const { return at_boundary_; }

 private:
  bool IsBoundary(int32_t id);
  Reason ReasonNow() const;

  std::shared_ptr<const Options> options_;
  int64_t length_;
  int64_t since_slow_ = 0;  // steps
  int cooldown_ = 0;        // tokens until an ender counts again
  bool armed_ = false;      // a sentence has ended and the next has not begun
  bool at_boundary_ = false;
  Reason reason_ = Reason::kNone;
};

// The name of a reason in the report.
const char* NameOf(SfiSchedule::Reason reason);

}  // namespace tiercel

#endif  // TIERCEL_RUNTIME_POLICIES_SFI_SFI_SCHEDULE_H_

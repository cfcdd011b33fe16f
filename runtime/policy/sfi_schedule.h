#ifndef TIERCEL_RUNTIME_POLICY_SFI_SCHEDULE_H_
#define TIERCEL_RUNTIME_POLICY_SFI_SCHEDULE_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "models/tokenizer/tokenizer.h"

namespace tiercel {

// What a token is to who looks for the ends of sentences.
enum class TokenKind : uint8_t {
  kWord,
  kEnder,   // one of . ? ! and their like, with what may close behind it
  kCloser,  // quotes and brackets that close, which belong to the sentence
  kBlank,   // the end of a line
};

// The kind of a token by its text. An abbreviation's point and a decimal's are
// taken for ends: the tokens alone do not tell.
TokenKind KindOf(const std::string& text);
// The kind of every token of a vocabulary.
std::vector<TokenKind> KindsOf(const Tokenizer& tokenizer);

enum class SfiTrigger { kSentence, kFixed, kRandom, kNever };

// When a step reads everything (Slow-Fast Inference, arXiv 2603.12038, figure 2
// and the authors' release): at the ends of sentences, and when `interval`
// steps have gone by. It follows from the ids alone, so a draft may go on with
// a copy.
class SfiSchedule {
 public:
  struct Options {
    SfiTrigger trigger = SfiTrigger::kSentence;
    int64_t interval = 64;  // most steps from a slow one to the next
    int64_t gap = 16;       // the fewest, for the end of a sentence to count
    bool at_start = false;  // the next sentence's first token counts, no end
    bool half_gap = false;  // the gap is half the interval at least
    // So many positions are all in view: every step reads them.
    int64_t everything = 0;
    std::shared_ptr<const std::vector<TokenKind>> kinds = nullptr;

    int64_t Gap() const {
      return half_gap && interval / 2 > gap ? interval / 2 : gap;
    }
  };
  enum class Reason { kNone, kSentence, kInterval, kRandom, kFits };

  // A prompt of `length` tokens has chosen a view.
  SfiSchedule(const Options& options, int64_t length)
      : options_(std::make_shared<const Options>(options)), length_(length) {}

  // `id` follows.
  void Advance(int32_t id);
  // Why the row of the last token reads everything; kNone: it reads the view.
  Reason reason() const { return reason_; }
  bool slow() const { return reason_ != Reason::kNone; }
  // A sentence ends in the last token, or begins, as the options have it.
  bool at_boundary() const { return at_boundary_; }

 private:
  bool IsBoundary(int32_t id);
  Reason ReasonNow() const;

  std::shared_ptr<const Options> options_;
  int64_t length_;
  int64_t since_slow_ = 0;  // steps
  int cooldown_ = 0;        // tokens until an ender counts again
  bool armed_ = false;      // a sentence has ended, the next has not begun
  bool at_boundary_ = false;
  Reason reason_ = Reason::kNone;
};

// What the report calls it.
const char* NameOf(SfiSchedule::Reason reason);

}  // namespace tiercel

#endif  // TIERCEL_RUNTIME_POLICY_SFI_SCHEDULE_H_

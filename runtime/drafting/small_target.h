#ifndef TIERCEL_RUNTIME_DRAFTING_SMALL_TARGET_H_
#define TIERCEL_RUNTIME_DRAFTING_SMALL_TARGET_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "drafts/verifying_drafter.h"
#include "kernels/token/law.h"
#include "runtime/drafting/sweep_target.h"
#include "runtime/sequence/session.h"

namespace tiercel {

// What a draft model sees of a text: its first tokens, which attention leans on
// whatever they say (StreamingLLM, arXiv 2309.17453), and its newest.
struct DraftWindow {
  int64_t sink = 16;
  int64_t recent = 512;  // at least so many of the newest, and at most twice

  // Where the newest tokens that it sees of a text of `length` begin. That
  // stays where it is for `recent` tokens, then goes on by as many: most of the
  // time only new tokens are computed. Follows from the length alone.
  int64_t RecentBegin(int64_t length) const;

  // Most tokens that a session must hold to draft over this window.
  int64_t Context() const { return sink + 2 * recent + kMaxStepRows; }

  // As much of this window as a model made for `context` positions has room
  // for. Errors: draft_context, where that is nothing.
  absl::StatusOr<DraftWindow> Within(int64_t context) const;
};

// A smaller model that drafts, in a session that is its alone and holds only
// the window, at positions from 0 on: so they stay within those the model was
// trained for, however long the text. What the session holds, and so every law,
// follows from the tokens of Begin and those drafted since.
//
// Penalties look at the session's own tokens. The repeat penalty's last 256 are
// those of the text, where `recent` is 256 or more; DRY sees what of the answer
// is in the window. Where that is less, the penalty, and so the draft, is
// worse; what the target makes of it is not.
class SmallTarget final : public DraftTarget {
 public:
  // `session`, whatever it holds, has room for the window. Of the text's tokens
  // `answer_begin` precede the answer.
  SmallTarget(Session& session, const LawParams& law, const DraftWindow& window,
              int64_t answer_begin)
      : session_(session),
        window_(window),
        answer_begin_(answer_begin),
        sweep_(session_, law) {}

  // Keeps the KV of what the session holds already.
  absl::Status Begin(const std::vector<int32_t>& tokens) override;
  absl::StatusOr<std::vector<Law>> Laws(
      const std::vector<int32_t>& block) override {
    return sweep_.Laws(block);
  }
  absl::Status Keep(size_t count, int32_t next) override {
    return sweep_.Keep(count, next);
  }

 private:
  Session& session_;
  const DraftWindow window_;
  const int64_t answer_begin_;
  SweepTarget sweep_;
};

}  // namespace tiercel

#endif  // TIERCEL_RUNTIME_DRAFTING_SMALL_TARGET_H_

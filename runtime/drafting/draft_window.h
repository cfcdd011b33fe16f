#ifndef TIERCEL_RUNTIME_DRAFTING_DRAFT_WINDOW_H_
#define TIERCEL_RUNTIME_DRAFTING_DRAFT_WINDOW_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/drafting/session_kv.h"
#include "runtime/model/draft_model.h"
#include "runtime/session/session.h"

namespace tiercel {

// The part of a text that a draft model sees: its first tokens, which attention
// leans on whatever they are (StreamingLLM, arXiv 2309.17453), and its newest.
struct DraftWindow {
  int64_t sink = 16;
  int64_t recent = 512;  // fewest newest tokens; the most are twice as many

  // The index of the first of the newest tokens that it sees of a text of
  // `length`. It stays the same for `recent` tokens, then moves on by as many,
  // so that most of the time only new tokens are computed. It follows from the
  // length alone.
  int64_t RecentBegin(int64_t length) const;

  // The most tokens that a session must hold to draft over this window.
  int64_t Context() const { return sink + 2 * recent + kMaxStepRows; }

  // As much of this window as fits a model made for `context` positions.
  // Errors: draft_context, if nothing fits.
  absl::StatusOr<DraftWindow> Within(int64_t context) const;
};

// The KV of a smaller model that drafts, in a session of its own that holds
// only the window, at positions from 0 on. So positions stay within those that
// the model was trained for, however long the text is. The session's tokens,
// and so every distribution, follow from the tokens of Begin and those drafted
// since.
//
// Penalties look at the session's own tokens. The repeat penalty sees the
// text's last 256 if `recent` is 256 or more; DRY sees the part of the answer
// that is in the window. If the window is smaller, the penalty, and so the
// draft, is worse; the target's output is not.
class DraftWindowKv final : public SessionKv {
 public:
  // `session` has room for the window, whatever it holds. The answer begins
  // behind `answer_begin` tokens of the text.
  DraftWindowKv(Session& session, const DraftWindow& window,
                const SharedTokens& shared, int64_t answer_begin)
      : SessionKv(session),
        window_(window),
        shared_(shared),
        answer_begin_(answer_begin) {}

  // Keeps the KV of the tokens that the session holds already.
  absl::Status Begin(const std::vector<int32_t>& tokens) override;
  const std::vector<int32_t>& text() const override { return text_; }
  absl::StatusOr<const float*> Pass(
      const std::vector<int32_t>& block,
      absl::Span<const DraftBranch> branches) override;
  absl::Status Keep(size_t length, absl::Span<const int32_t> next) override;

 private:
  const DraftWindow window_;
  const SharedTokens& shared_;  // outlives this
  const int64_t answer_begin_;
  std::vector<int32_t> text_;  // with the tokens drafted since Begin
};

}  // namespace tiercel

#endif  // TIERCEL_RUNTIME_DRAFTING_DRAFT_WINDOW_H_

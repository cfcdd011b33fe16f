#include "runtime/drafting/draft_window.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "lib/status/error.h"
#include "lib/status/status_macros.h"

namespace tiercel {

int64_t DraftWindow::RecentBegin(int64_t length) const {
  const int64_t beyond = length - sink - 2 * recent;
  if (beyond <= 0) return std::min(sink, length);
  return sink + (beyond + recent - 1) / recent * recent;
}

absl::StatusOr<DraftWindow> DraftWindow::Within(int64_t context) const {
  const int64_t room = (context - sink - kMaxStepRows) / 2;
  if (room < 1) {
    return InputError(
        "draft_context",
        absl::StrCat("the draft model was made for ", context,
                     " positions, it needs ",
                     DraftWindow{.sink = sink, .recent = 1}.Context(),
                     " or more to draft"));
  }
  return DraftWindow{.sink = sink, .recent = std::min(recent, room)};
}

absl::Status DraftWindowKv::Begin(const std::vector<int32_t>& tokens) {
  const auto begin =
      static_cast<std::ptrdiff_t>(window_.RecentBegin(std::ssize(tokens)));
  std::vector<int32_t> seen(
      tokens.begin(),
      tokens.begin() + std::min<std::ptrdiff_t>(window_.sink, begin));
  seen.insert(seen.end(), tokens.begin() + begin, tokens.end());
  for (int32_t& id : seen) id = shared_.ReadFor(id);
  const std::vector<int32_t>& held = session().sequence().tokens();
  const auto kept = static_cast<size_t>(
      std::mismatch(seen.begin(), seen.end(), held.begin(), held.end()).first -
      seen.begin());
  session().Truncate(kept);
  RETURN_IF_ERROR(session().Append(seen.data() + kept, seen.size() - kept));
  // If tokens between the sinks and the newest are left out, the answer begins
  // behind them at the earliest.
  const auto left_out = static_cast<int64_t>(tokens.size() - seen.size());
  const int64_t answer = std::clamp<int64_t>(
      answer_begin_, left_out > 0 ? begin : 0, std::ssize(tokens));
  session().BeginAnswer(static_cast<size_t>(answer - left_out));
  text_ = tokens;
  return absl::OkStatus();
}

absl::StatusOr<const float*> DraftWindowKv::Pass(
    const std::vector<int32_t>& block, absl::Span<const DraftBranch> branches) {
  text_.insert(text_.end(), block.begin(), block.end());
  return SessionKv::Pass(block, branches);
}

absl::Status DraftWindowKv::Keep(size_t length,
                                 absl::Span<const int32_t> next) {
  const size_t left_out = text_.size() - session().sequence().tokens().size();
  text_.resize(left_out + length);
  text_.insert(text_.end(), next.begin(), next.end());
  return SessionKv::Keep(length, next);
}

}  // namespace tiercel

#ifndef TIERCEL_APPS_COMMANDS_SESSION_H_
#define TIERCEL_APPS_COMMANDS_SESSION_H_

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "apps/cli/tried.h"
#include "apps/commands/model.h"
#include "apps/commands/watched.h"
#include "apps/terminal/output.h"
#include "apps/terminal/progress.h"
#include "apps/terminal/signals.h"
#include "include/tiercel.hpp"
#include "include/tiercel_lab.hpp"

namespace tiercel::cli {

// Tries a call of `session`, which a signal cancels.
template <typename Call>
auto TriedIn(const tiercel::Session& session, Call call) {
  const CancelOnSignal cancel(session.get());
  return Tried(call);
}

// A session, whose calls end after a signal.
class Session {
 public:
  static absl::StatusOr<Session> Create(const Model& model,
                                        const tiercel_session_params& params) {
    return Tried(
        [&] { return Session(tiercel::Session(model.handle(), params)); });
  }

  tiercel::Session& handle() { return session_; }

  absl::Status Prefill(const std::vector<int32_t>& ids,
                       const ProgressFn& progress) {
    return TriedIn(session_, [&] { session_.prefill(ids, Watched(progress)); });
  }
  absl::Status Fill(const std::vector<int32_t>& ids, uint64_t seed,
                    const ProgressFn& progress) {
    return TriedIn(session_, [&] {
      session_fill(session_, ids, seed, Watched(progress));
    });
  }
  absl::Status Read(const std::vector<int32_t>& ids,
                    const ProgressFn& progress) {
    return TriedIn(session_, [&] { session_.read(ids, Watched(progress)); });
  }
  absl::Status Generate(const tiercel_sampling& sampling,
                        const TokenFn& on_token) {
    return TriedIn(session_,
                   [&] { session_.generate(sampling, Watched(on_token)); });
  }
  absl::Status Score(const std::vector<int32_t>& ids, size_t rows_per_step,
                     const RowFn& on_row) {
    return TriedIn(
        session_, [&] { session_.score(ids, rows_per_step, Watched(on_row)); });
  }
  absl::StatusOr<tiercel::Attention> Attended(const tiercel::Reading& reading,
                                              const ProgressFn& progress) {
    return TriedIn(session_, [&] {
      return session_.attended(reading, Watched(progress));
    });
  }

  size_t Length() const { return session_.length(); }
  absl::StatusOr<std::vector<int32_t>> Ids() const {  // the tokens held
    return Tried([&] { return session_.ids(); });
  }
  absl::Status Truncate(size_t length) {
    return Tried([&] { session_.truncate(length); });
  }
  // A copy with the same tokens, whose pages it shares.
  absl::StatusOr<Session> Fork() const {
    return Tried([&] { return Session(session_.fork()); });
  }
  int32_t ResumedLayers() const { return session_.resumed(); }
  int32_t KeptLayers() const { return session_.kept(); }
  absl::StatusOr<Json> Report() const {
    return TriedJson([&] { return session_.report(); });
  }
  absl::StatusOr<std::vector<double>> TokenSeconds() const {
    return Tried([&] { return session_.token_seconds(); });
  }

  // Ends the call that runs, or the next one; from any thread.
  void Cancel() { session_.cancel(); }
  // Forgets a Cancel for which no call has ended.
  void ClearCancel() { session_.clear_cancel(); }

 private:
  explicit Session(tiercel::Session session) : session_(std::move(session)) {}

  tiercel::Session session_;
};

}  // namespace tiercel::cli

#endif  // TIERCEL_APPS_COMMANDS_SESSION_H_

#ifndef TIERCEL_RUNTIME_DRAFTING_SESSION_KV_H_
#define TIERCEL_RUNTIME_DRAFTING_SESSION_KV_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime/drafting/model_target.h"
#include "runtime/session/session.h"

namespace tiercel {

// A session's own tokens and all of their KV, read in place. The rows of a
// block go in one sweep.
class SessionKv : public TargetKv {
 public:
  // The session outlives it.
  explicit SessionKv(Session& session) : session_(session) {}

  // `tokens` are the session's, which may hold more.
  absl::Status Begin(const std::vector<int32_t>& tokens) override;
  const std::vector<int32_t>& tokens() const override {
    return session_.sequence().tokens();
  }
  absl::StatusOr<const float*> Pass(const std::vector<int32_t>& block) override;
  absl::Status Keep(size_t length, int32_t next) override;

 protected:
  Session& session() { return session_; }

 private:
  Session& session_;
  bool swept_ = false;  // the rows of a sweep wait for Keep
};

}  // namespace tiercel

#endif  // TIERCEL_RUNTIME_DRAFTING_SESSION_KV_H_

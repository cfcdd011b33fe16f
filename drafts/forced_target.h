#ifndef TIERCEL_DRAFTS_FORCED_TARGET_H_
#define TIERCEL_DRAFTS_FORCED_TARGET_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "drafts/verify.h"

namespace tiercel {

// A target whose text a schedule may force: if only one token may follow, its
// distribution is that token. `Schedule` is a value with Advance(id) and
// forced(); the given one has seen the tokens that the target holds.
template <typename Schedule>
class ForcedTarget final : public Target {
 public:
  // Both arguments outlive it.
  ForcedTarget(Target& target, const Schedule& schedule)
      : target_(target), schedule_(schedule) {}

  absl::StatusOr<std::vector<Distribution>> Distributions(
      const std::vector<int32_t>& block) override {
    absl::StatusOr<std::vector<Distribution>> distributions =
        target_.Distributions(block);
    if (!distributions.ok()) return distributions;
    Schedule ahead = schedule_;
    for (size_t i = 0; i < distributions->size(); ++i) {
      if (i > 0) ahead.Advance(block[i - 1]);
      const std::optional<int32_t> forced = ahead.forced();
      if (!forced.has_value()) continue;
      (*distributions)[i].ids = {*forced};
      (*distributions)[i].probabilities = {1.0f};
    }
    return distributions;
  }
  absl::Status Keep(size_t count, absl::Span<const int32_t> next) override {
    return target_.Keep(count, next);
  }

 private:
  Target& target_;
  const Schedule& schedule_;
};

}  // namespace tiercel

#endif  // TIERCEL_DRAFTS_FORCED_TARGET_H_

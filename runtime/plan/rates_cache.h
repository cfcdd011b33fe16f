#ifndef TIERCEL_RUNTIME_PLAN_RATES_CACHE_H_
#define TIERCEL_RUNTIME_PLAN_RATES_CACHE_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"
#include "runtime/plan/rates.h"

namespace tiercel {

// The rates that are used for one model on this machine until they are cleared.
struct KeptRates {
  // The steadiest measurement; times are predicted with it.
  Measurement best;
  // The first measurement's rates, rounded to two digits, which adaptive draft
  // lengths count with. Later measurements do not change them, so that the same
  // command prints the same text.
  Rates costs;

  // Returns true if the rates should be measured again: they are not steady,
  // the machine may be quieter now, and attempts are left.
  bool wants_more() const {
    return !best.steady() && best.attempts < MeasuringAgain::kMostAttempts;
  }
  // The attempts that are left, limited to `seconds`.
  MeasuringAgain Again(double seconds) const {
    constexpr double kUsualSeconds = 3;  // if the file has none
    return {.attempts = MeasuringAgain::kMostAttempts - best.attempts,
            .seconds = seconds,
            .first_s = best.seconds > 0 ? best.seconds : kUsualSeconds};
  }
  // A sentence that warns of unsteady rates and says what to do; "" if they are
  // steady.
  std::string Warning() const;
};

// A folder with a small file for each `key`, which names the machine, the model
// and all else that rates depend on. A lost file costs only the seconds that
// measuring takes. A file appears whole or not at all.
class RatesCache {
 public:
  explicit RatesCache(std::string folder) : folder_(std::move(folder)) {}

  // The rates of `key`; absent if there is no such file, or it is damaged.
  std::optional<KeptRates> Get(const nlohmann::json& key) const;
  // These create the folder if it is missing; `who` names the model for people.
  // Errors: cannot_write.
  absl::Status CheckWritable() const;
  absl::StatusOr<KeptRates> Add(const nlohmann::json& key,
                                const std::string& who,
                                const Measurement& measured) const;

  // [{"file", "bytes", "modified": seconds of the Unix clock, and the file's
  // contents: "model", "key", "rates", "costs", "spread", "attempts",
  // "seconds", "steady"}] by name; a damaged file has the first three alone.
  // Empty if there is no folder. Errors: cannot_read.
  absl::StatusOr<nlohmann::json> List() const;
  // Removes all files of List, and unfinished ones; returns their number.
  // Errors: cannot_write.
  absl::StatusOr<int64_t> Clear() const;

 private:
  std::string PathOf(const nlohmann::json& key) const;

  const std::string folder_;
};

}  // namespace tiercel

#endif  // TIERCEL_RUNTIME_PLAN_RATES_CACHE_H_

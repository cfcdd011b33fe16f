#ifndef TIERCEL_RUNTIME_PREDICT_RATES_CACHE_H_
#define TIERCEL_RUNTIME_PREDICT_RATES_CACHE_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"
#include "runtime/predict/rates.h"

namespace tiercel {

// What this machine's rates for one model are taken to be, until they are
// cleared.
struct KeptRates {
  // The steadiest that was measured; times are predicted with it.
  Measurement best;
  // The first measurement's, rounded to two digits: what adaptive lengths count
  // with. A later measurement leaves them, so that the same command prints the
  // same text.
  Rates costs;

  // Whether there may be another measurement: what is kept is not steady, and
  // the machine may be quieter now. Not for ever.
  bool wants_more() const {
    return !best.steady() && best.attempts < MeasuringAgain::kMostAttempts;
  }
  // What is left of the attempts, in so many seconds.
  MeasuringAgain Again(double seconds) const {
    constexpr double kUsualSeconds = 3;  // of a file that does not say
    return {.attempts = MeasuringAgain::kMostAttempts - best.attempts,
            .seconds = seconds,
            .first_s = best.seconds > 0 ? best.seconds : kUsualSeconds};
  }
  // "" of steady rates; else what to think of them and what to do, a sentence.
  std::string Warning() const;
};

// A folder with a small file for each `key`, which names the machine, the model
// and all else that rates depend on. Nothing is lost with a file but the
// seconds that measuring takes. A file appears whole or not at all.
class RatesCache {
 public:
  explicit RatesCache(std::string folder) : folder_(std::move(folder)) {}

  // Absent where there is no such file, or it is not whole.
  std::optional<KeptRates> Get(const nlohmann::json& key) const;
  // Makes the folder where it is missing; `who` names the model for people.
  // Errors: cannot_write.
  absl::Status CheckWritable() const;
  absl::StatusOr<KeptRates> Add(const nlohmann::json& key,
                                const std::string& who,
                                const Measurement& measured) const;

  // [{"file", "bytes", "modified": seconds of the Unix clock, and what it says:
  // "model", "key", "rates", "costs", "spread", "attempts", "seconds",
  // "steady"}] by name; a file that is not whole has the first three. Empty
  // without the folder. Errors: cannot_read.
  absl::StatusOr<nlohmann::json> List() const;
  // Removes what List shows, and what was left unfinished; how many files.
  // Errors: cannot_write.
  absl::StatusOr<int64_t> Clear() const;

 private:
  std::string PathOf(const nlohmann::json& key) const;

  const std::string folder_;
};

}  // namespace tiercel

#endif  // TIERCEL_RUNTIME_PREDICT_RATES_CACHE_H_

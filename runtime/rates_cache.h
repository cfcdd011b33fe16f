#ifndef TIERCEL_RUNTIME_RATES_CACHE_H_
#define TIERCEL_RUNTIME_RATES_CACHE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/rates.h"

namespace tiercel {

// Rates that were measured in the last week: a small file for each `key`, which
// names the machine, the model's shape and all else that they depend on.
// Nothing is lost with the folder but the seconds that measuring takes.
//
// Other work slows a machine for a while at times, the whole of a measurement
// perhaps: some of the first uses measure, ever further apart, and the middle
// one counts, for each of a prompt, a step, logits and copies.
class RatesCache {
 public:
  // `now`: seconds of the Unix clock, here and below.
  RatesCache(std::string folder, std::string key, int64_t now);

  // Absent where there is no such file, or it is not whole.
  std::optional<Rates> Get() const;
  // Whether this use is to measure.
  bool WantsMore() const;
  // What was measured, until `now`. Makes the folder where it is missing; what
  // cannot be written is not kept.
  void Add(const Rates& rates, int64_t now);

 private:
  struct Measured {
    int64_t time;
    Rates rates;
  };

  // The middle of what was measured, by a number of it; of two the lesser.
  template <typename Number>
  const Rates& MiddleBy(Number number) const;
  std::string Path() const;
  void Read();
  void Write() const;

  const std::string folder_;
  const std::string key_;
  const int64_t now_;
  std::vector<Measured> measured_;  // the newest last
};

}  // namespace tiercel

#endif  // TIERCEL_RUNTIME_RATES_CACHE_H_

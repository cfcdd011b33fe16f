#ifndef TIERCEL_TESTS_TRIALS_H_
#define TIERCEL_TESTS_TRIALS_H_

#include <stdlib.h>

#include <cstdint>
#include <string>
#include <vector>

namespace tiercel {

// The seeds of a random trial, `few` of them from 0 on. TIERCEL_TRIALS=COUNT
// sets their number, TIERCEL_TRIAL_SEED=SEED the first; alone, it tries that
// one again, to replay a failure, whose message has the seed.
inline std::vector<uint64_t> TrialSeeds(uint64_t few) {
  const char* const count = getenv("TIERCEL_TRIALS");
  const char* const first = getenv("TIERCEL_TRIAL_SEED");
  if (first != nullptr) few = 1;
  if (count != nullptr) few = std::stoull(count);
  std::vector<uint64_t> seeds;
  for (uint64_t i = 0; i < few; ++i) {
    seeds.push_back((first != nullptr ? std::stoull(first) : 0) + i);
  }
  return seeds;
}

}  // namespace tiercel

#endif  // TIERCEL_TESTS_TRIALS_H_

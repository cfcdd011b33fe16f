#ifndef TIERCEL_APPS_COMMANDS_SAMPLING_H_
#define TIERCEL_APPS_COMMANDS_SAMPLING_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "apps/cli/options.h"
#include "apps/terminal/output.h"
#include "include/tiercel.hpp"
#include "lib/grammar/grammar.h"

namespace tiercel::cli {

// The sampling of tokens and their comparison with a baseline, which
// `generate`, `ask`, `summarize` and `bench` share.

// The options of the baseline of --verify-against: the same distribution and
// context, without drafts or a view. `report` is that of a run with `options`.
Options BaselineOf(const Options& options, const Json& report);

// The promised relation of a run's text to its baseline's.
enum class Promise {
  kText,          // it is the same: verification is coupled, or greedy
  kDistribution,  // it is drawn from the same distribution, and may differ
  kNone,          // none: a plain form is in effect another model
};
Promise PromiseOf(const SamplingOptions& from);

// Compares two reports of a generation, with the tokens a second of both (0:
// not known): {"agree", "first_difference", "speedup", "decode_tok_s",
// "device_bytes", "resident_pages"}. The last three are the baseline's;
// `resident_pages` is null if no data crosses a link.
Json Compared(const Json& report, double rate, const Json& baseline,
              double baseline_rate);

// The sampling parameters of one generation point to these: pointers to texts,
// and the state of its mask.
struct ApiTexts {
  std::vector<const char*> stops;
  std::vector<const char*> dry_breakers;
  std::unique_ptr<GrammarMask> mask;
};

// Returns the sampling parameters of the C API. They point into `texts`, which
// this fills, and which point into `from`.
tiercel_sampling ToApi(const SamplingOptions& from, uint64_t seed,
                       ApiTexts* texts);

}  // namespace tiercel::cli

#endif  // TIERCEL_APPS_COMMANDS_SAMPLING_H_

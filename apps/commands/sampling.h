#ifndef TIERCEL_APPS_COMMANDS_SAMPLING_H_
#define TIERCEL_APPS_COMMANDS_SAMPLING_H_

#include <cstdint>
#include <vector>

#include "apps/cli/options.h"
#include "apps/terminal/output.h"
#include "include/tiercel.h"

namespace tiercel::cli {

// How tokens are drawn, and what they are compared with: what `generate`,
// `ask`, `summarize` and `bench` share.

// The baseline of --verify-against: the same law and context, nobody drafts and
// no view is kept. `report`: what a run with `options` said.
Options BaselineOf(const Options& options, const Json& report);

// How the text of a run has to do with its baseline's.
enum class Promise {
  kText,  // it is the same: coupled, or greedy
  kLaw,   // it is drawn from the same law, and may be another
  kNone,  // a plain form's: it is another model's
};
Promise PromiseOf(const SamplingOptions& from);

// Compares two reports of a generation, with the tokens a second of both (0:
// not known): {"agree", "first_difference", "speedup", "decode_tok_s",
// "device_bytes", "resident_pages"}. The last three are the baseline's;
// `resident_pages` is null where nothing crosses a link.
Json Compared(const Json& report, double rate, const Json& baseline,
              double baseline_rate);

// Texts as the C API takes them.
struct ApiTexts {
  std::vector<const char*> stops;
  std::vector<const char*> dry_breakers;
};

// The sampling parameters of the C API. They point into `texts`, which are
// filled and point into `from`.
tiercel_sampling ToApi(const SamplingOptions& from, uint64_t seed,
                       ApiTexts* texts);

}  // namespace tiercel::cli

#endif  // TIERCEL_APPS_COMMANDS_SAMPLING_H_

#ifndef TIERCEL_APPS_COMMANDS_SUMMARY_H_
#define TIERCEL_APPS_COMMANDS_SUMMARY_H_

#include <cstddef>
#include <string>

#include "apps/cli/options.h"
#include "apps/terminal/output.h"

namespace tiercel::cli {

// Lines for people after a run, made of its report; figures that it lacks are
// left out.
//
//   prompt 7012 tokens, TTFT 3.70 s (predicted 3.61), ..., seed 0
//   drafts that held: ngram 120 of 400 (30 %), view 310 of 330 (94 %)
//   time: prefill 3.66 s (link busy 4 %), draft 1.20 s (5 %), ...;
//     link 12.30 GB up, 0.20 GB down
//   device: 90.01 MiB taken, 0 pages resident; full: 89.95 MiB, 12 resident
//
// The second line needs drafts; the third drafts or a link; the fourth a link
// and a baseline.
std::string SummaryOf(const Json& report, const SamplingOptions& sampling);

// The result of --verify-against full for a text of `tokens` tokens, from its
// "baseline" and the promise (PromiseOf):
//
//   agrees with full, speed-up 2.31; differs from full at token 3; if only the
//   distribution is promised, same distribution as full; for a plain form, the
//   same 40 tokens; first differs at token 3
std::string AgreementOf(const Json& baseline, size_t tokens,
                        const SamplingOptions& sampling);

// Says that an answer was cut at -n, and how to have more of it; else empty.
// `output` is an entry of the report's "output".
std::string CutOf(const Json& output, const SamplingOptions& sampling);

// The warning that the end of the context cut the answer of `report`, with ways
// to make room, or that it ended within a thought; empty if neither holds.
std::string CutShortOf(const Json& report, const Options& options);

}  // namespace tiercel::cli

#endif  // TIERCEL_APPS_COMMANDS_SUMMARY_H_

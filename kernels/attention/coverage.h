#ifndef TIERCEL_KERNELS_ATTENTION_COVERAGE_H_
#define TIERCEL_KERNELS_ATTENTION_COVERAGE_H_

#include "absl/status/status.h"
#include "kernels/attention/coverage_params.h"
#include "kernels/machine/stream.h"

namespace tiercel {

absl::Status Coverage(Stream& stream, const CoverageParams& p);

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_ATTENTION_COVERAGE_H_

#ifndef TIERCEL_KERNELS_ATTENTION_MEAN_SCORES_H_
#define TIERCEL_KERNELS_ATTENTION_MEAN_SCORES_H_

#include <string_view>

#include "absl/status/status.h"
#include "kernels/attention/mean_scores_params.h"
#include "kernels/machine/stream.h"

namespace tiercel {

absl::Status MeanScores(Stream& stream, const MeanScoresParams& p);

// Checks all parameters but `out`; errors name `op`. Errors: invalid_shape.
absl::Status CheckMeans(std::string_view op, const MeanScoresParams& p);

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_ATTENTION_MEAN_SCORES_H_

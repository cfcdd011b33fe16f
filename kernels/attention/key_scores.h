#ifndef TIERCEL_KERNELS_ATTENTION_KEY_SCORES_H_
#define TIERCEL_KERNELS_ATTENTION_KEY_SCORES_H_

#include "absl/status/status.h"
#include "kernels/attention/key_scores_params.h"
#include "kernels/machine/stream.h"

namespace tiercel {

absl::Status KeyScores(Stream& stream, const KeyScoresParams& p);

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_ATTENTION_KEY_SCORES_H_

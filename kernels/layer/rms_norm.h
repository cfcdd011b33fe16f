#ifndef TIERCEL_KERNELS_LAYER_RMS_NORM_H_
#define TIERCEL_KERNELS_LAYER_RMS_NORM_H_

#include "absl/status/status.h"
#include "kernels/layer/rms_norm_params.h"
#include "kernels/machine/stream.h"

namespace tiercel {

absl::Status RmsNorm(Stream& stream, const RmsNormParams& p);

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_LAYER_RMS_NORM_H_

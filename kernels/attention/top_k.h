#ifndef TIERCEL_KERNELS_ATTENTION_TOP_K_H_
#define TIERCEL_KERNELS_ATTENTION_TOP_K_H_

#include "absl/status/status.h"
#include "kernels/attention/top_k_params.h"
#include "kernels/machine/stream.h"

namespace tiercel {

absl::Status TopK(Stream& stream, const TopKParams& p);

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_ATTENTION_TOP_K_H_

#ifndef TIERCEL_KERNELS_ATTENTION_SELECTOR_H_
#define TIERCEL_KERNELS_ATTENTION_SELECTOR_H_

#include "absl/status/status.h"
#include "kernels/attention/selector_params.h"
#include "kernels/machine/stream.h"

namespace tiercel {

absl::Status Select(Stream& stream, const SelectParams& p);

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_ATTENTION_SELECTOR_H_

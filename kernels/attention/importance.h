#ifndef TIERCEL_KERNELS_ATTENTION_IMPORTANCE_H_
#define TIERCEL_KERNELS_ATTENTION_IMPORTANCE_H_

#include "absl/status/status.h"
#include "kernels/attention/importance_params.h"
#include "kernels/machine/stream.h"

namespace tiercel {

absl::Status AddImportance(Stream& stream, const ImportanceParams& p);

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_ATTENTION_IMPORTANCE_H_

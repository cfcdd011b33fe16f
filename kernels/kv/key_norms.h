#ifndef TIERCEL_KERNELS_KV_KEY_NORMS_H_
#define TIERCEL_KERNELS_KV_KEY_NORMS_H_

#include "absl/status/status.h"
#include "kernels/kv/key_norms_params.h"
#include "kernels/machine/stream.h"

namespace tiercel {

absl::Status KeyNorms(Stream& stream, const KeyNormsParams& p);

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_KV_KEY_NORMS_H_

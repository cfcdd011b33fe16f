#ifndef TIERCEL_KERNELS_KV_KV_CONVERT_H_
#define TIERCEL_KERNELS_KV_KV_CONVERT_H_

#include "absl/status/status.h"
#include "kernels/kv/kv_convert_params.h"
#include "kernels/machine/stream.h"

namespace tiercel {

absl::Status KvConvert(Stream& stream, const KvConvertParams& p);

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_KV_KV_CONVERT_H_

#ifndef TIERCEL_LIB_STATUS_STATUS_FORWARD_H_
#define TIERCEL_LIB_STATUS_STATUS_FORWARD_H_

#include "absl/base/config.h"

// Declares absl::Status for headers that name it and are also read by device
// code, which cannot include its header.
namespace absl {
ABSL_NAMESPACE_BEGIN
class Status;
ABSL_NAMESPACE_END
}  // namespace absl

#endif  // TIERCEL_LIB_STATUS_STATUS_FORWARD_H_

#ifndef TIERCEL_MODELS_FORMAT_CHECK_TENSORS_H_
#define TIERCEL_MODELS_FORMAT_CHECK_TENSORS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "models/format/checkpoint.h"

namespace tiercel {

// A tensor whose data holds an infinity or a NaN: in an element of F32, F16 or
// BF16, or in a scale of a quantised block (which spoils the whole block).
struct BadTensor {
  std::string name;
  int64_t first_block;  // the first such block, or element if not quantised
  int64_t blocks;       // the number of them
};

// Reads all data of the checkpoint and reports the tensors that cannot be
// right, in file order. `progress` receives the bytes done and in all every few
// MiB; the check stops when it returns false. Errors: cancelled; those of
// Checkpoint::Read.
absl::StatusOr<std::vector<BadTensor>> CheckTensors(
    const Checkpoint& checkpoint,
    absl::FunctionRef<bool(uint64_t done, uint64_t total)> progress);

}  // namespace tiercel

#endif  // TIERCEL_MODELS_FORMAT_CHECK_TENSORS_H_

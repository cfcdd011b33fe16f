#ifndef TIERCEL_MODELS_FORMAT_CONTENT_HASH_H_
#define TIERCEL_MODELS_FORMAT_CONTENT_HASH_H_

#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "kernels/system/thread_pool.h"
#include "models/format/checkpoint.h"

namespace tiercel {

// Returns a hash of everything that a checkpoint's files hold - weights,
// tokenizer, chat template, description - as 16 digits: two checkpoints that
// differ in a byte have the same hash with a chance of 2^-64. Reads every file
// once. `cancelled` is called every few megabytes. Errors: io_error;
// changed_during_load, if a file differs from the one that was opened;
// cancelled.
absl::StatusOr<std::string> ContentHash(const Checkpoint& checkpoint,
                                        ThreadPool& pool,
                                        absl::FunctionRef<bool()> cancelled);

}  // namespace tiercel

#endif  // TIERCEL_MODELS_FORMAT_CONTENT_HASH_H_

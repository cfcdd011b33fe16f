#ifndef TIERCEL_RUNTIME_PASS_FILL_H_
#define TIERCEL_RUNTIME_PASS_FILL_H_

#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "kernels/device/stream.h"
#include "offload/kv/kv_store.h"
#include "runtime/pass/pass.h"

namespace tiercel {

// The KV heads of one of several ranks, as FillKv fills them.
struct FillPart {
  const PassRank& rank;
  int kv_heads;    // in the model
  int first_head;  // the rank's first one
};

// For measurements at depths that would take long to compute: adds `rows`
// positions to `kv` that belong to no token, with normal keys and values drawn
// from `seed`. This is no pass (runtime/pass/pass.h): no row goes through a
// layer, no weight is read and no position is attended to.
//
// With several ranks `part` names the rank that has this KV (null: one rank):
// each fills its heads with the values that a single rank would have there, and
// all of them end with as many rows.
//
// `progress(done, rows)` is called before every 512 rows, by rank 0; false
// cancels. Errors: cancelled, copy_failed, out_of_memory, device_failed; rows
// added before the error stay.
absl::Status FillKv(KvStore& kv, int64_t rows, uint64_t seed, Stream& stream,
                    absl::FunctionRef<bool(uint64_t, uint64_t)> progress,
                    KvStore::Cancelled cancelled,
                    const FillPart* part = nullptr);

}  // namespace tiercel

#endif  // TIERCEL_RUNTIME_PASS_FILL_H_

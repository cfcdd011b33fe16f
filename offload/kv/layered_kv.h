#ifndef TIERCEL_OFFLOAD_KV_LAYERED_KV_H_
#define TIERCEL_OFFLOAD_KV_LAYERED_KV_H_

#include <cstddef>
#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "kernels/attention/head_view.h"
#include "kernels/device/device_ptr.h"
#include "kernels/device/stream.h"
#include "kernels/kv/kv_layout.h"

namespace tiercel {

class HostAttention;

// Pages of a layer that have not crossed the link: the host attends to them
// itself.
struct HostPages {
  HostAttention* by = nullptr;  // null: there are none
  int64_t first = 0;            // the page index of the first
  int64_t count = 0;
  // [KvPages::num_pages]: their places in the host tier; the others are null.
  const DevicePtr<std::byte>* pages = nullptr;
};

// One layer's KV as ops take it. The tables of pages are valid until EndLayer.
struct KvPages {
  KvLayout layout;
  // [num_pages]; null: the view reads none of it, or it is the host's
  const DevicePtr<std::byte>* pages;
  int64_t first_page;  // the page index of pages[0]
  int64_t num_pages;
  int64_t begin;  // the first position that exists
  int64_t end;    // one past the last that exists; a step writes from here on
  const HeadView* view;  // the layer's, [layout.kv_heads]; null: everything
  HostPages host = {};
};

// Steps of more rows are prompts: their rows are never taken back, and the
// pages that they fill need not stay on the device.
inline constexpr int64_t kMaxStepRows = 64;

// The KV that the layers of a step read and write.
class LayeredKv {
 public:
  using Cancelled = absl::FunctionRef<bool()>;
  virtual ~LayeredKv() = default;

  // Layers begin in order, and each ends before the next begins. Errors:
  // copy_failed, cancelled.
  virtual absl::StatusOr<KvPages> BeginLayer(int layer,
                                             Cancelled cancelled) = 0;
  virtual void EndLayer(int layer) = 0;
};

// Sees the steps of a KV store under the full view, and the pages they read.
class StepObserver {
 public:
  using Cancelled = LayeredKv::Cancelled;
  virtual ~StepObserver() = default;

  // A step of `rows` rows from position `end` on begins; `certain`: all of them
  // will be committed. Errors, with nothing begun: cancelled.
  virtual absl::Status BeginStep(int64_t end, int64_t rows, bool certain,
                                 Cancelled cancelled) = 0;
  // Takes the queries of the step's rows from first_row on: [rows, heads *
  // head_dim], after RoPE. Every row of a layer comes once, in order. Errors:
  // those of the ops.
  virtual absl::Status KeepQueries(Stream& stream, int layer, int64_t first_row,
                                   int64_t rows, DevicePtr<const float> q) = 0;
  // All rows have passed through the layer; its pages can still be read.
  virtual absl::Status AfterLayer(Stream& stream, int layer,
                                  const KvPages& kv) = 0;
  // AfterLayer of the step that has begun reads no K and V before this
  // position.
  virtual int64_t ReadsFrom() const { return 0; }
  // The step is committed, and the sequence ends at `end`; or it is abandoned.
  virtual void Commit(int64_t end) = 0;
  virtual void Abandon() = 0;

  virtual void Truncate(int64_t end) = 0;
};

}  // namespace tiercel

#endif  // TIERCEL_OFFLOAD_KV_LAYERED_KV_H_

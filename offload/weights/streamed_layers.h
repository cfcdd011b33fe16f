#ifndef TIERCEL_OFFLOAD_WEIGHTS_STREAMED_LAYERS_H_
#define TIERCEL_OFFLOAD_WEIGHTS_STREAMED_LAYERS_H_

#include <sys/types.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "kernels/device/device_memory.h"
#include "kernels/device/stream.h"
#include "offload/move/copy_engine.h"
#include "offload/tier/host_region.h"
#include "offload/tier/ledger.h"
#include "offload/tier/memory_promise.h"

namespace tiercel {

// The weights of the layers that have no room on the device. Each such layer is
// a block of bytes in the host tier. Before it computes, its block comes up
// into one of two buffers on the device, in which its arrays have fixed places;
// while it computes, the block of the next such layer arrives in the other.
//
// Thread-safe once it is loaded: the passes of several sessions take turns,
// layer by layer.
class StreamedLayers {
 public:
  // The layers that are streamed, `count` of `all`, at even distances, so that
  // the link works while the layers between them compute.
  static std::vector<int> Choose(int count, int all);
  // The buffers hold two layers, so fewer than this many save no memory.
  static constexpr int kFewest = 3;

  // `layers`: their numbers, in order. `most_bytes`: the most that the arrays
  // of one take. `promise` covers the blocks. Errors: out_of_memory; no_thread.
  static absl::StatusOr<std::unique_ptr<StreamedLayers>> Create(
      std::vector<int> layers, int64_t most_bytes, DeviceMemory& memory,
      std::unique_ptr<Link> link, MemoryPromise promise);
  ~StreamedLayers();
  StreamedLayers(const StreamedLayers&) = delete;
  StreamedLayers& operator=(const StreamedLayers&) = delete;

  bool Has(int layer) const { return IndexOf(layer).has_value(); }

  // ---- Loading, one layer at a time ----

  // Begins to load `layer`; returns the memory in which its arrays are made.
  // Arrays that are made in it take nothing that must be freed.
  DeviceMemory& BeginLayer(int layer);
  // Copies the layer's arrays, which `stream` has written, to its block.
  // Errors: out_of_memory; device_failed.
  absl::Status KeepLayer(int layer, Stream& stream);

  // ---- Passes ----

  // Calls compute() when the weights of `layer`, which it has, are on the
  // device, and returns its status. The link's use since the last call, in
  // which it may have asked for this layer already, is added to *use. Errors:
  // copy_failed; device_failed; out_of_memory; cancelled; forked.
  using Cancelled = CopyEngine::Cancelled;
  absl::Status WithLayer(int layer, Phase phase, Cancelled cancelled,
                         LinkLedger* use,
                         absl::FunctionRef<absl::Status()> compute);

 private:
  // A buffer's memory, given out from its beginning on.
  class BufferMemory final : public DeviceMemory {
   public:
    void Begin(DevicePtr<std::byte> begin, int64_t bytes);
    int64_t taken() const { return taken_; }
    absl::StatusOr<DevicePtr<std::byte>> Allocate(
        size_t bytes, std::string_view what) override;
    void Free(DevicePtr<std::byte>, size_t) override {}

   private:
    DevicePtr<std::byte> begin_;
    int64_t bytes_ = 0;
    int64_t taken_ = 0;
  };
  struct Buffer {
    DeviceArray<std::byte> bytes;
    BufferMemory arrays;
    std::optional<size_t> holds;    // a layer's index, or what is on its way
    CopyEngine::Ticket filled = 0;  // its fetch
  };

  StreamedLayers(std::vector<int> layers, MemoryPromise promise)
      : layers_(std::move(layers)),
        blocks_(layers_.size()),
        promise_(std::move(promise)) {}

  bool IsForked() const;
  std::optional<size_t> IndexOf(int layer) const;
  Buffer& BufferOf(size_t index) { return buffers_[index % 2]; }
  // Asks for a layer's block.
  void Fetch(size_t index, Phase phase);
  // Waits until a layer's block is in its buffer, and asks for the next one's.
  absl::Status Bring(size_t index, Phase phase, Cancelled cancelled);
  // Adds what the link has done since the last call.
  void Count(LinkLedger* use);

  const std::vector<int> layers_;
  std::vector<HostRegion> blocks_;  // [index in layers_]
  MemoryPromise promise_;
  std::mutex mutex_;  // guards the buffers during passes
  std::array<Buffer, 2> buffers_;
  pid_t process_ = 0;                   // the one that has the engine's thread
  LinkLedger counted_ = {};             // the link's use that callers were told
  std::unique_ptr<CopyEngine> engine_;  // it stops before the memory is freed
};

// The weights of a pass that are not on the device.
struct StreamedWeights {
  StreamedLayers* layers = nullptr;  // null: all are there
  Phase phase = Phase::kVerify;      // their bytes count for it
  LinkLedger* use = nullptr;         // the place where they are counted

  // Calls compute() when the weights of `layer` are on the device. Errors:
  // compute's; those of StreamedLayers::WithLayer.
  absl::Status With(int layer, StreamedLayers::Cancelled cancelled,
                    absl::FunctionRef<absl::Status()> compute) const {
    if (layers == nullptr || !layers->Has(layer)) return compute();
    return layers->WithLayer(layer, phase, cancelled, use, compute);
  }
};

}  // namespace tiercel

#endif  // TIERCEL_OFFLOAD_WEIGHTS_STREAMED_LAYERS_H_

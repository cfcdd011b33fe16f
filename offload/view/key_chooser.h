#ifndef TIERCEL_OFFLOAD_VIEW_KEY_CHOOSER_H_
#define TIERCEL_OFFLOAD_VIEW_KEY_CHOOSER_H_

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/kv/kv_layout.h"
#include "kernels/machine/device_memory.h"
#include "offload/view/chooser.h"

namespace tiercel {

// How single positions are chosen by their keys (Slow-Fast Inference, arXiv
// 2603.12038); kernels/attention/selector.h has what it means.
struct KeyChoice {
  int64_t evidence = 16;      // rows of a prompt, its last, that choose
  int64_t queries = 1;        // and of a later step, with those before it
  float most_prior = 0.25f;   // of the mixture of evidence and prior
  float suppression = 1;      // of what lies beside a greater one
  float exclusivity = 0.85f;  // of KV heads
};

// By the exact scores of all keys of a layer, while its pages are at hand, and
// by the norms of the keys, which it keeps. A chunk is one position.
class KeyChooser final : public Chooser {
 public:
  struct Shape {
    KvLayout layout = {};
    int layers = 0;
    int heads = 0;        // query heads
    int64_t begin = 0;    // of the sequence
    int64_t context = 0;  // positions
    int64_t sinks = 0;    // positions, the first
    int64_t budget = 0;   // that a head sees, the sinks among them
    KeyChoice choice = {};

    int64_t Bytes() const;
  };
  // Errors: out_of_memory.
  static absl::StatusOr<std::unique_ptr<Chooser>> Create(DeviceMemory& memory,
                                                         const Shape& shape);

  absl::Status Update(Stream& stream, int layer, const KvPages& kv,
                      int64_t rows) override;
  // The pages must be at hand.
  absl::Status Choose(Stream& stream, int layer, const Asking& by,
                      const KvPages* kv, int64_t chunks,
                      std::vector<std::vector<int32_t>>* chosen) override;
  void Truncate(int64_t end) override;
  absl::StatusOr<std::unique_ptr<Chooser>> Copy(
      DeviceMemory& memory) const override;

 private:
  // What is said of one layer's candidates; it is written anew for each layer.
  struct Workspace {
    DeviceArray<float> scores;    // [heads, context]
    DeviceArray<float> evidence;  // [kv_heads, context]
  };
  KeyChooser(const Shape& shape, DeviceArray<uint16_t> norms, Workspace work)
      : shape_(shape),
        norms_(std::move(norms)),
        work_(std::move(work)),
        known_(static_cast<size_t>(shape.layers), shape.begin) {}

  uint16_t* NormsOf(int layer) {
    return norms_.data() + layer * shape_.layout.kv_heads * shape_.context;
  }

  const Shape shape_;
  DeviceArray<uint16_t> norms_;  // f16 [layer][kv_head][context]
  Workspace work_;
  std::vector<int64_t> known_;   // [layer]: norms up to this position
  std::vector<int32_t> picked_;  // [kv_heads, ...] of one layer
};

}  // namespace tiercel

#endif  // TIERCEL_OFFLOAD_VIEW_KEY_CHOOSER_H_

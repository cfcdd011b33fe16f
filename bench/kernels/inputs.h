#ifndef TIERCEL_BENCH_KERNELS_INPUTS_H_
#define TIERCEL_BENCH_KERNELS_INPUTS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/device/device_memory.h"
#include "kernels/device/stream.h"
#include "kernels/kv/kv_layout.h"
#include "kernels/layer/packed_matrix.h"

namespace tiercel {

// The dense parts of a model, as far as they shape its ops.
struct ModelShape {
  std::string_view name;
  int64_t hidden;
  int heads;
  int kv_heads;
  int head_dim;
  int64_t ffn;  // 0 if the model has experts instead
  int64_t vocab;

  int64_t QueryWidth() const { return int64_t{heads} * head_dim; }
  int64_t KvWidth() const { return int64_t{kv_heads} * head_dim; }
};

// The inputs and outputs of ops, in large pieces of a device's memory that are
// filled there. Turns take their inputs from different places, so that no turn
// finds its inputs in the cache.
class Inputs {
 public:
  // `halves` bytes of codes, scales and KV, and `floats` floats of activations;
  // as many floats for outputs. Errors: out_of_memory, device_failed.
  static absl::StatusOr<Inputs> Create(Stream& stream, int64_t halves,
                                       int64_t floats);

  // All of `halves`, to be written over.
  DevicePtr<std::byte> Room() { return halves_.data(); }
  // A matrix that has another place in each turn, as far as there are places.
  PackedMatrix Matrix(DType type, int64_t rows, int64_t cols,
                      int64_t turn) const;
  // The addresses of `count` pages of one layer, likewise.
  std::vector<DevicePtr<std::byte>> Pages(const KvLayout& layout, int64_t count,
                                          int64_t turn);
  // The address of `count` f16 values, likewise.
  DevicePtr<const uint16_t> Halves(int64_t count, int64_t turn) const;
  DevicePtr<const float> Floats(int64_t count, int64_t turn) const;
  DevicePtr<float> Out() { return out_.data(); }

  int64_t halves() const { return static_cast<int64_t>(halves_.size()); }
  int64_t floats() const { return static_cast<int64_t>(floats_.size()); }

 private:
  // The offset within `all` bytes of an input of `bytes`, in turn `turn`.
  static int64_t PlaceOf(int64_t all, int64_t bytes, int64_t turn);

  DeviceArray<std::byte> halves_;
  DeviceArray<float> floats_;
  DeviceArray<float> out_;
};

}  // namespace tiercel

#endif  // TIERCEL_BENCH_KERNELS_INPUTS_H_

#ifndef TIERCEL_MODELS_DECODER_WEIGHTS_H_
#define TIERCEL_MODELS_DECODER_WEIGHTS_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "kernels/device/device_memory.h"
#include "kernels/device/stream.h"
#include "kernels/layer/packed_matrix.h"
#include "models/decoder/config.h"
#include "models/decoder/experts.h"
#include "models/decoder/model_split.h"
#include "models/format/checkpoint.h"
#include "offload/weights/streamed_layers.h"

namespace tiercel {

// The weights of one decoder layer; an empty vector is a term that the model
// lacks. Q and K rows are in the order of split-half RoPE, whatever the file
// had. A rank has the rows that ModelSplit assigns to it: those of its query
// and KV heads in Q, K, V, its hidden columns in O and down, its ffn columns in
// gate and up, each with its biases. A layer has experts or gate, up and down.
struct LayerWeights {
  DeviceArray<float> attn_norm;  // [hidden]
  PackedMatrix q;                // [heads * head_dim, hidden]
  PackedMatrix k;                // [kv_heads * head_dim, hidden]
  PackedMatrix v;                // [kv_heads * head_dim, hidden]
  DeviceArray<float> q_bias;     // [heads * head_dim]
  DeviceArray<float> k_bias;     // [kv_heads * head_dim]
  DeviceArray<float> v_bias;     // [kv_heads * head_dim]
  DeviceArray<float> q_norm;     // [head_dim]
  DeviceArray<float> k_norm;     // [head_dim]
  PackedMatrix o;                // [hidden, heads * head_dim]
  DeviceArray<float> o_bias;     // [hidden]

  DeviceArray<float> ffn_norm;   // [hidden]
  PackedMatrix gate;             // [ffn, hidden]
  PackedMatrix up;               // [ffn, hidden]
  PackedMatrix down;             // [hidden, ffn]
  DeviceArray<float> gate_bias;  // [ffn]
  DeviceArray<float> up_bias;    // [ffn]
  DeviceArray<float> down_bias;  // [hidden]
  ExpertWeights experts;
};

struct Weights {
  PackedMatrix embedding;  // [vocab, hidden]
  std::vector<LayerWeights> layers;
  DeviceArray<float> output_norm;  // [hidden]
  PackedMatrix separate_output;    // [vocab, hidden]; empty where tied
  PackedMatrix tied_output;        // a rank's rows of the embedding; empty: all
  RopeFactors rope_factors;
  ExpertsConfig experts;

  const PackedMatrix& output() const {
    return separate_output.rows() > 0 ? separate_output
           : tied_output.rows() > 0   ? tied_output
                                      : embedding;
  }
  int64_t bytes() const;            // held in memory
  int64_t bytes_per_token() const;  // read to decode one token
};

// The sizes of a checkpoint's weights, or of a rank's share, from its header
// alone.
struct WeightSizes {
  int64_t bytes = 0;            // bytes in device memory
  int64_t bytes_per_token = 0;  // read to decode one token
  int64_t most_per_token = 0;   // the most that any rank reads; 0: this one
  int64_t expert_bytes = 0;     // the part of it that is in a row's experts
  // Returns the bytes that `rows` rows of a step read, in those that one reads:
  // they use more experts together (DistinctExperts).
  double MoreOfRows(const ExpertsConfig& experts, int64_t rows) const;
  std::vector<int64_t> layers = {};  // [layer], in `bytes` unless on the host
  int64_t host_bytes = 0;            // layers in the host tier (StreamedLayers)
  std::vector<std::string> warnings = {};  // as LoadedWeights

  int64_t MostPerToken() const {
    return most_per_token > 0 ? most_per_token : bytes_per_token;
  }
};
// The share of a budget that an array takes (DeviceMemory::TakenBytes).
using TakenBytes = absl::FunctionRef<int64_t(int64_t bytes)>;
// Errors: those of LoadWeights, except for those of reading.
absl::StatusOr<WeightSizes> MeasureWeights(const Checkpoint& checkpoint,
                                           const ModelConfig& config,
                                           TakenBytes taken = AlignedBytes);
// Returns the sizes for each rank of `split`.
absl::StatusOr<std::vector<WeightSizes>> MeasureShares(
    const Checkpoint& checkpoint, const ModelConfig& config,
    const ModelSplit& split, TakenBytes taken = AlignedBytes);

struct LoadedWeights {
  Weights weights;
  std::vector<std::string> warnings;  // tensors in the file that go unused
};

// A head's norm divides by the root of the mean over its own elements. Zeros at
// its end make the mean smaller by this factor; as the weights of such a norm
// are loaded times its root, and the epsilon counts times the factor, the
// result is the same.
inline float PaddedShare(const ModelConfig& config) {
  return static_cast<float>(config.HeadElements()) /
         static_cast<float>(config.head_dim);
}
inline float HeadNormEps(const ModelConfig& config) {
  return config.norm_eps * PaddedShare(config);
}

// Reads and repacks every tensor into the stream's memory. If that is not host
// memory, each tensor is packed on the host and then sent. The layers that
// `streamed` has go there; null: none do. `progress(done, total)` counts bytes
// of tensors; a return of false stops with a cancelled error. Errors:
// missing_tensor, invalid_shape, unsupported_type naming the tensor; those of
// Checkpoint::Read; out_of_memory, device_failed.
absl::StatusOr<LoadedWeights> LoadWeights(
    const Checkpoint& checkpoint, const ModelConfig& config, Stream& stream,
    absl::FunctionRef<bool(uint64_t, uint64_t)> progress,
    StreamedLayers* streamed = nullptr);

struct LoadedShares {
  std::vector<Weights> weights;  // [rank]
  std::vector<std::string> warnings;
};
// Loads the weights of all ranks of `split`, each on its stream of `streams`. A
// tensor is read once, and each rank packs its rows of it. With several ranks,
// no matrix but the embedding is held whole, and none is streamed. Errors:
// those of LoadWeights.
absl::StatusOr<LoadedShares> LoadShares(
    const Checkpoint& checkpoint, const ModelConfig& config,
    const ModelSplit& split, std::span<Stream* const> streams,
    absl::FunctionRef<bool(uint64_t, uint64_t)> progress,
    StreamedLayers* streamed = nullptr);

}  // namespace tiercel

#endif  // TIERCEL_MODELS_DECODER_WEIGHTS_H_

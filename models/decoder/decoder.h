#ifndef TIERCEL_MODELS_DECODER_DECODER_H_
#define TIERCEL_MODELS_DECODER_DECODER_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "kernels/layer/matmul.h"
#include "kernels/machine/device_memory.h"
#include "kernels/machine/stream.h"
#include "models/decoder/config.h"
#include "models/decoder/weights.h"
#include "offload/kv/layered_kv.h"

namespace tiercel {

// The arithmetic of one decoder: what happens to rows of hidden states between
// embedding and logits. It has no opinion on the order of rows and layers (the
// runtime's prefill goes layer by layer, its decode row by row): the result is
// the same, bit for bit.
//
// One object per session: it holds the activations of a step. The config and
// the weights must outlive it.
class Decoder {
 public:
  Decoder(const ModelConfig& config, const Weights& weights, Compute compute,
          DeviceMemory& memory);

  // Takes the memory of Layer and Logits for `rows` rows at once, and of
  // BeginStep for `step_rows`; they ask for more where it is needed. Errors:
  // out_of_memory.
  absl::Status Reserve(int64_t rows, int64_t step_rows);
  // What Reserve takes.
  static int64_t ReservedBytes(const ModelConfig& config, int64_t rows,
                               int64_t step_rows);

  // Computes what all layers of a step share, the rotary angles of `rows` rows
  // from `position` on; Layer may be called for any part of them.
  absl::Status BeginStep(Stream& stream, int64_t rows, int64_t position);

  // hidden[r] = embedding of ids[r]; hidden is [rows, config.hidden].
  absl::Status Embed(Stream& stream, const int32_t* ids, int64_t rows,
                     float* hidden);

  // Passes rows at positions kv.end + first_row ... through layer `layer`, in
  // place, writing their K and V into the layer's pages. The positions before
  // them must have been written there.
  absl::Status Layer(Stream& stream, int layer, int64_t rows, int64_t first_row,
                     const KvPages& kv, float* hidden);

  // logits[r] of the token after hidden[r]; logits is [rows, config.vocab].
  absl::Status Logits(Stream& stream, const float* hidden, int64_t rows,
                      float* logits);

  // The queries of the last Layer's rows, rotated: [rows, heads * head_dim].
  const float* queries() const { return a_.q.data(); }

  const ModelConfig& config() const { return config_; }

 private:
  // The activations of `rows` rows of one layer.
  struct Activations {
    DeviceArray<float> norm;  // [rows, hidden]
    DeviceArray<float> q;     // [rows, heads * head_dim]
    DeviceArray<float> k;     // [rows, kv_heads * head_dim]
    DeviceArray<float> v;     // [rows, kv_heads * head_dim]
    DeviceArray<float> head;  // [rows, heads * head_dim]
    DeviceArray<float> gate;  // [rows, ffn]
    DeviceArray<float> up;    // [rows, ffn]
  };

  absl::Status AttentionBlock(Stream& stream, const LayerWeights& w,
                              int64_t rows, int64_t first_row,
                              const KvPages& kv, float* hidden);
  absl::Status FeedForwardBlock(Stream& stream, const LayerWeights& w,
                                int64_t rows, float* hidden);
  absl::Status Norm(Stream& stream, const DeviceArray<float>& weight,
                    int64_t rows, const float* x, float* out);

  const ModelConfig& config_;
  const Weights& weights_;
  const Compute compute_;
  DeviceMemory& memory_;
  Activations a_;
  DeviceArray<float> cos_;     // [rows of the step, rope_dims / 2]
  DeviceArray<float> sin_;     // [rows of the step, rope_dims / 2]
  std::vector<float> angles_;  // of some rows, on their way from the host
};

}  // namespace tiercel

#endif  // TIERCEL_MODELS_DECODER_DECODER_H_

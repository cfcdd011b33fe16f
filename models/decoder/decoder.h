#ifndef TIERCEL_MODELS_DECODER_DECODER_H_
#define TIERCEL_MODELS_DECODER_DECODER_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "kernels/base/stream.h"
#include "kernels/layer/matmul.h"
#include "models/decoder/config.h"
#include "models/decoder/weights.h"
#include "offload/page/kv_store.h"

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
  Decoder(const ModelConfig& config, const Weights& weights, Compute compute);

  // Computes what all layers of a step share, the rotary angles of `rows` rows
  // from kv.end() on; Layer may be called for any part of them.
  absl::Status BeginStep(Stream& stream, int64_t rows, const KvStore& kv);

  // hidden[r] = embedding of ids[r]; hidden is [rows, config.hidden].
  absl::Status Embed(Stream& stream, const int32_t* ids, int64_t rows,
                     float* hidden);

  // Passes rows at positions kv.end() + first_row ... through layer `layer`, in
  // place, writing their K and V. The positions must be reserved in `kv`, and
  // those before them written in this layer. Commits nothing.
  absl::Status Layer(Stream& stream, int layer, int64_t rows, int64_t first_row,
                     const KvStore& kv, float* hidden);

  // logits[r] of the token after hidden[r]; logits is [rows, config.vocab].
  absl::Status Logits(Stream& stream, const float* hidden, int64_t rows,
                      float* logits);

  const ModelConfig& config() const { return config_; }

 private:
  // The activations of `rows` rows of one layer.
  struct Activations {
    std::vector<float> norm;      // [rows, hidden]
    std::vector<float> q;         // [rows, heads * head_dim]
    std::vector<float> k;         // [rows, kv_heads * head_dim]
    std::vector<float> v;         // [rows, kv_heads * head_dim]
    std::vector<float> head;      // [rows, heads * head_dim]
    std::vector<float> gate;      // [rows, ffn]
    std::vector<float> up;        // [rows, ffn]
    std::vector<float> cos;       // [rows, rope_dims / 2]
    std::vector<float> sin;       // [rows, rope_dims / 2]
    int64_t first_position = -1;  // of the angles; -1: none
    int64_t angle_rows = 0;
  };

  absl::Status AttentionBlock(Stream& stream, const LayerWeights& w, int layer,
                              int64_t rows, int64_t first_row,
                              const KvStore& kv, float* hidden);
  absl::Status FeedForwardBlock(Stream& stream, const LayerWeights& w,
                                int64_t rows, float* hidden);
  absl::Status Norm(Stream& stream, const std::vector<float>& weight,
                    int64_t rows, const float* x, float* out);
  void Resize(int64_t rows);

  const ModelConfig& config_;
  const Weights& weights_;
  const Compute compute_;
  Activations a_;
  std::vector<float> cos_;  // [rows of the step, rope_dims / 2]
  std::vector<float> sin_;  // [rows of the step, rope_dims / 2]
};

}  // namespace tiercel

#endif  // TIERCEL_MODELS_DECODER_DECODER_H_

#include "models/decoder/decoder.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "kernels/attention/attention.h"
#include "kernels/kv/kv_write.h"
#include "kernels/layer/embed.h"
#include "kernels/layer/rms_norm.h"
#include "kernels/layer/rope.h"
#include "kernels/layer/swiglu.h"

namespace tiercel {
namespace {

// Rows whose angles are made and sent at a time: they stay in a cache.
constexpr int64_t kAngleRows = 1024;

const float* OrNull(const DeviceArray<float>& v) { return v.data(); }

// The widths of Activations, in its order.
std::array<int64_t, 7> ActivationWidths(const ModelConfig& config) {
  const int64_t q_dim = int64_t{config.heads} * config.head_dim;
  const int64_t kv_dim = int64_t{config.kv_heads} * config.head_dim;
  return {config.hidden, q_dim, kv_dim, kv_dim, q_dim, config.ffn, config.ffn};
}

}  // namespace

Decoder::Decoder(const ModelConfig& config, const Weights& weights,
                 Compute compute, DeviceMemory& memory)
    : config_(config), weights_(weights), compute_(compute), memory_(memory) {}

absl::Status Decoder::Reserve(int64_t rows, int64_t step_rows) {
  const auto fit = [this](DeviceArray<float>& array, int64_t size) {
    if (static_cast<int64_t>(array.size()) >= size) return absl::OkStatus();
    array = DeviceArray<float>();  // contents are of the last step
    absl::StatusOr<DeviceArray<float>> larger =
        DeviceArray<float>::Create(memory_, size, "activations");
    if (!larger.ok()) return larger.status();
    array = *std::move(larger);
    return absl::OkStatus();
  };
  const std::array<int64_t, 7> widths = ActivationWidths(config_);
  DeviceArray<float>* const arrays[] = {&a_.norm, &a_.q,    &a_.k, &a_.v,
                                        &a_.head, &a_.gate, &a_.up};
  for (size_t i = 0; i < widths.size(); ++i) {
    if (absl::Status s = fit(*arrays[i], rows * widths[i]); !s.ok()) return s;
  }
  const int64_t half = config_.rope_dims / 2;
  for (DeviceArray<float>* angles : {&cos_, &sin_}) {
    if (absl::Status s = fit(*angles, step_rows * half); !s.ok()) return s;
  }
  return absl::OkStatus();
}

int64_t Decoder::ReservedBytes(const ModelConfig& config, int64_t rows,
                               int64_t step_rows) {
  constexpr int64_t kFloat = sizeof(float);
  int64_t bytes = 2 * AlignedBytes(step_rows * (config.rope_dims / 2) * kFloat);
  for (int64_t width : ActivationWidths(config)) {
    bytes += AlignedBytes(rows * width * kFloat);
  }
  return bytes;
}

absl::Status Decoder::BeginStep(Stream& stream, int64_t rows,
                                int64_t position) {
  if (absl::Status s = Reserve(0, rows); !s.ok()) return s;
  const int64_t half = config_.rope_dims / 2;
  RopeAnglesParams all = {.inv_freq = weights_.rope.inv_freq.data(),
                          .half = config_.rope_dims / 2,
                          .scale = weights_.rope.attention_factor,
                          .position = position,
                          .rows = rows,
                          .cos_out = cos_.data(),
                          .sin_out = sin_.data()};
  if (stream.on_host()) return RopeAngles(stream, all);
  // In double, which a GPU is slow at: the host makes them.
  const int64_t rows_at_once = std::min(rows, kAngleRows);
  angles_.resize(static_cast<size_t>(2 * rows_at_once * half));
  float* const sin = angles_.data() + rows_at_once * half;
  for (int64_t row = 0; row < rows; row += rows_at_once) {
    const int64_t some = std::min(rows_at_once, rows - row);
    RopeAnglesParams part = all;
    part.position = position + row;
    part.rows = some;
    part.cos_out = angles_.data();
    part.sin_out = sin;
    if (absl::Status s = RopeAngles(stream, part); !s.ok()) return s;
    const size_t bytes = static_cast<size_t>(some * half) * sizeof(float);
    for (const auto& [to, from] : {std::pair(cos_.data(), angles_.data()),
                                   std::pair(sin_.data(), sin)}) {
      if (absl::Status s = stream.Send(to + row * half, from, bytes); !s.ok()) {
        return s;
      }
    }
  }
  return absl::OkStatus();
}

absl::Status Decoder::Embed(Stream& stream, const int32_t* ids, int64_t rows,
                            float* hidden) {
  return tiercel::Embed(
      stream,
      {.table = &weights_.embedding, .ids = ids, .rows = rows, .out = hidden});
}

absl::Status Decoder::Layer(Stream& stream, int layer, int64_t rows,
                            int64_t first_row, const KvPages& kv,
                            float* hidden) {
  const LayerWeights& w = weights_.layers[static_cast<size_t>(layer)];
  if (absl::Status s = Reserve(rows, 0); !s.ok()) return s;
  if (absl::Status s = AttentionBlock(stream, w, rows, first_row, kv, hidden);
      !s.ok()) {
    return s;
  }
  return FeedForwardBlock(stream, w, rows, hidden);
}

// hidden += o(attention(rope(q), KV)) of the normed hidden.
absl::Status Decoder::AttentionBlock(Stream& stream, const LayerWeights& w,
                                     int64_t rows, int64_t first_row,
                                     const KvPages& kv, float* hidden) {
  const int64_t position = kv.end + first_row;
  const int64_t first_angle = first_row * (config_.rope_dims / 2);
  const int head_dim = config_.head_dim;
  const int64_t q_dim = int64_t{config_.heads} * head_dim;
  const int64_t kv_dim = int64_t{config_.kv_heads} * head_dim;

  // 1. q, k, v of the normed hidden state
  if (absl::Status s = Norm(stream, w.attn_norm, rows, hidden, a_.norm.data());
      !s.ok()) {
    return s;
  }
  const MatmulParams qkv = {
      .x = a_.norm.data(),
      .x_stride = config_.hidden,
      .rows = rows,
      .compute = compute_,
      .num_outputs = 3,
      .outputs = {
          {&w.q, OrNull(w.q_bias), a_.q.data(), q_dim, StoreMode::kAssign},
          {&w.k, OrNull(w.k_bias), a_.k.data(), kv_dim, StoreMode::kAssign},
          {&w.v, OrNull(w.v_bias), a_.v.data(), kv_dim, StoreMode::kAssign},
      }};
  if (absl::Status s = Matmul(stream, qkv); !s.ok()) return s;

  // 2. q and k: normed per head where the model does, then rotated
  const struct {
    float* x;
    int64_t stride;
    int heads;
    const DeviceArray<float>& norm;
  } normed[] = {
      {a_.q.data(), q_dim, config_.heads, w.q_norm},
      {a_.k.data(), kv_dim, config_.kv_heads, w.k_norm},
  };
  for (const auto& r : normed) {
    if (r.norm.empty()) continue;
    if (absl::Status s = RmsNorm(stream, {.x = r.x,
                                          .x_stride = r.stride,
                                          .weight = r.norm.data(),
                                          .eps = config_.norm_eps,
                                          .rows = rows,
                                          .groups = r.heads,
                                          .dim = head_dim,
                                          .out = r.x,
                                          .out_stride = r.stride});
        !s.ok()) {
      return s;
    }
  }
  if (absl::Status s =
          Rope(stream, {.num_tensors = 2,
                        .tensors = {{a_.q.data(), q_dim, config_.heads},
                                    {a_.k.data(), kv_dim, config_.kv_heads}},
                        .rows = rows,
                        .head_dim = head_dim,
                        .half = config_.rope_dims / 2,
                        .cos = cos_.data() + first_angle,
                        .sin = sin_.data() + first_angle});
      !s.ok()) {
    return s;
  }

  // 3. k and v into their pages, then every row over what the view shows of
  // the positions up to it
  if (absl::Status s = KvWrite(stream, {.k = a_.k.data(),
                                        .v = a_.v.data(),
                                        .k_stride = kv_dim,
                                        .v_stride = kv_dim,
                                        .rows = rows,
                                        .layout = kv.layout,
                                        .pages = kv.pages,
                                        .first_page = kv.first_page,
                                        .num_pages = kv.num_pages,
                                        .position = position});
      !s.ok()) {
    return s;
  }
  if (absl::Status s = Attention(
          stream, {.q = a_.q.data(),
                   .q_stride = q_dim,
                   .rows = rows,
                   .heads = config_.heads,
                   .scale = 1.0f / std::sqrt(static_cast<float>(head_dim)),
                   .layout = kv.layout,
                   .pages = kv.pages,
                   .first_page = kv.first_page,
                   .num_pages = kv.num_pages,
                   .begin = kv.begin,
                   .position = position,
                   .view = kv.view,
                   .out = a_.head.data()});
      !s.ok()) {
    return s;
  }

  // 4. back into the hidden state
  return Matmul(stream, {.x = a_.head.data(),
                         .x_stride = q_dim,
                         .rows = rows,
                         .compute = compute_,
                         .num_outputs = 1,
                         .outputs = {{&w.o, OrNull(w.o_bias), hidden,
                                      config_.hidden, StoreMode::kAdd}}});
}

// hidden += down(silu(gate) * up) of the normed hidden.
absl::Status Decoder::FeedForwardBlock(Stream& stream, const LayerWeights& w,
                                       int64_t rows, float* hidden) {
  const int64_t ffn = config_.ffn;
  if (absl::Status s = Norm(stream, w.ffn_norm, rows, hidden, a_.norm.data());
      !s.ok()) {
    return s;
  }
  const MatmulParams gate_up = {
      .x = a_.norm.data(),
      .x_stride = config_.hidden,
      .rows = rows,
      .compute = compute_,
      .num_outputs = 2,
      .outputs = {
          {&w.gate, OrNull(w.gate_bias), a_.gate.data(), ffn,
           StoreMode::kAssign},
          {&w.up, OrNull(w.up_bias), a_.up.data(), ffn, StoreMode::kAssign},
      }};
  if (absl::Status s = Matmul(stream, gate_up); !s.ok()) return s;
  if (absl::Status s = Swiglu(stream, {.gate = a_.gate.data(),
                                       .up = a_.up.data(),
                                       .rows = rows,
                                       .dim = ffn,
                                       .out = a_.gate.data()});
      !s.ok()) {
    return s;
  }
  return Matmul(stream, {.x = a_.gate.data(),
                         .x_stride = ffn,
                         .rows = rows,
                         .compute = compute_,
                         .num_outputs = 1,
                         .outputs = {{&w.down, OrNull(w.down_bias), hidden,
                                      config_.hidden, StoreMode::kAdd}}});
}

absl::Status Decoder::Logits(Stream& stream, const float* hidden, int64_t rows,
                             float* logits) {
  if (absl::Status s = Reserve(rows, 0); !s.ok()) return s;
  if (absl::Status s =
          Norm(stream, weights_.output_norm, rows, hidden, a_.norm.data());
      !s.ok()) {
    return s;
  }
  return Matmul(stream, {.x = a_.norm.data(),
                         .x_stride = config_.hidden,
                         .rows = rows,
                         .compute = compute_,
                         .num_outputs = 1,
                         .outputs = {{&weights_.output(), nullptr, logits,
                                      config_.vocab, StoreMode::kAssign}}});
}

absl::Status Decoder::Norm(Stream& stream, const DeviceArray<float>& weight,
                           int64_t rows, const float* x, float* out) {
  return RmsNorm(stream, {.x = x,
                          .x_stride = config_.hidden,
                          .weight = weight.data(),
                          .eps = config_.norm_eps,
                          .rows = rows,
                          .groups = 1,
                          .dim = config_.hidden,
                          .out = out,
                          .out_stride = config_.hidden});
}

}  // namespace tiercel

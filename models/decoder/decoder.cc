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
#include "lib/status/status_macros.h"
#include "offload/kv/host_attention.h"

namespace tiercel {
namespace {

// Angles are computed and sent for this many rows at a time, which stay in a
// cache.
constexpr int64_t kAngleRows = 1024;

// The number of whole pages, from the first, that both sequences read, in the
// same places and under no view, before the rows of a step.
int64_t SharedPages(const KvPages& a, const KvPages& b) {
  if (a.view != nullptr || b.view != nullptr || a.host.by != nullptr ||
      b.host.by != nullptr || a.begin != b.begin ||
      a.first_page != b.first_page) {
    return 0;
  }
  const int64_t most = std::min(a.end, b.end) / kPageTokens - a.first_page;
  int64_t shared = 0;
  while (shared < most && a.pages[shared] == b.pages[shared]) ++shared;
  return shared;
}

// The first sequences of a step that read pages together, and the number of
// these pages. Others join as long as no more than half of them are lost, and
// all rows are no more than a page: the first sequence has no pages beyond its
// own rows'.
std::pair<size_t, int64_t> GroupOf(absl::Span<const Decoder::LayerRows> parts) {
  // Fewer rows read a page as fast one after the other, without converting it.
  constexpr int64_t kLeastRows = 4;
  size_t count = 1;
  int64_t shared = 0;
  int64_t rows = parts[0].rows;
  for (; count < parts.size(); ++count) {
    if (parts[0].kv == nullptr || parts[count].kv == nullptr) break;
    const int64_t with = SharedPages(*parts[0].kv, *parts[count].kv);
    if (with == 0 || with < shared / 2) break;
    if (rows + parts[count].rows > kPageTokens) break;
    shared = count == 1 ? with : std::min(shared, with);
    rows += parts[count].rows;
  }
  return {count, rows >= kLeastRows ? shared : 0};
}

}  // namespace

Decoder::Widths::Widths(const ModelConfig& config, const ModelSplit& split,
                        int rank) {
  const auto at = static_cast<size_t>(rank);
  const bool alone = split.ranks() == 1;
  q = split.query_heads(rank).size() * config.head_dim;
  kv = split.kv_heads(rank).size() * config.head_dim;
  heads = split.attention()[at].size();
  ffn = split.ffn()[at].size();
  all_heads = alone ? 0 : int64_t{config.heads} * config.head_dim;
  all_ffn = alone ? 0 : config.ffn;
  const ExpertsConfig& experts = config.experts;
  if (experts.count == 0) return;
  ffn = std::max(ffn, experts.used * split.expert_ffn()[at].size());
  if (!alone) {
    all_ffn = std::max<int64_t>(all_ffn, int64_t{experts.used} * experts.ffn);
  }
}

Decoder::Decoder(const ModelConfig& config, const Weights& weights,
                 Compute compute, DeviceMemory& memory)
    : config_(config),
      weights_(weights),
      compute_(compute),
      memory_(memory),
      split_(ModelSplit::Whole(config)),
      rank_(0),
      gather_(nullptr),
      widths_(config, split_, rank_) {}

Decoder::Decoder(const ModelConfig& config, const Weights& weights,
                 Compute compute, DeviceMemory& memory, const Part& part)
    : config_(config),
      weights_(weights),
      compute_(compute),
      memory_(memory),
      split_(part.split),
      rank_(part.rank),
      gather_(part.split.ranks() > 1 ? &part.gather : nullptr),
      widths_(config, split_, rank_) {}

int64_t DecoderWorkspace::Bytes() const {
  int64_t bytes = 0;
  for (const DeviceArray<float>* array : {&norm, &q, &k, &v, &head, &gate, &up,
                                          &all_heads, &all_ffn, &cos, &sin}) {
    bytes += array->bytes();
  }
  return bytes + experts.Bytes();
}

absl::Status Decoder::Reserve(int64_t rows, int64_t step_rows) {
  const auto fit = [this]<typename T>(DeviceArray<T>& array, int64_t size) {
    if (static_cast<int64_t>(array.size()) >= size) return absl::OkStatus();
    array = DeviceArray<T>();  // its contents are those of the last step
    ASSIGN_OR_RETURN(array,
                     DeviceArray<T>::Create(memory_, size, "activations"));
    return absl::OkStatus();
  };
  const std::array<int64_t, 9> widths = widths_.All(config_);
  DeviceArray<float>* const arrays[] = {&a_.norm, &a_.q,         &a_.k,
                                        &a_.v,    &a_.head,      &a_.gate,
                                        &a_.up,   &a_.all_heads, &a_.all_ffn};
  for (size_t i = 0; i < widths.size(); ++i) {
    RETURN_IF_ERROR(fit(*arrays[i], rows * widths[i]));
  }
  const std::array<int64_t, 4> of_experts = ExpertWorkspace::Widths(config_);
  RETURN_IF_ERROR(fit(a_.experts.logits, rows * of_experts[0]));
  RETURN_IF_ERROR(fit(a_.experts.shares, rows * of_experts[1]));
  RETURN_IF_ERROR(fit(a_.experts.chosen, rows * of_experts[2]));
  RETURN_IF_ERROR(fit(a_.experts.of_items, rows * of_experts[3]));
  const int64_t half = config_.rope_dims / 2;
  for (DeviceArray<float>* angles : {&a_.cos, &a_.sin}) {
    RETURN_IF_ERROR(fit(*angles, step_rows * half));
  }
  return absl::OkStatus();
}

int64_t Decoder::ReservedBytes(const ModelConfig& config,
                               const ModelSplit& split, int rank, int64_t rows,
                               int64_t step_rows) {
  constexpr int64_t kFloat = sizeof(float);
  int64_t bytes = 2 * AlignedBytes(step_rows * (config.rope_dims / 2) * kFloat);
  for (int64_t width : Widths(config, split, rank).All(config)) {
    bytes += AlignedBytes(rows * width * kFloat);
  }
  for (int64_t width : ExpertWorkspace::Widths(config)) {
    bytes += AlignedBytes(rows * width * kFloat);
  }
  return bytes;
}

absl::Status Decoder::BeginStep(Stream& stream,
                                absl::Span<const StepRows> ranges,
                                bool of_prompt) {
  fast_ = of_prompt && stream.fast_prompts();
  int64_t rows = 0;
  for (const auto& [positions, length] : ranges) {
    rows += positions.end - positions.begin;
  }
  RETURN_IF_ERROR(Reserve(0, rows));
  if (ranges.size() > 1) ReserveFolds(rows);
  int64_t row = 0;
  for (const StepRows& range : ranges) {
    RETURN_IF_ERROR(SetAngles(stream, range, row));
    row += range.positions.end - range.positions.begin;
  }
  return absl::OkStatus();
}

const RopeFrequencies& Decoder::FrequenciesFor(int64_t rope_length) {
  if (rope_length_ != rope_length) {
    rope_ = MakeRopeFrequencies(config_, weights_.rope_factors, rope_length);
    rope_length_ = rope_length;
  }
  return rope_;
}

// Sets the angles of the rows of `range`, which are the step's rows from `row`
// on.
absl::Status Decoder::SetAngles(Stream& stream, const StepRows& range,
                                int64_t row) {
  const RopeFrequencies& rope = FrequenciesFor(range.rope_length);
  const auto [begin, end] = range.positions;
  const int64_t half = config_.rope_dims / 2;
  const DevicePtr<float> cos = a_.cos.data() + row * half;
  const DevicePtr<float> sin = a_.sin.data() + row * half;
  RopeAnglesParams all = {.inv_freq = rope.inv_freq.data(),
                          .half = config_.rope_dims / 2,
                          .scale = rope.attention_factor,
                          .position = begin,
                          .rows = end - begin,
                          .cos_out = nullptr,
                          .sin_out = nullptr};
  if (stream.on_host()) {
    all.cos_out = HostAddress(cos);
    all.sin_out = HostAddress(sin);
    return RopeAngles(stream, all);
  }
  // Angles are computed in double, which is slow on a GPU, so the host does it.
  const int64_t at_once = std::min(all.rows, kAngleRows);
  angles_.resize(static_cast<size_t>(2 * at_once * half));
  float* const host_sin = angles_.data() + at_once * half;
  for (int64_t done = 0; done < all.rows; done += at_once) {
    RopeAnglesParams part = all;
    part.position = begin + done;
    part.rows = std::min(at_once, all.rows - done);
    part.cos_out = angles_.data();
    part.sin_out = host_sin;
    RETURN_IF_ERROR(RopeAngles(stream, part));
    const size_t bytes = static_cast<size_t>(part.rows * half) * sizeof(float);
    for (const auto& [to, from] :
         {std::pair(cos, angles_.data()), std::pair(sin, host_sin)}) {
      RETURN_IF_ERROR(stream.Send(to + done * half, from, bytes));
    }
  }
  return absl::OkStatus();
}

absl::Status Decoder::Embed(Stream& stream, const int32_t* ids, int64_t rows,
                            DevicePtr<float> hidden) {
  return tiercel::Embed(stream, {.table = &weights_.embedding,
                                 .ids = ids,
                                 .rows = rows,
                                 .out = hidden,
                                 .scale = config_.embedding_scale});
}

absl::Status Decoder::Layer(Stream& stream, int layer,
                            absl::Span<const LayerRows> parts,
                            DevicePtr<float> hidden) {
  int64_t rows = 0;
  for (const LayerRows& part : parts) rows += part.rows;
  RETURN_IF_ERROR(Reserve(rows, 0));
  const LayerWeights& w = weights_.layers[static_cast<size_t>(layer)];
  RETURN_IF_ERROR(AttentionBlock(stream, layer, rows, parts, hidden));
  if (!w.experts.empty()) return ExpertsBlock(stream, w, rows, hidden);
  return FeedForwardBlock(stream, w, rows, hidden);
}

// hidden += o(attention(rope(q), KV)) of the normed hidden.
absl::Status Decoder::AttentionBlock(Stream& stream, int layer, int64_t rows,
                                     absl::Span<const LayerRows> parts,
                                     DevicePtr<float> hidden) {
  const LayerWeights& w = weights_.layers[static_cast<size_t>(layer)];
  const int head_dim = config_.head_dim;
  const int64_t q_dim = widths_.q;
  const int64_t kv_dim = widths_.kv;

  // 1. q, k, v of the normed hidden state
  const MatmulParams qkv = {
      .x = hidden,
      .x_stride = config_.hidden,
      .rows = rows,
      .compute = compute_,
      .num_outputs = 3,
      .outputs =
          {
              {&w.q, w.q_bias.data(), a_.q.data(), q_dim, StoreMode::kAssign},
              {&w.k, w.k_bias.data(), a_.k.data(), kv_dim, StoreMode::kAssign},
              {&w.v, w.v_bias.data(), a_.v.data(), kv_dim, StoreMode::kAssign},
          },
      .fast = fast_,
      .prologue = NormBy(w.attn_norm)};
  RETURN_IF_ERROR(Matmul(stream, qkv));

  const auto q_heads = static_cast<int>(split_.query_heads(rank_).size());
  const auto kv_heads = static_cast<int>(split_.kv_heads(rank_).size());

  // 2. q and k normed per head, where the model does
  const struct {
    DevicePtr<float> x;
    int64_t stride;
    int heads;
    const DeviceArray<float>& norm;
  } normed[] = {
      {a_.q.data(), q_dim, q_heads, w.q_norm},
      {a_.k.data(), kv_dim, kv_heads, w.k_norm},
  };
  for (const auto& r : normed) {
    if (r.norm.empty()) continue;
    RETURN_IF_ERROR(RmsNorm(stream, {.x = r.x,
                                     .x_stride = r.stride,
                                     .weight = r.norm.data(),
                                     .eps = HeadNormEps(config_),
                                     .rows = rows,
                                     .groups = r.heads,
                                     .dim = head_dim,
                                     .out = r.x,
                                     .out_stride = r.stride}));
  }

  // 3. q and k rotated, if the layer has RoPE, k and v into their pages, then
  // every row over what the view shows of the positions up to it
  int64_t row = 0;
  for (const LayerRows& part : parts) {
    if (part.kv != nullptr) {
      RETURN_IF_ERROR(Write(stream, layer, part, row));
    }
    row += part.rows;
  }
  row = 0;
  while (!parts.empty()) {
    const auto [count, shared] = GroupOf(parts);
    RETURN_IF_ERROR(Attend(stream, parts.first(count), shared, row));
    for (const LayerRows& part : parts.first(count)) row += part.rows;
    parts.remove_prefix(count);
  }

  // 4. back into the hidden state
  const int64_t all_heads = int64_t{config_.heads} * head_dim;
  RETURN_IF_ERROR(GatherAll(stream, split_.attention(), rows, a_.head.data(),
                            widths_.heads, a_.all_heads.data(), all_heads));
  return AddToHidden(stream, w.o, w.o_bias,
                     gather_ != nullptr ? a_.all_heads.data() : a_.head.data(),
                     all_heads, rows, {}, hidden);
}

absl::Status Decoder::Write(Stream& stream, int layer, const LayerRows& part,
                            int64_t row) {
  const KvPages& kv = *part.kv;
  const int half = config_.rope_dims / 2;
  const int64_t begin = kv.end + part.first_row;
  const int64_t end = begin + part.rows;
  for (int64_t position = begin; position < end;) {
    const int64_t next = std::min(end, config_.NextQueryScale(position));
    const int64_t at = row + position - begin;
    const int64_t angle = (part.first_angle + position - begin) * half;
    RETURN_IF_ERROR(KvWrite(
        stream, {.k = a_.k.data() + at * widths_.kv,
                 .v = a_.v.data() + at * widths_.kv,
                 .k_stride = widths_.kv,
                 .v_stride = widths_.kv,
                 .rows = next - position,
                 .layout = kv.layout,
                 .pages = kv.pages,
                 .first_page = kv.first_page,
                 .num_pages = kv.num_pages,
                 .position = position,
                 .rotation = {.half = config_.Rotates(layer) ? half : 0,
                              .cos = a_.cos.data() + angle,
                              .sin = a_.sin.data() + angle,
                              .q = a_.q.data() + at * widths_.q,
                              .q_stride = widths_.q,
                              .heads = static_cast<int>(
                                  split_.query_heads(rank_).size()),
                              .q_scale = config_.QueryScale(position)}}));
    position = next;
  }
  return absl::OkStatus();
}

AttentionParams Decoder::ParamsOf(const KvPages& kv, int64_t rows,
                                  int64_t row) {
  const Columns& heads = split_.heads(rank_);
  // The rank attends with its own heads alone; this is where they begin in q.
  const int64_t first_head = heads.begin - split_.query_heads(rank_).begin;
  return {.q = a_.q.data() + row * widths_.q + first_head * config_.head_dim,
          .q_stride = widths_.q,
          .rows = rows,
          .heads = static_cast<int>(heads.size()),
          .scale = kv.layout.AttentionScale(),
          .layout = kv.layout,
          .pages = kv.pages,
          .first_page = kv.first_page,
          .num_pages = kv.num_pages,
          .begin = kv.begin,
          .position = 0,
          .out = a_.head.data() + row * widths_.heads,
          .fast = fast_};
}

absl::Status Decoder::AttendAlone(Stream& stream, const LayerRows& part,
                                  int64_t row, const AttentionPart& pages) {
  AttentionParams p = ParamsOf(*part.kv, part.rows, row);
  p.position = part.kv->end + part.first_row;
  p.view = part.kv->view;
  p.part = pages;
  return AttendToLayer(stream, p, *part.kv);
}

int64_t Decoder::FoldBytes(const ModelConfig& config, int64_t rows) {
  return AlignedBytes(2 * rows * config.heads *
                      static_cast<int64_t>(sizeof(float)));
}

// No queued work uses those of an earlier step. Without memory there are none.
void Decoder::ReserveFolds(int64_t rows) {
  const int64_t size = 2 * rows * split_.heads(rank_).size();
  if (static_cast<int64_t>(folds_.size()) >= size) return;
  folds_ = DeviceArray<float>();
  absl::StatusOr<DeviceArray<float>> made =
      DeviceArray<float>::Create(memory_, size, "folds");
  if (made.ok()) folds_ = *std::move(made);
}

// The pages of a text that sequences share are read once for the rows of all: a
// page is converted once, and its keys meet the queries of every sequence.
absl::Status Decoder::Attend(Stream& stream, absl::Span<const LayerRows> parts,
                             int64_t shared, int64_t row) {
  AttentionPart pages = {};
  int64_t rows = 0;
  for (const LayerRows& part : parts) rows += part.rows;
  // Without memory for folds each sequence reads them by itself.
  if (folds_.empty()) shared = 0;
  if (shared > 0) {
    const KvPages& kv = *parts.front().kv;
    AttentionParams all = ParamsOf(kv, rows, row);
    // All cells of these pages are before every row, wherever it is.
    all.position = (kv.first_page + shared) * kPageTokens;
    pages = {.first = kv.first_page,
             .end = kv.first_page + shared,
             .max = folds_.data(),
             .sum = folds_.data() + rows * all.heads};
    all.part = pages;
    RETURN_IF_ERROR(Attention(stream, all));
    pages.first = std::exchange(pages.end, AttentionPart::kToTheEnd);
  }
  for (const LayerRows& part : parts) {
    if (part.kv != nullptr) {
      RETURN_IF_ERROR(AttendAlone(stream, part, row, pages));
    }
    row += part.rows;
    if (shared > 0) {
      const int64_t folds = part.rows * split_.heads(rank_).size();
      pages.max = pages.max + folds;
      pages.sum = pages.sum + folds;
    }
  }
  return absl::OkStatus();
}

// hidden += scale (matrix(prologue(x)) + bias), each rank its columns.
absl::Status Decoder::AddToHidden(Stream& stream, const PackedMatrix& matrix,
                                  const DeviceArray<float>& bias,
                                  DevicePtr<const float> x, int64_t x_stride,
                                  int64_t rows, const MatmulPrologue& prologue,
                                  DevicePtr<float> hidden) {
  const DevicePtr<float> own =
      hidden + split_.hidden()[static_cast<size_t>(rank_)].begin;
  RETURN_IF_ERROR(
      Matmul(stream, {.x = x,
                      .x_stride = x_stride,
                      .rows = rows,
                      .compute = compute_,
                      .num_outputs = 1,
                      .outputs = {{&matrix, bias.data(), own, config_.hidden,
                                   StoreMode::kAdd}},
                      .fast = fast_,
                      .prologue = prologue,
                      .scale = config_.residual_scale}));
  return GatherAll(stream, split_.hidden(), rows, own, config_.hidden, hidden,
                   config_.hidden);
}

absl::Status Decoder::GatherAll(Stream& stream,
                                const std::vector<Columns>& columns,
                                int64_t rows, DevicePtr<const float> own,
                                int64_t own_stride, DevicePtr<float> all,
                                int64_t all_stride) {
  if (gather_ == nullptr) return absl::OkStatus();
  return gather_->All(stream, rank_,
                      {.columns = columns,
                       .rows = rows,
                       .own = own,
                       .own_stride = own_stride,
                       .all = all,
                       .all_stride = all_stride});
}

// hidden += down(silu(gate) * up) of the normed hidden.
absl::Status Decoder::FeedForwardBlock(Stream& stream, const LayerWeights& w,
                                       int64_t rows, DevicePtr<float> hidden) {
  const int64_t ffn = split_.ffn()[static_cast<size_t>(rank_)].size();
  const MatmulParams gate_up = {
      .x = hidden,
      .x_stride = config_.hidden,
      .rows = rows,
      .compute = compute_,
      .num_outputs = 2,
      .outputs =
          {
              {&w.gate, w.gate_bias.data(), a_.gate.data(), ffn,
               StoreMode::kAssign},
              {&w.up, w.up_bias.data(), a_.up.data(), ffn, StoreMode::kAssign},
          },
      .fast = fast_,
      .prologue = NormBy(w.ffn_norm)};
  RETURN_IF_ERROR(Matmul(stream, gate_up));
  if (gather_ == nullptr) {
    return AddToHidden(stream, w.down, w.down_bias, a_.gate.data(), ffn, rows,
                       {.op = MatmulPrologue::Op::kGate,
                        .with = a_.up.data(),
                        .room = a_.gate.data()},
                       hidden);
  }
  RETURN_IF_ERROR(Swiglu(stream, {.gate = a_.gate.data(),
                                  .up = a_.up.data(),
                                  .rows = rows,
                                  .dim = ffn,
                                  .out = a_.gate.data()}));
  RETURN_IF_ERROR(GatherAll(stream, split_.ffn(), rows, a_.gate.data(), ffn,
                            a_.all_ffn.data(), config_.ffn));
  return AddToHidden(stream, w.down, w.down_bias, a_.all_ffn.data(),
                     config_.ffn, rows, {}, hidden);
}

absl::Status Decoder::Logits(Stream& stream, DevicePtr<const float> hidden,
                             int64_t rows, DevicePtr<float> logits) {
  RETURN_IF_ERROR(Reserve(rows, 0));
  const DevicePtr<float> own =
      logits + split_.vocab()[static_cast<size_t>(rank_)].begin;
  RETURN_IF_ERROR(
      Matmul(stream, {.x = hidden,
                      .x_stride = config_.hidden,
                      .rows = rows,
                      .compute = compute_,
                      .num_outputs = 1,
                      .outputs = {{&weights_.output(), nullptr, own,
                                   config_.vocab, StoreMode::kAssign}},
                      .prologue = NormBy(weights_.output_norm),
                      .scale = config_.logit_scale}));
  return GatherAll(stream, split_.vocab(), rows, own, config_.vocab, logits,
                   config_.vocab);
}

MatmulPrologue Decoder::NormBy(const DeviceArray<float>& weight) {
  return {.op = MatmulPrologue::Op::kNorm,
          .with = weight.data(),
          .eps = config_.norm_eps,
          .room = a_.norm.data()};
}

}  // namespace tiercel

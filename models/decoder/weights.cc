#include "models/decoder/weights.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kernels/base/error.h"
#include "kernels/number/half.h"

namespace tiercel {
namespace {

// Tensors are read this much at a time, whole rows each.
constexpr int64_t kReadBytes = int64_t{4} << 20;

// The two spellings of a tensor's name; `layer` < 0 for those outside layers.
struct TensorName {
  std::string_view gguf;
  std::string_view hf;
};

std::string NameIn(const Checkpoint& checkpoint, TensorName name, int layer,
                   std::string_view suffix) {
  const bool gguf = checkpoint.format() == Checkpoint::Format::kGguf;
  std::string full;
  if (layer >= 0) {
    full = gguf ? absl::StrCat("blk.", layer, ".")
                : absl::StrCat("model.layers.", layer, ".");
  }
  return full.append(gguf ? name.gguf : name.hf).append(suffix);
}

class Loader {
 public:
  // Without a stream it adds up `sizes`, and reads nothing.
  Loader(const Checkpoint& checkpoint, const ModelConfig& config,
         Stream* stream, absl::FunctionRef<bool(uint64_t, uint64_t)> progress,
         WeightSizes* sizes = nullptr)
      : checkpoint_(checkpoint),
        config_(config),
        stream_(stream),
        progress_(progress),
        sizes_(sizes) {
    for (const TensorInfo& tensor : checkpoint.tensors()) {
      total_ += tensor.bytes;
    }
  }

  absl::StatusOr<LoadedWeights> Load();

 private:
  // How the rows of a matrix in the file map to ours.
  enum class Rows { kAsTheyAre, kRotaryPairs };

  absl::Status LoadLayer(int layer, LayerWeights* weights);
  absl::Status Matrix(TensorName name, int layer, int64_t rows, int64_t cols,
                      Rows order, PackedMatrix* out);
  absl::Status Vector(TensorName name, int layer, std::string_view suffix,
                      int64_t size, Rows order, bool required,
                      DeviceArray<float>* out);
  // On the host; empty where the tensor is absent, or nothing is read.
  absl::Status Values(TensorName name, int layer, std::string_view suffix,
                      int64_t size, Rows order, bool required,
                      std::vector<float>* out);
  // Null where the tensor is absent and not required.
  absl::StatusOr<const TensorInfo*> Find(const std::string& name,
                                         const std::vector<int64_t>& shape,
                                         bool required);
  int64_t RowOf(int64_t file_row, Rows order) const;
  absl::Status Advance(uint64_t bytes);

  const Checkpoint& checkpoint_;
  const ModelConfig& config_;
  Stream* const stream_;
  absl::FunctionRef<bool(uint64_t, uint64_t)> progress_;
  WeightSizes* const sizes_;  // null: load
  uint64_t done_ = 0;
  uint64_t total_ = 0;
  std::set<std::string, std::less<>> used_;
  std::vector<std::byte> buffer_;
};

absl::StatusOr<LoadedWeights> Loader::Load() {
  LoadedWeights loaded;
  Weights& weights = loaded.weights;
  const int64_t hidden = config_.hidden;
  if (absl::Status s =
          Matrix({"token_embd", "model.embed_tokens"}, -1, config_.vocab,
                 hidden, Rows::kAsTheyAre, &weights.embedding);
      !s.ok()) {
    return s;
  }
  // Looked up by row; read as a whole only where it is the output matrix too.
  const int64_t embedding = sizes_ != nullptr ? sizes_->bytes_per_token : 0;
  weights.layers.resize(static_cast<size_t>(config_.layers));
  for (int layer = 0; layer < config_.layers; ++layer) {
    if (absl::Status s =
            LoadLayer(layer, &weights.layers[static_cast<size_t>(layer)]);
        !s.ok()) {
      return s;
    }
  }
  if (absl::Status s =
          Vector({"output_norm", "model.norm"}, -1, ".weight", hidden,
                 Rows::kAsTheyAre, /*required=*/true, &weights.output_norm);
      !s.ok()) {
    return s;
  }
  constexpr TensorName kOutput = {"output", "lm_head"};
  const std::string output = NameIn(checkpoint_, kOutput, -1, ".weight");
  const bool gguf = checkpoint_.format() == Checkpoint::Format::kGguf;
  const bool absent = checkpoint_.Find(output) == nullptr &&
                      checkpoint_.unread().count(output) == 0;
  const bool tied = gguf ? absent : config_.tied_embeddings;
  if (!tied) {
    if (sizes_ != nullptr) sizes_->bytes_per_token -= embedding;
    if (absl::Status s = Matrix(kOutput, -1, config_.vocab, hidden,
                                Rows::kAsTheyAre, &weights.separate_output);
        !s.ok()) {
      return s;
    }
  }
  std::vector<float> factors;
  if (absl::Status s = Values({"rope_freqs", "rope_freqs"}, -1, ".weight",
                              config_.rope_dims / 2, Rows::kAsTheyAre,
                              /*required=*/false, &factors);
      !s.ok()) {
    return s;
  }
  std::vector<std::string> unused;
  for (const TensorInfo& tensor : checkpoint_.tensors()) {
    if (used_.count(tensor.name) == 0) unused.push_back(tensor.name);
  }
  if (!unused.empty()) {
    const size_t shown = std::min<size_t>(unused.size(), 4);
    loaded.warnings.push_back(absl::StrCat(
        unused.size(), " tensors are not part of this architecture: ",
        absl::StrJoin(unused.begin(),
                      unused.begin() + static_cast<std::ptrdiff_t>(shown),
                      ", "),
        shown < unused.size() ? ", ..." : ""));
  }
  if (sizes_ != nullptr) return loaded;
  if (absl::Status s = stream_->Synchronize(); !s.ok()) return s;
  weights.rope = MakeRopeFrequencies(config_, factors);
  return loaded;
}

absl::Status Loader::LoadLayer(int layer, LayerWeights* w) {
  const int64_t hidden = config_.hidden;
  const int64_t ffn = config_.ffn;
  const int64_t q = int64_t{config_.heads} * config_.head_dim;
  const int64_t kv = int64_t{config_.kv_heads} * config_.head_dim;
  // Converters of the llama architecture reorder Q and K rows for kernels that
  // rotate neighbours; ours rotate halves, so the order is undone here.
  const bool paired = checkpoint_.format() == Checkpoint::Format::kGguf &&
                      config_.architecture == "llama";
  const Rows rotary = paired ? Rows::kRotaryPairs : Rows::kAsTheyAre;
  constexpr Rows kPlain = Rows::kAsTheyAre;

  constexpr TensorName kQ = {"attn_q", "self_attn.q_proj"};
  constexpr TensorName kK = {"attn_k", "self_attn.k_proj"};
  constexpr TensorName kV = {"attn_v", "self_attn.v_proj"};
  constexpr TensorName kO = {"attn_output", "self_attn.o_proj"};
  constexpr TensorName kGate = {"ffn_gate", "mlp.gate_proj"};
  constexpr TensorName kUp = {"ffn_up", "mlp.up_proj"};
  constexpr TensorName kDown = {"ffn_down", "mlp.down_proj"};

  const struct {
    TensorName name;
    int64_t rows;
    int64_t cols;
    Rows order;
    PackedMatrix* out;
    DeviceArray<float>* bias;
  } matrices[] = {
      {kQ, q, hidden, rotary, &w->q, &w->q_bias},
      {kK, kv, hidden, rotary, &w->k, &w->k_bias},
      {kV, kv, hidden, kPlain, &w->v, &w->v_bias},
      {kO, hidden, q, kPlain, &w->o, &w->o_bias},
      {kGate, ffn, hidden, kPlain, &w->gate, &w->gate_bias},
      {kUp, ffn, hidden, kPlain, &w->up, &w->up_bias},
      {kDown, hidden, ffn, kPlain, &w->down, &w->down_bias},
  };
  for (const auto& m : matrices) {
    if (absl::Status s = Matrix(m.name, layer, m.rows, m.cols, m.order, m.out);
        !s.ok()) {
      return s;
    }
    if (absl::Status s = Vector(m.name, layer, ".bias", m.rows, m.order,
                                /*required=*/false, m.bias);
        !s.ok()) {
      return s;
    }
  }

  const bool qk_norm = config_.architecture == "qwen3";
  const struct {
    TensorName name;
    int64_t size;
    bool required;
    DeviceArray<float>* out;
  } norms[] = {
      {{"attn_norm", "input_layernorm"}, hidden, true, &w->attn_norm},
      {{"ffn_norm", "post_attention_layernorm"}, hidden, true, &w->ffn_norm},
      {{"attn_q_norm", "self_attn.q_norm"},
       config_.head_dim,
       qk_norm,
       &w->q_norm},
      {{"attn_k_norm", "self_attn.k_norm"},
       config_.head_dim,
       qk_norm,
       &w->k_norm},
  };
  for (const auto& n : norms) {
    if (absl::Status s =
            Vector(n.name, layer, ".weight", n.size, kPlain, n.required, n.out);
        !s.ok()) {
      return s;
    }
  }
  return absl::OkStatus();
}

absl::Status Loader::Matrix(TensorName name, int layer, int64_t rows,
                            int64_t cols, Rows order, PackedMatrix* out) {
  const std::string full = NameIn(checkpoint_, name, layer, ".weight");
  const absl::StatusOr<const TensorInfo*> tensor =
      Find(full, {rows, cols}, /*required=*/true);
  if (!tensor.ok()) return tensor.status();
  if (sizes_ != nullptr) {
    const absl::StatusOr<int64_t> bytes =
        PackedMatrix::BytesOf((*tensor)->type, rows, cols);
    if (!bytes.ok()) return Annotate(bytes.status(), full);
    sizes_->bytes += AlignedBytes(*bytes);
    sizes_->bytes_per_token += *bytes;
    return absl::OkStatus();
  }
  absl::StatusOr<PackedMatrix> packed = PackedMatrix::Create(
      (*tensor)->type, rows, cols,
      stream_->on_host() ? stream_->memory() : SystemMemory(),
      PackedMatrix::OrderFor(*stream_));
  if (!packed.ok()) return Annotate(packed.status(), full);

  const int64_t row_bytes = RowBytes((*tensor)->type, cols);
  const int64_t rows_at_once = std::max<int64_t>(1, kReadBytes / row_bytes);
  buffer_.resize(static_cast<size_t>(std::min(rows, rows_at_once) * row_bytes));
  for (int64_t first = 0; first < rows; first += rows_at_once) {
    const int64_t count = std::min(rows_at_once, rows - first);
    const auto bytes = static_cast<uint64_t>(count * row_bytes);
    if (absl::Status s =
            checkpoint_.Read(**tensor, static_cast<uint64_t>(first * row_bytes),
                             {buffer_.data(), static_cast<size_t>(bytes)});
        !s.ok()) {
      return s;
    }
    // Two ranges must not touch one panel: they are whole panels, except where
    // rows change places within a head and one range takes all.
    const int64_t lead = first % PackedMatrix::kPanelRows;
    const int64_t grain = order == Rows::kRotaryPairs
                              ? count + lead
                              : 8 * PackedMatrix::kPanelRows;
    stream_->pool().ParallelFor(
        count + lead, grain, [&](int64_t begin, int64_t end, int) {
          for (int64_t i = std::max(begin - lead, int64_t{0}); i < end - lead;
               ++i) {
            packed->PackRow(RowOf(first + i, order),
                            buffer_.data() + i * row_bytes);
          }
        });
    if (absl::Status s = Advance(bytes); !s.ok()) return s;
  }
  if (!stream_->on_host()) {
    packed = packed->CopyTo(*stream_);
    if (!packed.ok()) return Annotate(packed.status(), full);
  }
  *out = *std::move(packed);
  return absl::OkStatus();
}

absl::Status Loader::Vector(TensorName name, int layer, std::string_view suffix,
                            int64_t size, Rows order, bool required,
                            DeviceArray<float>* out) {
  std::vector<float> values;
  if (absl::Status s =
          Values(name, layer, suffix, size, order, required, &values);
      !s.ok() || values.empty()) {
    return s;
  }
  absl::StatusOr<DeviceArray<float>> array = DeviceArray<float>::Create(
      stream_->memory(), size, NameIn(checkpoint_, name, layer, suffix));
  if (!array.ok()) return array.status();
  if (absl::Status s = stream_->Copy(array->data(), values.data(),
                                     values.size() * sizeof(float));
      !s.ok()) {
    return s;
  }
  *out = *std::move(array);
  return absl::OkStatus();
}

absl::Status Loader::Values(TensorName name, int layer, std::string_view suffix,
                            int64_t size, Rows order, bool required,
                            std::vector<float>* out) {
  const std::string full = NameIn(checkpoint_, name, layer, suffix);
  const absl::StatusOr<const TensorInfo*> tensor = Find(full, {size}, required);
  if (!tensor.ok()) return tensor.status();
  if (*tensor == nullptr) return absl::OkStatus();
  const DType type = (*tensor)->type;
  if (InfoOf(type).block_elements != 1) {
    return InputError(
        "unsupported_type",
        absl::StrCat(full, ": got type ", std::string(InfoOf(type).name),
                     ", need f32, f16 or bf16"));
  }
  if (sizes_ != nullptr) {
    sizes_->bytes += AlignedBytes(size * static_cast<int64_t>(sizeof(float)));
    return absl::OkStatus();
  }
  buffer_.resize(static_cast<size_t>(RowBytes(type, size)));
  if (absl::Status s =
          checkpoint_.Read(**tensor, 0, {buffer_.data(), buffer_.size()});
      !s.ok()) {
    return s;
  }
  out->resize(static_cast<size_t>(size));
  for (int64_t i = 0; i < size; ++i) {
    float value;
    if (type == DType::kF32) {
      std::memcpy(&value, buffer_.data() + i * 4, 4);
    } else {
      uint16_t bits;
      std::memcpy(&bits, buffer_.data() + i * 2, 2);
      value = type == DType::kF16 ? F32FromF16(bits) : F32FromBf16(bits);
    }
    (*out)[static_cast<size_t>(RowOf(i, order))] = value;
  }
  return Advance(buffer_.size());
}

absl::StatusOr<const TensorInfo*> Loader::Find(
    const std::string& name, const std::vector<int64_t>& shape, bool required) {
  const TensorInfo* tensor = checkpoint_.Find(name);
  const auto unread = checkpoint_.unread().find(name);
  if (unread != checkpoint_.unread().end()) {
    return InputError("unsupported_type",
                      absl::StrCat(name, ": got type ", unread->second,
                                   ", need F32, F16, BF16, Q8_0, Q4_0, Q4_1, "
                                   "Q5_0, Q5_1, Q4_K, Q5_K or Q6_K"));
  }
  if (tensor == nullptr) {
    if (!required) return nullptr;
    return InputError("missing_tensor",
                      absl::StrCat(name, ": not in the checkpoint, need shape ",
                                   "[", absl::StrJoin(shape, ", "), "]"));
  }
  if (tensor->shape != shape) {
    return InputError(
        "invalid_shape",
        absl::StrCat(name, ": got shape [", absl::StrJoin(tensor->shape, ", "),
                     "], need [", absl::StrJoin(shape, ", "), "]"));
  }
  used_.insert(name);
  return tensor;
}

int64_t Loader::RowOf(int64_t file_row, Rows order) const {
  if (order == Rows::kAsTheyAre) return file_row;
  const int64_t head = file_row / config_.head_dim;
  const int64_t in_head = file_row % config_.head_dim;
  const int64_t rotated = config_.rope_dims;
  if (in_head >= rotated) return file_row;
  return head * config_.head_dim + in_head % 2 * (rotated / 2) + in_head / 2;
}

absl::Status Loader::Advance(uint64_t bytes) {
  done_ += bytes;
  return progress_(done_, total_) ? absl::OkStatus() : CancelledError();
}

}  // namespace

int64_t Weights::bytes() const {
  return bytes_per_token() +
         (separate_output.rows() > 0 ? embedding.bytes() : 0);
}

int64_t Weights::bytes_per_token() const {
  int64_t bytes = output().bytes();
  for (const LayerWeights& layer : layers) {
    for (const PackedMatrix* matrix : {&layer.q, &layer.k, &layer.v, &layer.o,
                                       &layer.gate, &layer.up, &layer.down}) {
      bytes += matrix->bytes();
    }
  }
  return bytes;
}

absl::StatusOr<WeightSizes> MeasureWeights(const Checkpoint& checkpoint,
                                           const ModelConfig& config) {
  WeightSizes sizes;
  const absl::StatusOr<LoadedWeights> walked =
      Loader(
          checkpoint, config, /*stream=*/nullptr,
          [](uint64_t, uint64_t) { return true; }, &sizes)
          .Load();
  if (!walked.ok()) return walked.status();
  sizes.warnings = walked->warnings;
  return sizes;
}

absl::StatusOr<LoadedWeights> LoadWeights(
    const Checkpoint& checkpoint, const ModelConfig& config, Stream& stream,
    absl::FunctionRef<bool(uint64_t, uint64_t)> progress) {
  return Loader(checkpoint, config, &stream, progress).Load();
}

}  // namespace tiercel

#include "models/decoder/weights.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kernels/layer/expert_matmul.h"
#include "kernels/number/half.h"
#include "lib/status/error.h"
#include "lib/status/status_macros.h"
#include "models/decoder/families.h"
#include "models/decoder/reused_memory.h"
#include "models/decoder/row_reader.h"
#include "models/decoder/tensor_finder.h"

namespace tiercel {
namespace {

// Returns each rank's range of rows of a Q, K or V matrix.
std::vector<Columns> RowsOfHeads(const ModelSplit& split, bool queries,
                                 int head_dim) {
  std::vector<Columns> rows;
  for (int rank = 0; rank < split.ranks(); ++rank) {
    const Columns heads =
        queries ? split.query_heads(rank) : split.kv_heads(rank);
    rows.push_back({heads.begin * head_dim, heads.end * head_dim});
  }
  return rows;
}

Family FamilyOf(const ModelConfig& config) {
  const Family* const family = FindFamily(config.architecture);
  return family != nullptr ? *family : Family();
}

class Loader {
 public:
  // Without streams, of which there is one per rank, it adds up the `sizes` of
  // each rank and reads nothing.
  Loader(const Checkpoint& checkpoint, const ModelConfig& config,
         const ModelSplit& split, std::span<Stream* const> streams,
         absl::FunctionRef<bool(uint64_t, uint64_t)> progress,
         StreamedLayers* streamed, std::vector<WeightSizes>* sizes = nullptr,
         TakenBytes taken = AlignedBytes)
      : checkpoint_(checkpoint),
        config_(config),
        family_(FamilyOf(config)),
        split_(split),
        streams_(streams),
        progress_(progress),
        streamed_(streamed),
        sizes_(sizes),
        taken_(taken),
        query_rows_(RowsOfHeads(split, /*queries=*/true, config.head_dim)),
        kv_rows_(RowsOfHeads(split, /*queries=*/false, config.head_dim)),
        tensors_(checkpoint),
        reader_(checkpoint, config) {
    for (const TensorInfo& tensor : checkpoint.tensors()) {
      total_ += tensor.bytes;
    }
  }

  absl::StatusOr<LoadedShares> Load();

 private:
  using Rows = RowReader::Order;
  using Heads = RowReader::Heads;
  template <typename T>
  using PlaceIn = absl::FunctionRef<T&(Weights&)>;

  absl::Status PlaceLayer(int layer);
  absl::Status LoadLayer(int layer);
  absl::Status LoadExperts(int layer);
  // A matrix [rows, cols] of every expert.
  absl::Status ExpertMatrix(const ExpertTensor& name, int layer, int64_t rows,
                            int64_t cols, const Parts& parts,
                            PlaceIn<PackedMatrix> place);
  absl::Status LoadOutput();
  absl::StatusOr<RopeFactors> LoadRopeFactors();
  // Rows and columns are those of the file; `parts` are of the rows loaded.
  absl::Status Matrix(TensorName name, const FusedTensor& fused, int layer,
                      int64_t rows, int64_t cols, Rows order, Heads heads,
                      const Parts& parts, PlaceIn<PackedMatrix> place);
  // If `parts` is null every rank has the whole vector.
  // Multiplies the values by `factor`.
  absl::Status Vector(TensorName name, const FusedTensor& fused, int layer,
                      std::string_view suffix, int64_t size, Rows order,
                      Heads heads, bool required, const Parts* parts,
                      PlaceIn<DeviceArray<float>> place, float factor = 1);
  // Reads values on the host; empty if the tensor is absent, or nothing is
  // read.
  absl::Status Values(TensorName name, const FusedTensor& fused, int layer,
                      std::string_view suffix, int64_t size, Rows order,
                      Heads heads, bool required, const Parts* parts,
                      std::vector<float>* out);
  // Makes each rank's matrix of `rows(rank)` rows, empty as yet.
  absl::Status Create(DType type, absl::FunctionRef<int64_t(size_t)> rows,
                      int64_t cols, const std::string& name,
                      std::vector<PackedMatrix>* packed);
  // Puts them in their places, on their devices.
  absl::Status Place(std::vector<PackedMatrix>& packed, const std::string& name,
                     PlaceIn<PackedMatrix> place);
  absl::Status ReadRows(const RowsOfTensor& from, int64_t rows,
                        const RowReader::Places& places,
                        std::vector<PackedMatrix>& packed) {
    return reader_.Read(
        from, rows, places, streams_.front()->pool(),
        [this](uint64_t bytes) { return Advance(bytes); }, packed);
  }
  absl::Status Advance(uint64_t bytes);

  size_t ranks() const { return static_cast<size_t>(split_.ranks()); }
  // The memory of arrays that are made now.
  DeviceMemory& MemoryOf(Stream& stream) {
    return memory_ != nullptr ? *memory_ : stream.memory();
  }

  const Checkpoint& checkpoint_;
  const ModelConfig& config_;
  const Family family_;
  const ModelSplit& split_;
  const std::span<Stream* const> streams_;  // [rank]
  absl::FunctionRef<bool(uint64_t, uint64_t)> progress_;
  StreamedLayers* const streamed_;         // rank 0's; null: none
  std::vector<WeightSizes>* const sizes_;  // [rank]; null: load
  const TakenBytes taken_;
  const Parts query_rows_;
  const Parts kv_rows_;
  TensorFinder tensors_;
  RowReader reader_;
  LoadedShares loaded_;
  uint64_t done_ = 0;
  uint64_t total_ = 0;
  DeviceMemory* memory_ = nullptr;  // a streamed layer's; null: the streams'
  ReusedMemory before_gpu_;         // host memory, to pack matrices for a GPU
};

absl::StatusOr<LoadedShares> Loader::Load() {
  loaded_.weights.resize(ranks());
  const Parts whole(ranks(), {0, config_.vocab});
  RETURN_IF_ERROR(
      Matrix(kEmbedding, {}, -1, config_.vocab, config_.hidden,
             Rows::kAsTheyAre, Heads::kNone, whole,
             [](Weights& w) -> PackedMatrix& { return w.embedding; }));
  // The embedding is looked up by row, so it counts only as the output matrix.
  for (size_t rank = 0; sizes_ != nullptr && rank < ranks(); ++rank) {
    (*sizes_)[rank].bytes_per_token = 0;
  }
  for (Weights& weights : loaded_.weights) {
    weights.layers.resize(static_cast<size_t>(config_.layers));
  }
  for (int layer = 0; layer < config_.layers; ++layer) {
    RETURN_IF_ERROR(PlaceLayer(layer));
  }
  RETURN_IF_ERROR(LoadOutput());
  ASSIGN_OR_RETURN(const RopeFactors factors, LoadRopeFactors());
  std::vector<std::string> unused;
  for (const TensorInfo& tensor : checkpoint_.tensors()) {
    if (tensors_.used().count(tensor.name) == 0) unused.push_back(tensor.name);
  }
  if (!unused.empty()) {
    const size_t shown = std::min<size_t>(unused.size(), 4);
    loaded_.warnings.push_back(absl::StrCat(
        unused.size(), " tensors are not part of this architecture: ",
        absl::StrJoin(unused.begin(),
                      unused.begin() + static_cast<std::ptrdiff_t>(shown),
                      ", "),
        shown < unused.size() ? ", ..." : ""));
  }
  if (sizes_ != nullptr) return std::move(loaded_);
  for (Stream* stream : streams_) {
    RETURN_IF_ERROR(stream->Synchronize());
  }
  for (Weights& weights : loaded_.weights) {
    weights.rope_factors = factors;
    weights.experts = config_.experts;
  }
  return std::move(loaded_);
}

absl::StatusOr<RopeFactors> Loader::LoadRopeFactors() {
  const RopeScaling& scaling = config_.rope_scaling;
  RopeFactors factors = {.of_short = scaling.short_factors,
                         .of_long = scaling.long_factors};
  const bool in_tensors = scaling.type == RopeScaling::Type::kLongRope &&
                          scaling.long_factors.empty();
  const struct {
    std::string_view name;
    bool required;
    std::vector<double>& list;
  } lists[] = {{"rope_freqs", false, factors.all},
               {"rope_factors_short", in_tensors, factors.of_short},
               {"rope_factors_long", in_tensors, factors.of_long}};
  for (const auto& [name, required, list] : lists) {
    if (!required && name != "rope_freqs") continue;
    std::vector<float> values;
    RETURN_IF_ERROR(Values({name, name}, {}, -1, ".weight",
                           config_.rope_dims / 2, Rows::kAsTheyAre,
                           Heads::kNone, required, /*parts=*/nullptr, &values));
    for (const float value : values) {
      if (!(value > 0 && value <= ConfigLimits::kRopeFactor)) {
        return InputError("invalid_metadata",
                          absl::StrCat(std::string(name), " holds ", value,
                                       "; need above 0, at most ",
                                       ConfigLimits::kRopeFactor));
      }
      list.push_back(value);
    }
  }
  return factors;
}

// Loads the last norm and the output matrix.
absl::Status Loader::LoadOutput() {
  RETURN_IF_ERROR(Vector(
      {"output_norm", "norm"}, {}, -1, ".weight", config_.hidden,
      Rows::kAsTheyAre, Heads::kNone, /*required=*/true, /*parts=*/nullptr,
      [](Weights& w) -> DeviceArray<float>& { return w.output_norm; }));
  const bool gguf = checkpoint_.format() == Checkpoint::Format::kGguf;
  const bool absent = !tensors_.Has(tensors_.NameOf(kOutput, -1, ".weight"));
  const bool tied = gguf ? absent : config_.tied_embeddings;
  if (!tied) {
    return Matrix(
        kOutput, {}, -1, config_.vocab, config_.hidden, Rows::kAsTheyAre,
        Heads::kNone, split_.vocab(),
        [](Weights& w) -> PackedMatrix& { return w.separate_output; });
  }
  for (size_t rank = 0; rank < ranks(); ++rank) {
    const Columns& rows = split_.vocab()[rank];
    Weights& weights = loaded_.weights[rank];
    if (sizes_ != nullptr) {
      const TensorInfo& table =
          *checkpoint_.Find(tensors_.NameOf(kEmbedding, -1, ".weight"));
      ASSIGN_OR_RETURN(
          const int64_t bytes,
          PackedMatrix::BytesOf(table.type, rows.size(), config_.hidden));
      (*sizes_)[rank].bytes_per_token += bytes;
    } else if (ranks() > 1) {
      weights.tied_output = weights.embedding.Borrow(rows.begin, rows.size());
    }
  }
  return absl::OkStatus();
}

// Loads a layer, or adds up its size, where it lies.
absl::Status Loader::PlaceLayer(int layer) {
  const bool streams = streamed_ != nullptr && streamed_->Has(layer);
  if (streams) memory_ = &streamed_->BeginLayer(layer);
  std::vector<int64_t> before;
  for (size_t rank = 0; sizes_ != nullptr && rank < ranks(); ++rank) {
    before.push_back((*sizes_)[rank].bytes);
  }
  RETURN_IF_ERROR(LoadLayer(layer));
  for (size_t rank = 0; rank < before.size(); ++rank) {
    WeightSizes& size = (*sizes_)[rank];
    size.layers.push_back(size.bytes - before[rank]);
  }
  memory_ = nullptr;
  return streams ? streamed_->KeepLayer(layer, *streams_.front())
                 : absl::OkStatus();
}

absl::Status Loader::LoadLayer(int layer) {
  const int64_t hidden = config_.hidden;
  const int64_t q = int64_t{config_.heads} * config_.HeadElements();
  const int64_t kv = int64_t{config_.kv_heads} * config_.HeadElements();
  // Converters of some families reorder Q and K rows for kernels that rotate
  // neighbours. Our kernels rotate halves, so the order is undone here.
  const bool paired =
      checkpoint_.format() == Checkpoint::Format::kGguf && family_.pairs_rows;
  const Rows rotary = paired ? Rows::kRotaryPairs : Rows::kAsTheyAre;
  constexpr Rows kPlain = Rows::kAsTheyAre;

  constexpr TensorName kQ = {"attn_q", "self_attn.q_proj"};
  constexpr TensorName kK = {"attn_k", "self_attn.k_proj"};
  constexpr TensorName kV = {"attn_v", "self_attn.v_proj"};
  constexpr TensorName kO = {"attn_output", "self_attn.o_proj"};
  constexpr TensorName kGate = {"ffn_gate", "mlp.gate_proj"};
  constexpr TensorName kUp = {"ffn_up", "mlp.up_proj"};
  constexpr TensorName kDown = {"ffn_down", "mlp.down_proj"};
  using W = LayerWeights;
  constexpr Heads kNone = Heads::kNone;
  constexpr Heads kInRows = Heads::kInRows;

  const auto in_qkv = [&](int64_t first) {
    return FusedTensor{{"attn_qkv", "self_attn.qkv_proj"}, q + 2 * kv, first};
  };
  // Its halves are the gate and then the other, which GGUF names it by.
  const auto in_gate_up = [&](int64_t first) {
    return FusedTensor{
        {"ffn_up", "mlp.gate_up_proj"}, 2 * int64_t{config_.ffn}, first};
  };
  const struct {
    TensorName name;
    FusedTensor fused;
    int64_t rows;
    int64_t cols;
    Rows order;
    Heads heads;
    const Parts& parts;
    PackedMatrix W::*matrix;
    DeviceArray<float> W::*bias;
  } matrices[] = {
      {kQ, in_qkv(0), q, hidden, rotary, kInRows, query_rows_, &W::q,
       &W::q_bias},
      {kK, in_qkv(q), kv, hidden, rotary, kInRows, kv_rows_, &W::k, &W::k_bias},
      {kV, in_qkv(q + kv), kv, hidden, kPlain, kInRows, kv_rows_, &W::v,
       &W::v_bias},
      {kO,
       {},
       hidden,
       q,
       kPlain,
       Heads::kInColumns,
       split_.hidden(),
       &W::o,
       &W::o_bias},
      {kGate, in_gate_up(0), config_.ffn, hidden, kPlain, kNone, split_.ffn(),
       &W::gate, &W::gate_bias},
      {kUp, in_gate_up(config_.ffn), config_.ffn, hidden, kPlain, kNone,
       split_.ffn(), &W::up, &W::up_bias},
      {kDown,
       {},
       hidden,
       config_.ffn,
       kPlain,
       kNone,
       split_.hidden(),
       &W::down,
       &W::down_bias},
  };
  const auto at = static_cast<size_t>(layer);
  const bool dense = !config_.experts.Has(layer);
  for (const auto& m : matrices) {
    const bool of_ffn =
        m.matrix == &W::gate || m.matrix == &W::up || m.matrix == &W::down;
    const bool may_have_bias = of_ffn              ? config_.terms.ffn_bias
                               : m.matrix == &W::o ? config_.terms.output_bias
                                                   : config_.terms.qkv_bias;
    if (of_ffn && !dense) continue;
    RETURN_IF_ERROR(Matrix(
        m.name, m.fused, layer, m.rows, m.cols, m.order, m.heads, m.parts,
        [&](Weights& w) -> PackedMatrix& { return w.layers[at].*m.matrix; }));
    if (!may_have_bias) continue;
    RETURN_IF_ERROR(Vector(m.name, m.fused, layer, ".bias", m.rows, m.order,
                           m.heads == kInRows ? kInRows : kNone,
                           /*required=*/false, &m.parts,
                           [&](Weights& w) -> DeviceArray<float>& {
                             return w.layers[at].*m.bias;
                           }));
  }

  if (!dense) RETURN_IF_ERROR(LoadExperts(layer));

  const struct {
    TensorName name;
    int64_t size;
    Heads heads;
    bool required;
    DeviceArray<float> W::*norm;
  } norms[] = {
      {{"attn_norm", "input_layernorm"}, hidden, kNone, true, &W::attn_norm},
      {{"ffn_norm", "post_attention_layernorm"},
       hidden,
       kNone,
       true,
       &W::ffn_norm},
      {{"attn_q_norm", "self_attn.q_norm"},
       config_.HeadElements(),
       kInRows,
       family_.norms_heads,
       &W::q_norm},
      {{"attn_k_norm", "self_attn.k_norm"},
       config_.HeadElements(),
       kInRows,
       family_.norms_heads,
       &W::k_norm},
  };
  for (const auto& n : norms) {
    if (n.heads == kInRows && !config_.terms.head_norms) continue;
    RETURN_IF_ERROR(Vector(
        n.name, {}, layer, ".weight", n.size, kPlain, n.heads, n.required,
        /*parts=*/nullptr,
        [&](Weights& w) -> DeviceArray<float>& { return w.layers[at].*n.norm; },
        n.heads == kInRows ? std::sqrt(PaddedShare(config_)) : 1.0f));
  }
  return absl::OkStatus();
}

absl::Status Loader::LoadExperts(int layer) {
  const auto at = static_cast<size_t>(layer);
  const int64_t hidden = config_.hidden;
  const ExpertsConfig& experts = config_.experts;
  const Parts whole(ranks(), {0, experts.count});
  RETURN_IF_ERROR(Matrix({"ffn_gate_inp", "mlp.gate"}, {}, layer, experts.count,
                         hidden, Rows::kAsTheyAre, Heads::kNone, whole,
                         [&](Weights& w) -> PackedMatrix& {
                           return w.layers[at].experts.router;
                         }));
  const struct {
    ExpertTensor name;
    int64_t rows;
    int64_t cols;
    const Parts& parts;
    PackedMatrix ExpertWeights::*matrix;
  } matrices[] = {
      {{"ffn_gate_exps", "gate_proj", "mlp.experts.gate_up_proj", 2, 0},
       experts.ffn,
       hidden,
       split_.expert_ffn(),
       &ExpertWeights::gate},
      {{"ffn_up_exps", "up_proj", "mlp.experts.gate_up_proj", 2, 1},
       experts.ffn,
       hidden,
       split_.expert_ffn(),
       &ExpertWeights::up},
      {{"ffn_down_exps", "down_proj", "mlp.experts.down_proj"},
       hidden,
       experts.ffn,
       split_.hidden(),
       &ExpertWeights::down},
  };
  for (const auto& m : matrices) {
    RETURN_IF_ERROR(ExpertMatrix(m.name, layer, m.rows, m.cols, m.parts,
                                 [&](Weights& w) -> PackedMatrix& {
                                   return w.layers[at].experts.*m.matrix;
                                 }));
  }
  return absl::OkStatus();
}

absl::Status Loader::Matrix(TensorName name, const FusedTensor& fused,
                            int layer, int64_t rows, int64_t cols, Rows order,
                            Heads heads, const Parts& parts,
                            PlaceIn<PackedMatrix> place) {
  ASSIGN_OR_RETURN(
      const RowsOfTensor from,
      tensors_.FindRows(name, fused, layer, ".weight", {rows, cols},
                        /*required=*/true));
  const std::string& full = from.tensor->name;
  const DType type = reader_.StoredType(from.tensor->type, heads);
  if (heads == Heads::kInColumns) cols = reader_.Padded(cols);
  if (sizes_ != nullptr) {
    for (size_t rank = 0; rank < ranks(); ++rank) {
      const absl::StatusOr<int64_t> bytes =
          PackedMatrix::BytesOf(type, parts[rank].size(), cols);
      if (!bytes.ok()) return Annotate(bytes.status(), full);
      (*sizes_)[rank].bytes += taken_(*bytes);
      (*sizes_)[rank].bytes_per_token += *bytes;
    }
    return absl::OkStatus();
  }
  std::vector<PackedMatrix> packed;
  RETURN_IF_ERROR(Create(
      type, [&](size_t rank) { return parts[rank].size(); }, cols, full,
      &packed));
  RETURN_IF_ERROR(ReadRows(from, rows, {order, heads, parts}, packed));
  return Place(packed, full, place);
}

absl::Status Loader::ExpertMatrix(const ExpertTensor& name, int layer,
                                  int64_t rows, int64_t cols,
                                  const Parts& parts,
                                  PlaceIn<PackedMatrix> place) {
  const ExpertsConfig& experts = config_.experts;
  const auto find = [&](int expert) {
    return tensors_.FindExpert(name, layer, expert, experts.count, rows, cols);
  };
  ASSIGN_OR_RETURN(const RowsOfTensor first, find(0));
  const std::string& full = first.tensor->name;
  const DType type = first.tensor->type;
  const auto rows_of = [&](size_t rank) {
    return experts.count * ExpertStride(parts[rank].size());
  };
  std::vector<PackedMatrix> packed;
  for (size_t rank = 0; sizes_ != nullptr && rank < ranks(); ++rank) {
    const absl::StatusOr<int64_t> bytes =
        PackedMatrix::BytesOf(type, rows_of(rank), cols);
    if (!bytes.ok()) return Annotate(bytes.status(), full);
    WeightSizes& size = (*sizes_)[rank];
    const int64_t read = *bytes / experts.count * experts.used;
    size.bytes += taken_(*bytes);
    size.bytes_per_token += read;
    size.expert_bytes += read;
  }
  if (sizes_ == nullptr) {
    RETURN_IF_ERROR(Create(type, rows_of, cols, full, &packed));
  }
  for (int expert = 0; expert < experts.count; ++expert) {
    ASSIGN_OR_RETURN(const RowsOfTensor from, find(expert));
    if (from.tensor->type != type) {
      return InputError(
          "unsupported_type",
          absl::StrCat(from.tensor->name, ": got type ",
                       std::string(InfoOf(from.tensor->type).name), ", need ",
                       std::string(InfoOf(type).name), " as ", full, " has"));
    }
    if (sizes_ != nullptr) continue;
    RETURN_IF_ERROR(ReadRows(
        from, rows, {Rows::kAsTheyAre, Heads::kNone, parts, expert}, packed));
  }
  return sizes_ != nullptr ? absl::OkStatus() : Place(packed, full, place);
}

absl::Status Loader::Create(DType type, absl::FunctionRef<int64_t(size_t)> rows,
                            int64_t cols, const std::string& name,
                            std::vector<PackedMatrix>* packed) {
  for (size_t rank = 0; rank < ranks(); ++rank) {
    Stream& stream = *streams_[rank];
    absl::StatusOr<PackedMatrix> part =
        PackedMatrix::Create(type, rows(rank), cols,
                             stream.on_host() ? MemoryOf(stream) : before_gpu_,
                             PackedMatrix::OrderFor(stream));
    if (!part.ok()) return Annotate(part.status(), name);
    packed->push_back(*std::move(part));
  }
  return absl::OkStatus();
}

absl::Status Loader::Place(std::vector<PackedMatrix>& packed,
                           const std::string& name,
                           PlaceIn<PackedMatrix> place) {
  for (size_t rank = 0; rank < ranks(); ++rank) {
    absl::StatusOr<PackedMatrix> there =
        streams_[rank]->on_host()
            ? std::move(packed[rank])
            : packed[rank].CopyTo(*streams_[rank], MemoryOf(*streams_[rank]));
    if (!there.ok()) return Annotate(there.status(), name);
    place(loaded_.weights[rank]) = *std::move(there);
  }
  return absl::OkStatus();
}

absl::Status Loader::Vector(TensorName name, const FusedTensor& fused,
                            int layer, std::string_view suffix, int64_t size,
                            Rows order, Heads heads, bool required,
                            const Parts* parts,
                            PlaceIn<DeviceArray<float>> place, float factor) {
  std::vector<float> values;
  if (absl::Status s = Values(name, fused, layer, suffix, size, order, heads,
                              required, parts, &values);
      !s.ok() || values.empty()) {
    return s;
  }
  for (float& value : values) value *= factor;
  const Columns all = {0, static_cast<int64_t>(values.size())};
  for (size_t rank = 0; rank < ranks(); ++rank) {
    const Columns part = parts != nullptr ? (*parts)[rank] : all;
    Stream& stream = *streams_[rank];
    ASSIGN_OR_RETURN(
        DeviceArray<float> array,
        DeviceArray<float>::Create(MemoryOf(stream), part.size(),
                                   tensors_.NameOf(name, layer, suffix)));
    RETURN_IF_ERROR(
        stream.Copy(array.data(), values.data() + part.begin,
                    static_cast<size_t>(part.size()) * sizeof(float)));
    place(loaded_.weights[rank]) = std::move(array);
  }
  return absl::OkStatus();
}

absl::Status Loader::Values(TensorName name, const FusedTensor& fused,
                            int layer, std::string_view suffix, int64_t size,
                            Rows order, Heads heads, bool required,
                            const Parts* parts, std::vector<float>* out) {
  ASSIGN_OR_RETURN(
      const RowsOfTensor from,
      tensors_.FindRows(name, fused, layer, suffix, {size}, required));
  const TensorInfo* const tensor = from.tensor;
  if (tensor == nullptr) return absl::OkStatus();
  const DType type = tensor->type;
  if (InfoOf(type).block_elements != 1) {
    return InputError("unsupported_type",
                      absl::StrCat(tensor->name, ": got type ",
                                   std::string(InfoOf(type).name),
                                   ", need f32, f16 or bf16"));
  }
  const int64_t placed = heads == Heads::kInRows ? reader_.Padded(size) : size;
  if (sizes_ != nullptr) {
    for (size_t rank = 0; rank < ranks(); ++rank) {
      const int64_t floats = parts != nullptr ? (*parts)[rank].size() : placed;
      (*sizes_)[rank].bytes +=
          taken_(floats * static_cast<int64_t>(sizeof(float)));
    }
    return absl::OkStatus();
  }
  std::vector<std::byte> buffer(static_cast<size_t>(RowBytes(type, size)));
  RETURN_IF_ERROR(checkpoint_.Read(
      *tensor, static_cast<uint64_t>(RowBytes(type, from.first)),
      {buffer.data(), buffer.size()}));
  out->resize(static_cast<size_t>(placed));
  for (int64_t i = 0; i < size; ++i) {
    float value;
    if (type == DType::kF32) {
      std::memcpy(&value, buffer.data() + i * 4, 4);
    } else {
      uint16_t bits;
      std::memcpy(&bits, buffer.data() + i * 2, 2);
      value = type == DType::kF16 ? F32FromF16(bits) : F32FromBf16(bits);
    }
    (*out)[static_cast<size_t>(reader_.RowOf(i, order, heads))] = value;
  }
  return Advance(buffer.size());
}

absl::Status Loader::Advance(uint64_t bytes) {
  done_ += bytes;
  return progress_(done_, total_) ? absl::OkStatus() : CancelledError();
}

}  // namespace

absl::StatusOr<std::vector<WeightSizes>> MeasureShares(
    const Checkpoint& checkpoint, const ModelConfig& config,
    const ModelSplit& split, TakenBytes taken) {
  std::vector<WeightSizes> sizes(static_cast<size_t>(split.ranks()));
  ASSIGN_OR_RETURN(const LoadedShares walked,
                   Loader(
                       checkpoint, config, split, /*streams=*/{},
                       [](uint64_t, uint64_t) { return true; },
                       /*streamed=*/nullptr, &sizes, taken)
                       .Load());
  int64_t most = 0;
  for (const WeightSizes& size : sizes) {
    most = std::max(most, size.bytes_per_token);
  }
  for (WeightSizes& size : sizes) {
    size.most_per_token = most;
    size.warnings = walked.warnings;
  }
  return sizes;
}

absl::StatusOr<WeightSizes> MeasureWeights(const Checkpoint& checkpoint,
                                           const ModelConfig& config,
                                           TakenBytes taken) {
  ASSIGN_OR_RETURN(
      const std::vector<WeightSizes> sizes,
      MeasureShares(checkpoint, config, ModelSplit::Whole(config), taken));
  return sizes.front();
}

absl::StatusOr<LoadedShares> LoadShares(
    const Checkpoint& checkpoint, const ModelConfig& config,
    const ModelSplit& split, std::span<Stream* const> streams,
    absl::FunctionRef<bool(uint64_t, uint64_t)> progress,
    StreamedLayers* streamed) {
  return Loader(checkpoint, config, split, streams, progress, streamed).Load();
}

absl::StatusOr<LoadedWeights> LoadWeights(
    const Checkpoint& checkpoint, const ModelConfig& config, Stream& stream,
    absl::FunctionRef<bool(uint64_t, uint64_t)> progress,
    StreamedLayers* streamed) {
  Stream* const streams[] = {&stream};
  ASSIGN_OR_RETURN(LoadedShares loaded,
                   LoadShares(checkpoint, config, ModelSplit::Whole(config),
                              streams, progress, streamed));
  return LoadedWeights{std::move(loaded.weights.front()),
                       std::move(loaded.warnings)};
}

}  // namespace tiercel

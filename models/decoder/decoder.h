#ifndef TIERCEL_MODELS_DECODER_DECODER_H_
#define TIERCEL_MODELS_DECODER_DECODER_H_

#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "kernels/attention/attention.h"
#include "kernels/attention/head_view.h"
#include "kernels/device/device_memory.h"
#include "kernels/device/stream.h"
#include "kernels/layer/matmul.h"
#include "models/decoder/config.h"
#include "models/decoder/experts.h"
#include "models/decoder/model_split.h"
#include "models/decoder/weights.h"
#include "offload/kv/layered_kv.h"
#include "offload/ranks/gather.h"

namespace tiercel {

// The activations of some rows of one layer, on a rank, and the angles of a
// step's rows. Widths are Decoder::Widths.
struct DecoderWorkspace {
  DeviceArray<float> norm;       // [rows, hidden], room for normed rows
  DeviceArray<float> q;          // [rows, widths.q]
  DeviceArray<float> k;          // [rows, widths.kv]
  DeviceArray<float> v;          // [rows, widths.kv]
  DeviceArray<float> head;       // [rows, widths.heads]
  DeviceArray<float> gate;       // [rows, widths.ffn], or [items, expert ffn]
  DeviceArray<float> up;         // [rows, widths.ffn], or [items, expert ffn]
  DeviceArray<float> all_heads;  // [rows, widths.all_heads]
  DeviceArray<float> all_ffn;    // [rows, widths.all_ffn]
  DeviceArray<float> cos;        // [rows of the step, rope_dims / 2]
  DeviceArray<float> sin;        // [rows of the step, rope_dims / 2]
  ExpertWorkspace experts;

  int64_t Bytes() const;
};

// The arithmetic of one decoder, from the embedding to the logits. Results do
// not depend on the order of rows and layers (the runtime's prefill goes layer
// by layer, its decode row by row): they are the same, bit for bit.
//
// There is one object per session and rank. It holds the activations of a step,
// whose memory others may have between two steps. The config and the weights
// must outlive it.
//
// On one of several ranks it computes the outputs of ModelSplit, and gathers
// those of the others: attention's and swiglu's before the matrix that reads
// them, and the hidden state after each of these two, four times a layer. Every
// rank calls the same functions with the same rows; each ends with all of the
// hidden states, and of the logits.
class Decoder {
 public:
  // The rank that a decoder computes, and the gather by which it gets the other
  // ranks' outputs. They must outlive it.
  struct Part {
    const ModelSplit& split;
    int rank;
    Gather& gather;
  };

  Decoder(const ModelConfig& config, const Weights& weights, Compute compute,
          DeviceMemory& memory);
  Decoder(const ModelConfig& config, const Weights& weights, Compute compute,
          DeviceMemory& memory, const Part& part);

  // Takes the memory of Layer and Logits for `rows` rows at once, and of
  // BeginStep for `step_rows`; these call it themselves if they need more.
  // Errors: out_of_memory.
  absl::Status Reserve(int64_t rows, int64_t step_rows);
  // Take and give back the memory that Reserve allocates. Its contents do not
  // matter between two steps, when another decoder of the same model and rank
  // may have it.
  void Use(DecoderWorkspace workspace) { a_ = std::move(workspace); }
  DecoderWorkspace Release() { return std::exchange(a_, {}); }
  // The bytes that a step of `rows` rows of several sequences takes besides.
  static int64_t FoldBytes(const ModelConfig& config, int64_t rows);
  // The bytes that Reserve takes on a rank.
  static int64_t ReservedBytes(const ModelConfig& config,
                               const ModelSplit& split, int rank, int64_t rows,
                               int64_t step_rows);

  // Rows at these positions, in a session of this RopeLength.
  struct StepRows {
    PositionRange positions;
    int64_t rope_length = 0;
  };
  // Computes the rotary angles of a step's rows, one range after the other; all
  // layers share them. Layer may then be called for any part of these rows.
  // `of_prompt`: they are a prompt's, which a stream with fast_prompts computes
  // with other bits.
  absl::Status BeginStep(Stream& stream, absl::Span<const StepRows> ranges,
                         bool of_prompt);
  // Computes the angles of a step of `rows` rows from `position` on.
  absl::Status BeginStep(Stream& stream, int64_t rows, int64_t position,
                         bool of_prompt, int64_t rope_length = 0) {
    const StepRows range = {{position, position + rows}, rope_length};
    return BeginStep(stream, {&range, 1}, of_prompt);
  }

  // hidden[r] = embedding of ids[r]; hidden is [rows, config.hidden].
  absl::Status Embed(Stream& stream, const int32_t* ids, int64_t rows,
                     DevicePtr<float> hidden);

  // Rows of one sequence, which pass through a layer with those of others.
  struct LayerRows {
    // The sequence's pages of the layer; null: the rows do not attend, and are
    // worthless afterwards.
    const KvPages* kv;
    int64_t rows;
    int64_t first_row;    // the first of them, at position kv->end + first_row
    int64_t first_angle;  // its place among the rows of the step
  };
  // Passes the rows of all these sequences, which follow each other in
  // `hidden`, through layer `layer`, in place, writing their K and V into their
  // sequences' pages. The positions before them must have been written there.
  absl::Status Layer(Stream& stream, int layer,
                     absl::Span<const LayerRows> parts,
                     DevicePtr<float> hidden);

  // Computes logits[r] of the token after hidden[r]; logits is [rows,
  // config.vocab].
  absl::Status Logits(Stream& stream, DevicePtr<const float> hidden,
                      int64_t rows, DevicePtr<float> logits);

  // The queries of the last Layer's rows, rotated and scaled: [rows, heads *
  // head_dim]; with several ranks, those of the rank's query_heads.
  DevicePtr<const float> queries() const { return a_.q.data(); }
  int64_t query_width() const { return widths_.q; }

  const ModelConfig& config() const { return config_; }

 private:
  // The widths of a rank's activations, in floats.
  struct Widths {
    Widths(const ModelConfig& config, const ModelSplit& split, int rank);
    int64_t q, kv, heads;
    // The dense feed-forward, or that of all experts of a row if it is wider.
    int64_t ffn;
    // Widths over all ranks together; 0 if there is one rank.
    int64_t all_heads, all_ffn;
    std::array<int64_t, 9> All(const ModelConfig& config) const {
      return {config.hidden, q, kv, kv, heads, ffn, ffn, all_heads, all_ffn};
    }
  };

  absl::Status SetAngles(Stream& stream, const StepRows& range, int64_t row);
  const RopeFrequencies& FrequenciesFor(int64_t rope_length);
  absl::Status AttentionBlock(Stream& stream, int layer, int64_t rows,
                              absl::Span<const LayerRows> parts,
                              DevicePtr<float> hidden);
  // Writes K and V of one sequence's rows, the activations' rows from `row` on,
  // and rotates and scales their queries.
  absl::Status Write(Stream& stream, int layer, const LayerRows& part,
                     int64_t row);
  // Attends with the queries of sequences, whose rows are those from `row` on.
  // All of them read the first `shared` pages at once.
  absl::Status Attend(Stream& stream, absl::Span<const LayerRows> parts,
                      int64_t shared, int64_t row);
  absl::Status AttendAlone(Stream& stream, const LayerRows& part, int64_t row,
                           const AttentionPart& pages);
  // The attention of `rows` rows, from `row` on, over the pages of `kv`.
  AttentionParams ParamsOf(const KvPages& kv, int64_t rows, int64_t row);
  void ReserveFolds(int64_t rows);
  absl::Status FeedForwardBlock(Stream& stream, const LayerWeights& w,
                                int64_t rows, DevicePtr<float> hidden);
  // experts.cc
  absl::Status ExpertsBlock(Stream& stream, const LayerWeights& w, int64_t rows,
                            DevicePtr<float> hidden);
  absl::Status SortByExpert(Stream& stream, int64_t rows);
  absl::Status AddToHidden(Stream& stream, const PackedMatrix& matrix,
                           const DeviceArray<float>& bias,
                           DevicePtr<const float> x, int64_t x_stride,
                           int64_t rows, const MatmulPrologue& prologue,
                           DevicePtr<float> hidden);
  // Gathers `all`, [rows, all_stride] over all ranks, from `own`, the columns
  // of this rank. Does nothing if there is one rank.
  absl::Status GatherAll(Stream& stream, const std::vector<Columns>& columns,
                         int64_t rows, DevicePtr<const float> own,
                         int64_t own_stride, DevicePtr<float> all,
                         int64_t all_stride);
  // The norm of hidden states before a product.
  MatmulPrologue NormBy(const DeviceArray<float>& weight);

  const ModelConfig& config_;
  const Weights& weights_;
  const Compute compute_;
  DeviceMemory& memory_;
  const ModelSplit split_;
  const int rank_;
  Gather* const gather_;  // null: one rank
  const Widths widths_;
  DecoderWorkspace a_;
  RopeFrequencies rope_;         // the last range's
  int64_t rope_length_ = -1;     // ... and its RopeLength; -1: there was none
  std::vector<float> angles_;    // angles of some rows, to be sent
  ExpertGroups experts_;         // the rows of a layer
  std::vector<int32_t> chosen_;  // their experts, read from a device apart
  // The folds of rows that read pages together: maxima, then sums, each
  // [rows of a step, heads]; empty: there is no step of several sequences, or
  // no memory.
  DeviceArray<float> folds_;
  bool fast_ = false;  // the step may have other bits than the CPU's
};

}  // namespace tiercel

#endif  // TIERCEL_MODELS_DECODER_DECODER_H_

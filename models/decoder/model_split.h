#ifndef TIERCEL_MODELS_DECODER_MODEL_SPLIT_H_
#define TIERCEL_MODELS_DECODER_MODEL_SPLIT_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "models/decoder/config.h"
#include "offload/ranks/gather.h"

namespace tiercel {

// The part of a model that each rank computes: some outputs of every matrix.
// Outputs are gathered, so every output's chain over k stays whole (tensor
// parallelism without sums over ranks).
//
//   q, k, v    by heads: a rank's query heads are those of its KV heads
//   o, down    by hidden columns
//   gate, up   by ffn columns; those of experts by the columns of each expert
//   output     by vocabulary
//
// With fewer KV heads than ranks, several ranks share one KV head. Each of them
// computes its K and V and the queries of all its query heads (which select
// what a view shows), and attends with some of these. The embedding is whole on
// every rank: a step looks up a few rows of it, and its memory costs less than
// one more gather of every prompt's hidden states would. Each rank has the
// whole router of experts, too, so that all choose the same ones.
//
// Slices of columns and of the vocabulary are whole panels of 16 outputs, if
// there are enough of them. Shares may differ by a KV head, or by a panel.
class ModelSplit {
 public:
  // The whole model on one rank.
  static ModelSplit Whole(const ModelConfig& config);
  // Errors: invalid_argument, unless 1 <= ranks <= kMostRanks; cannot_split, if
  // there are fewer query heads per KV head than ranks that share it, or fewer
  // columns or panels of the vocabulary than ranks.
  static constexpr int kMostRanks = 64;
  static absl::StatusOr<ModelSplit> Create(const ModelConfig& config,
                                           int ranks);

  int ranks() const { return static_cast<int>(kv_heads_.size()); }

  // The heads of the model that rank `rank` has.
  const Columns& kv_heads(int rank) const { return At(kv_heads_, rank); }
  const Columns& heads(int rank) const { return At(heads_, rank); }
  // The query heads whose queries it computes: `heads`, or more if it shares a
  // KV head.
  Columns query_heads(int rank) const {
    return {kv_heads(rank).begin * group_, kv_heads(rank).end * group_};
  }
  // Returns true if it is the first rank with its KV heads.
  bool IsFirstOfHeads(int rank) const {
    return rank == 0 || kv_heads(rank) != kv_heads(rank - 1);
  }

  // The columns that are gathered from each rank, [ranks]: attention outputs in
  // floats, hidden states, ffn, that of an expert (empty: there are none) and
  // logits.
  const std::vector<Columns>& attention() const { return attention_; }
  const std::vector<Columns>& hidden() const { return hidden_; }
  const std::vector<Columns>& ffn() const { return ffn_; }
  const std::vector<Columns>& expert_ffn() const { return expert_ffn_; }
  const std::vector<Columns>& vocab() const { return vocab_; }

  // Bytes that `rank` receives per row: in a layer, with or without experts,
  // and for its logits.
  int64_t GatheredPerLayer(int rank, bool experts = false) const;
  int64_t GatheredLogits(int rank) const;

 private:
  static const Columns& At(const std::vector<Columns>& columns, int rank) {
    return columns[static_cast<size_t>(rank)];
  }

  int64_t group_ = 1;  // query heads of a KV head
  int64_t used_ = 0;   // experts of a row
  std::vector<Columns> kv_heads_;
  std::vector<Columns> heads_;
  std::vector<Columns> attention_;
  std::vector<Columns> hidden_;
  std::vector<Columns> ffn_;
  std::vector<Columns> expert_ffn_;
  std::vector<Columns> vocab_;
};

}  // namespace tiercel

#endif  // TIERCEL_MODELS_DECODER_MODEL_SPLIT_H_

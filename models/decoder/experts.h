#ifndef TIERCEL_MODELS_DECODER_EXPERTS_H_
#define TIERCEL_MODELS_DECODER_EXPERTS_H_

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "kernels/device/device_memory.h"
#include "kernels/device/stream.h"
#include "kernels/layer/expert_matmul.h"
#include "kernels/layer/packed_matrix.h"
#include "models/decoder/config.h"

namespace tiercel {

// The weights of a layer's experts; without a router the layer has none. Every
// matrix of theirs is one of all experts (ExpertStride). A rank has the whole
// router, each expert's share of its ffn columns in gate and up, and hidden
// columns in down.
struct ExpertWeights {
  PackedMatrix router;  // [experts, hidden]
  PackedMatrix gate;    // [experts * ExpertStride(ffn), hidden]
  PackedMatrix up;      // [experts * ExpertStride(ffn), hidden]
  PackedMatrix down;    // [experts * ExpertStride(hidden), ffn]

  bool empty() const { return router.rows() == 0; }
  int64_t bytes() const;  // held in memory
  // The bytes that one row reads, of `config.used` experts.
  int64_t bytes_per_token(const ExpertsConfig& config) const;
};

// The expected number of distinct experts that `rows` rows use together, if
// each row's are equally likely to be any: count (1 - (1 - used / count)^rows).
double DistinctExperts(const ExpertsConfig& config, int64_t rows);

// The activations of some rows that go to experts. An item is a row with one of
// its experts, so there are rows * used items.
struct ExpertWorkspace {
  DeviceArray<float> logits;    // [rows, experts]
  DeviceArray<float> shares;    // [rows, used]
  DeviceArray<int32_t> chosen;  // [rows, used]
  DeviceArray<float> of_items;  // [items, hidden]: inputs, later results

  int64_t Bytes() const {
    return logits.bytes() + shares.bytes() + chosen.bytes() + of_items.bytes();
  }
  // The elements of a row in each of them, all of four bytes.
  static std::array<int64_t, 4> Widths(const ModelConfig& config) {
    const ExpertsConfig& experts = config.experts;
    return {experts.count, experts.used, experts.used,
            int64_t{experts.used} * config.hidden};
  }
};

// The rows of a step in the order of the experts that they have chosen.
class ExpertGroups {
 public:
  // Sorts `chosen`, [rows, used], by expert; an expert's rows stay in their
  // order. Errors: internal, if there is no such expert.
  absl::Status Sort(std::span<const int32_t> chosen, const ExpertsConfig& of);

  std::span<const ExpertGroup> groups() const { return groups_; }
  // The row of each item, and the items of each row, [rows, used].
  const std::vector<int32_t>& rows() const { return rows_; }
  const std::vector<int32_t>& items() const { return items_; }

 private:
  std::vector<int64_t> next_;  // [expert]: the place of its next item
  std::vector<ExpertGroup> groups_;
  std::vector<int32_t> rows_;
  std::vector<int32_t> items_;
};

}  // namespace tiercel

#endif  // TIERCEL_MODELS_DECODER_EXPERTS_H_

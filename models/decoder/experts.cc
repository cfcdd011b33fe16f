#include "models/decoder/experts.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "kernels/layer/expert_choice.h"
#include "kernels/layer/expert_sum.h"
#include "kernels/layer/rms_norm.h"
#include "kernels/layer/swiglu.h"
#include "lib/status/error.h"
#include "lib/status/status_macros.h"
#include "models/decoder/decoder.h"

namespace tiercel {

int64_t ExpertWeights::bytes() const {
  return router.bytes() + gate.bytes() + up.bytes() + down.bytes();
}

int64_t ExpertWeights::bytes_per_token(const ExpertsConfig& config) const {
  if (empty()) return 0;
  return router.bytes() +
         (bytes() - router.bytes()) / config.count * config.used;
}

double DistinctExperts(const ExpertsConfig& config, int64_t rows) {
  if (config.count == 0) return 0;
  const double missed = 1 - static_cast<double>(config.used) / config.count;
  return config.count * (1 - std::pow(missed, static_cast<double>(rows)));
}

absl::Status ExpertGroups::Sort(std::span<const int32_t> chosen,
                                const ExpertsConfig& of) {
  next_.assign(static_cast<size_t>(of.count) + 1, 0);
  for (const int32_t expert : chosen) {
    if (expert < 0 || expert >= of.count) {
      return InternalError("internal",
                           absl::StrCat("a row has chosen expert ", expert,
                                        "; need 0 to ", of.count - 1));
    }
    ++next_[static_cast<size_t>(expert) + 1];
  }
  groups_.clear();
  for (int32_t expert = 0; expert < of.count; ++expert) {
    const auto at = static_cast<size_t>(expert);
    next_[at + 1] += next_[at];
    if (next_[at] < next_[at + 1]) {
      groups_.push_back({expert, next_[at], next_[at + 1]});
    }
  }
  rows_.resize(chosen.size());
  items_.resize(chosen.size());
  for (size_t i = 0; i < chosen.size(); ++i) {
    const int64_t item = next_[static_cast<size_t>(chosen[i])]++;
    items_[i] = static_cast<int32_t>(item);
    rows_[static_cast<size_t>(item)] =
        static_cast<int32_t>(i / static_cast<size_t>(of.used));
  }
  return absl::OkStatus();
}

// Reads the experts that the rows of a step have chosen. On a device apart the
// host waits for it once a layer.
absl::Status Decoder::SortByExpert(Stream& stream, int64_t rows) {
  const auto count = static_cast<size_t>(rows * config_.experts.used);
  const DevicePtr<const int32_t> chosen = a_.experts.chosen.data();
  if (stream.on_host()) {
    return experts_.Sort({HostAddress(chosen), count}, config_.experts);
  }
  chosen_.resize(count);
  RETURN_IF_ERROR(stream.Copy(chosen_.data(), chosen, count * sizeof(int32_t)));
  RETURN_IF_ERROR(stream.Synchronize());
  return experts_.Sort(chosen_, config_.experts);
}

// hidden += the sum over a row's experts of share * down(silu(gate) * up) of
// the normed hidden.
absl::Status Decoder::ExpertsBlock(Stream& stream, const LayerWeights& w,
                                   int64_t rows, DevicePtr<float> hidden) {
  const ExpertsConfig& config = config_.experts;
  const ExpertWeights& experts = w.experts;
  const int64_t dim = config_.hidden;
  const int64_t items = rows * config.used;

  // 1. the experts of each row
  RETURN_IF_ERROR(RmsNorm(stream, {.x = hidden,
                                   .x_stride = dim,
                                   .weight = w.ffn_norm.data(),
                                   .eps = config_.norm_eps,
                                   .rows = rows,
                                   .groups = 1,
                                   .dim = config_.hidden,
                                   .out = a_.norm.data(),
                                   .out_stride = dim}));
  RETURN_IF_ERROR(Matmul(
      stream, {.x = a_.norm.data(),
               .x_stride = dim,
               .rows = rows,
               .compute = compute_,
               .num_outputs = 1,
               .outputs = {{&experts.router, nullptr, a_.experts.logits.data(),
                            config.count, StoreMode::kAssign}}}));
  RETURN_IF_ERROR(ExpertChoice(stream, {.logits = a_.experts.logits.data(),
                                        .rows = rows,
                                        .experts = config.count,
                                        .used = config.used,
                                        .normed = config.normed,
                                        .chosen = a_.experts.chosen.data(),
                                        .shares = a_.experts.shares.data()}));
  RETURN_IF_ERROR(SortByExpert(stream, rows));

  // 2. their products, item by item in the order of experts
  const int64_t ffn = split_.expert_ffn()[static_cast<size_t>(rank_)].size();
  ExpertMatmulParams p = {.x = a_.norm.data(),
                          .x_stride = dim,
                          .x_rows = rows,
                          .rows = experts_.rows().data(),
                          .items = items,
                          .groups = experts_.groups().data(),
                          .num_groups = std::ssize(experts_.groups()),
                          .n = ffn,
                          .compute = compute_,
                          .num_outputs = 2,
                          .outputs = {{&experts.gate, a_.gate.data(), ffn},
                                      {&experts.up, a_.up.data(), ffn}},
                          .fast = fast_,
                          .room = a_.experts.of_items.data()};
  RETURN_IF_ERROR(ExpertMatmul(stream, p));
  RETURN_IF_ERROR(Swiglu(stream, {.gate = a_.gate.data(),
                                  .up = a_.up.data(),
                                  .rows = items,
                                  .dim = ffn,
                                  .out = a_.gate.data()}));
  RETURN_IF_ERROR(GatherAll(stream, split_.expert_ffn(), items, a_.gate.data(),
                            ffn, a_.all_ffn.data(), config.ffn));
  const Columns& columns = split_.hidden()[static_cast<size_t>(rank_)];
  p.x = gather_ != nullptr ? a_.all_ffn.data() : a_.gate.data();
  p.x_stride = config.ffn;
  p.x_rows = items;
  p.rows = nullptr;
  p.n = columns.size();
  p.num_outputs = 1;
  p.outputs[0] = {&experts.down, a_.experts.of_items.data(), columns.size()};
  RETURN_IF_ERROR(ExpertMatmul(stream, p));

  // 3. back into the hidden state
  const DevicePtr<float> own = hidden + columns.begin;
  RETURN_IF_ERROR(ExpertSum(stream, {.y = a_.experts.of_items.data(),
                                     .y_stride = columns.size(),
                                     .num_items = items,
                                     .items = experts_.items().data(),
                                     .shares = a_.experts.shares.data(),
                                     .rows = rows,
                                     .used = config.used,
                                     .dim = columns.size(),
                                     .out = own,
                                     .out_stride = dim}));
  return GatherAll(stream, split_.hidden(), rows, own, dim, hidden, dim);
}

}  // namespace tiercel

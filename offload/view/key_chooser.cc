#include "offload/view/key_chooser.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <numeric>

#include "kernels/attention/evidence.h"
#include "kernels/attention/key_scores.h"
#include "kernels/attention/selector.h"
#include "kernels/base/error.h"
#include "kernels/kv/key_norms.h"

namespace tiercel {
namespace {

constexpr int64_t kReach = 16;  // half the window in which neighbours compete
// One row of one head says less: the prior may weigh more.
constexpr float kOfOneRow = 0.35f / 0.25f;

int64_t NormElements(const KeyChooser::Shape& shape) {
  return shape.layers * shape.layout.kv_heads * shape.context;
}

}  // namespace

int64_t KeyChooser::Shape::Bytes() const {
  return AlignedBytes(NormElements(*this) *
                      static_cast<int64_t>(sizeof(uint16_t))) +
         AlignedBytes(heads * context * static_cast<int64_t>(sizeof(float))) +
         AlignedBytes(layout.kv_heads * context *
                      static_cast<int64_t>(sizeof(float)));
}

absl::StatusOr<std::unique_ptr<Chooser>> KeyChooser::Create(
    DeviceMemory& memory, const Shape& shape) {
  absl::StatusOr<DeviceArray<uint16_t>> norms = DeviceArray<uint16_t>::Create(
      memory, NormElements(shape), "norms of keys");
  if (!norms.ok()) return norms.status();
  absl::StatusOr<DeviceArray<float>> scores = DeviceArray<float>::Create(
      memory, shape.heads * shape.context, "scores of keys");
  if (!scores.ok()) return scores.status();
  absl::StatusOr<DeviceArray<float>> evidence = DeviceArray<float>::Create(
      memory, shape.layout.kv_heads * shape.context, "evidence");
  if (!evidence.ok()) return evidence.status();
  return std::unique_ptr<Chooser>(new KeyChooser(
      shape, *std::move(norms), {*std::move(scores), *std::move(evidence)}));
}

absl::StatusOr<std::unique_ptr<Chooser>> KeyChooser::Copy(
    DeviceMemory& memory) const {
  absl::StatusOr<std::unique_ptr<Chooser>> made = Create(memory, shape_);
  if (!made.ok()) return made;
  auto& copy = static_cast<KeyChooser&>(**made);
  if (!norms_.empty()) {
    std::memcpy(copy.norms_.data(), norms_.data(),
                norms_.size() * sizeof(uint16_t));
  }
  copy.known_ = known_;
  return made;
}

absl::Status KeyChooser::Update(Stream& stream, int layer, const KvPages& kv,
                                int64_t rows) {
  int64_t& known = known_[static_cast<size_t>(layer)];
  const int64_t first = std::min(known, kv.end);
  const absl::Status status =
      KeyNorms(stream, {.layout = kv.layout,
                        .pages = kv.pages,
                        .first_page = kv.first_page,
                        .num_pages = kv.num_pages,
                        .first = first,
                        .last = kv.end + rows,
                        .out = NormsOf(layer) + (first - shape_.begin),
                        .out_stride = shape_.context});
  if (status.ok()) known = kv.end + rows;
  return status;
}

void KeyChooser::Truncate(int64_t end) {
  for (int64_t& known : known_) known = std::min(known, end);
}

absl::Status KeyChooser::Choose(Stream& stream, int layer, const Asking& by,
                                const KvPages* kv, int64_t chunks,
                                std::vector<std::vector<int32_t>>* chosen) {
  if (kv == nullptr) {
    return InternalError("internal", "keys are scored where they are at hand");
  }
  const KvLayout& layout = shape_.layout;
  std::vector<int32_t> first(
      static_cast<size_t>(chunks <= shape_.budget ? chunks : shape_.sinks));
  std::iota(first.begin(), first.end(), 0);
  chosen->assign(static_cast<size_t>(layout.kv_heads), first);
  if (chunks <= shape_.budget || shape_.budget == shape_.sinks) {
    return absl::OkStatus();
  }

  const int64_t candidates = chunks - shape_.sinks;
  std::fill_n(work_.evidence.data(), layout.kv_heads * candidates, 0.0f);
  const int64_t width = int64_t{shape_.heads} * layout.head_dim;
  for (int64_t row = 0; row < by.rows; ++row) {
    if (absl::Status s = KeyScores(
            stream,
            {.q = by.q + row * width,
             .q_stride = width,
             .rows = 1,
             .heads = shape_.heads,
             .scale = 1.0f / std::sqrt(static_cast<float>(layout.head_dim)),
             .layout = kv->layout,
             .pages = kv->pages,
             .first_page = kv->first_page,
             .num_pages = kv->num_pages,
             .position = by.position + row,
             .first = shape_.begin + shape_.sinks,
             .last = shape_.begin + chunks,
             .out = work_.scores.data()});
        !s.ok()) {
      return s;
    }
    if (absl::Status s =
            AddEvidence(stream, {.scores = work_.scores.data(),
                                 .rows = 1,
                                 .heads = shape_.heads,
                                 .kv_heads = layout.kv_heads,
                                 .candidates = candidates,
                                 .evidence = work_.evidence.data()});
        !s.ok()) {
      return s;
    }
  }
  const bool one = by.rows * (shape_.heads / layout.kv_heads) == 1;
  const float prior = shape_.choice.most_prior * (one ? kOfOneRow : 1.0f);
  const int64_t budget = shape_.budget - shape_.sinks;
  picked_.resize(static_cast<size_t>(layout.kv_heads * budget));
  if (absl::Status s = Select(stream, {.evidence = work_.evidence.data(),
                                       .norms = NormsOf(layer) + shape_.sinks,
                                       .norms_stride = shape_.context,
                                       .kv_heads = layout.kv_heads,
                                       .candidates = candidates,
                                       .budget = budget,
                                       .most_prior = std::min(prior, 1.0f),
                                       .reach = kReach,
                                       .suppression = shape_.choice.suppression,
                                       .exclusivity = shape_.choice.exclusivity,
                                       .out = picked_.data()});
      !s.ok()) {
    return s;
  }
  for (size_t head = 0; head < chosen->size(); ++head) {
    const int32_t* const picked =
        picked_.data() + static_cast<int64_t>(head) * budget;
    for (int64_t i = 0; i < budget; ++i) {
      (*chosen)[head].push_back(static_cast<int32_t>(shape_.sinks) + picked[i]);
    }
  }
  return absl::OkStatus();
}

}  // namespace tiercel

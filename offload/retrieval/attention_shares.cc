#include "offload/retrieval/attention_shares.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "kernels/kv/kv_convert.h"
#include "kernels/select/mean_scores.h"
#include "lib/status/status_macros.h"

namespace tiercel {
namespace {

Digests::Shape DigestsShape(const AttentionShares::Shape& shape) {
  return {.layout = shape.layout,
          .layers = 1,
          .heads = shape.heads,
          .chunk = shape.Chunk(),
          .begin = shape.begin,
          .context = shape.context};
}

int64_t QueryWidth(const AttentionShares::Shape& shape) {
  return int64_t{shape.heads} * shape.layout.head_dim;
}

// Floats from one head's scores to the next's, as MeanScores requires.
int64_t Stride(const AttentionShares::Shape& shape) {
  return (DigestsShape(shape).Chunks() + 15) / 16 * 16;
}

}  // namespace

int64_t AttentionShares::Shape::Bytes() const {
  constexpr int64_t kFloat = sizeof(float);
  return DigestsShape(*this).Bytes() +
         AlignedBytes(kMaxStepRows * QueryWidth(*this) * kFloat) +
         AlignedBytes(heads * Stride(*this) * kFloat);
}

absl::StatusOr<std::unique_ptr<AttentionShares>> AttentionShares::Create(
    DeviceMemory& memory, const Shape& shape) {
  ASSIGN_OR_RETURN(Digests digests,
                   Digests::Create(memory, DigestsShape(shape)));
  ASSIGN_OR_RETURN(
      DeviceArray<float> queries,
      DeviceArray<float>::Create(memory, kMaxStepRows * QueryWidth(shape),
                                 "queries that look"));
  ASSIGN_OR_RETURN(
      DeviceArray<float> scores,
      DeviceArray<float>::Create(memory, shape.heads * Stride(shape),
                                 "scores of chunks"));
  return std::unique_ptr<AttentionShares>(new AttentionShares(
      shape, std::move(digests), std::move(queries), std::move(scores)));
}

AttentionShares::AttentionShares(const Shape& shape, Digests digests,
                                 DeviceArray<float> queries,
                                 DeviceArray<float> scores)
    : shape_(shape),
      digests_(std::move(digests)),
      queries_(std::move(queries)),
      scores_(std::move(scores)) {}

void AttentionShares::Begin(int64_t first, int64_t last) {
  first_ = first;
  runs_ = last - first;
  weights_.resize(static_cast<size_t>(runs_ * kRun / shape_.Chunk()));
  const int64_t heads = int64_t{shape_.layers} * shape_.heads;
  before_.assign(static_cast<size_t>(heads * runs_), 0);
  question_.assign(before_.size(), 0);
  another_.assign(before_.size(), 0);
  others_.assign(before_.size(), 0);
  first_other_.assign(before_.size(), 0);
  others_read_ = 0;
  counted_ = Rows::kNone;
}

void AttentionShares::Count(Rows rows) {
  if (counted_ == Rows::kOfAnother) {
    if (others_read_ == 0) first_other_ = another_;
    for (size_t i = 0; i < others_.size(); ++i) {
      others_[i] += std::exchange(another_[i], 0.0f);
    }
    ++others_read_;
  }
  counted_ = rows;
}

std::vector<float>& AttentionShares::Peaks() {
  return counted_ == Rows::kOfTheQuestion ? question_
         : counted_ == Rows::kOfAnother   ? another_
                                          : before_;
}

absl::Status AttentionShares::BeginStep(int64_t /*end*/, int64_t rows,
                                        bool /*certain*/,
                                        Cancelled /*cancelled*/) {
  step_rows_ = rows;
  return absl::OkStatus();
}

absl::Status AttentionShares::KeepQueries(Stream& stream, int /*layer*/,
                                          int64_t first_row, int64_t rows,
                                          DevicePtr<const float> q) {
  if (counted_ == Rows::kNone) return absl::OkStatus();
  const KvConvertParams::Run run = {
      q.As<const std::byte>(),
      (queries_.data() + first_row * QueryWidth(shape_)).As<std::byte>(), rows};
  return KvConvert(stream, {.from = DType::kF32,
                            .to = DType::kF32,
                            .head_dim = static_cast<int>(QueryWidth(shape_)),
                            .runs = &run,
                            .num_runs = 1});
}

absl::Status AttentionShares::AfterLayer(Stream& stream, int layer,
                                         const KvPages& kv) {
  if (counted_ == Rows::kNone) return absl::OkStatus();
  const int64_t begin = first_ * kRun;
  digests_.Truncate(begin);  // it has the means of another layer
  KvPages text = kv;
  text.end = begin + runs_ * kRun;
  RETURN_IF_ERROR(digests_.Update(stream, /*layer=*/0, text, /*rows=*/0));
  std::vector<float>& peaks = Peaks();
  const int head_dim = shape_.layout.head_dim;
  const int64_t before = begin / shape_.Chunk() - digests_.shape().FirstChunk();
  const int64_t stride = Stride(shape_);
  for (int64_t row = 0; row < step_rows_; ++row) {
    RETURN_IF_ERROR(
        MeanScores(stream, {.q = queries_.data() + row * QueryWidth(shape_),
                            .heads = shape_.heads,
                            .kv_heads = shape_.layout.kv_heads,
                            .head_dim = head_dim,
                            .scale = shape_.layout.AttentionScale(),
                            .means = digests_.MeansOf(0) + before * head_dim,
                            .means_stride = digests_.HeadElements(),
                            .num_chunks = std::ssize(weights_),
                            .out = scores_.data(),
                            .out_stride = stride}));
    RETURN_IF_ERROR(ReadBack(stream, scores_, &read_));
    for (int head = 0; head < shape_.heads; ++head) {
      Divide({read_.data() + head * stride, weights_.size()},
             peaks.data() + (int64_t{layer} * shape_.heads + head) * runs_);
    }
  }
  return absl::OkStatus();
}

void AttentionShares::Divide(std::span<const float> scores, float* peaks) {
  const float greatest = *std::max_element(scores.begin(), scores.end());
  double sum = 0;
  for (size_t i = 0; i < scores.size(); ++i) {
    weights_[i] = std::exp(static_cast<double>(scores[i]) - greatest);
    sum += weights_[i];
  }
  if (!std::isfinite(sum)) return;  // some keys are not finite
  const int64_t chunks = kRun / shape_.Chunk();
  for (int64_t run = 0; run < runs_; ++run) {
    const auto of_run = weights_.begin() + run * chunks;
    const double share = std::accumulate(of_run, of_run + chunks, 0.0) / sum;
    peaks[run] = std::max(peaks[run], static_cast<float>(share));
  }
}

AttentionShares::Found AttentionShares::Shares() const {
  const AttentionShares* const all[] = {this};
  return SharesOf(all);
}

AttentionShares::Found AttentionShares::SharesOf(
    std::span<const AttentionShares* const> parts) {
  constexpr double kLittle = 0.001;
  const double others = std::max(parts.front()->others_read_, 1);
  const int64_t runs = parts.front()->runs_;
  std::vector<double> shares(static_cast<size_t>(runs));
  std::vector<double> over_first = shares;
  int64_t heads = 0;
  // The order of the sums is that of one instance that has all heads.
  for (int layer = 0; layer < parts.front()->shape_.layers; ++layer) {
    for (const AttentionShares* part : parts) {
      const int64_t width = part->shape_.heads * runs;
      heads += part->shape_.heads;
      for (int64_t i = 0; i < width; ++i) {
        const auto at = static_cast<size_t>(layer * width + i);
        const auto run = static_cast<size_t>(i % runs);
        const double question = part->question_[at];
        const double before = part->before_[at];
        const auto over = [&](double other) {
          return question * std::log((question + kLittle) /
                                     (std::max(before, other) + kLittle));
        };
        shares[run] += over(part->others_[at] / others);
        over_first[run] += over(part->first_other_[at]);
      }
    }
  }
  double sum = 0;
  for (double& share : shares) sum += share = std::max(share, 0.0);
  for (double& share : shares) share = sum > 0 ? share / sum : 0;
  double excess = 0;
  for (const double over : over_first) excess += std::max(over, 0.0);
  const double most =
      static_cast<double>(heads) * std::log(static_cast<double>(runs));
  return {std::move(shares), most > 0 ? excess / most : 0};
}

}  // namespace tiercel

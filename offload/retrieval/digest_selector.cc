#include "offload/retrieval/digest_selector.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "kernels/select/chunk_scores.h"
#include "kernels/select/top_k.h"
#include "lib/status/status_macros.h"

namespace tiercel {

int64_t DigestSelector::Shape::Bytes() const {
  const int64_t heads = digests.layout.kv_heads;
  return digests.Bytes() +
         AlignedBytes(heads * digests.Chunks() *
                      static_cast<int64_t>(sizeof(float))) +
         AlignedBytes(heads * chunks * static_cast<int64_t>(sizeof(int32_t)));
}

absl::StatusOr<std::unique_ptr<Selector>> DigestSelector::Create(
    DeviceMemory& memory, const Shape& shape) {
  ASSIGN_OR_RETURN(Digests digests, Digests::Create(memory, shape.digests));
  return Over(memory, shape, std::move(digests));
}

absl::StatusOr<std::unique_ptr<Selector>> DigestSelector::Copy(
    DeviceMemory& memory) const {
  ASSIGN_OR_RETURN(Digests digests, digests_.Copy(memory));
  return Over(memory, shape_, std::move(digests));
}

absl::StatusOr<std::unique_ptr<Selector>> DigestSelector::Over(
    DeviceMemory& memory, const Shape& shape, Digests digests) {
  const int64_t heads = shape.digests.layout.kv_heads;
  ASSIGN_OR_RETURN(
      DeviceArray<float> scores,
      DeviceArray<float>::Create(memory, heads * shape.digests.Chunks(),
                                 "scores of chunks"));
  ASSIGN_OR_RETURN(DeviceArray<int32_t> places,
                   DeviceArray<int32_t>::Create(memory, heads * shape.chunks,
                                                "chosen chunks"));
  return std::unique_ptr<Selector>(new DigestSelector(
      shape, std::move(digests), std::move(scores), std::move(places)));
}

absl::Status DigestSelector::Choose(Stream& stream, int layer,
                                    const QueryRows& by, const KvPages* /*kv*/,
                                    int64_t chunks,
                                    std::vector<std::vector<int32_t>>* chosen) {
  const int heads = shape_.digests.layout.kv_heads;
  if (chunks <= shape_.chunks || shape_.chunks <= shape_.sinks) {
    std::vector<int32_t> first(
        static_cast<size_t>(std::min(chunks, shape_.chunks)));
    std::iota(first.begin(), first.end(), 0);
    chosen->assign(static_cast<size_t>(heads), first);
    return absl::OkStatus();
  }
  const int head_dim = shape_.digests.layout.head_dim;
  RETURN_IF_ERROR(
      ChunkScores(stream, {.q = by.q + (by.rows - 1) * by.row_floats,
                           .heads = shape_.digests.heads,
                           .kv_heads = heads,
                           .head_dim = head_dim,
                           .scale = shape_.digests.layout.AttentionScale(),
                           .means = digests_.MeansOf(layer),
                           .means_stride = digests_.HeadElements(),
                           .num_chunks = chunks,
                           .out = scores_.data()}));
  RETURN_IF_ERROR(TopK(stream, {.values = scores_.data(),
                                .stride = chunks,
                                .rows = heads,
                                .n = chunks,
                                .always = shape_.sinks,
                                .k = shape_.chunks,
                                .out = places_.data()}));
  RETURN_IF_ERROR(ReadBack(stream, places_, &read_));
  chosen->clear();
  for (int head = 0; head < heads; ++head) {
    const auto places = read_.begin() + head * shape_.chunks;
    chosen->emplace_back(places, places + shape_.chunks);
  }
  return absl::OkStatus();
}

}  // namespace tiercel

#include "offload/view/digests.h"

#include <cmath>
#include <cstring>
#include <utility>

#include "kernels/attention/chunk_scores.h"
#include "kernels/kv/chunk_means.h"

namespace tiercel {

absl::StatusOr<Digests> Digests::Create(DeviceMemory& memory,
                                        const Shape& shape) {
  absl::StatusOr<DeviceArray<uint16_t>> means =
      DeviceArray<uint16_t>::Create(memory,
                                    shape.layers * shape.layout.kv_heads *
                                        shape.Chunks() * shape.layout.head_dim,
                                    "digests");
  if (!means.ok()) return means.status();
  return Digests(shape, *std::move(means));
}

absl::StatusOr<Digests> Digests::Copy(DeviceMemory& memory) const {
  absl::StatusOr<Digests> copy = Create(memory, shape_);
  if (copy.ok() && !means_.empty()) {
    std::memcpy(copy->means_.data(), means_.data(),
                means_.size() * sizeof(uint16_t));
  }
  return copy;
}

absl::Status Digests::Update(Stream& stream, int layer, const KvPages& kv,
                             int64_t rows) {
  const int64_t first = kv.end / shape_.chunk;
  const int64_t end = (kv.end + rows) / shape_.chunk;
  if (first >= end) return absl::OkStatus();
  uint16_t* const means =
      means_.data() + layer * shape_.layout.kv_heads * HeadElements() +
      (first - shape_.FirstChunk()) * shape_.layout.head_dim;
  return ChunkMeans(stream, {.layout = kv.layout,
                             .pages = kv.pages,
                             .first_page = kv.first_page,
                             .num_pages = kv.num_pages,
                             .begin = kv.begin,
                             .chunk = shape_.chunk,
                             .first_chunk = first,
                             .num_chunks = end - first,
                             .out = means,
                             .out_stride = HeadElements()});
}

absl::Status Digests::Score(Stream& stream, int layer, const float* q,
                            int64_t chunks, float* scores) const {
  const int head_dim = shape_.layout.head_dim;
  return ChunkScores(
      stream,
      {.q = q,
       .heads = shape_.heads,
       .kv_heads = shape_.layout.kv_heads,
       .head_dim = head_dim,
       .scale = 1.0f / std::sqrt(static_cast<float>(head_dim)),
       .means = means_.data() + layer * shape_.layout.kv_heads * HeadElements(),
       .means_stride = HeadElements(),
       .num_chunks = chunks,
       .out = scores});
}

}  // namespace tiercel

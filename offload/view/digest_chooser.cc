#include "offload/view/digest_chooser.h"

#include <algorithm>
#include <cmath>

#include "kernels/attention/chunk_scores.h"
#include "kernels/attention/top_k.h"

namespace tiercel {

absl::StatusOr<std::unique_ptr<Chooser>> DigestChooser::Create(
    DeviceMemory& memory, const Shape& shape) {
  absl::StatusOr<Digests> digests = Digests::Create(memory, shape.digests);
  if (!digests.ok()) return digests.status();
  return std::unique_ptr<Chooser>(
      new DigestChooser(shape, *std::move(digests)));
}

absl::StatusOr<std::unique_ptr<Chooser>> DigestChooser::Copy(
    DeviceMemory& memory) const {
  absl::StatusOr<Digests> digests = digests_.Copy(memory);
  if (!digests.ok()) return digests.status();
  return std::unique_ptr<Chooser>(
      new DigestChooser(shape_, *std::move(digests)));
}

absl::Status DigestChooser::Choose(Stream& stream, int layer, const Asking& by,
                                   const KvPages* /*kv*/, int64_t chunks,
                                   std::vector<std::vector<int32_t>>* chosen) {
  const int heads = shape_.digests.layout.kv_heads;
  scores_.assign(static_cast<size_t>(heads * chunks), 0.0f);
  if (shape_.chunks > shape_.sinks && chunks > shape_.chunks) {
    const int head_dim = shape_.digests.layout.head_dim;
    if (absl::Status s = ChunkScores(
            stream, {.q = by.q + (by.rows - 1) * by.row_floats,
                     .heads = shape_.digests.heads,
                     .kv_heads = heads,
                     .head_dim = head_dim,
                     .scale = 1.0f / std::sqrt(static_cast<float>(head_dim)),
                     .means = digests_.MeansOf(layer),
                     .means_stride = digests_.HeadElements(),
                     .num_chunks = chunks,
                     .out = scores_.data()});
        !s.ok()) {
      return s;
    }
  }
  const int64_t kept = std::min(shape_.chunks, chunks);
  places_.resize(static_cast<size_t>(heads * kept));
  if (absl::Status s = TopK(stream, {.values = scores_.data(),
                                     .stride = chunks,
                                     .rows = heads,
                                     .n = chunks,
                                     .always = shape_.sinks,
                                     .k = shape_.chunks,
                                     .out = places_.data()});
      !s.ok()) {
    return s;
  }
  chosen->clear();
  for (int head = 0; head < heads; ++head) {
    const auto places = places_.begin() + head * kept;
    chosen->emplace_back(places, places + kept);
  }
  return absl::OkStatus();
}

}  // namespace tiercel

#include "offload/view/digest_chooser.h"

#include <cmath>
#include <cstddef>

#include "kernels/attention/chunk_scores.h"
#include "offload/view/chunk_choice.h"

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
  chosen->clear();
  for (int head = 0; head < heads; ++head) {
    chosen->push_back(ChooseChunks(
        {scores_.data() + head * chunks, static_cast<size_t>(chunks)},
        static_cast<size_t>(shape_.sinks), static_cast<size_t>(shape_.chunks)));
  }
  return absl::OkStatus();
}

}  // namespace tiercel

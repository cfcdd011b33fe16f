#include "offload/retrieval/digests.h"

#include <algorithm>
#include <utility>

#include "kernels/kv/chunk_means.h"
#include "lib/status/status_macros.h"

namespace tiercel {
absl::StatusOr<Digests> Digests::Create(DeviceMemory& memory,
                                        const Shape& shape) {
  ASSIGN_OR_RETURN(
      DeviceArray<uint16_t> means,
      DeviceArray<uint16_t>::Create(
          memory, shape.Means() * shape.layout.head_dim, "digests"));
  ASSIGN_OR_RETURN(
      DeviceArray<uint16_t> norms,
      DeviceArray<uint16_t>::Create(memory, shape.norms ? shape.Means() : 0,
                                    "norms of digests"));
  return Digests(shape, std::move(means), std::move(norms));
}

absl::StatusOr<Digests> Digests::Copy(DeviceMemory& memory) const {
  ASSIGN_OR_RETURN(DeviceArray<uint16_t> means, means_.Copy(memory, "digests"));
  ASSIGN_OR_RETURN(DeviceArray<uint16_t> norms,
                   norms_.Copy(memory, "norms of digests"));
  Digests copy(shape_, std::move(means), std::move(norms));
  copy.known_ = known_;
  return copy;
}

absl::Status Digests::Update(Stream& stream, int layer, const KvPages& kv,
                             int64_t rows) {
  int64_t& known = known_[static_cast<size_t>(layer)];
  const int64_t first = std::min(known, kv.end) / shape_.chunk;
  const int64_t end = (kv.end + rows) / shape_.chunk;
  if (first < end) {
    const int64_t index = first - shape_.FirstChunk();
    const int64_t head = layer * shape_.layout.kv_heads * shape_.Chunks();
    RETURN_IF_ERROR(ChunkMeans(
        stream, {.layout = kv.layout,
                 .pages = kv.pages,
                 .first_page = kv.first_page,
                 .num_pages = kv.num_pages,
                 .begin = kv.begin,
                 .chunk = shape_.chunk,
                 .first_chunk = first,
                 .num_chunks = end - first,
                 .out = means_.data() + (head + index) * shape_.layout.head_dim,
                 .out_stride = HeadElements(),
                 .norms = shape_.norms ? norms_.data() + head + index : nullptr,
                 .norms_stride = shape_.Chunks()}));
  }
  known = kv.end + rows;
  return absl::OkStatus();
}

int64_t Digests::UpdatesFrom() const {
  // A chunk that was not whole is digested from its beginning, in the same
  // page.
  return *std::min_element(known_.begin(), known_.end()) / kPageTokens *
         kPageTokens;
}

void Digests::Truncate(int64_t end) {
  for (int64_t& known : known_) known = std::min(known, end);
}

}  // namespace tiercel

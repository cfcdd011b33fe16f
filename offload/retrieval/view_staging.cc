#include "offload/retrieval/view_staging.h"

#include <algorithm>

#include "lib/status/status_macros.h"

namespace tiercel {
absl::StatusOr<ViewStaging> ViewStaging::Create(DeviceMemory& memory,
                                                const Shape& shape) {
  ASSIGN_OR_RETURN(
      DeviceArray<std::byte> bytes,
      DeviceArray<std::byte>::Create(memory, shape.bytes, "staging"));
  return ViewStaging(shape, std::move(bytes));
}

std::optional<KvRun> ViewStaging::Take(const KvRun& run) {
  const int64_t k_bytes = run.rows * shape_.from.KRowBytes();
  const int64_t v_bytes = run.rows * shape_.from.VRowBytes();
  if (used_ + k_bytes + v_bytes > shape_.bytes) return std::nullopt;
  KvRun here = run;
  here.k = memory_.data() + used_;
  here.v = here.k + k_bytes;
  used_ += k_bytes + v_bytes;
  arrivals_.push_back({here, run});
  return here;
}

absl::Status ViewStaging::Settle(Stream& stream, int layer) {
  std::vector<KvConvertParams::Run> k;
  std::vector<KvConvertParams::Run> v;
  for (const auto& [here, place] : arrivals_) {
    if (here.layer != layer) continue;
    k.push_back({here.k, place.k, here.rows});
    v.push_back({here.v, place.v, here.rows});
  }
  Drop(layer);
  return ConvertRows(stream, shape_.from, shape_.to, k, v);
}

void ViewStaging::Drop(int layer) {
  std::erase_if(arrivals_, [layer](const Arrival& arrival) {
    return arrival.here.layer == layer;
  });
  if (arrivals_.empty()) used_ = 0;
}

}  // namespace tiercel

#include "offload/view/landing.h"

#include <algorithm>

#include "kernels/kv/kv_convert.h"

namespace tiercel {
namespace {

using Runs = std::vector<KvConvertParams::Run>;

absl::Status Convert(Stream& stream, const KvLayout& from, const KvLayout& to,
                     const Runs& k, const Runs& v) {
  if (k.empty()) return absl::OkStatus();
  absl::Status status = KvConvert(stream, {.from = from.type_k,
                                           .to = to.type_k,
                                           .head_dim = from.head_dim,
                                           .runs = k.data(),
                                           .num_runs = std::ssize(k)});
  if (!status.ok()) return status;
  return KvConvert(stream, {.from = from.type_v,
                            .to = to.type_v,
                            .head_dim = from.head_dim,
                            .runs = v.data(),
                            .num_runs = std::ssize(v)});
}

}  // namespace

absl::Status FillRuns(Stream& stream, const KvLayout& layout,
                      const std::byte* const* pages, int64_t first_page,
                      const KvLayout& to, std::span<const KvRun> runs) {
  Runs k;
  Runs v;
  for (const KvRun& run : runs) {
    const std::byte* const page =
        pages[run.position / kPageTokens - first_page];
    const auto cell = static_cast<int>(run.position % kPageTokens);
    k.push_back({page + layout.KOffset(run.head, cell), run.k, run.rows});
    v.push_back({page + layout.VOffset(run.head, cell), run.v, run.rows});
  }
  return Convert(stream, layout, to, k, v);
}

absl::StatusOr<Landing> Landing::Create(DeviceMemory& memory,
                                        const Shape& shape) {
  absl::StatusOr<DeviceArray<std::byte>> bytes =
      DeviceArray<std::byte>::Create(memory, shape.bytes, "landing");
  if (!bytes.ok()) return bytes.status();
  return Landing(shape, *std::move(bytes));
}

std::optional<KvRun> Landing::Take(const KvRun& run) {
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

absl::Status Landing::Settle(Stream& stream, int layer) {
  Runs k;
  Runs v;
  for (const auto& [here, place] : arrivals_) {
    if (here.layer != layer) continue;
    k.push_back({here.k, place.k, here.rows});
    v.push_back({here.v, place.v, here.rows});
  }
  Drop(layer);
  return Convert(stream, shape_.from, shape_.to, k, v);
}

void Landing::Drop(int layer) {
  std::erase_if(arrivals_, [layer](const Arrival& arrival) {
    return arrival.here.layer == layer;
  });
  if (arrivals_.empty()) used_ = 0;
}

}  // namespace tiercel

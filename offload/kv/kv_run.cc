#include "offload/kv/kv_run.h"

#include "lib/status/status_macros.h"

namespace tiercel {

absl::Status FillRuns(
    Stream& stream, const KvLayout& layout, const KvLayout& to,
    std::span<const KvRun> runs,
    absl::FunctionRef<DevicePtr<std::byte>(const KvRun& run)> page_of) {
  std::vector<KvConvertParams::Run> k;
  std::vector<KvConvertParams::Run> v;
  for (const KvRun& run : runs) {
    const DevicePtr<std::byte> page = page_of(run);
    const auto cell = static_cast<int>(run.position % kPageTokens);
    k.push_back({page + layout.KOffset(run.head, cell), run.k, run.rows});
    v.push_back({page + layout.VOffset(run.head, cell), run.v, run.rows});
  }
  return ConvertRows(stream, layout, to, k, v);
}

absl::Status ConvertRows(Stream& stream, const KvLayout& from,
                         const KvLayout& to,
                         const std::vector<KvConvertParams::Run>& k,
                         const std::vector<KvConvertParams::Run>& v) {
  if (k.empty()) return absl::OkStatus();
  RETURN_IF_ERROR(KvConvert(stream, {.from = from.type_k,
                                     .to = to.type_k,
                                     .head_dim = from.head_dim,
                                     .runs = k.data(),
                                     .num_runs = std::ssize(k)}));
  return KvConvert(stream, {.from = from.type_v,
                            .to = to.type_v,
                            .head_dim = from.head_dim,
                            .runs = v.data(),
                            .num_runs = std::ssize(v)});
}

}  // namespace tiercel

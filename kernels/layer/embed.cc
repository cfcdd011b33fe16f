#include "kernels/layer/embed.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "kernels/device/cuda/cuda_driver.h"
#include "kernels/device/op.h"
#include "kernels/layer/packed_matrix.h"
#include "lib/status/error.h"
#include "lib/status/status_macros.h"

namespace tiercel {

void EmbedReference(const EmbedParams& p, int64_t begin, int64_t end) {
  for (int64_t r = begin; r < end; ++r) {
    float* const row = p.out.raw() + r * p.table->cols();
    p.table->UnpackRow(p.ids[r], row);
    for (int64_t k = 0; k < p.table->cols(); ++k) row[k] *= p.scale;
  }
}

namespace {

// The least number of rows for which another thread is worth it.
constexpr int64_t kLeastRows = 16;

absl::Status Validate(const EmbedParams& p, PanelOrder order) {
  if (p.rows < 0) {
    return UsageError("invalid_sizes",
                      absl::StrCat("Embed: rows=", p.rows, "; need 0 or more"));
  }
  const char* missing = p.table == nullptr || p.table->data() == nullptr
                            ? "table"
                        : p.rows > 0 && p.ids == nullptr ? "ids"
                        : p.rows > 0 && p.out == nullptr ? "out"
                                                         : nullptr;
  if (missing != nullptr) {
    return UsageError("invalid_argument",
                      absl::StrCat("Embed: ", missing, " is null"));
  }
  if (p.table->order() != order) {
    return UsageError("invalid_argument",
                      "Embed: table is packed for another kind of device");
  }
  for (int64_t r = 0; r < p.rows; ++r) {
    if (p.ids[r] < 0 || p.ids[r] >= p.table->rows()) {
      return UsageError("invalid_argument",
                        absl::StrCat("Embed: ids[", r, "]=", p.ids[r],
                                     "; need 0 <= id < ", p.table->rows()));
    }
  }
  return absl::OkStatus();
}

absl::Status OnGpu(Stream& stream, const EmbedParams& p) {
  ASSIGN_OR_RETURN(const DevicePtr<const int32_t> ids,
                   SendToScratch(stream, p.ids, p.rows));
  const EmbedRows rows = {p.table->data().As<const uint8_t>().raw(),
                          p.table->panel_bytes(),
                          p.table->cols(),
                          ids.raw(),
                          p.rows,
                          p.out.raw(),
                          p.scale};
  return CudaStatus("Embed",
                    EmbedCuda(stream.queue().handle(), p.table->type(), rows));
}

absl::Status OnCpu(Stream& stream, const EmbedParams& p) {
  stream.pool().ParallelFor(
      p.rows, kLeastRows,
      [&](int64_t begin, int64_t end, int) { EmbedReference(p, begin, end); });
  return absl::OkStatus();
}

constexpr OpBodies<EmbedParams> kEmbed = {
    .reference = OnCpu,
    .cpu = OnCpu,
    .gpu = OnGpu,
    .keep = [](EmbedParams& p, HostLists& lists) {
      p.ids = lists.Keep(p.ids, p.rows);
    }};

}  // namespace

absl::Status Embed(Stream& stream, const EmbedParams& p) {
  const PanelOrder order = PackedMatrix::OrderFor(stream);
  RETURN_IF_ERROR(Validate(p, order));
  if (p.rows == 0) return absl::OkStatus();
  return Run(kEmbed, stream, p);
}

}  // namespace tiercel

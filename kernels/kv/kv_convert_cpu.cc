#include "kernels/kv/kv_convert.h"
#include "kernels/kv/kv_lanes.h"
#include "kernels/kv/kv_write.h"

namespace tiercel::TIERCEL_ISA_NS {
namespace {

// The elements of a block of q8_0 or q4_0, which share a scale.
constexpr int kTogether = 32;

int64_t BytesOf(DType type, int elements) {
  switch (type) {
    case DType::kF16:
    case DType::kBF16:
      return 2 * int64_t{elements};
    case DType::kQ8_0:
      return elements / 32 * int64_t{34};
    case DType::kQ4_0:
      return elements / 32 * int64_t{18};
    default:
      return 4 * int64_t{elements};
  }
}

template <typename Source>
void ConvertRow(const std::byte* row, DType to, int head_dim, std::byte* out) {
  float values[kTogether];
  for (int begin = 0; begin < head_dim; begin += kTogether) {
    const int rest = head_dim - begin;
    const int n = rest < kTogether ? rest : kTogether;
    for (int i = 0; i < n; i += 16) {
      Store(n - i >= 16 ? Source::Read(row, begin + i)
                        : TailOf<Source>::Read(row, begin + i),
            values + i);
    }
    KvRowWrite(to, values, n, out + BytesOf(to, begin));
  }
}

}  // namespace

void KvRowConvert(DType from, const std::byte* row, DType to, int head_dim,
                  std::byte* out) {
  ForSource(from, [&](auto source) {
    ConvertRow<decltype(source)>(row, to, head_dim, out);
  });
}

}  // namespace tiercel::TIERCEL_ISA_NS

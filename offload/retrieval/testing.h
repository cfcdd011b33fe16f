#ifndef TIERCEL_OFFLOAD_RETRIEVAL_TESTING_H_
#define TIERCEL_OFFLOAD_RETRIEVAL_TESTING_H_

// For tests of views only.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <string_view>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/device/device_memory.h"
#include "offload/kv/kv_store.h"

namespace tiercel {

// Memory whose blocks begin as NaN, whatever type is read from them. Free
// checks that nothing was written beyond a block.
class PoisonedMemory final : public DeviceMemory {
 public:
  absl::StatusOr<DevicePtr<std::byte>> Allocate(
      size_t bytes, std::string_view what) override {
    absl::StatusOr<DevicePtr<std::byte>> data =
        heap_.Allocate(bytes + kBeyond, what);
    if (!data.ok()) return data;
    std::memset(HostAddress(*data), 0xff, bytes + kBeyond);
    Count(AlignedBytes(static_cast<int64_t>(bytes)));
    return data;
  }
  void Free(DevicePtr<std::byte> data, size_t bytes) override {
    const std::byte* const end = HostAddress(data) + bytes;
    EXPECT_TRUE(std::all_of(end, end + kBeyond,
                            [](auto b) { return b == std::byte{0xff}; }))
        << "written beyond a block of " << bytes << " bytes";
    Count(-AlignedBytes(static_cast<int64_t>(bytes)));
    heap_.Free(data, bytes + kBeyond);
  }

 private:
  static constexpr size_t kBeyond = 4096;
  HeapMemory heap_;
};

// K and V of one position as they are stored.
struct StoredRow {
  std::vector<std::byte> k;
  std::vector<std::byte> v;

  friend bool operator==(const StoredRow&, const StoredRow&) = default;
};

inline StoredRow RowAt(const KvPages& kv, int head, int64_t position) {
  const std::byte* const page =
      HostAddress(kv.pages[position / kPageTokens - kv.first_page]);
  const auto cell = static_cast<int>(position % kPageTokens);
  const std::byte* const k = page + kv.layout.KOffset(head, cell);
  const std::byte* const v = page + kv.layout.VOffset(head, cell);
  return {{k, k + kv.layout.KRowBytes()}, {v, v + kv.layout.VRowBytes()}};
}

inline void SetRowAt(const KvPages& kv, int head, int64_t position,
                     const StoredRow& row) {
  std::byte* const page =
      HostAddress(kv.pages[position / kPageTokens - kv.first_page]);
  const auto cell = static_cast<int>(position % kPageTokens);
  std::memcpy(page + kv.layout.KOffset(head, cell), row.k.data(), row.k.size());
  std::memcpy(page + kv.layout.VOffset(head, cell), row.v.data(), row.v.size());
}

// The rows that the next row sees before itself in a head, by cell.
inline std::map<int64_t, StoredRow> SeenCells(const KvPages& kv, int head) {
  const HeadView& view = kv.view[head];
  EXPECT_TRUE(CheckHeadView(view, head).ok());
  std::map<int64_t, StoredRow> seen;
  for (int64_t cell = kv.begin; cell < kv.end; ++cell) {
    bool sees = cell > kv.end - view.recent;
    for (const PositionRange& range : view.fixed) {
      sees = sees || (range.begin <= cell && cell < range.end);
    }
    if (sees) seen[cell] = RowAt(kv, head, cell);
  }
  return seen;
}

}  // namespace tiercel

#endif  // TIERCEL_OFFLOAD_RETRIEVAL_TESTING_H_

#include "offload/retrieval/view_staging.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/kv/kv_row.h"
#include "kernels/system/testing.h"
#include "offload/retrieval/testing.h"

namespace tiercel {
namespace {

constexpr int kHeadDim = 32;
constexpr KvLayout kFrom = {DType::kF16, DType::kF32, 1, kHeadDim};
constexpr KvLayout kTo = {DType::kQ8_0, DType::kQ8_0, 1, kHeadDim};
constexpr int64_t kRowBytes = 64 + 128;

// A run of a layer whose place is to have `value` in every element.
struct Guest {
  Guest(int layer, int64_t rows, float what)
      : value(what),
        k(static_cast<size_t>(rows * kTo.KRowBytes())),
        v(static_cast<size_t>(rows * kTo.VRowBytes())),
        run{.layer = layer,
            .rows = rows,
            .k = InPlace(k.data()),
            .v = InPlace(v.data())} {}

  // Writes the rows that a copy from the store would leave at `here`.
  void Arrive(const KvRun& here) const {
    const std::vector<float> row(kHeadDim, value);
    for (int64_t r = 0; r < run.rows; ++r) {
      KvRowFromF32(kFrom.type_k, row.data(), kHeadDim,
                   HostAddress(here.k + r * kFrom.KRowBytes()));
      KvRowFromF32(kFrom.type_v, row.data(), kHeadDim,
                   HostAddress(here.v + r * kFrom.VRowBytes()));
    }
  }
  bool IsThere() const {
    std::vector<std::byte> row(static_cast<size_t>(kTo.KRowBytes()));
    const std::vector<float> values(kHeadDim, value);
    KvRowFromF32(DType::kQ8_0, values.data(), kHeadDim, row.data());
    for (size_t at = 0; at < k.size(); at += row.size()) {
      for (const std::vector<std::byte>* place : {&k, &v}) {
        if (!std::equal(row.begin(), row.end(),
                        place->begin() + static_cast<std::ptrdiff_t>(at))) {
          return false;
        }
      }
    }
    return true;
  }

  float value;
  std::vector<std::byte> k;
  std::vector<std::byte> v;
  KvRun run;
};

// The place of one layer's rows is not reused while another layer waits.
TEST(ViewStagingTest, ARoomIsFreeWhenAllHaveLeft) {
  PoisonedMemory memory;
  const auto stream = MakeStream(DeviceKind::kCpu);
  auto staging = ViewStaging::Create(memory, {kFrom, kTo, 10 * kRowBytes});
  ASSERT_TRUE(staging.ok()) << staging.status();

  Guest first(0, 4, 1);
  Guest second(1, 6, 2);
  Guest third(1, 1, 3);
  const std::optional<KvRun> a = staging->Take(first.run);
  const std::optional<KvRun> b = staging->Take(second.run);
  ASSERT_TRUE(a.has_value() && b.has_value());
  EXPECT_FALSE(staging->Take(third.run).has_value());  // it is full
  first.Arrive(*a);
  ASSERT_TRUE(staging->Settle(*stream, 0).ok());
  EXPECT_TRUE(first.IsThere());
  EXPECT_FALSE(staging->Take(third.run).has_value());  // the second remains
  second.Arrive(*b);
  ASSERT_TRUE(staging->Settle(*stream, 1).ok());
  EXPECT_TRUE(second.IsThere());

  const std::optional<KvRun> c = staging->Take(third.run);
  ASSERT_TRUE(c.has_value());
  third.Arrive(*c);
  staging->Drop(1);
  ASSERT_TRUE(staging->Settle(*stream, 1).ok());  // no run is left
  EXPECT_FALSE(third.IsThere());
}

TEST(ViewStagingTest, WithoutBytesItTakesNobody) {
  PoisonedMemory memory;
  auto staging = ViewStaging::Create(memory, {});
  ASSERT_TRUE(staging.ok()) << staging.status();
  EXPECT_EQ(memory.used(), 0);
  const auto stream = MakeStream(DeviceKind::kCpu);
  EXPECT_TRUE(staging->Settle(*stream, 0).ok());
}

}  // namespace
}  // namespace tiercel

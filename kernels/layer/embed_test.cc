#include "kernels/layer/embed.h"

#include <cmath>
#include <cstring>
#include <memory>
#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/layer/packed_matrix.h"
#include "kernels/layer/testing.h"
#include "kernels/number/dequantize.h"
#include "kernels/system/testing.h"
#include "lib/status/error.h"

namespace tiercel {
namespace {

constexpr int64_t kVocab = 37;
constexpr int64_t kHidden = 256;

struct Table {
  explicit Table(DType of) : type(of) {
    std::mt19937 random(5);
    const int64_t row_bytes = RowBytes(type, kHidden);
    bytes.resize(static_cast<size_t>(kVocab * row_bytes));
    // Bytes below 0x40 keep every scale finite, so that bits can be compared.
    for (std::byte& b : bytes) b = static_cast<std::byte>(random() & 0x3f);
    values.resize(static_cast<size_t>(kVocab * kHidden));
    Dequantize(type, bytes.data(), kVocab * kHidden, values.data());
    matrix = Packed(PanelOrder::kLanes);
  }
  PackedMatrix Packed(PanelOrder order) const {
    PackedMatrix packed =
        *PackedMatrix::Create(type, kVocab, kHidden, SystemMemory(), order);
    for (int64_t row = 0; row < kVocab; ++row) {
      packed.PackRow(row, bytes.data() + row * RowBytes(type, kHidden));
    }
    return packed;
  }
  DType type;
  std::vector<std::byte> bytes;
  std::vector<float> values;
  PackedMatrix matrix;  // for the host
};

class EmbedBackendTest : public BackendTest {};
INSTANTIATE_TEST_SUITE_P(Backends, EmbedBackendTest,
                         testing::ValuesIn(Backends()), NameOfBackend);

TEST_P(EmbedBackendTest, RowsAreTheTablesRowsTimesTheScale) {
  for (const DType type : EveryType()) {
    const Table table(type);
    for (const int threads : Threads({1, 3})) {
      const std::unique_ptr<Stream> stream = NewStream(threads);
      const PackedMatrix matrix =
          *table.Packed(PackedMatrix::OrderFor(*stream)).CopyTo(*stream);
      for (const int64_t rows : Fewer({0, 1, 15, 16, 17, 100}, {0, 1, 37})) {
        const float scale = rows % 2 == 0 ? 1.0f : 12.1f;
        std::vector<int32_t> ids(static_cast<size_t>(rows));
        std::vector<float> expected;
        for (size_t r = 0; r < ids.size(); ++r) {
          ids[r] = static_cast<int32_t>((r * 11 + 36) % kVocab);
          for (int64_t k = 0; k < kHidden; ++k) {
            expected.push_back(
                scale *
                table.values[static_cast<size_t>(ids[r] * kHidden + k)]);
          }
        }
        // There is one element more than is used, so that a write past the end
        // is noticed.
        OnDevice<float> out(*stream,
                            std::vector<float>(expected.size() + 1, kPoison));
        const absl::Status status =
            Embed(*stream, {&matrix, ids.data(), rows, out.data(), scale});
        ASSERT_TRUE(status.ok()) << status;
        std::vector<float> got = out.Read();
        EXPECT_TRUE(std::isnan(got.back()));
        got.pop_back();
        EXPECT_TRUE(SameBits(got, expected))
            << InfoOf(type).name << " " << rows << " rows";
      }
    }
  }
}

TEST(EmbedTest, RefusesIdsOutsideTheTableAndWritesNothing) {
  const Table table(DType::kF32);
  const std::unique_ptr<Stream> stream = MakeStream(DeviceKind::kCpu);
  for (const int32_t bad : {-1, static_cast<int32_t>(kVocab), INT32_MIN}) {
    const int32_t ids[] = {0, bad};
    std::vector<float> out(2 * kHidden, 7.0f);
    const absl::Status status =
        Embed(*stream, {&table.matrix, ids, 2, InPlace(out.data())});
    EXPECT_EQ(CodeOf(status), "invalid_argument") << status;
    EXPECT_NE(std::string(status.message()).find("ids[1]"), std::string::npos);
    EXPECT_EQ(out, std::vector<float>(2 * kHidden, 7.0f));
  }
}

TEST(EmbedTest, RefusesWhatIsMissing) {
  const Table table(DType::kF32);
  const PackedMatrix empty;
  const std::unique_ptr<Stream> stream = MakeStream(DeviceKind::kCpu);
  const int32_t id = 0;
  std::vector<float> out(kHidden);
  for (const EmbedParams& p :
       {EmbedParams{nullptr, &id, 1, InPlace(out.data())},
        EmbedParams{&empty, &id, 1, InPlace(out.data())},
        EmbedParams{&table.matrix, nullptr, 1, InPlace(out.data())},
        EmbedParams{&table.matrix, &id, 1, nullptr}}) {
    EXPECT_EQ(CodeOf(Embed(*stream, p)), "invalid_argument");
  }
  EXPECT_EQ(
      CodeOf(Embed(*stream, {&table.matrix, &id, -1, InPlace(out.data())})),
      "invalid_sizes");
  const PackedMatrix for_gpu = table.Packed(PanelOrder::kFragments);
  EXPECT_EQ(Embed(*stream, {&for_gpu, &id, 1, InPlace(out.data())}).message(),
            "Embed: table is packed for another kind of device");
}

}  // namespace
}  // namespace tiercel

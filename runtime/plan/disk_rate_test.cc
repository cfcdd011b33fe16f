#include "runtime/plan/disk_rate.h"

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/system/clock_for_test.h"
#include "offload/disk/faulty_disk_for_test.h"
#include "offload/prompt_cache/kv_folder.h"

namespace tiercel {
namespace {

constexpr KvLayout kLayout = {DType::kF16, DType::kF16, /*kv_heads=*/2,
                              /*head_dim=*/32};

// A disk whose n-th reading of the whole file takes the n-th of `seconds`.
class PacedDisk : public FaultyDisk {
 public:
  PacedDisk(ManualClock& clock, std::vector<double> seconds)
      : clock_(clock), seconds_(std::move(seconds)) {}
  ssize_t Read(int file, std::byte* to, size_t bytes,
               uint64_t offset) override {
    const double pace = seconds_.at(read_ / written_);
    read_ += bytes;
    clock_.Pass(pace * static_cast<double>(bytes) /
                static_cast<double>(written_));
    return FaultyDisk::Read(file, to, bytes, offset);
  }
  ssize_t Write(int file, const std::byte* from, size_t bytes,
                uint64_t offset) override {
    written_ += bytes;
    return FaultyDisk::Write(file, from, bytes, offset);
  }
  uint64_t written() const { return written_; }
  uint64_t read() const { return read_; }

 private:
  ManualClock& clock_;
  const std::vector<double> seconds_;
  uint64_t written_ = 0;
  uint64_t read_ = 0;
};

// The first reading counts only if there is no other; else the result is the
// median of the others. Reading ends after a second and a half.
TEST(DiskRateTest, IsTheMedianBehindTheFirst) {
  struct {
    std::vector<double> seconds;
    size_t passes;
    double counts;
  } const cases[] = {{{0.5, 0.1, 0.2, 0.31, 0.4}, 5, 0.2},
                     {{1.6}, 1, 1.6},
                     {std::vector<double>(12, 0.1), 12, 0.1}};
  for (const auto& [seconds, passes, counts] : cases) {
    const FolderForTest folder;
    const KvFolder texts(folder.path() + "/texts", uint64_t{1} << 30,
                         GoodDisk());
    ManualClock clock;
    PacedDisk disk(clock, seconds);
    const auto rate =
        MeasureDiskRate(disk, *texts.OpenNameless(), kLayout, kGoOn, clock);
    ASSERT_TRUE(rate.ok()) << rate.status();
    EXPECT_EQ(disk.read(), passes * disk.written());
    EXPECT_NEAR(rate->bytes_per_s * counts, static_cast<double>(disk.written()),
                1e-3 * static_cast<double>(disk.written()));
  }
}

}  // namespace
}  // namespace tiercel

#include "offload/ranks/gather.h"

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "lib/status/error.h"

namespace tiercel {
namespace {

// A rank's fault in a gather.
enum class Fault { kNone, kLate, kDies, kSendsTooFewRows, kSendsTooFewColumns };

// A gather in which the rank `rank` has a fault once, in its gather number
// `at`.
class FaultyGather final : public Gather {
 public:
  FaultyGather(RankGroup& group, int rank, Fault fault, int at)
      : Gather(group), inner_(group), rank_(rank), fault_(fault), left_(at) {}

 private:
  absl::Status Exchange(Stream& stream, int rank,
                        const GatherParams& p) override {
    if (rank != rank_ || left_-- != 0) return inner_.All(stream, rank, p);
    GatherParams less = p;
    std::vector<Columns> columns(p.columns.begin(), p.columns.end());
    switch (fault_) {
      case Fault::kNone:
        break;
      case Fault::kLate:
        std::this_thread::sleep_for(std::chrono::milliseconds(3));
        break;
      case Fault::kDies:
        return DeviceError("device_lost", "this rank is gone");
      case Fault::kSendsTooFewRows:
        --less.rows;
        break;
      case Fault::kSendsTooFewColumns:
        --columns[static_cast<size_t>(rank)].end;
        less.columns = columns;
        break;
    }
    // Its own success does not count.
    const absl::Status status = inner_.All(stream, rank, less);
    return fault_ == Fault::kLate || !status.ok()
               ? status
               : InternalError("rank_failed", "it gave too little");
  }

  InProcessGather inner_;
  const int rank_;
  const Fault fault_;
  int left_;
};

class GatherTest : public ::testing::Test {
 protected:
  static constexpr int kRanks = 3;
  static constexpr int64_t kStride = 50;  // more than the 41 columns
  static constexpr int kGathers = 5;

  static float Value(int gather, int64_t row, int64_t column) {
    return static_cast<float>((gather * 100 + row) * 100 + column);
  }

  // The matrix of one rank, and its own columns where they are not in place.
  struct Matrix {
    std::vector<float> all;
    std::vector<float> own;
  };

  GatherTest() : group_(*RankGroup::Create(kRanks)) {
    for (int rank = 0; rank < kRanks; ++rank) {
      streams_.push_back(*Stream::Create({.threads = 2}));
    }
  }

  // Does several gathers, one after the other, of `rows` rows; a rank rewrites
  // its columns as soon as it may.
  absl::Status GatherAll(Gather& gather, int64_t rows, bool apart) {
    // Two take turns: a rank's columns stay unchanged until the next meeting,
    // and the last ones to the end of the run.
    std::vector<std::array<Matrix, 2>> matrices(kRanks);
    return gather.Run([&](int rank) -> absl::Status {
      const Columns mine = columns_[static_cast<size_t>(rank)];
      const int64_t width = mine.size();
      std::array<Matrix, 2>& of_turn = matrices[static_cast<size_t>(rank)];
      for (Matrix& m : of_turn) {
        m.all.assign(static_cast<size_t>(rows * kStride), -1);
        m.own.assign(static_cast<size_t>(rows * width), -1);
      }
      for (int i = 0; i < kGathers; ++i) {
        Matrix& m = of_turn[static_cast<size_t>(i % 2)];
        float* const own = apart ? m.own.data() : m.all.data() + mine.begin;
        const int64_t own_stride = apart ? width : kStride;
        for (int64_t row = 0; row < rows; ++row) {
          for (int64_t c = 0; c < width; ++c) {
            own[row * own_stride + c] = Value(i, row, mine.begin + c);
          }
        }
        if (absl::Status s =
                gather.All(*streams_[static_cast<size_t>(rank)], rank,
                           {.columns = columns_,
                            .rows = rows,
                            .own = InPlace(own),
                            .own_stride = own_stride,
                            .all = InPlace(m.all.data()),
                            .all_stride = kStride});
            !s.ok()) {
          return s;
        }
        for (int64_t row = 0; row < rows; ++row) {
          for (int64_t c = 0; c < kStride; ++c) {
            const float expected =
                c < columns_.back().end ? Value(i, row, c) : -1;
            if (m.all[static_cast<size_t>(row * kStride + c)] != expected) {
              return InternalError("wrong", "another number");
            }
          }
        }
      }
      return absl::OkStatus();
    });
  }

  const std::unique_ptr<RankGroup> group_;
  std::vector<std::unique_ptr<Stream>> streams_;
  // They are uneven, and one rank has none.
  const std::vector<Columns> columns_ = {{0, 16}, {16, 16}, {16, 41}};
};

TEST_F(GatherTest, EveryRankHasAll) {
  InProcessGather gather(*group_);
  uint64_t rows_gathered = 0;
  for (const bool apart : {false, true}) {
    for (const int64_t rows : {0, 1, 3, 700}) {
      const absl::Status status = GatherAll(gather, rows, apart);
      EXPECT_TRUE(status.ok()) << status << ", rows " << rows;
      rows_gathered += static_cast<uint64_t>(rows * kGathers);
    }
  }
  EXPECT_EQ(gather.received(0), rows_gathered * 25 * sizeof(float));
  EXPECT_EQ(gather.received(1), rows_gathered * 41 * sizeof(float));
  EXPECT_EQ(gather.received(2), rows_gathered * 16 * sizeof(float));
}

TEST_F(GatherTest, WhoIsLateIsAwaited) {
  for (int rank = 0; rank < kRanks; ++rank) {
    for (int at = 0; at < kGathers; ++at) {
      FaultyGather gather(*group_, rank, Fault::kLate, at);
      const absl::Status status = GatherAll(gather, 2, /*apart=*/false);
      EXPECT_TRUE(status.ok()) << status;
    }
  }
}

// A fault of any rank, in any gather, is one error; no rank hangs, and the next
// run gathers right.
TEST_F(GatherTest, WhoDiesOrSendsTooLittleIsAnError) {
  for (const Fault fault :
       {Fault::kDies, Fault::kSendsTooFewRows, Fault::kSendsTooFewColumns}) {
    for (int rank = 0; rank < kRanks; rank += 2) {
      for (int at = 0; at < kGathers; ++at) {
        FaultyGather gather(*group_, rank, fault, at);
        const absl::Status status = GatherAll(gather, 3, /*apart=*/true);
        EXPECT_EQ(CodeOf(status),
                  fault == Fault::kDies ? "device_lost" : "gather_failed")
            << status;
        // The fault was for once, and gathers are counted anew.
        const absl::Status next = GatherAll(gather, 3, /*apart=*/true);
        EXPECT_TRUE(next.ok()) << next;
      }
    }
  }
}

}  // namespace
}  // namespace tiercel

// Compares attention shares with the same computed in double precision over the
// stored keys.

#include "offload/retrieval/attention_shares.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/kv/kv_row.h"
#include "kernels/number/half.h"
#include "kernels/system/testing.h"
#include "offload/retrieval/testing.h"
#include "tests/setup/draws.h"

namespace tiercel::attention_shares_test {
namespace {

constexpr int kLayers = 2;
constexpr int kKvHeads = 2;
constexpr int kHeads = 4;
constexpr int kHeadDim = 16;
constexpr int64_t kPages = 3;

struct Case {
  int64_t sequence_begin;
  int64_t begin;  // the text's first position
  int64_t runs;
  int64_t end;  // the sequence's end, the position of the first row
  std::vector<int64_t> steps;
  int64_t context = kPages * kPageTokens;
};

class AttentionSharesTest : public ::testing::Test {
 protected:
  AttentionSharesTest() {
    NormalFloats normal(0.0f, 1.0f);
    for (auto& layer : bytes_) {
      layer.assign(static_cast<size_t>(kPages * layout_.PageBytes()),
                   std::byte{0xff});
    }
    for (int layer = 0; layer < kLayers; ++layer) {
      for (int64_t i = 0; i < kPages; ++i) {
        pages_[layer].push_back(InPlace(bytes_[layer].data()) +
                                i * layout_.PageBytes());
      }
      for (int64_t t = 0; t < kPages * kPageTokens; ++t) {
        for (int head = 0; head < kKvHeads; ++head) {
          std::vector<float> row(kHeadDim);
          for (float& x : row) x = normal(random_);
          KvRowFromF32(
              DType::kF16, row.data(), kHeadDim,
              HostAddress(pages_[layer][static_cast<size_t>(t / kPageTokens)]) +
                  layout_.KOffset(head, static_cast<int>(t % kPageTokens)));
        }
      }
    }
  }

  KvPages Pages(const Case& c, int layer, int64_t end) {
    return {.layout = layout_,
            .pages = pages_[layer].data(),
            .first_page = 0,
            .num_pages = kPages,
            .begin = c.sequence_begin,
            .end = end,
            .view = nullptr};
  }

  // Computes Divide in double precision, from means that are rounded to f16.
  void Divide(const Case& c, int layer, const float* q, int chunk,
              std::vector<double>* peaks) {
    const int64_t chunks = c.runs * 32 / chunk;
    for (int head = 0; head < kHeads; ++head) {
      std::vector<double> scores;
      for (int64_t i = 0; i < chunks; ++i) {
        std::vector<float> mean(kHeadDim, 0.0f);
        std::vector<float> row(kHeadDim);
        for (int64_t t = 0; t < chunk; ++t) {
          const StoredRow stored =
              RowAt(Pages(c, layer, 0), head / (kHeads / kKvHeads),
                    c.begin + chunk * i + t);
          KvRowToF32(DType::kF16, stored.k.data(), kHeadDim, row.data());
          for (size_t d = 0; d < mean.size(); ++d) mean[d] += row[d];
        }
        double dot = 0;
        for (size_t d = 0; d < mean.size(); ++d) {
          dot += double{q[static_cast<size_t>(head * kHeadDim) + d]} *
                 F32FromF16(F16FromF32(mean[d] / static_cast<float>(chunk)));
        }
        scores.push_back(std::exp(dot / std::sqrt(double{kHeadDim})));
      }
      double sum = 0;
      for (double score : scores) sum += score;
      for (int64_t run = 0; run < c.runs; ++run) {
        double share = 0;
        for (int64_t i = 0; i < 32 / chunk; ++i) {
          share += scores[static_cast<size_t>(run * 32 / chunk + i)] / sum;
        }
        double& peak = (*peaks)[static_cast<size_t>(
            (layer * kHeads + head) * c.runs + run)];
        peak = std::max(peak, share);
      }
    }
  }

  const KvLayout layout_ = {DType::kF16, DType::kF16, kKvHeads, kHeadDim};
  std::vector<std::byte> bytes_[kLayers];
  std::vector<DevicePtr<std::byte>> pages_[kLayers];
  std::mt19937 random_{7};
};

TEST_F(AttentionSharesTest, AreWhatAQuestionSeesMoreThanOthers) {
  const std::vector<Case> cases = {
      {0, 0, 8, 300, {1, 1}},
      {0, 64, 5, 260, {3, 1, 64}},
      {0, 128, 1, 200, {5, 2}},
      {37, 64, 4, 192, {2, 2}},
      {0, 32, 10, 352, {1, 1, 1}},
      {160, 160, 3, 256, {33, 31}},
      {0, 64, 5, 260, {3, 9}, /*context=*/40000},  // means of 32
      {0, 0, 8, 300, {2, 3, 1, 4, 9}},
  };
  using Rows = AttentionShares::Rows;
  for (const DeviceKind device : {DeviceKind::kCpu, DeviceKind::kRef}) {
    for (const Case& c : cases) {
      PoisonedMemory memory;
      const std::unique_ptr<Stream> stream = MakeStream(device, 2);
      const AttentionShares::Shape shape = {.layout = layout_,
                                            .layers = kLayers,
                                            .heads = kHeads,
                                            .begin = c.sequence_begin,
                                            .context = c.context};
      EXPECT_EQ(shape.Chunk(), c.context > 32768 ? 32 : 8);
      auto made = AttentionShares::Create(memory, shape);
      ASSERT_TRUE(made.ok()) << made.status();
      EXPECT_EQ(memory.used(), shape.Bytes());
      AttentionShares& shares = **made;
      shares.Begin(0, 1);  // a question before this one
      shares.Begin(c.begin / 32, c.begin / 32 + c.runs);
      NormalFloats normal(0.0f, 2.0f);
      const auto peaks = static_cast<size_t>(kLayers * kHeads * c.runs);
      std::vector<double> before(peaks), question(peaks), others(peaks);
      std::vector<double> first_other(peaks);
      int others_read = 0;
      int64_t end = c.end;
      for (size_t step = 0; step < c.steps.size(); ++step) {
        const int64_t rows = c.steps[step];
        // The first step is before the question, which is the last; between
        // them are other questions, and rows that do not count.
        const Rows counted = step == 0 ? Rows::kBeforeTheQuestion
                             : step + 1 == c.steps.size() ? Rows::kOfTheQuestion
                             : step == 2                  ? Rows::kNone
                                                          : Rows::kOfAnother;
        shares.Count(counted);
        std::vector<double> another(peaks);
        ASSERT_TRUE(
            shares.BeginStep(end, rows, true, [] { return false; }).ok());
        for (int layer = 0; layer < kLayers; ++layer) {
          std::vector<float> q(static_cast<size_t>(rows * kHeads * kHeadDim));
          for (float& x : q) x = normal(random_);
          // A pass may give the rows in several parts.
          const int64_t part = (rows + 1) / 2;
          for (int64_t row = 0; row < rows; row += part) {
            ASSERT_TRUE(shares
                            .KeepQueries(
                                *stream, layer, row, std::min(part, rows - row),
                                InPlace(q.data()) + row * kHeads * kHeadDim)
                            .ok());
          }
          ASSERT_TRUE(
              shares.AfterLayer(*stream, layer, Pages(c, layer, end)).ok());
          if (counted == Rows::kNone) continue;
          for (int64_t row = 0; row < rows; ++row) {
            Divide(c, layer, q.data() + row * kHeads * kHeadDim, shape.Chunk(),
                   counted == Rows::kBeforeTheQuestion ? &before
                   : counted == Rows::kOfTheQuestion   ? &question
                                                       : &another);
          }
        }
        if (counted == Rows::kOfAnother && others_read++ == 0) {
          first_other = another;
        }
        for (size_t i = 0; i < peaks; ++i) others[i] += another[i];
        shares.Commit(end + rows);
        end += rows;
      }
      std::vector<double> expected(static_cast<size_t>(c.runs));
      std::vector<double> over_first(expected.size());
      for (size_t i = 0; i < peaks; ++i) {
        const double rest =
            std::max(before[i], others[i] / std::max(others_read, 1));
        expected[i % expected.size()] +=
            question[i] * std::log((question[i] + 0.001) / (rest + 0.001));
        over_first[i % expected.size()] +=
            question[i] *
            std::log((question[i] + 0.001) /
                     (std::max(before[i], first_other[i]) + 0.001));
      }
      double sum = 0;
      for (double& x : expected) sum += x = std::max(x, 0.0);
      // If there is only one run, each row gives it all.
      ASSERT_EQ(sum > 0, c.runs > 1);
      const auto [found, excess] = shares.Shares();
      const double most =
          kLayers * kHeads * std::log(static_cast<double>(c.runs));
      double over = 0;
      for (const double x : over_first) over += std::max(x, 0.0);
      EXPECT_NEAR(excess, c.runs > 1 ? over / most : 0, 2e-3);
      ASSERT_EQ(found.size(), expected.size());
      double all = 0;
      for (size_t i = 0; i < found.size(); ++i) {
        // The tolerance allows for a chain of head_dim float products, scores
        // of a few units, and f16 means that may round the other way.
        EXPECT_NEAR(found[i], c.runs > 1 ? expected[i] / sum : 0, 2e-3)
            << "begin " << c.begin << ", run " << i;
        all += found[i];
      }
      EXPECT_NEAR(all, c.runs > 1 ? 1 : 0, 1e-12);
    }
  }
}

TEST_F(AttentionSharesTest, KeysThatAreNoNumbersCountForNothing) {
  const Case c = {0, 0, 4, 200, {1}};
  PoisonedMemory memory;
  const std::unique_ptr<Stream> stream = MakeStream(DeviceKind::kCpu);
  auto shares = AttentionShares::Create(
      memory,
      {.layout = layout_, .layers = 1, .heads = kHeads, .context = 200});
  ASSERT_TRUE(shares.ok()) << shares.status();
  (*shares)->Begin(0, 4);
  (*shares)->Count(AttentionShares::Rows::kOfTheQuestion);
  const std::vector<float> q(kHeads * kHeadDim,
                             std::numeric_limits<float>::quiet_NaN());
  ASSERT_TRUE((*shares)->BeginStep(200, 1, true, [] { return false; }).ok());
  ASSERT_TRUE((*shares)->KeepQueries(*stream, 0, 0, 1, InPlace(q.data())).ok());
  ASSERT_TRUE((*shares)->AfterLayer(*stream, 0, Pages(c, 0, 200)).ok());
  EXPECT_EQ((*shares)->Shares().shares, std::vector<double>(4, 0.0));
}

}  // namespace
}  // namespace tiercel::attention_shares_test

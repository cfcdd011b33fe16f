// A step whose pages are divided between the device and the host has the bits
// of one device that has them all.

#include "offload/kv/host_attention.h"

#include <chrono>
#include <cmath>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/attention/testing.h"
#include "kernels/kv/testing.h"
#include "kernels/system/clock_for_test.h"
#include "kernels/system/testing.h"
#include "offload/tier/tier_shape.h"

namespace tiercel {
namespace {

std::unique_ptr<HostAttention> MakeHost(Stream& device, const Problem& problem,
                                        double rate, Clock& clock) {
  const AttentionParams p = problem.Params();
  HostAttention::Options options;
  options.heads = p.heads;
  options.head_dim = p.layout.head_dim;
  options.q_stride = p.q_stride;
  options.cpu = MakeStream(DeviceKind::kCpu, 2);
  options.bytes_per_s = rate;
  options.clock = &clock;
  auto host = HostAttention::Create(device.memory(), std::move(options));
  EXPECT_TRUE(host.ok()) << host.status();
  return *std::move(host);
}

// Computes the problem on a device that has all pages but `count` from `first`
// on, which the host attends to.
std::vector<float> RunShared(const Problem& problem, Stream& device,
                             HostAttention& host, int64_t first,
                             int64_t count) {
  const auto attend = [&](Stream& stream, AttentionParams p) {
    const AttentionParams below = problem.Params();
    std::vector<DevicePtr<std::byte>> there(
        p.pages, p.pages + static_cast<size_t>(p.num_pages));
    std::vector<DevicePtr<std::byte>> hosts(there.size(), nullptr);
    for (int64_t page = first; page < first + count; ++page) {
      const auto at = static_cast<size_t>(page - p.first_page);
      there[at] = nullptr;
      hosts[at] = below.pages[at];
    }
    p.pages = there.data();
    return host.Attend(
        stream, p,
        {.by = &host, .first = first, .count = count, .pages = hosts.data()});
  };
  return problem.Run(device, 0, problem.c().rows, attend);
}

class HostAttentionTest : public BackendTest {};
INSTANTIATE_TEST_SUITE_P(Backends, HostAttentionTest,
                         testing::ValuesIn(FastBackends()), NameOfBackend);

TEST_P(HostAttentionTest, ASharedStepHasTheSameBits) {
  const std::unique_ptr<Stream> device = NewStream(2);
  const std::unique_ptr<Stream> ref = MakeStream(DeviceKind::kRef, 1);
  for (const Case& c : std::vector<Case>{
           {4, 2, 40, DType::kF16, DType::kF16, 5, 6 * kPageTokens - 3, 17},
           {2, 2, 64, DType::kQ8_0, DType::kQ4_0, 3 * kPageTokens,
            9 * kPageTokens, 1},
           // so many rows that their outputs go up as several lists
           {9, 3, 128, DType::kF16, DType::kF16, 0, 6 * kPageTokens, 64}}) {
    const Problem problem(c);
    const std::vector<float> expected = problem.Run(*ref);
    const auto host = MakeHost(*device, problem, 0, SteadyClock());
    const int64_t begin = c.begin / kPageTokens;
    for (const auto& [first, count] :
         {std::pair<int64_t, int64_t>{0, 1}, {0, 5}, {2, 3}, {4, 1}}) {
      EXPECT_TRUE(SameBits(
          RunShared(problem, *device, *host, begin + first, count), expected))
          << NameOfCase(c) << ": the host has " << count << " from " << first;
    }
  }
}

// A fault in a page of the host's reaches the rows that see it.
TEST_P(HostAttentionTest, FaultsOfTheHostsPagesShow) {
  const std::unique_ptr<Stream> device = NewStream(2);
  Problem problem({2, 2, 64, DType::kF16, DType::kF16, 0, 4 * kPageTokens, 3});
  const auto host = MakeHost(*device, problem, 0, SteadyClock());
  const auto nan = static_cast<uint16_t>(0x7e00);
  std::memcpy(problem.K(kPageTokens + 7, 1), &nan, sizeof(nan));
  const std::vector<float> out = RunShared(problem, *device, *host, 1, 2);
  for (size_t i = 0; i < out.size(); ++i) {
    EXPECT_EQ(std::isnan(out[i]), i / 64 % 2 == 1) << i;
  }
}

// A page takes the link 2 s and the host 3 s, and the rest of a layer 4 s.
TEST(HostShareTest, TheHostIsDoneWhenTheLinkIs) {
  const HostShare share = {.link_s = 2, .host_s = 3, .compute_s = 4};
  EXPECT_EQ(share.Pages(0), 0);
  EXPECT_EQ(share.Pages(1), 0);  // the link is done before the host could begin
  EXPECT_EQ(share.Pages(2), 0);
  EXPECT_EQ(share.Pages(4), 0);
  EXPECT_EQ(share.Pages(5), 1);
  // 36 s: 18 pages cross, and 10 take the host 30 s behind the first 4.
  EXPECT_EQ(share.Pages(28), 10);
  EXPECT_EQ(HostShare().Pages(1000), 0);
}

TEST(HostAttentionRateTest, TheHostPretendsToBeAsSlowAsStated) {
  const std::unique_ptr<Stream> cpu = MakeStream(DeviceKind::kCpu, 1);
  const Problem problem(
      {2, 2, 64, DType::kF16, DType::kF16, 0, 4 * kPageTokens, 1});
  ManualClock clock;
  const double page_bytes =
      static_cast<double>(problem.Params().layout.PageBytes());
  const auto host = MakeHost(*cpu, problem, page_bytes / 10, clock);
  const Clock::Time begin = clock.Now();
  RunShared(problem, *cpu, *host, 0, 3);
  EXPECT_NEAR(SecondsBetween(begin, clock.Now()), 30, 1e-6);
}

}  // namespace
}  // namespace tiercel

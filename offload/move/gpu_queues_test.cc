// Long runs of the queues between the host and a GPU: lists go through the ring
// of pinned memory while kernels read them, and a link copies beside work that
// is under way. They run on the hosted device, and on a GPU if there is one.

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <numeric>
#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/device/cuda/send_ring.h"
#include "kernels/device/sim/bounded_memory.h"
#include "kernels/kv/kv_write.h"
#include "kernels/system/faults.h"
#include "kernels/system/testing.h"
#include "offload/kv/kv_tier.h"
#include "offload/kv/tiered_kv.h"
#include "offload/move/gpu_link.h"
#include "tests/setup/draws.h"

namespace tiercel::gpu_queues_test {
namespace {

class GpuQueuesTest : public BackendTest {
 protected:
  void SetUp() override {
    BackendTest::SetUp();
    if (!IsSkipped()) stream_ = NewStream();
  }
  // Returns `few` where kernels run slowly, else `all`.
  static int64_t Count(int64_t all, int64_t few) {
    return TriesFew() ? few : all;
  }

  std::unique_ptr<GpuLink> NewLink() {
    return std::make_unique<GpuLink>(
        stream_->queue(), *OpenGpu(),
        std::make_shared<Placement>(&stream_->queue()));
  }

  std::unique_ptr<Stream> stream_;
};

INSTANTIATE_TEST_SUITE_P(Backends, GpuQueuesTest, testing::ValuesIn(Gpus()),
                         NameOfBackend);

std::vector<uint32_t> Numbers(int64_t count, uint32_t first) {
  std::vector<uint32_t> numbers(static_cast<size_t>(count));
  std::iota(numbers.begin(), numbers.end(), first);
  return numbers;
}

// Lists of all sizes go round the ring many times, so that a half is filled
// again while kernels may still read it.
TEST_P(GpuQueuesTest, ListsOfTheRingArriveInTheirOrder) {
  constexpr auto kMost =
      static_cast<int64_t>(SendRing::kMostBytes / sizeof(uint32_t));
  const int64_t lists = Count(400, 12);
  std::mt19937 random(1);
  std::vector<std::vector<uint32_t>> sent;
  int64_t all = 0;
  for (int64_t i = 0; i < lists; ++i) {
    const int64_t size =
        i % 5 == 0 ? kMost - i % 3 : static_cast<int64_t>(random()) % 5000 + 1;
    sent.push_back(Numbers(size, static_cast<uint32_t>(i) << 20));
    all += size;
  }
  OnDevice<uint32_t> out(*stream_, Numbers(all, 0));
  DevicePtr<uint32_t> to = out.data();
  for (std::vector<uint32_t>& list : sent) {
    ASSERT_TRUE(stream_->Send(to, list.data(), 4 * list.size()).ok());
    to += std::ssize(list);
    // The list has been read: later writes to it must not change what arrives.
    std::fill(list.begin() + 1, list.end(), 0xdeadbeefu);
  }
  const std::vector<uint32_t> got = out.Read();
  auto next = got.begin();
  for (const std::vector<uint32_t>& list : sent) {
    const auto size = static_cast<std::ptrdiff_t>(list.size());
    ASSERT_TRUE(std::equal(
        next, next + size,
        Numbers(static_cast<int64_t>(list.size()), list.front()).begin()));
    next += size;
  }
}

// A list that is larger than a half of the ring, or not of whole words, is a
// copy, which keeps its turn.
TEST_P(GpuQueuesTest, OtherListsKeepTheirTurn) {
  constexpr size_t kLarge = SendRing::kMostBytes + 4;
  std::vector<std::byte> first(kLarge, std::byte{1});
  const std::vector<std::byte> second(7, std::byte{2});
  const std::vector<std::byte> third(8, std::byte{3});
  OnDevice<std::byte> out(*stream_, std::vector<std::byte>(kLarge));
  ASSERT_TRUE(stream_->Send(out.data(), first.data(), kLarge).ok());
  ASSERT_TRUE(stream_->Send(out.data(), third.data(), 8).ok());
  ASSERT_TRUE(stream_->Send(out.data(), second.data(), 7).ok());
  const std::vector<std::byte> got = out.Read();
  std::copy(third.begin(), third.end(), first.begin());
  std::copy(second.begin(), second.end(), first.begin());
  EXPECT_EQ(got, first);
}

// Bytes go down and up again in pieces of all sizes, some small, in several
// blocks, of memory that is pinned and not.
TEST_P(GpuQueuesTest, WhatGoesDownComesUp) {
  const int64_t bytes =
      Count(5 * GpuLink::kGroupBytes, GpuLink::kGroupBytes) + 4096;
  for (const bool pinned : {true, false}) {
    // A refused pin costs speed only.
    const Faults faults(Callee::kHost,
                        [&](const Operation&) { return pinned ? 0 : 1; });
    const std::unique_ptr<GpuLink> link = NewLink();
    const HostRegion region = *HostRegion::Reserve(static_cast<size_t>(bytes));
    std::vector<std::byte> values(static_cast<size_t>(bytes));
    std::mt19937 random(2);
    for (std::byte& value : values) value = static_cast<std::byte>(random());
    OnDevice<std::byte> from(*stream_, values);
    OnDevice<std::byte> to(*stream_, std::vector<std::byte>(values.size()));
    const std::atomic<bool> go_on = false;
    ASSERT_TRUE(link->Await(link->Mark()).ok());
    for (const Direction direction :
         {Direction::kDeviceToHost, Direction::kHostToDevice}) {
      const bool up = direction == Direction::kHostToDevice;
      const DevicePtr<std::byte> device = up ? to.data() : from.data();
      for (int64_t at = 0; at < bytes;) {
        const int64_t wish =
            static_cast<int64_t>(random()) % (4 * GpuLink::kSmallBytes) + 1;
        const int64_t size =
            std::min(random() % 4 == 0 ? 100 * wish : wish, bytes - at);
        const auto moved =
            link->Copy({direction, &region, at, device + at, size}, {}, go_on);
        ASSERT_TRUE(moved.ok()) << moved.status();
        ASSERT_EQ(moved->bytes, size);
        at += size;
      }
      const auto finished = link->Finish();
      ASSERT_TRUE(finished.ok()) << finished.status();
    }
    EXPECT_EQ(to.Read(), values);
    link->Forget(region);
  }
}

// The pages of a sequence, written by a kernel, come and go through two layer
// buffers: every page that a layer shows equals a mirror in host memory.
TEST_P(GpuQueuesTest, LayersSeeWhatWasWritten) {
  constexpr KvLayout kLayout = {DType::kF16, DType::kF16, 2, 64};
  constexpr int kLayers = 5;
  constexpr int64_t kContextPages = 12;
  constexpr int64_t kRow = 2 * 64;
  TierShape shape = {};
  shape.layout = kLayout;
  shape.layers = kLayers;
  shape.context_pages = kContextPages;
  shape.resident_pages = 1;
  shape.staged_pages = kContextPages - 1;
  const auto memory = *BoundedMemory::Create(
      AlignedBytes(shape.StagingBytes() + shape.SlotBytes()),
      &stream_->memory());
  const std::shared_ptr<KvTier> tier =
      *KvTier::Create(shape, *memory, NewLink());
  TieredKv kv(tier, /*begin=*/0);

  const auto never = [] { return false; };
  std::mt19937 random(3);
  NormalFloats normal;
  const auto page_bytes = static_cast<size_t>(kLayout.PageBytes());
  std::vector<std::vector<std::byte>> mirror(
      kLayers, std::vector<std::byte>(kContextPages * page_bytes));
  const std::unique_ptr<Stream> ref = MakeStream(DeviceKind::kRef);
  for (const int64_t rows : {300, 1, 17, 500, 1, 64, 200, 1}) {
    ASSERT_TRUE(kv.BeginStep(rows, Phase::kVerify, View::Full(), never).ok());
    for (int layer = 0; layer < kLayers; ++layer) {
      std::vector<float> values(static_cast<size_t>(rows * kRow));
      for (float& value : values) value = normal(random);
      OnDevice<float> on_device(*stream_, values);
      const auto pages = kv.BeginLayer(layer, never);
      ASSERT_TRUE(pages.ok()) << pages.status();
      KvWriteParams p = {.k = on_device.data(),
                         .v = on_device.data(),
                         .k_stride = kRow,
                         .v_stride = kRow,
                         .rows = rows,
                         .layout = kLayout,
                         .pages = pages->pages,
                         .first_page = pages->first_page,
                         .num_pages = pages->num_pages,
                         .position = pages->end};
      ASSERT_TRUE(KvWrite(*stream_, p).ok());
      std::vector<std::byte>& all = mirror[static_cast<size_t>(layer)];
      std::vector<DevicePtr<std::byte>> mirrored;
      for (int64_t i = 0; i < kContextPages; ++i) {
        mirrored.push_back(InPlace(all.data()) + i * kLayout.PageBytes());
      }
      p.k = p.v = InPlace(values.data());
      p.pages = mirrored.data();
      p.first_page = 0;
      p.num_pages = kContextPages;
      ASSERT_TRUE(KvWrite(*ref, p).ok());
      // Compares all rows that exist, page by page.
      const int64_t end = pages->end + rows;
      for (int64_t page = 0; page * kPageTokens < end; ++page) {
        std::vector<std::byte> got(page_bytes);
        ASSERT_TRUE(stream_
                        ->Copy(got.data(),
                               pages->pages[page - pages->first_page],
                               page_bytes)
                        .ok());
        ASSERT_TRUE(stream_->Synchronize().ok());
        const auto cells = static_cast<size_t>(
            std::min<int64_t>(kPageTokens, end - page * kPageTokens));
        for (int head = 0; head < kLayout.kv_heads; ++head) {
          for (const int64_t at :
               {kLayout.KOffset(head, 0), kLayout.VOffset(head, 0)}) {
            const std::byte* const expected =
                HostAddress(mirrored[static_cast<size_t>(page)]) + at;
            ASSERT_TRUE(std::equal(
                expected,
                expected + cells * static_cast<size_t>(kLayout.KRowBytes()),
                got.data() + at))
                << "layer " << layer << " page " << page << " of " << end;
          }
        }
      }
      kv.EndLayer(layer);
    }
    ASSERT_TRUE(kv.Commit(rows, never).ok());
  }
  EXPECT_GT(kv.length(), 8 * kPageTokens);
}

}  // namespace
}  // namespace tiercel::gpu_queues_test

#include "offload/prompt_cache/kv_format.h"

#include <array>
#include <cstring>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "lib/status/error.h"

namespace tiercel {
namespace {

KvFileInfo SomeInfo() {
  KvFileInfo info;
  info.fingerprint = R"({"model":"a"})";
  info.title = "m.gguf";
  info.layout = {DType::kQ8_0, DType::kF16, /*kv_heads=*/2, /*head_dim=*/32};
  info.layers = 3;
  for (int i = 0; i < 300; ++i) info.ids.push_back(i * i);
  for (uint64_t i = 0; i < 9; ++i) info.sums.push_back(i << 60 | i);
  return info;
}

std::string CodeOfFront(std::span<const std::byte> front, uint64_t bytes) {
  return CodeOf(DecodeFront(front, bytes).status());
}

// The numbers are worked out by hand from offload/KV_FORMAT.md.
TEST(KvFormatTest, TheBytesAreWhereTheFormatSays) {
  const KvFileInfo info = SomeInfo();
  const std::vector<std::byte> front = EncodeFront(info);
  // 80 + 13 + 6 + 4 * 300 + 8 * 3 layers * 3 pages + 8
  ASSERT_EQ(front.size(), 1379u);
  EXPECT_EQ(info.PayloadOffset(), 4096u);
  // 2 heads * 128 * (34 + 64)
  constexpr uint64_t kPage = 25088;
  EXPECT_EQ(info.PageOffset(1, 2), 4096 + 5 * kPage);
  EXPECT_EQ(info.CommitOffset(), 4096 + 9 * kPage);
  EXPECT_EQ(info.FileBytes(), 4096 + 9 * kPage + 32);
  const auto at = [&](size_t place) {
    uint32_t number;
    std::memcpy(&number, front.data() + place, sizeof(number));
    return number;
  };
  EXPECT_EQ(std::memcmp(front.data(), "\x89TKV\r\n\x1a\n", 8), 0);
  EXPECT_EQ(at(8), 1u);                      // version
  EXPECT_EQ(front[12], std::byte{4});        // little-endian
  EXPECT_EQ(at(16), 4096 + 9 * kPage + 32);  // bytes of the file
  EXPECT_EQ(at(24), 4096u);                  // offset of the pages
  EXPECT_EQ(at(32), kPage);
  EXPECT_EQ(at(40), 300u);  // positions
  EXPECT_EQ(at(48), 128u);
  EXPECT_EQ(at(52), 3u);
  EXPECT_EQ(at(56), 2u);
  EXPECT_EQ(at(60), 32u);
  EXPECT_EQ(at(64), 3u);  // q8_0
  EXPECT_EQ(at(68), 1u);  // f16
  EXPECT_EQ(at(80 + 13 + 6 + 4 * 17), 17u * 17);
  EXPECT_EQ(std::memcmp(EncodeCommit(front).data(), "TKV end\n", 8), 0);
}

TEST(KvFormatTest, EveryTypeOfKvHasItsNumber) {
  constexpr DType kTypes[] = {DType::kF32, DType::kF16, DType::kBF16,
                              DType::kQ8_0, DType::kQ4_0};
  for (uint32_t i = 0; i < std::size(kTypes); ++i) {
    KvFileInfo info = SomeInfo();
    info.layout.type_v = kTypes[i];
    const std::vector<std::byte> front = EncodeFront(info);
    uint32_t number;
    std::memcpy(&number, front.data() + 68, sizeof(number));
    EXPECT_EQ(number, i);
    const auto read = DecodeFront(front, info.FileBytes());
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(read->layout.type_v, kTypes[i]);
  }
}

TEST(KvFormatTest, WhatIsWrittenIsRead) {
  const KvFileInfo info = SomeInfo();
  const std::vector<std::byte> front = EncodeFront(info);
  const absl::StatusOr<KvFileInfo> read = DecodeFront(front, info.FileBytes());
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->fingerprint, info.fingerprint);
  EXPECT_EQ(read->title, info.title);
  EXPECT_EQ(read->ids, info.ids);
  EXPECT_EQ(read->sums, info.sums);
  EXPECT_EQ(read->layers, 3);
  EXPECT_EQ(read->layout.PageBytes(), info.layout.PageBytes());
  EXPECT_EQ(EncodeFront(*read), front);
  EXPECT_TRUE(CheckCommit(EncodeCommit(front), front).ok());
}

TEST(KvFormatTest, EveryBitThatFlipsIsNoticed) {
  const KvFileInfo info = SomeInfo();
  std::vector<std::byte> front = EncodeFront(info);
  std::array<std::byte, kCommitBytes> commit = EncodeCommit(front);
  for (size_t bit = 0; bit < 8 * front.size(); ++bit) {
    const auto flip = static_cast<std::byte>(1 << bit % 8);
    front[bit / 8] ^= flip;
    EXPECT_FALSE(DecodeFront(front, info.FileBytes()).ok()) << "bit " << bit;
    front[bit / 8] ^= flip;
  }
  for (size_t bit = 0; bit < 8 * commit.size(); ++bit) {
    const auto flip = static_cast<std::byte>(1 << bit % 8);
    commit[bit / 8] ^= flip;
    EXPECT_EQ(CodeOf(CheckCommit(commit, front)), "text_damaged") << bit;
    commit[bit / 8] ^= flip;
  }
}

TEST(KvFormatTest, WhatIsCutIsNoticed) {
  const KvFileInfo info = SomeInfo();
  const std::vector<std::byte> front = EncodeFront(info);
  for (size_t size = 0; size < front.size(); ++size) {
    const std::span<const std::byte> some(front.data(), size);
    EXPECT_EQ(CodeOfFront(some, info.FileBytes()), "text_damaged") << size;
  }
  for (const uint64_t bytes : {uint64_t{0}, info.FileBytes() - 1,
                               info.FileBytes() + 1, ~uint64_t{0}}) {
    EXPECT_EQ(CodeOfFront(front, bytes), "text_damaged") << bytes;
  }
}

TEST(KvFormatTest, OtherVersionsAreNotGuessed) {
  const KvFileInfo info = SomeInfo();
  std::vector<std::byte> front = EncodeFront(info);
  front[8] = std::byte{2};
  EXPECT_EQ(CodeOfFront(front, info.FileBytes()), "text_version");
  front[8] = std::byte{1};
  std::swap(front[12], front[15]);
  std::swap(front[13], front[14]);
  EXPECT_EQ(CodeOfFront(front, info.FileBytes()), "text_version");
}

// Numbers for which a reader would allocate more memory than any file needs are
// refused.
TEST(KvFormatTest, NumbersAreBoundedBeforeAnythingFollowsFromThem) {
  const KvFileInfo info = SomeInfo();
  const std::vector<std::byte> front = EncodeFront(info);
  for (const size_t place : {40, 48, 52, 56, 60, 64, 68, 72, 76}) {
    for (const uint32_t number : {0u, 1u << 29, 1u << 31, ~0u}) {
      std::vector<std::byte> other = front;
      std::memcpy(other.data() + place, &number, sizeof(number));
      if (other == front) continue;
      EXPECT_EQ(CodeOfFront(other, info.FileBytes()), "text_damaged")
          << place << ": " << number;
    }
  }
}

}  // namespace
}  // namespace tiercel

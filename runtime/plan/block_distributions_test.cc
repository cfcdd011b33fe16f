// The distributions that a block of tokens is drawn from take the memory that
// plans count for them, and no more.

#include <malloc.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <vector>

#include "drafts/verify.h"
#include "drafts/verifying_drafter.h"
#include "gtest/gtest.h"
#include "kernels/device/stream.h"
#include "kernels/token/distribution.h"
#include "runtime/plan/session_plan.h"

namespace {

std::atomic<int64_t> live{0};  // bytes of operator new
std::atomic<int64_t> most{0};

void* New(size_t bytes) {
  void* const data = std::malloc(bytes);
  if (data == nullptr) throw std::bad_alloc();
  const int64_t now = live += static_cast<int64_t>(malloc_usable_size(data));
  most = std::max(most.load(), now);
  return data;
}

void Delete(void* data) {
  live -= static_cast<int64_t>(malloc_usable_size(data));
  std::free(data);
}

}  // namespace

// NOLINTBEGIN: the standard names them
void* operator new(size_t n) { return New(n); }
void* operator new[](size_t n) { return New(n); }
void operator delete(void* p) noexcept { Delete(p); }
void operator delete[](void* p) noexcept { Delete(p); }
void operator delete(void* p, size_t) noexcept { Delete(p); }
void operator delete[](void* p, size_t) noexcept { Delete(p); }
// NOLINTEND

namespace tiercel {
namespace {

constexpr int64_t kVocab = 20'000;

// A model whose logits are nearly the same for every token, so that top-k and
// top-p cuts save nothing.
class Flat final : public DraftTarget {
 public:
  explicit Flat(float slope)
      : slope_(slope), stream_(*Stream::Create({.threads = 1})) {}

  absl::Status Begin(const std::vector<int32_t>& tokens) override {
    tokens_ = tokens;
    return absl::OkStatus();
  }
  absl::StatusOr<std::vector<Distribution>> BehindBranches(
      const DraftBlock& /*block*/,
      absl::Span<const size_t> /*growing*/) override {
    return InternalError("internal", "no branches are drafted here");
  }
  absl::StatusOr<std::vector<Distribution>> Distributions(
      const std::vector<int32_t>& block) override {
    tokens_.insert(tokens_.end(), block.begin(), block.end());
    const auto rows = std::ssize(block) + 1;
    logits_.resize(static_cast<size_t>(64 * kVocab));
    for (int64_t i = 0; i < rows * kVocab; ++i) {
      logits_[static_cast<size_t>(i)] =
          slope_ * static_cast<float>(i % kVocab) / kVocab;
    }
    return MakeDistributions(
        *stream_,
        {.logits = logits_.data(),
         .rows = rows,
         .vocab = kVocab,
         .tokens = tokens_.data(),
         .before = std::ssize(tokens_) - rows + 1,
         .distribution = {
             .temperature = 1, .min_p = 1e-8f, .repeat_penalty = 1.1f}});
  }
  absl::Status Keep(size_t /*count*/, absl::Span<const int32_t> next) override {
    tokens_.insert(tokens_.end(), next.begin(), next.end());
    return absl::OkStatus();
  }

 private:
  const float slope_;
  const std::unique_ptr<Stream> stream_;
  std::vector<float> logits_;
  std::vector<int32_t> tokens_;
};

TEST(BlockDistributionsTest, TakeWhatIsPlanned) {
  constexpr int64_t kBlock = 63;
  Flat draft(0.5f);
  Flat target(-0.5f);
  const std::vector<int32_t> tokens = {1, 2, 3};
  ASSERT_TRUE(target.Begin(tokens).ok());
  VerifyingDrafter drafter(draft, {.name = "flat"});
  const auto round = [&] {
    return VerifyRound(tokens, kBlock, VerifyMode::kResidual, {.seed = 7},
                       &drafter, target);
  };
  ASSERT_TRUE(round().ok());  // makes the logits, too
  ASSERT_TRUE(target.Begin(tokens).ok());
  const int64_t before = live;
  most = before;
  {
    const auto block = round();
    ASSERT_TRUE(block.ok()) << block.status();
    EXPECT_EQ(block->drafted, static_cast<size_t>(kBlock));
  }
  const BlockDistributions distributions = {
      .rows = kBlock + 1, .drafted = kBlock, .draft_rows = 1};
  EXPECT_LE(most - before, distributions.Bytes(kVocab));
  EXPECT_GT(most - before, distributions.Bytes(kVocab) / 10 * 7);
}

}  // namespace
}  // namespace tiercel

// If an op launches several kernels and the device refuses one of them, the op
// returns its error, whichever kernel it is.

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"
#include "gtest/gtest.h"
#include "kernels/attention/attention.h"
#include "kernels/device/cuda/cuda_error.h"
#include "kernels/device/executor/hosted_stream.h"
#include "kernels/kv/kv_layout.h"
#include "kernels/select/importance.h"
#include "kernels/select/selector.h"
#include "kernels/system/testing.h"
#include "lib/status/error.h"

namespace tiercel::refused_launch_test {
namespace {

class RefusedLaunchTest : public testing::Test {
 protected:
  // Runs op() again and again and refuses a later one of its launches each
  // time. Expects at least `kernels` launches.
  static void RefuseEach(int kernels, absl::FunctionRef<absl::Status()> op) {
    for (int at = 0;; ++at) {
      int asked = 0;
      SimFaults faults([&asked, at](std::string_view call) {
        return call == "launch" && asked++ == at ? kCudaInvalidValue : 0;
      });
      const absl::Status status = op();
      faults.End();
      if (asked <= at) {
        EXPECT_TRUE(status.ok()) << status;
        EXPECT_GE(asked, kernels);
        return;
      }
      EXPECT_EQ(CodeOf(status), "device_failed") << at;
    }
  }

  const std::unique_ptr<Stream> stream_ = MakeHostedStream(Order::kAscending);
};

TEST_F(RefusedLaunchTest, Attention) {
  const KvLayout layout = {DType::kF32, DType::kF32, 1, 8};
  OnDevice<std::byte> page(
      *stream_,
      std::vector<std::byte>(static_cast<size_t>(layout.PageBytes())));
  OnDevice<float> q(*stream_, std::vector<float>(16, 1.0f));
  OnDevice<float> out(*stream_, std::vector<float>(16, kPoison));
  const DevicePtr<std::byte> pages[] = {page.data()};
  RefuseEach(2, [&] {
    return tiercel::Attention(*stream_, {.q = q.data(),
                                         .q_stride = 16,
                                         .rows = 1,
                                         .heads = 2,
                                         .scale = 1.0f,
                                         .layout = layout,
                                         .pages = pages,
                                         .first_page = 0,
                                         .num_pages = 1,
                                         .begin = 0,
                                         .position = 5,
                                         .out = out.data()});
  });
  EXPECT_EQ(out.Read(), std::vector<float>(16, 0.0f));
}

TEST_F(RefusedLaunchTest, AddImportance) {
  OnDevice<float> scores(*stream_, std::vector<float>(32, 1.0f));
  OnDevice<float> importance(*stream_, std::vector<float>(16, kPoison));
  RefuseEach(2, [&] {
    if (absl::Status s = stream_->Zero(importance.data(), 16 * sizeof(float));
        !s.ok()) {
      return s;
    }
    return tiercel::AddImportance(*stream_, {.scores = scores.data(),
                                             .scores_stride = 16,
                                             .rows = 1,
                                             .heads = 2,
                                             .kv_heads = 1,
                                             .candidates = 16,
                                             .decay = 1.0f,
                                             .before = importance.data(),
                                             .importance = importance.data(),
                                             .importance_stride = 16});
  });
  EXPECT_EQ(importance.Read(), std::vector<float>(16, 0.5f));
}

TEST_F(RefusedLaunchTest, Select) {
  std::vector<float> said(64, 0.5f);
  said[40] = 2.0f;
  OnDevice<float> importance(*stream_, said);
  OnDevice<uint16_t> norms(*stream_, std::vector<uint16_t>(64, 0x3c00));
  OnDevice<int32_t> kept(*stream_, std::vector<int32_t>(1, -1));
  RefuseEach(2, [&] {
    return tiercel::Select(*stream_, {.importance = importance.data(),
                                      .importance_stride = 64,
                                      .norms = norms.data(),
                                      .norms_stride = 64,
                                      .kv_heads = 1,
                                      .candidates = 64,
                                      .budget = 1,
                                      .most_prior = 0.0f,
                                      .reach = 0,
                                      .suppression = 0.0f,
                                      .exclusivity = 0.0f,
                                      .out = kept.data()});
  });
  EXPECT_EQ(kept.Read(), std::vector<int32_t>{40});
}

}  // namespace
}  // namespace tiercel::refused_launch_test

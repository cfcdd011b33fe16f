// A GPU that refuses (H03 to H08): whatever call fails, it is an error that
// says so, what was not harmed goes on, and all memory comes back.

#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/base/error.h"
#include "kernels/device/hosted_stream.h"
#include "tests/drafting.h"
#include "tests/golden.h"
#include "tests/tiers.h"

namespace tiercel::hosted_faults_test {
namespace {

using testing::AnyOf;

// Fails the call number `at` (from 0) of one name.
class FaultAt {
 public:
  FaultAt(std::string_view call, int at, HostedFault fault) {
    SetHostedFaults([this, call, at, fault](std::string_view asked) {
      const bool fails = asked == call && calls_++ == at;
      met_ = met_ || fails;
      return fails ? fault : HostedFault::kNone;
    });
  }
  ~FaultAt() { SetHostedFaults(nullptr); }
  bool met() const { return met_; }

 private:
  int calls_ = 0;
  bool met_ = false;
};

class HostedFaultsTest : public testing::TestWithParam<std::string_view> {
 protected:
  // A model behind a link, a session of it, a prompt and an answer with drafts.
  static absl::StatusOr<Ids> Run(std::unique_ptr<Model>& model) {
    if (model == nullptr) {
      absl::StatusOr<std::unique_ptr<Model>> opened =
          Model::Open(options_, [](uint64_t, uint64_t) { return true; });
      if (!opened.ok()) return opened.status();
      model = *std::move(opened);
    }
    absl::StatusOr<std::unique_ptr<Session>> session =
        Session::Create(*model, session_);
    if (!session.ok()) return session.status();
    const auto read =
        Prefill(**session, prompt_.data(), prompt_.size(), kNoProgress);
    if (!read.ok()) return read.status();
    const absl::StatusOr<std::unique_ptr<Policy>> policy =
        NewPolicy(**session, params_);
    if (!policy.ok()) return policy.status();
    const Report report =
        Generate(**session, **policy, {}, DraftedParams(0.7f, 6), nullptr);
    if (!report.status.ok()) return report.status;
    return report.tokens;
  }

  static void SetUpTestSuite() {
    params_.policy = PolicyName::kTriForce;
    params_.verify = VerifyMode::kCoupled;
    params_.proposer = Proposer::kNgram;
    params_.view = kSmallView;
    session_ = params_.OptionsFor({.context = 300});
    options_ = {.path = Deepened("llama_chat"),
                .machine = {.device = Device::kCuda, .threads = 2}};
    const auto like = OpenModel(options_);
    const int64_t bytes = BytesFor(*like, session_, Budget::kLeast);
    options_.machine.simulation = {
        {.device_bytes = bytes, .link_bytes_per_s = kFast, .latency_s = 0}};
    prompt_ = RepeatedText(60, 4);
    std::unique_ptr<Model> model;
    const absl::StatusOr<Ids> text = Run(model);
    ASSERT_TRUE(text.ok()) << text.status();
    expected_ = *text;
  }

  // Of the device, and pinned for it.
  static int64_t Used() {
    return MakeHostedStream(Order::kAscending)->memory().used() +
           HostedPinnedBytes();
  }

  static inline Ids prompt_;
  static inline PolicyParams params_;
  static inline Session::Options session_;
  static inline Model::Options options_;
  static inline Ids expected_;
};
INSTANTIATE_TEST_SUITE_P(Calls, HostedFaultsTest,
                         testing::Values("create", "allocate", "pin", "copy",
                                         "launch", "mark", "wait"),
                         [](const auto& one) {
                           return std::string(one.param);
                         });

// The calls to fail: ever fewer of those that follow.
int Next(int at) {
  static const bool all = std::getenv("TIERCEL_ALL_FAULTS") != nullptr;
  return all ? at + 1 + at / 8 : 4 * at + 1;
}

TEST_P(HostedFaultsTest, OneFailedCallFailsOneRequest) {
  const int64_t before = Used();
  bool any = false;
  for (int at = 0;; at = Next(at)) {
    std::unique_ptr<Model> model;
    {
      const FaultAt fault(GetParam(), at, HostedFault::kOnce);
      const absl::StatusOr<Ids> text = Run(model);
      if (!fault.met()) break;
      any = true;
      if (text.ok()) {  // there was another way
        EXPECT_EQ(*text, expected_) << at;
      } else {
        EXPECT_THAT(CodeOf(text.status()),
                    AnyOf("device_failed", "no_device", "out_of_memory"))
            << at << ": " << text.status();
      }
    }
    const absl::StatusOr<Ids> text = Run(model);
    ASSERT_TRUE(text.ok()) << at << ": " << text.status();
    EXPECT_EQ(*text, expected_) << at;
    model.reset();
    EXPECT_EQ(Used(), before) << at;
  }
  EXPECT_TRUE(any);
}

TEST_P(HostedFaultsTest, OfALostDeviceEverybodyIsTold) {
  const int64_t before = Used();
  for (int at = 0;; at = Next(at)) {
    {
      std::unique_ptr<Model> model;
      const FaultAt fault(GetParam(), at, HostedFault::kLost);
      absl::StatusOr<Ids> text = Run(model);
      if (!fault.met()) break;
      for (int again = 0; again < 2; ++again) {
        EXPECT_THAT(CodeOf(text.status()),
                    AnyOf("device_failed", "no_device", "out_of_memory"))
            << at << ": " << text.status();
        text = Run(model);
      }
    }
    EXPECT_EQ(Used(), before) << at;
  }
}

TEST(HostedGpuTest, NoGpuIsSaidBeforeAnythingIsRead) {
  const FaultAt fault("create", 0, HostedFault::kOnce);
  const auto model =
      Model::Open({.path = "/nowhere", .machine = {.device = Device::kCuda}},
                  [](uint64_t, uint64_t) { return true; });
  EXPECT_EQ(CodeOf(model.status()), "no_device");
}

}  // namespace
}  // namespace tiercel::hosted_faults_test
